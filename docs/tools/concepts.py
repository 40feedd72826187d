"""The pictures of docs/concepts.md: `python docs/tools/concepts.py` writes them into docs/pictures."""

from html import escape
from pathlib import Path

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
WORDS = ("a", "dull", "film", "with", "one", "great", "scene")
RAMP = ("#ffffff", "#e6dff6", "#c6b8ea", "#a48cdb", "#7f5cc6", "#5a35a0", "#43207f")
# An invented text, labelled negative. Shares of attention; what each word alone says for the label; influence.
ALPHA = (0.03, 0.52, 0.08, 0.03, 0.03, 0.25, 0.06)
BETA = (0.50, 0.93, 0.55, 0.50, 0.52, 0.08, 0.47)
DELTA = (0.02, 0.61, 0.05, 0.01, 0.02, -0.34, 0.03)
FONT = 'font-family="system-ui, DejaVu Sans, sans-serif"'


def main():
    """Draw all pictures."""
    PICTURES.mkdir(exist_ok=True)
    drawn = {
        "concepts-quantities": quantities(),
        "concepts-agreement": agreement(),
        "concepts-models": models(),
    }
    for name, svg in drawn.items():
        (PICTURES / f"{name}.svg").write_text(svg + "\n", encoding="utf-8")
        print(PICTURES / f"{name}.svg")


def quantities():
    """One text three times: attention, word knowledge, influence."""
    rows = (
        ("α  attention", "where the model looks; the shares add up to 1", ALPHA, lambda v: v / 0.6, "{:.0%}"),
        (
            "β  word knowledge",
            "how sure the model is of the label from this word alone",
            BETA,
            lambda v: v - 0.3,
            "{:.0%}",
        ),
        ("Δ  influence", "how much the prediction depends on the word", DELTA, lambda v: abs(v) / 0.7, "{:+.2f}"),
    )
    parts = [_row(30 + 92 * i, *row) for i, row in enumerate(rows)]
    return _svg(720, 300, "One invented text under attention, word knowledge and influence", parts)


def agreement():
    """The top word of one quantity looked up in another."""
    parts = [
        _row(30, "α  attention", "its top word is “dull”", ALPHA, lambda v: v / 0.6, "{:.0%}", ring=1),
        _row(
            130,
            "β  word knowledge",
            "is “dull” among the top 5 %? yes: they agree on this text",
            BETA,
            lambda v: v - 0.3,
            "{:.0%}",
            ring=1,
        ),
        '<path d="M163 92 V150" stroke="#1d1c1a" stroke-width="2" marker-end="url(#end)"/>',
    ]
    return _svg(720, 210, "Agreement: the word with the most attention is looked up in another quantity", parts)


def models():
    """The model and its controls."""
    boxes = (
        ("the model", "words → reader → attention → answer", "gives α, β, Δ", "#3a4ca6"),
        (
            "the uniform twin",
            "the same, attention fixed at 1/L",
            "gives its β: word knowledge without attention",
            "#b3460b",
        ),
        ("the proxy", "word vectors, averaged → answer", "gives its β: what counting words can teach", "#0a7068"),
        ("another seed", "the same model, other random start", "is what we see stable?", "#873a8c"),
    )
    parts = []
    for i, (name, what, gives, colour) in enumerate(boxes):
        x, y = 10 + 355 * (i % 2), 10 + 105 * (i // 2)
        parts.append(
            f'<rect x="{x}" y="{y}" width="345" height="92" rx="9" fill="#fff" stroke="{colour}" stroke-width="2"/>'
        )
        parts += [
            _text(x + 14, y + 28, name, colour, weight=700),
            _text(x + 14, y + 52, what),
            _text(x + 14, y + 76, gives, "#5a5852"),
        ]
    return _svg(720, 220, "The model, its uniform twin, the proxy and another seed", parts)


def _row(y, name, what, values, amount, form, ring=None):
    parts = [_text(10, y, name, weight=700), _text(190, y, what, "#5a5852")]
    for i, (word, value) in enumerate(zip(WORDS, values, strict=True)):
        step = min(len(RAMP) - 1, max(0, round(amount(value) * (len(RAMP) - 1))))
        ground = "#ef8a2c" if value < 0 else RAMP[step]
        ink = "#fff" if step > 3 and value >= 0 else "#1d1c1a"
        x = 10 + 100 * i
        edge = '#1d1c1a" stroke-width="3' if i == ring else '#dcd9d1" stroke-width="1'
        parts.append(f'<rect x="{x}" y="{y + 12}" width="94" height="44" rx="6" fill="{ground}" stroke="{edge}"/>')
        parts.append(_text(x + 47, y + 31, word, ink, anchor="middle"))
        parts.append(_text(x + 47, y + 49, form.format(value).replace("-", "−"), ink, size=12, anchor="middle"))
    return "\n".join(parts)


def _text(x, y, text, ink="#1d1c1a", size=14, weight=400, anchor="start"):
    return (
        f'<text x="{x}" y="{y}" fill="{ink}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}">'
        f"{escape(text)}</text>"
    )


def _svg(width, height, title, parts):
    marker = (
        '<defs><marker id="end" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#1d1c1a"/></marker></defs>'
    )
    ground = f'<rect width="{width}" height="{height}" fill="#faf9f6" rx="10"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {FONT} role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", marker, ground, *parts, "</svg>"])


if __name__ == "__main__":
    main()
