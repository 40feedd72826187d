"""A cache of finished steps: checksummed records that are resumed from, and set aside when damaged.

A step is finished when its record exists. The record is a JSON file with its own checksum; it holds the step's answer
and the checksums of the other files that the step wrote. It is written last, atomically. A damaged file is renamed to
`<name>.damaged-1`, and the step counts as not finished, so that it is computed again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import DamagedError, RunError
from heedful.storage.atomic_files import (
    damaged_error,
    quarantine,
    read_checksummed_json,
    valid_path,
    verify_checksum,
    write_atomically,
    write_checksummed_json,
)
from heedful.storage.run_files import member, member_name

Notify = Callable[[str], None]  # is told of each damaged file, in a sentence


class StepCache:
    """The answers of steps, plain JSON values, in one folder: a file per key.

    >>> import tempfile
    >>> cache = StepCache(Path(tempfile.mkdtemp()))
    >>> cache.get("a"), cache.put("a", {"x": 1}), cache.get("a")
    (None, None, {'x': 1})
    """

    def __init__(self, folder: Path, notify: Notify = lambda notice: None) -> None:
        self.folder, self.notify = folder, notify

    def path(self, key: str) -> Path:
        """The record of a key."""
        return self.folder / f"{key}.json"

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer of a finished step; None where there is none, or it was damaged."""
        record = StepRecord(self.path(key))
        return read_answer(record.path) if record.repair(self.notify) else None

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Store the answer of a step."""
        write_answer(self.path(key), answer)


def write_answer(path: Path, answer: Mapping[str, Any], **about: Any) -> None:
    """Write the record of a step that has an answer and no files; about: what else is noted of it."""
    StepRecord(path).save({**about, "answer": answer}, compact=True)


def read_answer(path: Path) -> dict[str, Any]:
    """The answer in a record; a damaged record is an error."""
    answer = StepRecord(path).load().get("answer")
    if not isinstance(answer, dict):
        raise damaged_error(path, "it has no answer")
    return answer


def write_with_record(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file, and a record beside it (`<name>.json`) that holds its checksum."""
    beside = record_beside(path)
    beside.path.unlink(missing_ok=True)
    beside.save({}, {path.name: write_atomically(path, write)})


def record_beside(path: Path) -> "StepRecord":
    """The record of a file that `write_with_record` wrote."""
    return StepRecord(path.with_name(f"{path.name}.json"))


@dataclass(frozen=True)
class Damage:
    """A file that is not as it was written, and why."""

    path: Path
    why: str


class StepRecord:
    """The record of one step: a checksummed JSON file that lists the step's files with their checksums.

    root: the folder that the names of the files are relative to, the record's own unless given. The record is read
    once, and each file verified once, however often they are asked for.

    >>> import tempfile
    >>> step = StepRecord(Path(tempfile.mkdtemp()) / "done.json")
    >>> text = step.path.with_name("a.txt")
    >>> step.save({"seconds": 3}, {"a.txt": write_atomically(text, lambda p: p.write_text("a"))})
    >>> step.load()["seconds"], step.verified("a.txt") == text
    (3, True)
    >>> _ = text.write_text("b"); StepRecord(step.path).repair(print)  # doctest: +ELLIPSIS
    /...a.txt was damaged (its checksum is another): set aside as a.txt.damaged-1, and computed again
    False
    >>> step.is_done()
    False
    """

    def __init__(self, path: Path, root: Path | None = None) -> None:
        self.path, self.root = path, root or path.parent
        self._content: dict[str, Any] | None = None
        self._verified: set[str] = set()

    def is_done(self) -> bool:
        """Whether the step is finished."""
        return valid_path(self.path).exists()

    def save(
        self, content: Mapping[str, Any], files: Mapping[str, str] | None = None, *, compact: bool = False
    ) -> None:
        """Write the record. files: the checksums of the step's files by name. compact: on one line."""
        self._forget()
        whole = {**content, "files": dict(sorted(files.items()))} if files is not None else content
        write_checksummed_json(self.path, whole, compact=compact)

    def load(self) -> dict[str, Any]:
        """What was saved; a record that has changed since is an error."""
        if self._content is None:
            self._content = read_checksummed_json(self.path)
        return self._content

    def files(self) -> dict[str, str]:
        """The checksums of the step's files by name; a record with a name that leaves its folder is damaged."""
        files = self.load().get("files", {})
        if not isinstance(files, dict):
            raise damaged_error(self.path, "its list of files is not one")
        try:
            return {member_name(name).as_posix(): str(checksum) for name, checksum in files.items()}
        except RunError as error:
            raise damaged_error(self.path, str(error)) from None

    def verified(self, name: str) -> Path:
        """The path of one of the step's files, once its checksum is known to be right."""
        if name not in self._verified:
            if name not in self.files():
                raise DamagedError(self.root / name, f"{self.path.name} does not list it")
            verify_checksum(member(self.root, name), self.files()[name])
            self._verified.add(name)
        return self.root / name

    def damages(self) -> Iterator[Damage]:
        """The record or its files where they are not as they were written; none where the step is not finished."""
        if not self.is_done():
            return
        try:
            files = self.files()
        except DamagedError as error:
            yield Damage(self.path, error.why)
            return
        for name in files:
            try:
                self.verified(name)
            except DamagedError as error:
                yield Damage(Path(str(error.path)), error.why)  # of a link, the link itself

    def repair(self, notify: Notify) -> bool:
        """Whether the step is finished and undamaged; what is damaged is set aside, and the step no longer counts."""
        for damage in list(self.damages()):
            self.set_aside(damage, notify)
        return self.is_done()

    def set_aside(self, damage: Damage, notify: Notify) -> None:
        """Rename a damaged file to `<name>.damaged-1`, and remove the record that vouches for it."""
        aside = quarantine(damage.path)
        self.path.unlink(missing_ok=True)
        self._forget()
        notify(repair_notice(damage.path, damage.why, aside))

    def _forget(self) -> None:
        self._content = None
        self._verified.clear()


def repair_notice(path: Path, why: str, aside: Path | None) -> str:
    """The sentence about a damaged file that was set aside."""
    return f"{path} was damaged ({why}): {f'set aside as {aside.name}' if aside else 'gone'}, and computed again"
