"""The papers' equations as a page shows them: MathML, which browsers set without a script or a font of ours."""

import re

from markupsafe import Markup

# The equations of snell2021 by number, each with the function of ours that computes it.
_EQUATIONS = {
    1: (
        r"a_{t,l} = s_t^⊤ W h_l \quad α_{t,l} = \frac{e^{a_{t,l}}}{∑_{l^′} e^{a_{t,l^′}}}",
        "models.translator.PairScorer",
    ),
    2: (r"c_t = ∑_l α_{t,l} h_l \quad p_t = N([c_t, s_t])", "models.translator.Translator"),
    4: (r"β_{t,l} = N {([h_l, s_t])}_{y_t}", "models.translator.translator_probe"),
    5: (r"p_t = σ(\frac{1}{L} ∑_l W e_{x_l})", "models.classifier.BagOfWordsProxy"),
    6: (r"β_{t,l}^\text{px} = σ {(W e_{x_l})}_{y_t}", "models.classifier.BagOfWordsProxy"),
    7: (
        r"a_l = v^⊤ \text{ReLU}(Q h_l) \quad α_l = \frac{e^{a_l}}{∑_{l^′} e^{a_{l^′}}}",
        "models.classifier.AttentionClassifier",
    ),
    9: (r"β_l = σ((2 y − 1) W^⊤ h_l)", "models.classifier.lexical_probe"),
    10: (r"A(u, v) = 𝟏[|\{j : v_j > v_{\text{argmax} u}\}| < 5 % · L]", "metrics.agreement.agreement"),
    11: (
        r"ξ(u, v) = p̂(\text{inf} \{τ : A(α, α̂(τ)) > A(u, v)\})",
        "metrics.agreement.contextualised_agreement",
    ),
    16: (r"C_{i,o} = ∑_m ∑_l ∑_t \frac{1}{L^m} 𝟏[x_l^m = i] 𝟏[y_t^m = o]", "models.lexicon.count_table"),
    17: (r"\text{Trans}(o | i) = \frac{C_{i,o}}{∑_{o^′} C_{i,o^′}}", "models.lexicon.translation_table"),
    18: (r"β_{t,l}^\text{IBM} = \text{Trans}(y_t | x_l)", "models.lexicon.Lexicon.beta"),
    19: (
        r"α^\text{IBM}(t, l) = \frac{β_{t,l}^\text{IBM}}{∑_{l^′} β_{t,l^′}^\text{IBM}}",
        "models.lexicon.Lexicon.alpha",
    ),
}
_COUNTED = (16, 17, 18, 19)
_OF_TASK = {
    "classification": (5, 6, 7, 9, 10, 11, *_COUNTED),
    "translation": (1, 2, 4, 5, 6, 10, 11, *_COUNTED),
    "following": (9, 10),
}
_TOKEN = re.compile(r"\\text\{\w+\}|\\\w+|\\[{}]|\d+ %|\w\u0302?|\S")
_SCRIPTS = {"_": "msub", "^": "msup", "_^": "msubsup"}


def equations(task: str) -> list[tuple[int, Markup, str]]:
    """The equations that a study of this task rests on: number, MathML, and the function that computes it."""
    chosen = [(number, *_EQUATIONS[number]) for number in _OF_TASK[task]]
    return [(number, mathml(formula), where) for number, formula, where in chosen]


def linked(numbers: str) -> Markup:
    """`Eqs 5, 6` or `Eqs 16–19` with a link from every number that stands there to its equation on the page.

    >>> linked("Eq. 10")
    Markup('<a href="#eq-10">Eq. 10</a>')
    >>> linked("Eqs 5, 6")
    Markup('Eqs <a href="#eq-5">5</a>, <a href="#eq-6">6</a>')
    """
    first, rest = numbers.split(" ", 1)
    if first == "Eq.":
        return Markup('<a href="#eq-{0}">Eq. {0}</a>').format(rest)
    parts = [Markup('<a href="#eq-{0}">{0}</a>').format(part) for part in rest.replace("–", ", ").split(", ")]
    return Markup(f"{first} ") + Markup("–" if "–" in rest else ", ").join(parts)


def mathml(formula: str) -> Markup:
    r"""A formula in MathML, from the little of TeX that the equations need: `_`, `^`, `{}`, `\frac`, `\text`, `\quad`.

    >>> mathml(r"\frac{1}{L}")
    Markup('<math display="block"><mrow><mfrac><mn>1</mn><mi>L</mi></mfrac></mrow></math>')
    """
    return Markup('<math display="block">{}</math>').format(_element("mrow", *_terms(_TOKEN.findall(formula)[::-1])))


def _terms(tokens: list[str]) -> list[Markup]:
    """Take what stands before the next closing brace from the end of a list of tokens."""
    terms = []
    while tokens and tokens[-1] != "}":
        base, scripts = tokens[-1], ""
        parts = [_atom(tokens)]
        while tokens and tokens[-1] in ("_", "^"):
            scripts += tokens.pop()
            parts.append(_atom(tokens))
        if scripts:
            parts = [_element("munder" if base == "∑" else _SCRIPTS[scripts], *parts)]
        terms += parts
    return terms


def _atom(tokens: list[str]) -> Markup:
    """Take a sign, a name, a number, a group or a fraction."""
    token = tokens.pop()
    if token == "{":
        group = _terms(tokens)
        tokens.pop()
        return group[0] if len(group) == 1 else _element("mrow", *group)
    if token == r"\frac":
        return _element("mfrac", _atom(tokens), _atom(tokens))
    if token == r"\quad":
        return Markup('<mspace width="2em"></mspace>')
    if token.startswith(r"\text"):
        return _element("mtext", token[6:-1])
    kind = "mn" if token.removesuffix(" %").isdigit() else "mi" if token[0].isalpha() else "mo"
    return _element(kind, token.removeprefix("\\"))


def _element(kind: str, *content: Markup | str) -> Markup:
    return Markup("<{0}>{1}</{0}>").format(Markup(kind), Markup().join(content))
