"""What is damaged in a run is named, set aside, and computed again; never trusted."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig
from heedful.errors import ConfigError, DamagedError, RunError
from heedful.storage.atomic_files import valid_path, write_atomically
from heedful.storage.checksums import quarantine, quarantine_path, read_checksummed_json, verify_checksum
from heedful.storage.serialization import digest
from heedful.studies.run_directory import ModelDirectory, RunDirectory


@dataclass(frozen=True)
class Damage:
    """A file that is not as it was written, and the one that vouched for it, which falls with it."""

    path: Path
    why: str
    seal: Path | None = None


def mend(run: RunDirectory, config: StudyConfig, tell: Callable[[str], None] = lambda notice: None) -> None:
    """Set aside every damaged file of a run, so that the study computes it again; only for who holds its lock."""
    if not valid_path(run.config_path).exists():
        return
    _mend_config(run, config, tell)
    for damage in list(damages(run)):
        aside = quarantine(damage.path)
        if damage.seal is not None:
            damage.seal.unlink(missing_ok=True)
        tell(_sentence(damage.path, damage.why, aside))
    for done in (run.root / "models").glob("*/done.json"):
        ModelDirectory(done.parent).drop_states()  # of models that were killed between their end and this


def is_whole(run: RunDirectory) -> bool:
    """Whether a run is finished, and every file of it as it was written."""
    try:
        run.config()
    except (RunError, ConfigError):
        return False
    return run.result_path.exists() and next(damages(run), None) is None


def damages(run: RunDirectory) -> Iterator[Damage]:
    """The damaged files of a run whose config.toml is right, each where it is found.

    A run that was begun before there were checksums has none that can be found so.
    """
    if not run.is_sealed():
        return
    yield from _below(run.data_seal, run.data_seal.parent, lambda seal: seal["files"])
    for done in sorted((run.root / "models").glob("*/done.json")):
        yield from _below(done, done.parent, lambda seal: seal["files"])
    yield from _below(run.manifest_path, run.root, lambda seal: {run.result_path.name: seal["result"]})


def known_data(run: RunDirectory) -> set[str]:
    """The digests of the data that the run's finished models were trained on."""
    return {identity["data"] for identity in _identities(run)}


def _below(seal: Path, folder: Path, files: Callable[[dict[str, Any]], dict[str, str]]) -> Iterator[Damage]:
    if not seal.exists():
        return
    try:
        listed = files(read_checksummed_json(seal))
    except DamagedError as error:
        yield Damage(seal, error.why)
        return
    for name, checksum in listed.items():
        try:
            verify_checksum(folder / name, checksum)
        except DamagedError as error:
            yield Damage(folder / name, error.why, seal)


def _mend_config(run: RunDirectory, config: StudyConfig, tell: Callable[[str], None]) -> None:
    """A damaged config.toml is written anew as the command has it, unless other files know of other settings."""
    try:
        run.config()
        return
    except DamagedError as error:
        why = error.why
    except ConfigError as error:
        why = str(error).removeprefix(f"{run.config_path}: ")
    known = {identity["config"] for identity in _identities(run)}
    with suppress(RunError):
        known.add(read_checksummed_json(run.data_seal)["config"])
    if known - {digest(config)}:
        raise run.other_settings()
    if not known and (run.root / "models").exists():
        raise RunError(
            f"{run.config_path}: damaged ({why}), and nothing here says what was asked; choose another --out"
        )
    aside = quarantine_path(run.config_path)
    write_atomically(aside, lambda place: shutil.copyfile(run.config_path, place))
    run.save_config(config)
    tell(_sentence(run.config_path, why, aside))


def _identities(run: RunDirectory) -> Iterator[dict[str, str]]:
    """What the finished models of a run say that it is."""
    for done in sorted((run.root / "models").glob("*/done.json")):
        with suppress(DamagedError, KeyError):
            yield read_checksummed_json(done)["identity"]


def _sentence(path: Path, why: str, aside: Path | None) -> str:
    return f"{path} was damaged ({why}): {f'set aside as {aside.name}' if aside else 'gone'}, and computed again"
