"""Results that are a JSON file: frozen dataclasses that save, load, and turn into a frame of pandas'."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from heedful.errors import MissingExtraError
from heedful.files import read_json, without_nan, write_json
from heedful.typed import from_mapping

if TYPE_CHECKING:
    import pandas

S = TypeVar("S", bound="Stored")


class Stored:
    """A dataclass whose fields are a file's content and nothing else.

    >>> import tempfile
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Found(Stored):
    ...     share: float
    >>> path = Path(tempfile.mkdtemp()) / "result.json"
    >>> Found(0.5).save(path)
    >>> Found.load(path), Found(float("nan")).to_dict()
    (Found(share=0.5), {'share': None})
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; an estimate of nothing has `None` for its numbers."""
        plain: dict[str, Any] = without_nan(asdict(self))
        return plain

    def save(self, path: Path | str) -> None:
        """Write as JSON, whole or not at all."""
        write_json(Path(path), self.to_dict())

    @classmethod
    def load(cls: type[S], path: Path | str) -> S:
        """Read what `save` wrote."""
        return from_mapping(cls, read_json(Path(path)), where=str(path))


def frame(rows: Sequence[dict[str, Any]], columns: Sequence[str] | None = None) -> "pandas.DataFrame":
    """Rows as a frame of pandas', which is not among what heedful cannot do without."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "demo", "to_pandas()") from None
    return pandas.DataFrame(rows, columns=None if columns is None else list(columns))
