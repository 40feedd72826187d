"""Numbers inside a page: typed arrays end to end, deflated, in base64, with a directory in JSON."""

import base64
import json
import zlib
from typing import Any

from markupsafe import Markup
from numpy.typing import NDArray

_TYPES = {
    "|u1": "Uint8Array",
    "|i1": "Int8Array",
    "<u2": "Uint16Array",
    "<i2": "Int16Array",
    "<u4": "Uint32Array",
    "<f4": "Float32Array",
}


class Arrays:
    """A growing collection of named arrays; the page reads each as the JavaScript typed array of its kind.

    >>> import numpy as np
    >>> arrays = Arrays()
    >>> arrays.add("a", np.array([1, 2], dtype=np.uint16), unit="words")
    >>> arrays.directory
    {'a': {'type': 'Uint16Array', 'start': 0, 'bytes': 4, 'unit': 'words'}}
    """

    def __init__(self) -> None:
        self.directory: dict[str, dict[str, Any]] = {}
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, name: str, values: NDArray[Any], **notes: Any) -> None:
        """Keep an array of one of the types that a page can read, little-endian, row by row."""
        little = values.astype(values.dtype.newbyteorder("<"))
        content = little.tobytes()
        kind = _TYPES[little.dtype.str]
        self.directory[name] = {"type": kind, "start": self._size, "bytes": len(content), **notes}
        self._parts.append(content)
        self._size += len(content)

    def packed(self) -> str:
        """All arrays as one text of letters, digits, `+`, `/` and `=`."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 9)).decode("ascii")


def json_for_html(content: Any) -> Markup:
    """JSON that can stand inside a `<script>` element whatever text it holds: no `<`, `>` or `&` is left in it.

    >>> json_for_html({"word": "</script>"})
    Markup('{"word":"\\\\u003c/script\\\\u003e"}')
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # json.dumps left nothing but ASCII, and no sign of markup is in it
