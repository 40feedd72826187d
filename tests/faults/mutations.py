"""What hypothesis makes of good files, and what it puts in their place: the same whenever it is asked."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

SNIPPETS = (
    b'"', b",", b"\t", b"\n", b"\r", b"\0", b"{", b"[" * 2000, b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xb0\x80", b"NaN",
    b"-1", b"1e999", b"9" * 4400, b"null", b"''", b"</script>", b"{{7*7}}", b"../../x", b"%s%n", b"\\u0000", b"\\ud800",
    b"true", b"=", b"[a]\n", b"-", b"p", b"0-0", b"999999999-999999999", b" ", b"\xe2\x80\xa8",
)  # fmt: skip

words = st.text(max_size=12)
numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([2**63, -(2**63), 10**400, 1e308, 5e-324]))
plain = st.one_of(st.none(), st.booleans(), numbers, words)
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4))


def each(count: int, strategy: st.SearchStrategy[Any], call: Callable[[Any], object]) -> None:
    """Give so many drawn examples to a function, always the same; it counts them, and what comes of them, itself."""

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def given_one(example: Any) -> None:
        call(example)

    given_one()


@st.composite
def mutated(draw: st.DrawFn, good: bytes) -> bytes:
    """The same bytes with something done to them, up to four times: cut, flipped, doubled, or with nonsense put in."""
    content = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        action = draw(st.integers(0, 5))
        if action == 0:
            del content[at:]
        elif action == 1 and content:
            content[at % len(content)] ^= 1 << draw(st.integers(0, 7))
        elif action == 2:
            content[at:at] = draw(st.binary(min_size=1, max_size=20))
        elif action == 3:
            content[at:at] = draw(st.sampled_from(SNIPPETS))
        elif action == 4:
            del content[at : at + draw(st.integers(1, 50))]
        else:
            content[at:at] = content[at : at + 200] * draw(st.integers(1, 3))
    return bytes(content)


def broken(good: bytes) -> st.SearchStrategy[bytes]:
    """A good file mutated, or other bytes or text in its place."""
    return st.one_of(mutated(good), mutated(good), st.binary(max_size=200), st.text(max_size=200).map(_encoded))


def tables(kind: str) -> st.SearchStrategy[bytes]:
    """Files that are written as a table is, with whatever in them: `csv`, `tsv` or `jsonl`."""
    if kind == "jsonl":
        names = st.sampled_from(["text", "label", "translation", "de", "en"]) | words
        rows = st.lists(st.dictionaries(names, values, max_size=4) | values, max_size=8)
        return rows.map(lambda rows: "\n".join(json.dumps(row) for row in rows).encode())
    fields = st.lists(words, min_size=2, max_size=2)
    mark = "," if kind == "csv" else "\t"
    return st.lists(fields, max_size=8).map(lambda rows: _written([["text", "label"], *rows], mark))


def aligned() -> st.SearchStrategy[bytes]:
    """Lines of links between words, of about the right letters."""
    number = st.integers(-2, 12).map(str) | st.sampled_from(["", "٣", "²", "1e3", "9" * 30, "x"])
    link = st.tuples(number, st.sampled_from("-p:? S"), number).map("".join)
    line = st.lists(link, max_size=5).map(" ".join)
    blinker = st.lists(st.lists(number, max_size=5).map(" ".join), max_size=6)
    return (st.lists(line, max_size=6) | blinker).map(lambda lines: _encoded("\n".join(lines)))


def marked() -> st.SearchStrategy[bytes]:
    """Annotations of rationales, a JSON object a line, in which any value may be of the wrong kind."""
    place = st.integers(-3, 9) | values
    span = st.fixed_dictionaries({"start_token": place, "end_token": place}) | values
    evidences = st.lists(st.lists(span, max_size=3), max_size=2) | values
    name = st.just("one") | values
    known = {"annotation_id": name, "classification": st.just("NEG") | values, "evidences": evidences}
    rows = st.lists(st.fixed_dictionaries({}, optional=known), min_size=1, max_size=3)
    return rows.map(lambda rows: "\n".join(json.dumps(row) for row in rows).encode())


def _written(rows: list[list[str]], mark: str) -> bytes:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=mark, lineterminator="\n", escapechar="\\").writerows(rows)
    return _encoded(written.getvalue())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
