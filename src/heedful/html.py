"""HTML that pages and notebooks share: a verdict's answers, dots with whiskers, a table."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

Number = int | float
_SYMBOLS = {
    "alpha": "α",
    "alpha_hat": "α̂",
    "alpha_fr": "α^fr",
    "alpha_ibm": "α^IBM",
    "alpha_opt": "α^opt",
    "beta": "β",
    "beta_uf": "β^uf",
    "beta_px": "β^px",
    "beta_log": "β^log",
    "delta": "Δ",
}
_CONCEPTS = {
    "alpha": "attention",
    "alpha_hat": "another seed’s attention",
    "alpha_fr": "attention on frozen words",
    "alpha_ibm": "word counts",
    "beta": "word knowledge",
    "beta_uf": "word knowledge without attention",
    "beta_px": "word counts",
    "beta_log": "logistic regression",
    "delta": "influence on the prediction",
}
_MARKS = ("M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z", "M0-5.5L5.5 0L0 5.5L-5.5 0z", "M-4-4h8v8h-8z")
_WIDTH, _LEFT, _TOP, _GAP = 720, 98, 40, 15
_STYLE = """
.heedful { --ink: #1d1c1a; --soft: #5a5852; --line: #dcd9d1; --paper: #fff; --s0: #3a4ca6; --s1: #b3460b;
  --yes: #0f5c8c; --no: #a5430a; --unclear: #5f5c55; font-family: system-ui, sans-serif; color: var(--ink);
  background: var(--paper); padding: .5rem 1rem; max-width: 60rem; }
@media (prefers-color-scheme: dark) { .heedful { --ink: #ecebe6; --soft: #aeaca5; --line: #363944; --paper: #14151a;
  --s0: #9fb0ff; --s1: #ff9d5c; --yes: #7cc4f5; --no: #ffad6b; --unclear: #b5b2aa; } }
.heedful .sentence { font-weight: 600; font-size: 1.1rem; }
.heedful .questions { list-style: none; margin: 0; padding: 0; }
.heedful .questions li { display: grid; grid-template-columns: 5.2rem 1fr; gap: .9rem; padding: .4rem 0;
  border-top: 1px solid var(--line); }
.heedful .question, .heedful .because { margin: 0; } .heedful .because { color: var(--soft); font-size: .85em; }
.heedful .badge { justify-self: start; align-self: start; border: 2px solid; border-radius: 2rem; padding: 0 .6rem;
  font-size: .85em; font-weight: 700; }
.heedful .yes { color: var(--yes); } .heedful .no { color: var(--no); } .heedful .unclear,
.heedful .not-asked { color: var(--unclear); border-style: dashed; }
.heedful text { fill: var(--ink); font-size: 13px; } .heedful text.soft { fill: var(--soft); font-size: 12px; }
.heedful .grid { stroke: var(--line); } .heedful .random { stroke: var(--soft); stroke-dasharray: 5 4; }
.heedful .control { stroke: var(--soft); stroke-width: 2.5; } .heedful .whisker, .heedful .dot { stroke-width: 2; }
.heedful .m0 { stroke: var(--s0); fill: var(--s0); } .heedful .m1 { stroke: var(--s1); fill: var(--paper); }
.heedful svg { max-width: 100%; height: auto; }
"""


def symbol(name: str) -> str:
    """A quantity or an agreement in the papers' letters.

    >>> symbol("A(alpha,beta_uf)"), symbol("delta")
    ('A(α, β^uf)', 'Δ')
    """
    if name.startswith("A(") and name.endswith(")"):
        return f"A({', '.join(symbol(part) for part in name[2:-1].split(','))})"
    return _SYMBOLS.get(name, name)


def concept(name: str) -> str:
    """A quantity or an agreement in plain words.

    >>> concept("A(alpha,beta)"), concept("delta")
    ('attention ↔ word knowledge', 'influence on the prediction')
    """
    if name.startswith("A(") and name.endswith(")"):
        return " ↔ ".join(concept(part) for part in name[2:-1].split(","))
    return _CONCEPTS.get(name, name)


def in_letters(text: str) -> str:
    """Quantities within a text in the papers' letters, and minus signs between them.

    >>> in_letters("A(beta_uf,beta_log) - A(beta_uf,beta_px) > -0.1; xi(alpha,beta) of alpha at the largest beta")
    'A(β^uf, β^log) − A(β^uf, β^px) > −0.1; ξ(α, β) of α at the largest β'
    >>> in_letters("-0.662 [-1.07, -0.258]"), in_letters("xi above untrained: 1e-09"), in_letters("tau of x, gradient")
    ('−0.662 [−1.07, −0.258]', 'ξ above untrained: 1e-09', 'τ of x, gradient')
    """
    text = re.sub(r"\b([A-Za-z]\w*\([a-z_]+),(?=[a-z_]+\))", r"\1, ", text)
    text = re.sub(r"\bxi\b", "ξ", re.sub(r"\btau\b", "τ", text))
    text = re.sub(r"\b(?:alpha|beta|delta)(?:_[a-z]+)?\b", lambda match: symbol(match[0]), text)
    return re.sub(r"(?:^|(?<=[ \[(]))-(?=[\d ])", "−", text)


def raised(text: str) -> Markup:
    """`β^uf` with its second part as a superscript; everything else is escaped.

    >>> raised("A(α, β^uf) < 1")
    Markup('A(α, β<sup>uf</sup>) &lt; 1')
    """
    return Markup(re.sub(r"\^(\w+)", r"<sup>\1</sup>", str(escape(text))))


def reasons(because: str) -> list[str]:
    """The parts of a verdict's reason, with the papers' letters, minus signs, and intervals as elsewhere on the page.

    >>> reasons("A(alpha,beta) 54% [51%, 57%] (own) against nan% at random")
    ['A(α, β) 54\\xa0% (51–57), own, against no value at random']
    >>> reasons("τ -0.020 [-0.100, 0.060], threshold 0; 54% [51%, 57%] of passages")
    ['τ −0.020 (−0.100 to 0.060), threshold 0', '54\\xa0% (51–57) of passages']
    """
    text = re.sub(r"A\([a-z_]+,[a-z_]+\)", lambda match: symbol(match[0]), because)
    text = re.sub(r"(?<![\w.])-(?=\d)", "−", text)
    text = re.sub(r"\[([−\d.]+)%?, ([−\d.]+)%?\]", lambda match: f"({between(match[1], match[2])})", text)
    text = re.sub(r" \((own|cross)\) ", r", \1, ", text)
    return re.sub(r"(\d)%", "\\1\N{NO-BREAK SPACE}%", text.replace("nan%", "no value")).split("; ")


def between(low: str, high: str) -> str:
    """The ends of an interval, with a word between them where a minus sign would look like a dash.

    >>> between("51", "57"), between("−6", "21")
    ('51–57', '−6 to 21')
    """
    return f"{low} to {high}" if "−" in low + high else f"{low}–{high}"


def answers(questions: Sequence[Any]) -> Markup:
    """A list of a verdict's questions, each with its answer and its numbers.

    questions: objects with `question`, `answer` (yes, no, unclear or not asked) and `because`.
    """
    item = Markup(
        '<li><span class="badge {0}">{1}</span><div><p class="question">{2}</p><p class="because">{3}</p></div></li>'
    )
    lines = [
        item.format(
            q.answer.replace(" ", "-"), q.answer, q.question, Markup("<br>").join(map(raised, reasons(q.because)))
        )
        for q in questions
    ]
    return Markup('<ol class="questions">\n{}\n</ol>').format(Markup("\n").join(lines))


def dots_and_whiskers(agreements: Sequence[Mapping[str, Any]], chance: Number | None) -> Markup:
    """Agreements with their intervals as one SVG, without a script.

    agreements: mappings with `key` (what is compared with what), `symbol`, `convention`, `value`, `low`, `high` and
    `control` (what chance or a control gives), shares from 0 to 1; chance: the agreement of a random choice.
    """
    keys = list(dict.fromkeys(row["key"] for row in agreements))
    conventions = list(dict.fromkeys(row["convention"] for row in agreements))
    row_height = _GAP * len(conventions) + 12
    height = _TOP + row_height * len(keys) + 40
    ends = [row[end] for row in agreements for end in ("value", "high") if _is_number(row[end])]
    most = min(1.0, math.ceil(10 * max([*ends, chance or 0.0]) + 0.2) / 10)
    right = _WIDTH - 150

    def x(share: Number) -> float:
        return round(float(_LEFT + share / most * (right - _LEFT)), 1)

    parts = [line("grid", x(k / 10), _TOP - 8, x(k / 10), height - 36) for k in range(round(10 * most) + 1)]
    parts += [_text(x(k / 10), height - 20, "middle", f"{10 * k}") for k in range(round(10 * most) + 1)]
    parts.append(_text(x(most / 2), height - 4, "middle", "% that agree"))
    if chance is not None:
        parts += [line("random", x(chance), _TOP - 8, x(chance), height - 36)]
        parts += [_text(x(chance) + 5, _TOP - 12, "start", "random Â")]
    for i, key in enumerate(keys):
        rows = [row for row in agreements if row["key"] == key]
        middle = _TOP + row_height * (i + 0.5)
        parts.append(_text(_LEFT - 12, middle + 4, "end", rows[0]["symbol"], soft=False))
        for j, row in enumerate(rows):
            if _is_number(row["value"]):
                at = middle + (j - (len(rows) - 1) / 2) * _GAP
                parts += _dot(row, conventions, at, x, right, several=len(conventions) > 1)
    label = Markup('<svg viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">{3}</svg>')
    return label.format(_WIDTH, height, "Agreements with their 95 % intervals", Markup().join(parts))


def dot(mark: int, x: Number, y: Number) -> Markup:
    """A mark of a picture: 0 a disc, 1 a hollow diamond, 2 a square; the style sheet's `m0` to `m2` colour them.

    >>> dot(1, 20, 5)[:43]
    Markup('<path class="dot m1" d="M0-5.5L5.5 0L0 5.5L')
    """
    return Markup('<path class="dot m{}" d="{}" transform="translate({} {})"/>').format(mark, _MARKS[mark], x, y)


def line(kind: str, x1: Number, y1: Number, x2: Number, y2: Number) -> Markup:
    """A straight line of a picture; kind: its classes."""
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, x1, y1, x2, y2)


def notebook(sentence: str, *parts: Markup) -> str:
    """A result in a notebook: its sentence, then its parts, with the style that they need."""
    head = Markup('<div class="heedful"><style>{}</style><p class="sentence">{}</p>').format(Markup(_STYLE), sentence)
    return str(head + Markup("\n").join(parts) + Markup("</div>"))


def table(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Rows with the same keys as a table, collapsed until it is opened.

    >>> table([{"n": 3, "share": 0.25}])[:41]
    Markup('<details><summary>The same as a table</su')
    """
    head = Markup().join(Markup("<th>{}</th>").format(name) for name in rows[0])
    lines = (Markup().join(Markup("<td>{}</td>").format(_cell(value)) for value in row.values()) for row in rows)
    body = Markup().join(Markup("<tr>{}</tr>").format(line) for line in lines)
    return Markup(
        "<details><summary>The same as a table</summary><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        "</details>"
    ).format(head, body)


def _dot(
    row: Mapping[str, Any], conventions: list[str], y: Number, x: Any, right: Number, *, several: bool
) -> list[Markup]:
    mark = conventions.index(row["convention"])
    drawn = []
    label = f"{100 * row['value']:.1f}\N{NO-BREAK SPACE}%"
    if _is_number(row["low"]) and _is_number(row["high"]):
        drawn.append(line(f"whisker m{mark}", x(row["low"]), y, x(row["high"]), y))
        label += f" ({100 * row['low']:.0f}–{100 * row['high']:.0f})"
    if _is_number(row["control"]):
        drawn.append(line("control", x(row["control"]), y - 6, x(row["control"]), y + 6))
    drawn.append(dot(mark, x(row["value"]), y))
    return [*drawn, _text(right + 12, y + 4, "start", f"{row['convention']} {label}" if several else label)]


def _text(x: Number, y: Number, anchor: str, words: str, *, soft: bool = True) -> Markup:
    """A text of a picture, with its superscripts."""
    superscript = Markup('<tspan dy="-5" font-size="9">{}</tspan><tspan dy="5">{}</tspan>')
    first, *others = re.split(r"\^(\w+)", words)
    content = escape(first) + Markup().join(superscript.format(*two) for two in zip(*[iter(others)] * 2, strict=True))
    kind = Markup(' class="soft"') if soft else Markup()
    return Markup('<text{} x="{}" y="{}" text-anchor="{}">{}</text>').format(kind, x, y, anchor, content)


def _is_number(value: Any) -> bool:
    return value is not None and not math.isnan(value)


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
