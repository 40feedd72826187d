"""20 Newsgroups by date; of a message only what its author wrote: no header, quotation or footer.

`20news-sport-quoted` keeps the quotations: its texts are as long as those of snell2021's Table 9. `…-sklearn` are
stripped as sklearn's `fetch_20newsgroups` does it, which leaves as many texts as sunlu2020's Table 1 has.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.data.corpora.entry import (
    CatalogEntry,
    HubSource,
    LabelledTexts,
    Parts,
    as_split,
    files,
    not_empty,
    read_jsonl,
)
from heedful.data.corpus import EMPTY, Split, TokenRules
from heedful.errors import DataError


def newsgroups(
    *groups: str, strip: Callable[[str], str] | None = None, name: str = ""
) -> Callable[[Path], Parts[Split]]:
    """A reader of some groups of the by-date split; the test set validates, as in the paper (snell2021, Table 9).

    strip: what is kept of an original message; None: `body`. name: of the corpus that needs the original messages.
    """

    def text_of(row: dict[str, Any]) -> str:
        text = str(row["text"])
        if not row.get("stripped"):
            return (strip or body)(text)
        if strip:
            raise DataError(f"{name}: these files have lost the quotations; it needs the original messages")
        return text

    def read(root: Path) -> Parts[Split]:
        decisions: list[str] = []
        splits = []
        for part in ("train", "test"):
            rows = read_jsonl(root / "20newsgroups" / f"bydate_{part}.jsonl.gz")
            messages: LabelledTexts = [
                (text_of(row), groups.index(str(row["group"]))) for row in rows if row["group"] in groups
            ]
            splits.append(as_split(not_empty(messages, part, decisions)))
        decisions.append("the test set serves as validation set, as in the paper, so there is no test set")
        return Parts(splits[0], splits[1], EMPTY, tuple(decisions))

    return read


def body(message: str, *, quoted: bool = False) -> str:
    """What the author of a message wrote: neither header, nor quotation (unless `quoted`), nor signature.

    The header ends at the first empty line. A quotation is a line that begins with `>` or `|`, or announces one
    ("… writes:", "In article …"). The footer is what follows the last rule or empty line, if it has at most six lines;
    sklearn's `remove=("headers", "quotes", "footers")` takes a last paragraph of any length for a footer.

    >>> body("From: a@b.c\\nSubject: bats\\n\\nd@e.f writes:\\n> What wood?\\n\\nAsh, always.\\n\\n-- \\nAnn\\n")
    'Ash, always.'
    """
    _, _, content = message.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in content.split("\n") if quoted or not _QUOTATION.search(line)]
    return "\n".join(_without_footer(lines)).strip()


def with_quotations(message: str) -> str:
    """What stands between header and signature.

    >>> with_quotations("From: a@b.c\\n\\nd@e.f writes:\\n> What wood?\\n\\nAsh, always.\\n\\n-- \\nAnn\\n")
    'd@e.f writes:\\n> What wood?\\n\\nAsh, always.'
    """
    return body(message, quoted=True)


def sklearn_body(message: str) -> str:
    """What sklearn's `fetch_20newsgroups(remove=("headers", "footers", "quotes"))` leaves of a message.

    The last paragraph counts as footer however long it is, unless it is the only one; then quotations go.

    >>> sklearn_body("From: a@b.c\\n\\nd@e.f writes:\\n> What wood?\\n\\nAsh, always.\\n\\nOr oak.\\n").strip()
    'Ash, always.'
    """
    _, _, content = message.partition("\n\n")
    lines = content.strip().split("\n")
    last = next((i for i in range(len(lines) - 1, -1, -1) if not lines[i].strip().strip("-")), 0)
    kept = lines[:last] if last > 0 else content.split("\n")
    return "\n".join(line for line in kept if not _SKLEARN_QUOTATION.search(line))


LONGEST_FOOTER = 6

_SKLEARN_QUOTATION = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")

_QUOTATION = re.compile(
    r"^\s{0,3}[A-Za-z]{0,4}[>|]|^In article\b|^Quoted from\b|\bwrites in\b|\b(?:writes|wrote|says|said):\s*$"
)
_RULE = re.compile(r"^\s*[-_=*~+]{2,}\s*$")


def _without_footer(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    for i in range(len(lines) - 1, max(len(lines) - LONGEST_FOOTER - 2, -1), -1):
        if _RULE.match(lines[i]) or not lines[i].strip():
            return lines[:i] if any(line.strip() for line in lines[:i]) else lines
    return lines


_NEWSGROUPS = files(
    "20newsgroups",
    """
7c1fce9089f9d98e108c6db94466a5651ce028c067572a97c0a185f020930fbd 2021197 bydate_train.jsonl.gz
0f5a5ad0afbad564a1b526b29b1abaa6fb597ba5e0b0ff29f32a83822d3ce827 1250934 bydate_test.jsonl.gz
""",
)
_HUB_NEWSGROUPS = HubSource("SetFit/20_newsgroups", "f1b91292074e7cfb69be58b642d583ec262f30ed")
_NEWSGROUPS_RULES = TokenRules(integers_to_unknown=True, split_underscores=True)

ENTRIES = (
    CatalogEntry(
        "20news-sport",
        "20 Newsgroups by date, baseball and hockey",
        "topic of a message",
        ("baseball", "hockey"),
        "none stated",
        "http://qwone.com/~jason/20Newsgroups/",
        _NEWSGROUPS,
        newsgroups("rec.sport.baseball", "rec.sport.hockey"),
        _NEWSGROUPS_RULES,
        hub=_HUB_NEWSGROUPS,
    ),
    CatalogEntry(
        "20news-sport-quoted",
        "20 Newsgroups by date, baseball and hockey, with the quotations in the messages",
        "topic of a message",
        ("baseball", "hockey"),
        "none stated",
        "http://qwone.com/~jason/20Newsgroups/",
        _NEWSGROUPS,
        newsgroups("rec.sport.baseball", "rec.sport.hockey", strip=with_quotations, name="20news-sport-quoted"),
        _NEWSGROUPS_RULES,
        published_as="20 NG",
    ),
    CatalogEntry(
        "20news-three",
        "20 Newsgroups by date, motorcycles, medicine and guns",
        "topic of a message",
        ("motorcycles", "med", "guns"),
        "none stated",
        "http://qwone.com/~jason/20Newsgroups/",
        _NEWSGROUPS,
        newsgroups("rec.motorcycles", "sci.med", "talk.politics.guns"),
        _NEWSGROUPS_RULES,
        hub=_HUB_NEWSGROUPS,
    ),
    CatalogEntry(
        "20news-sport-sklearn",
        "20 Newsgroups by date, baseball and hockey, stripped as sklearn does it",
        "topic of a message",
        ("baseball", "hockey"),
        "none stated",
        "http://qwone.com/~jason/20Newsgroups/",
        _NEWSGROUPS,
        newsgroups("rec.sport.baseball", "rec.sport.hockey", strip=sklearn_body, name="20news-sport-sklearn"),
        _NEWSGROUPS_RULES,
    ),
    CatalogEntry(
        "20news-three-sklearn",
        "20 Newsgroups by date, motorcycles, medicine and guns, stripped as sklearn does it",
        "topic of a message",
        ("motorcycles", "med", "guns"),
        "none stated",
        "http://qwone.com/~jason/20Newsgroups/",
        _NEWSGROUPS,
        newsgroups("rec.motorcycles", "sci.med", "talk.politics.guns", strip=sklearn_body, name="20news-three-sklearn"),
        _NEWSGROUPS_RULES,
    ),
)
