"""Audits that are kept: their numbers and what made them, without a word of the data."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.audits.followed import FollowedTraining
from heedful.audits.provenance import Provenance
from heedful.audits.result import AuditResult
from heedful.audits.verdict import FULL_SEARCH, judge
from heedful.errors import DataError
from heedful.files import read_json
from heedful.stored import Stored
from heedful.studies.run import Run


@dataclass(frozen=True)
class KeptAudit(Stored):
    """An audit, how its model was trained, and what was seen on the way where somebody looked."""

    result: AuditResult
    provenance: Provenance
    training: dict[str, Any]
    following: FollowedTraining | None = None


def kept_audit(audit: Path, *, training: Path | None = None, following: Path | None = None) -> KeptAudit:
    """What the folders of an audit and of a training hold; the verdict is drawn anew from the numbers.

    training: a JSON file of facts, or the folder of a study. following: the folder of a followed training.
    """
    if not (audit / "result.json").is_file() or not (audit / "manifest.json").is_file():
        raise DataError(f"{audit} is no folder of a finished audit: result.json and manifest.json are not both there")
    return KeptAudit(
        result=_judged(replace(AuditResult.load(audit / "result.json"), examples=())),
        provenance=Provenance.load(audit / "manifest.json"),
        training={} if training is None else _training(training),
        following=None if following is None else FollowedTraining.load(following / "result.json"),
    )


def _judged(result: AuditResult) -> AuditResult:
    verdict = judge(
        result.scores,
        result.contrasts,
        headline=result.headline,
        layers=result.layers,
        random_agreement=result.random_agreement,
        searched=int(result.settings.get("adversary_steps") or FULL_SEARCH),
    )
    return replace(result, verdict=verdict)


def _training(path: Path) -> dict[str, Any]:
    if path.is_file():
        return read_json(path)
    run = Run(path)
    config, model = run.config(), run.config().model
    return {
        "data": config.data,
        "steps": config.train.steps,
        "batch": config.train.batch_size,
        "rate": config.train.learning_rate,
        "longest": config.max_length,
        "encoder": f"{model.encoder}, {model.embedding} → {model.hidden} in each direction",
        "texts": len(run.split("train")),
    }
