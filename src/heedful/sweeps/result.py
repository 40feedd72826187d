"""The result of a sweep: the main figures of every study of the grid, or why it failed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from heedful.errors import ConfigError, RunError
from heedful.metrics.statistics import Estimate
from heedful.storage.atomic_files import valid_path
from heedful.storage.run_files import member_name
from heedful.storage.serialization import Stored
from heedful.storage.tables import Tabular, arrow_table
from heedful.studies.result import Status, StudyResult
from heedful.sweeps.grid import Axis

State = Literal["finished", "failed"]
FORMAT = 1
GRID, STUDIES = "grid.toml", "studies"  # in a sweep's folder


@dataclass(frozen=True)
class SweepFigure:
    """A main figure of a study; random, shuffle: its two chance levels, where it is an agreement."""

    name: str
    convention: str
    estimate: Estimate
    random: float | None = None
    shuffle: float | None = None

    @property
    def key(self) -> str:
        """The name of the figure's column in tables.

        >>> SweepFigure("A(alpha,beta)", "cross", Estimate(0.5, 0.4, 0.6, 9)).key
        'A(alpha,beta) cross'
        """
        return f"{self.name} {self.convention}".strip()


@dataclass(frozen=True)
class SweepStudy:
    """A study of a sweep: its folder, its values on the axes, and its figures or its error.

    status: of its verdict; agreements of a study that learned nothing are those of models without knowledge.
    """

    folder: str
    place: tuple[str, ...]
    config_digest: str
    state: State
    error: str | None = None
    verdict: str | None = None
    status: Status = "answered"
    figures: tuple[SweepFigure, ...] = ()

    def figure(self, key: str) -> SweepFigure | None:
        """The figure of that name, such as `accuracy` or `A(alpha,beta) own`, if there is one."""
        return next((figure for figure in self.figures if figure.key == key), None)


@dataclass(frozen=True)
class SweepResult(Stored, Tabular):
    """All studies of a sweep in the order of its grid; stored as `result.json`."""

    axes: tuple[Axis, ...]
    studies: tuple[SweepStudy, ...]
    format: int = FORMAT

    def __post_init__(self) -> None:
        for study in self.studies:
            if not _is_below_studies(study.folder):
                raise ConfigError(f"folder {study.folder[:100]!r} is not one of the sweep; they are {STUDIES}/<name>")
            if len(study.place) != len(self.axes):
                raise ConfigError(f"{study.folder} has {len(study.place)} places on {len(self.axes)} axes")

    @property
    def failed(self) -> tuple[SweepStudy, ...]:
        """The studies that failed."""
        return tuple(study for study in self.studies if study.state == "failed")

    def figure_keys(self) -> list[str]:
        """The names of all figures, in the order of their first study."""
        return list(dict.fromkeys(figure.key for study in self.studies for figure in study.figures))

    def to_arrow(self) -> pa.Table:
        """One row per study: its values on the axes, its state, and every figure with its interval."""
        keys = self.figure_keys()
        schema = {axis.name: pa.string() for axis in self.axes}
        schema |= dict.fromkeys(("study", "state", "error", "verdict"), pa.string())
        for key in keys:
            schema |= dict.fromkeys((key, f"{key} low", f"{key} high"), pa.float64())
        return arrow_table([self._row(study, keys) for study in self.studies], schema)

    @classmethod
    def load(cls, path: Path | str) -> "SweepResult":
        """Read what `save` wrote."""
        if not valid_path(Path(path)).exists():
            raise RunError(f"{path}: no such file; the sweep is not finished")
        return super().load(path)

    def _row(self, study: SweepStudy, keys: list[str]) -> dict[str, Any]:
        row: dict[str, Any] = dict(zip((axis.name for axis in self.axes), study.place, strict=True))
        row |= {"study": study.folder, "state": study.state, "error": study.error, "verdict": study.verdict}
        for key in keys:
            if (figure := study.figure(key)) is not None:
                estimate = figure.estimate
                row |= {key: estimate.value, f"{key} low": estimate.low, f"{key} high": estimate.high}
        return row


def _is_below_studies(folder: str) -> bool:
    """Whether the name of a study's folder stays in the sweep's: pages link to it.

    >>> _is_below_studies("studies/a"), _is_below_studies("studies/../../a"), _is_below_studies("/etc")
    (True, False, False)
    """
    try:
        parts = member_name(folder).parts
    except RunError:
        return False
    return len(parts) == 2 and parts[0] == STUDIES


def main_figures(result: StudyResult) -> tuple[SweepFigure, ...]:
    """Final accuracy, entropy of attention, alignment error where there is a gold standard, and every agreement."""
    figures = [SweepFigure("accuracy", "", result.xi_final), SweepFigure("entropy", "", result.entropy_final)]
    if result.alignment is not None:
        figures.append(SweepFigure("alignment error", "", result.alignment.trained, random=result.alignment.chance))
    figures += [
        SweepFigure(row.name, row.convention, row.estimate, random=row.random, shuffle=row.shuffle.value)
        for row in result.agreements
    ]
    return tuple(figures)
