"""Output to a terminal: control characters in labels, paths and answers are shown escaped, never sent.

A label may hold the escape sequences by which programs move the cursor, hide lines or change the title of the window.
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.segment import Segment

_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"  # direction of writing, line ends, half pairs
)


def visible(text: str) -> str:
    r"""The text with every control character but tab and newline written as an escape.

    >>> print(visible("red\x1b[31m\r\u202ex"))
    red\x1b[31m\r\u202ex
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text)


class TerminalConsole(Console):
    """A console whose own styles reach the terminal, and whose texts are `visible`."""

    def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
        """The segments of what is printed."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line: visible on a terminal; into a file or a pipe as it is, for programs to read.

    >>> echo("done")
    done
    """
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # closed by whoever started the command
        return
    text = str(message)
    if stream.isatty():
        text = visible(text.replace("\r\n", "\n"))
    stream.write(f"{text}\n" if nl else text)
    stream.flush()
