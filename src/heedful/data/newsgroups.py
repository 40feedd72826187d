"""A message of 20 Newsgroups without its header, quotations and footer, so that only what its author wrote remains."""

import re


def body(message: str) -> str:
    """What the author of a message wrote: neither header, nor quotation, nor signature.

    The header ends at the first empty line. A quotation is a line that begins with `>` or `|`, or announces one
    ("… writes:", "In article …"). The footer is what follows the last rule or empty line, if it has at most six lines;
    sklearn's `remove=("headers", "quotes", "footers")` takes a last paragraph of any length for a footer.

    >>> body("From: a@b.c\\nSubject: bats\\n\\nd@e.f writes:\\n> What wood?\\n\\nAsh, always.\\n\\n-- \\nAnn\\n")
    'Ash, always.'
    """
    _, _, content = message.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in content.split("\n") if not _QUOTATION.search(line)]
    return "\n".join(_without_footer(lines)).strip()


LONGEST_FOOTER = 6

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
