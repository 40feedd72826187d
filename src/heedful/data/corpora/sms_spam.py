"""The SMS Spam Collection (Almeida & Hidalgo 2011)."""

import html
from pathlib import Path

from heedful.data.corpora.entry import (
    SEED,
    CatalogEntry,
    HubSource,
    Parts,
    as_split,
    distinct,
    files,
    read_whole,
    split_decision,
)
from heedful.data.corpus import Split, divide


def sms_spam(root: Path) -> Parts[Split]:
    """3,500 training messages as in the paper (snell2021, A.9); the rest are halved into validation and test."""
    names = {"ham": 0, "spam": 1}
    lines = (line.split("\t", 1) for line in read_whole(root / "sms_spam" / "sms.tsv").split("\n") if line)
    decisions: list[str] = []
    texts = as_split(distinct([(html.unescape(text), names[name]) for name, text in lines], decisions))
    train, validation, test = divide(texts, [3500, (len(texts) - 3500) // 2], SEED)
    return Parts(train, validation, test, (*decisions, split_decision(train, validation, test)))


_SMS_SPAM = files(
    "sms_spam",
    """
7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d 477907 sms.tsv
""",
)

ENTRIES = (
    CatalogEntry(
        "sms-spam",
        "SMS Spam Collection v.1 (Almeida & Hidalgo 2011)",
        "spam among text messages",
        ("ham", "spam"),
        "CC BY 4.0 (UCI)",
        "https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
        _SMS_SPAM,
        sms_spam,
        hub=HubSource("ucirvine/sms_spam", "cae486f927c250fe1d4a5b55f11357964ed1646c"),
    ),
)
