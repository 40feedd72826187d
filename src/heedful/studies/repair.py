"""Repair of a run: damaged files are set aside, so that the study computes them again."""

import shutil
from collections.abc import Iterator
from contextlib import suppress

from heedful.config import StudyConfig
from heedful.errors import ConfigError, DamagedError, RunError
from heedful.storage.atomic_files import valid_path, write_atomically
from heedful.storage.checksums import quarantine_path
from heedful.storage.manifest import RESULT
from heedful.storage.serialization import digest
from heedful.storage.step_cache import Damage, Notify, repair_notice
from heedful.studies.run_directory import RunDirectory


def repair_run(run: RunDirectory, config: StudyConfig, notify: Notify = lambda notice: None) -> None:
    """Set aside every damaged file of a run; call it only while holding the run's lock."""
    if not valid_path(run.config_path).exists():
        return
    _repair_config(run, config, notify)
    for record in list(run.records()):
        record.repair(notify)
    for done in (run.root / "models").glob("*/done.json"):
        run.model(done.parent.name).remove_checkpoints()  # of a process that was killed before it did so itself


def is_intact(run: RunDirectory) -> bool:
    """Whether a run is finished and none of its files is damaged."""
    try:
        run.config()
        return RESULT in run.manifest().files and next(damages(run), None) is None
    except (RunError, ConfigError):
        return False


def damages(run: RunDirectory) -> Iterator[Damage]:
    """The damaged files of a run, its config.toml apart."""
    for record in run.records():
        yield from record.damages()


def trained_data_digests(run: RunDirectory) -> set[str]:
    """The digests of the data that the trained models of a run were trained on."""
    return {identity["data"] for identity in _identities(run)}


def _repair_config(run: RunDirectory, config: StudyConfig, notify: Notify) -> None:
    """Replace a damaged config.toml by the given settings, unless the records of the run name other settings."""
    try:
        run.config()
        return
    except DamagedError as error:
        why = error.why
    except ConfigError as error:
        why = str(error).removeprefix(f"{run.config_path}: ")
    known = {identity["config"] for identity in _identities(run)}
    with suppress(RunError):
        known.add(run.data.load()["config"])
    if known - {digest(config)}:
        raise run.other_settings()
    if not known and (run.root / "models").exists():
        raise RunError(
            f"{run.config_path}: damaged ({why}), and no other file records the settings; choose another --out"
        )
    aside = quarantine_path(run.config_path)
    write_atomically(aside, lambda path: shutil.copyfile(run.config_path, path))
    run.save_config(config)
    notify(repair_notice(run.config_path, why, aside))


def _identities(run: RunDirectory) -> Iterator[dict[str, str]]:
    """The digests of settings and data in the records of the trained models."""
    for path in sorted((run.root / "models").glob("*/done.json")):
        with suppress(DamagedError, KeyError):
            yield run.model(path.parent.name).summary()["identity"]
