"""What matplotlib writes as SVG, made plain: no dates, no digests for names, no `style`."""

import re
from html import escape


def tidied(svg: str, title: str) -> str:
    """The same drawing with a title, short names, and each `style` as attributes of its element."""
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>\s*", "", svg)
    svg = re.sub(r'\bstyle="([^"]*)"', lambda found: _attributes(found[1]), svg)
    names: dict[str, str] = {}  # matplotlib's are digests of coordinates, to the last bit
    svg = re.sub(r'(?<=["#])\w*[0-9a-f]{10}(?=[")])', lambda name: names.setdefault(name[0], f"s{len(names)}"), svg)
    start, root, rest = svg.partition("<svg ")
    attributes, _, content = rest.partition(">")
    joints = 'stroke-linejoin="round" stroke-linecap="butt"'
    return f"{start}{root}{joints} {attributes}>\n <title>{escape(title)}</title>{content}"


def _attributes(declarations: str) -> str:
    pairs = (part.split(":", 1) for part in declarations.split(";") if part.strip())
    return " ".join(f'{name.strip()}="{value.strip()}"' for name, value in pairs)
