"""The papers' equations as a page shows them: MathML, which browsers set without a script or a font of ours."""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True)
class Equation:
    """One numbered equation of snell2021, and the function of ours that computes it."""

    number: int
    math: Markup
    where: str


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


def equations(task: str) -> list[Equation]:
    """The equations that a study of this task rests on, in the paper's order."""
    return [equation for equation in _EQUATIONS if equation.number in _OF_TASK[task]]


def _token(kind: str, text: str) -> Markup:
    return Markup("<m{0}>{1}</m{0}>").format(Markup(kind), text)


def _row(*parts: Markup | str) -> Markup:
    """Parts in a row; a string is a name, a number or a sign, by how it looks."""
    return Markup("<mrow>") + Markup().join(map(_part, parts)) + Markup("</mrow>")


def _part(part: Markup | str) -> Markup:
    if isinstance(part, Markup):
        return part
    if part.replace(" %", "").isdigit():
        return _token("n", part)
    return _token("i" if part.isalpha() else "o", part)


def _built(kind: str, *parts: Markup | str) -> Markup:
    return Markup("<{0}>{1}</{0}>").format(Markup(kind), Markup().join(map(_part, parts)))


def _sub(base: Markup | str, below: Markup | str) -> Markup:
    return _built("msub", base, below)


def _sup(base: Markup | str, above: Markup | str) -> Markup:
    return _built("msup", base, above)


def _both(base: Markup | str, below: Markup | str, above: Markup | str) -> Markup:
    return _built("msubsup", base, below, above)


def _over(above: Markup | str, below: Markup | str) -> Markup:
    return _built("mfrac", above, below)


def _sum(below: Markup | str) -> Markup:
    return _built("munder", _token("o", "∑"), below)


def _softmax(score: Markup, other: Markup, over: Markup) -> Markup:
    return _over(_sup("e", score), _row(_sum(over), _sup("e", other)))


def _displayed(*parts: Markup | str) -> Markup:
    return Markup('<math display="block">') + _row(*parts) + Markup("</math>")


_TL, _L2 = _row("t", ",", "l"), _sup("l", "′")
_TL2 = _row("t", ",", _L2)
_H, _S, _X, _Y = _sub("h", "l"), _sub("s", "t"), _sub("x", "l"), _sub("y", "t")
_WT, _IO = _sup("W", "⊤"), _row("i", ",", "o")
_APART = Markup('<mspace width="2em"></mspace>')
_TRANS, _IBM, _PX = _token("text", "Trans"), _token("text", "IBM"), _token("text", "px")

_EQUATIONS = (
    Equation(
        1,
        _displayed(
            *(_sub("a", _TL), "=", _both("s", "t", "⊤"), "W", _H, _APART),
            *(_sub("α", _TL), "=", _softmax(_sub("a", _TL), _sub("a", _TL2), _L2)),
        ),
        "models.translator.PairScorer",
    ),
    Equation(
        2,
        _displayed(
            *(_sub("c", "t"), "=", _sum("l"), _sub("α", _TL), _H, _APART),
            *(_sub("p", "t"), "=", "N", "(", "[", _sub("c", "t"), ",", _S, "]", ")"),
        ),
        "models.translator.Translator",
    ),
    Equation(
        4,
        _displayed(_sub("β", _TL), "=", "N", _sub(_row("(", "[", _H, ",", _S, "]", ")"), _Y)),
        "models.translator.translator_probe",
    ),
    Equation(
        5,
        _displayed(_sub("p", "t"), "=", "σ", "(", _over("1", "L"), _sum("l"), "W", _sub("e", _X), ")"),
        "models.classifier.BagOfWordsProxy",
    ),
    Equation(
        6,
        _displayed(_both("β", _TL, _PX), "=", "σ", _sub(_row("(", "W", _sub("e", _X), ")"), _Y)),
        "models.classifier.BagOfWordsProxy",
    ),
    Equation(
        7,
        _displayed(
            *(_sub("a", "l"), "=", _sup("v", "⊤"), _token("text", "ReLU"), "(", "Q", _H, ")", _APART),
            *(_sub("α", "l"), "=", _softmax(_sub("a", "l"), _sub("a", _L2), _L2)),
        ),
        "models.classifier.AttentionClassifier",
    ),
    Equation(
        9,
        _displayed(_sub("β", "l"), "=", "σ", "(", "(", "2", "y", "−", "1", ")", _WT, _H, ")"),
        "models.classifier.lexical_probe",
    ),
    Equation(
        10,
        _displayed(
            *("A", "(", "u", ",", "v", ")", "=", "𝟏", "[", "|", "{", "j", ":", _sub("v", "j"), ">"),
            *(_sub("v", _row(_token("text", "argmax"), "u")), "}", "|", "<", "5 %", "·", "L", "]"),
        ),
        "metrics.agreement.agreement",
    ),
    Equation(
        11,
        _displayed(
            *("ξ", "(", "u", ",", "v", ")", "=", _token("i", "p̂"), "(", _token("text", "inf"), "{", "τ", ":"),
            *("A", "(", "α", ",", _token("i", "α̂"), "(", "τ", ")", ")", ">", "A", "(", "u", ",", "v", ")", "}", ")"),
        ),
        "metrics.agreement.contextualised_agreement",
    ),
    Equation(
        16,
        _displayed(
            *(_sub("C", _IO), "=", _sum("m"), _sum("l"), _sum("t"), _over("1", _sup("L", "m"))),
            *("𝟏", "[", _both("x", "l", "m"), "=", "i", "]", "𝟏", "[", _both("y", "t", "m"), "=", "o", "]"),
        ),
        "models.lexicon.count_table",
    ),
    Equation(
        17,
        _displayed(
            *(_TRANS, "(", "o", "|", "i", ")", "="),
            _over(_sub("C", _IO), _row(_sum(_sup("o", "′")), _sub("C", _row("i", ",", _sup("o", "′"))))),
        ),
        "models.lexicon.translation_table",
    ),
    Equation(
        18,
        _displayed(_both("β", _TL, _IBM), "=", _TRANS, "(", _Y, "|", _X, ")"),
        "models.lexicon.Lexicon.beta",
    ),
    Equation(
        19,
        _displayed(
            *(_sup("α", _IBM), "(", "t", ",", "l", ")", "="),
            _over(_both("β", _TL, _IBM), _row(_sum(_L2), _both("β", _TL2, _IBM))),
        ),
        "models.lexicon.Lexicon.alpha",
    ),
)
_COUNTED = (16, 17, 18, 19)
_OF_TASK = {
    "classification": (5, 6, 7, 9, 10, 11, *_COUNTED),
    "translation": (1, 2, 4, 5, 6, 10, 11, *_COUNTED),
    "following": (9, 10),
}
