"""What matplotlib writes as SVG, made plain: no dates, no digests for names, no `style`."""

import re
from html import escape


def tidied(svg: str, title: str) -> str:
    """The same drawing with a title, short names, and each `style` as attributes of its element."""
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>\s*", "", svg)
    svg = re.sub(r'\bstyle="([^"]*)"', lambda found: _attributes(found[1]), svg)
    svg = re.sub(r'\b([dxy]|points)="([^"]*)"', lambda found: f'{found[1]}="{_rounded(found[2])}"', svg)
    names: dict[str, str] = {}  # matplotlib's are digests of coordinates, to the last bit
    svg = re.sub(r'(?<=["#])\w*[0-9a-f]{10}(?=[")])', lambda name: names.setdefault(name[0], f"s{len(names)}"), svg)
    start, root, rest = svg.partition("<svg ")
    attributes, _, content = rest.partition(">")
    joints = 'stroke-linejoin="round" stroke-linecap="butt"'
    return f"{start}{root}{joints} {attributes}>\n <title>{escape(title)}</title>{content}"


def _rounded(coordinates: str) -> str:
    """Places to a hundredth of a point, which is less than anyone sees, and half the bytes.

    >>> _rounded("M 12.345678 -0.004 L 7 8.500000")
    'M 12.35 0 L 7 8.5'
    """
    return re.sub(
        r"-?\d+\.\d+", lambda number: f"{round(float(number[0]), 2) + 0.0:.2f}".rstrip("0").rstrip("."), coordinates
    )


def _attributes(declarations: str) -> str:
    pairs = (part.split(":", 1) for part in declarations.split(";") if part.strip())
    return " ".join(f'{name.strip()}="{value.strip()}"' for name, value in pairs)
