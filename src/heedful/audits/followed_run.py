"""The folder of a followed training.

runs/<name>/following.json         the probe texts, and what is known of them
            manifest.json          versions, commit, time
            metrics.jsonl          accuracy and loss on them, a line per recorded step
            trace/<step>.parquet   α, β and Δ of every word of them
            result.json            agreements, entropy and what attention leaves to special tokens, at every step
            report.html            the page
"""

from pathlib import Path

import numpy as np

from heedful.audits.followed import FollowedStep, FollowedTraining, ProbeTexts, StepAgreement
from heedful.audits.provenance import now, versions
from heedful.errors import RunError
from heedful.files import usable, without_nan, write_json
from heedful.measure.agreement import agreement, random_agreement, shuffled_agreement
from heedful.measure.entropy import normalised_entropy
from heedful.measure.ragged import Ragged
from heedful.measure.uncertainty import bootstrap_mean
from heedful.studies.model_folder import ModelFolder
from heedful.studies.study import source_commit
from heedful.trace.snapshot import Snapshot
from heedful.trace.store import Trace, write_step
from heedful.typed import digest

PAIRS = (("alpha", "beta"), ("alpha", "delta"), ("delta", "beta"))
_STORED = {"alpha": "alpha", "beta": "beta_logit", "delta": "delta"}


class FollowedRun:
    """The folder of a followed training: what is in it, and how a step comes into it.

    >>> import tempfile
    >>> FollowedRun(tempfile.mkdtemp()).is_begun()
    False
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.folder = ModelFolder(self.root)

    @property
    def result_path(self) -> Path:
        """The measures."""
        return self.root / "result.json"

    @property
    def manifest_path(self) -> Path:
        """When and with what it was recorded."""
        return self.root / "manifest.json"

    def is_begun(self) -> bool:
        """Whether this folder holds a followed training."""
        return usable(self._probe_path).exists()

    def probe(self) -> ProbeTexts:
        """The texts that the training is followed on."""
        return ProbeTexts.load(self._probe_path)

    def result(self) -> FollowedTraining:
        """What the steps recorded so far say."""
        if not usable(self.result_path).exists():
            raise RunError(f"{self.root}: no step of this training has been recorded yet")
        return FollowedTraining.load(self.result_path)

    def trace(self) -> Trace:
        """α, β and Δ at the recorded steps."""
        return self.folder.trace()

    def claim(self, probe: ProbeTexts) -> None:
        """Make the folder this training's, or refuse where something else lives in it."""
        if self.is_begun():
            if digest(self.probe()) != digest(probe):
                raise RunError(f"{self.root} follows a training on other texts, labels or words; choose another folder")
            return
        if usable(self.root).exists() and any(self.root.iterdir()):
            raise RunError(f"{self.root} is not empty and no followed training; choose another folder")
        probe.save(self._probe_path)
        write_json(self.manifest_path, {"versions": versions(), "commit": source_commit(), "begun": now()})

    def keep(self, step: int, snapshot: Snapshot, special: float) -> FollowedTraining:
        """Store a step and what it says; later steps are dropped, since training has gone back to before them."""
        probe = self.probe()
        earlier = [] if not self.result_path.exists() else [s for s in self.result().steps if s.step < step]
        kept = {s.step for s in earlier}
        for path in self.folder.trace_folder().glob("*.parquet"):
            if path.stem.isdecimal() and int(path.stem) not in kept:
                path.unlink()
        write_step(self.folder.trace_folder(), step, snapshot)
        trace = self.trace()
        measured = _measure(trace, step, special, labelled=bool(probe.right))
        result = FollowedTraining(
            name=probe.name,
            model=probe.model,
            texts=len(probe.words),
            random_agreement=random_agreement(trace.quantity("alpha", step).lengths),
            steps=(*earlier, measured),
        )
        metrics = [{"step": s.step, "accuracy": s.accuracy, "loss": s.loss} for s in result.steps]
        self.folder.save_metrics([without_nan(line) for line in metrics])
        write_json(self.result_path, result.to_dict())
        return result

    @property
    def _probe_path(self) -> Path:
        return self.root / "following.json"


def _measure(trace: Trace, step: int, special: float, *, labelled: bool) -> FollowedStep:
    odds = trace.log_odds(step)
    return FollowedStep(
        step=step,
        accuracy=float(trace.correct(step).mean()) if labelled else float("nan"),
        loss=float(np.logaddexp(0.0, -odds).mean()) if labelled else float("nan"),
        entropy=bootstrap_mean(normalised_entropy(trace.quantity("alpha", step))),
        special=special,
        agreements=tuple(_agreement(trace, step, u, v) for u, v in PAIRS),
    )


def _agreement(trace: Trace, step: int, u_name: str, v_name: str) -> StepAgreement:
    def read(at: int) -> tuple[Ragged, Ragged]:
        return trace.quantity(_STORED[u_name], at), trace.quantity(_STORED[v_name], at)

    u, v = read(step)
    rows, ties = agreement(u, v, return_ties=True)
    shuffle = shuffled_agreement(u, v)
    return StepAgreement(
        name=f"A({u_name},{v_name})",
        estimate=bootstrap_mean(rows),
        shuffle=bootstrap_mean(shuffle),
        excess=bootstrap_mean(rows - shuffle),
        gain=bootstrap_mean(rows - agreement(*read(trace.steps[0]))),
        ties=ties,
    )
