"""A page as a browser would read it, and what every page keeps to."""

import base64
import hashlib
import re
from html.parser import HTMLParser


class Elements(HTMLParser):
    """Tags, texts, links and names of a page; words: the shaded ones, marked: whether each is underlined."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.links: list[str | None] = []
        self.ids: list[str | None] = []
        self.words: list[str] = []
        self.marked: list[bool] = []
        self._word = False
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attributes if name in ("href", "src")]
        self.ids += [value for name, value in attributes if name == "id"]
        self._word = (dict(attributes).get("class") or "").startswith("w ")
        if self._word:
            self.words.append("")
            self.marked.append(tag == "u")

    def handle_endtag(self, tag: str) -> None:
        self._word = False

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._word:
            self.words[-1] += data


def admits_one_style_and_one_script(page: str) -> None:
    """The policy names what is on the page by its digest, and lets nothing else in."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")  # type: ignore[index]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"<[^>]*\sstyle=|@import|url\(", page)
