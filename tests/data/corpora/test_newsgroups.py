import pytest

from heedful.data.corpora.newsgroups import body

HEADER = "From: ann@example.org\nSubject: bats\nLines: 3\n\n"


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Ash is best.\n", "Ash is best."),
        ("Ash is best.\nAlways.\n\n-- \nAnn\n", "Ash is best.\nAlways."),
        ("Ash is best.\n-----\nAnn, of Ann Arbor\n", "Ash is best."),
        ("> What wood?\nAsh.\n", "Ash."),
        ("AB> What wood?\n| And why?\nAsh.\n", "Ash."),
        ("bob@example.org writes:\nAsh.\n", "Ash."),
        ("In article <1@example.org> bob@example.org (Bob) writes:\n>What wood?\n\nAsh.\n", "Ash."),
        ("Bob wrote in the book: ash.\n", "Bob wrote in the book: ash."),
        ("> only a quotation\n", ""),
        ("", ""),
    ],
)
def test_only_what_the_author_wrote_is_left(message, left):
    assert body(HEADER + message) == left
    assert body((HEADER + message).replace("\n", "\r\n")) == left


def test_a_long_last_paragraph_is_no_footer():
    paragraph = "\n".join(f"line {i}" for i in range(9))
    assert body(f"{HEADER}First.\n\n{paragraph}\n") == f"First.\n\n{paragraph}"


def test_a_message_without_a_body():
    assert body("From: ann@example.org\nSubject: nothing") == ""
