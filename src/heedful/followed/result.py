"""Result and run directory of a followed training: agreements, entropy and accuracy by step, and a verdict."""

import atexit
import math
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.stats import binomtest

from heedful import html as markup
from heedful.data.ragged import Ragged
from heedful.errors import ConfigError, RunError
from heedful.metrics.agreement import agreement, random_agreement, shuffled_agreement
from heedful.metrics.entropy import normalised_entropy
from heedful.metrics.statistics import Estimate, bootstrap_mean
from heedful.storage.atomic_files import valid_path, without_nan
from heedful.storage.locks import directory_lock
from heedful.storage.manifest import MANIFEST, RESULT, Manifest, RunClock, refuse_other, verified_result
from heedful.storage.run_files import listed
from heedful.storage.serialization import Stored, digest, frame
from heedful.storage.step_cache import StepRecord
from heedful.studies.result import Answer, Curve, Question, Verdict, against_chance, with_interval
from heedful.studies.run_directory import ModelDirectory
from heedful.studies.tracking import agreement_name
from heedful.tracing.store import Snapshot, Trace, write_step

if TYPE_CHECKING:
    import pandas

FORMAT = 1
PAIRS = (("alpha", "beta"), ("alpha", "delta"), ("delta", "beta"))  # whose agreements every step has


@dataclass(frozen=True)
class ProbeTexts(Stored):
    """The texts that a training is followed on, as its model reads them.

    model: its class. labels: their names, in the model's order. words: of each text, without special tokens. right: the
    number of each text's right label; empty if they are not known.
    """

    name: str
    model: str
    labels: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    decisions: tuple[str, ...] = ()

    @property
    def majority(self) -> float:
        """The share of the most frequent label; NaN if labels are not known."""
        return max(Counter(self.right).values()) / len(self.right) if self.right else float("nan")

    @property
    def median_length(self) -> float:
        """The median number of words of a text."""
        return float(np.median([len(text) for text in self.words]))


@dataclass(frozen=True)
class StepAgreement:
    """A(u, v) at one step, with chance beside it.

    shuffle: u of one text with v of another of equal length; excess: the difference from that; gain: the difference
    from the first recorded step, text by text.
    """

    name: str
    estimate: Estimate
    shuffle: Estimate
    excess: Estimate
    gain: Estimate
    ties: int


@dataclass(frozen=True)
class FollowedStep:
    """Measures on the probe texts at one step.

    accuracy, loss: NaN if labels are not known. entropy: H̃ of attention over the words. special: the share of attention
    on special tokens. source: the checkpoint that was recorded, and `sha256` the checksum of its weights; empty of a
    training that was followed while it ran.
    """

    step: int
    accuracy: float
    loss: float
    entropy: Estimate
    special: float
    agreements: tuple[StepAgreement, ...]
    source: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        names = [f"A({u},{v})" for u, v in PAIRS]
        lacking = [name for name in names if name not in {row.name for row in self.agreements}]
        if lacking:
            raise ConfigError(f"step {self.step} lacks {', '.join(lacking)}")

    @property
    def metrics(self) -> dict[str, float]:
        """Its numbers by names that every tracker accepts, without those that are not known."""
        values = {"accuracy": self.accuracy, "loss": self.loss, "entropy": self.entropy.value, "special": self.special}
        for row in self.agreements:
            name = agreement_name(row.name)
            values |= {name: row.estimate.value, f"{name}/shuffle": row.shuffle.value}
        return {key: value for key, value in values.items() if math.isfinite(value)}

    def agreement(self, name: str) -> StepAgreement:
        """The row of that name, such as `A(alpha,beta)`."""
        for row in self.agreements:
            if row.name == name:
                return row
        raise KeyError(f"{name!r} is not among {[row.name for row in self.agreements]}")


@dataclass(frozen=True)
class FollowedTraining(Stored):
    """Result of a followed training so far; `result.json` is this and nothing else.

    majority: the share of the most frequent label; NaN if labels are not known.
    """

    name: str
    model: str
    texts: int
    random_agreement: float
    steps: tuple[FollowedStep, ...]
    task: str = "following"
    majority: float = math.nan
    format: int = FORMAT

    def __post_init__(self) -> None:
        if not self.steps:
            raise ConfigError("steps is empty; a followed training has at least one recorded step")

    @property
    def verdict(self) -> Verdict:
        """The fixed questions, answered from the last recorded step."""
        return judge_training(self)

    @property
    def same_weights(self) -> tuple[str, ...]:
        """A sentence for each checkpoint whose weights are those of an earlier one."""
        first: dict[str, FollowedStep] = {}
        sentences = []
        for step in self.steps:
            if step.sha256 and step.sha256 in first:
                earlier = first[step.sha256]
                sentences.append(
                    f"{step.source} (step {step.step:,}) has the same weights as {earlier.source} (step "
                    f"{earlier.step:,})"
                )
            first.setdefault(step.sha256, step)
        return tuple(sentences)

    def curve(self, name: str) -> Curve:
        """An agreement over the recorded steps."""
        return Curve(
            tuple(step.step for step in self.steps), tuple(step.agreement(name).estimate.value for step in self.steps)
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row per step and agreement."""
        return [
            {
                "step": step.step,
                "accuracy": step.accuracy,
                "loss": step.loss,
                "entropy": step.entropy.value,
                "special": step.special,
                "quantity": row.name,
                "agreement": row.estimate.value,
                "low": row.estimate.low,
                "high": row.estimate.high,
                "n": row.estimate.n,
                "random": self.random_agreement,
                "shuffle": row.shuffle.value,
                "excess_low": row.excess.low,
                "excess_high": row.excess.high,
                "gain": row.gain.value,
                "gain_low": row.gain.low,
                "gain_high": row.gain.high,
                "ties": row.ties,
            }
            for step in self.steps
            for row in step.agreements
        ]

    def to_pandas(self) -> "pandas.DataFrame":
        """One row per step and agreement."""
        return frame(self.to_rows())

    def _repr_html_(self) -> str:
        rows = self.to_rows()[-len(self.steps[-1].agreements) :]
        dots = [
            {
                "key": row["quantity"],
                "symbol": markup.symbol(row["quantity"]),
                "convention": "own",
                "value": row["agreement"],
                "control": row["shuffle"],
                **row,
            }
            for row in rows
        ]
        picture = markup.dots_and_whiskers(dots, self.random_agreement)
        return markup.notebook(self.verdict.sentence, markup.answers(self.verdict.questions), picture)


def judge_training(result: FollowedTraining) -> Verdict:
    """Answer the fixed questions of a followed training and summarise them in one sentence."""
    last = result.steps[-1]
    to_beta, to_delta, between = (last.agreement(f"A({u},{v})") for u, v in PAIRS)
    known = _beyond_chance("Does attention look at words that predict the answer by themselves?", result, to_beta)
    salient = _beyond_chance("Does attention look at the word that the prediction depends on most?", result, to_delta)
    carried = _beyond_chance("Does that word predict the answer by itself?", result, between)
    learned = _gained("Did training bring attention to such words?", result, to_beta)
    questions = (known, learned, salient, carried)
    if gate := _at_majority(result):
        not_asked = tuple(replace(question, answer="not asked") for question in questions)
        return Verdict(f"At step {last.step:,}, {gate}; so its attention was not judged.", not_asked, "learned nothing")
    return Verdict(f"At step {last.step:,}, {_sentence(known.answer, salient.answer, learned.answer)}.", questions)


def _at_majority(result: FollowedTraining) -> str | None:
    """Why nothing is asked of attention, where the model does not clearly beat the most frequent label."""
    reached = result.steps[-1].accuracy
    if not (math.isfinite(reached) and math.isfinite(result.majority)):
        return None
    right = binomtest(round(reached * result.texts), result.texts)
    low, high = right.proportion_ci(method="wilson")
    if low > result.majority:
        return None
    return (
        f"the model does not clearly beat always guessing the most frequent label: accuracy {reached:.1%} "
        f"[{low:.1%}, {high:.1%}] on {result.texts:,} texts, that label {result.majority:.1%}"
    )


def _beyond_chance(question: str, result: FollowedTraining, row: StepAgreement) -> Question:
    return Question(
        question,
        against_chance(row.estimate, result.random_agreement, row.excess),
        f"{row.name} {with_interval(row.estimate)} against {result.random_agreement:.0%} at random "
        f"and {row.shuffle.value:.0%} for the shuffled baseline",
    )


def _gained(question: str, result: FollowedTraining, row: StepAgreement) -> Question:
    first = result.steps[0].agreement(row.name).estimate
    answer: Answer = "yes" if row.gain.low > 0 else "no" if row.gain.high < 0 else "unclear"
    return Question(
        question,
        answer,
        f"{row.name} {with_interval(row.estimate)} against {with_interval(first)} at step {result.steps[0].step:,}; "
        f"gain on the same texts {with_interval(row.gain)}",
    )


def _sentence(known: Answer, salient: Answer, learned: Answer) -> str:
    if known == "unclear":
        course = "we can't tell yet whether attention finds words that predict the answer by themselves"
    elif known == "no":
        course = "attention does not find words that predict the answer by themselves"
    else:
        course = "attention finds words that predict the answer by themselves more often than chance"
        course += {
            "yes": ", and training brought it there",
            "no": ", though less often than before training",
            "unclear": ", though we can't tell whether training brought it there",
        }[learned]
    trust = {
        "yes": "it finds the words that the prediction depends on more often than chance",
        "no": "it does not find the words that the prediction depends on",
        "unclear": "we can't tell yet whether it finds the words that the prediction depends on",
    }[salient]
    return f"{course}; {trust}"


class FollowedDirectory:
    """The run directory of a followed training.

    It is locked from `claim` to `close`, or to the end of the process. Within one process, whoever claims it last has
    it: a training that was interrupted in a notebook is begun again there.

    >>> import tempfile
    >>> FollowedDirectory(tempfile.mkdtemp()).is_begun()
    False
    """

    _locks: ClassVar[dict[Path, ExitStack]] = {}  # held by this process, by folder

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.folder = ModelDirectory(self.root)
        self.result_path, self._probe_path = self.root / RESULT, self.root / "following.json"
        self._clock: RunClock | None = None

    def manifest(self) -> Manifest:
        """When and with what it was recorded."""
        return Manifest.read(self.root)

    def is_begun(self) -> bool:
        """Whether this folder holds a followed training."""
        return valid_path(self._probe_path).exists()

    def probe(self) -> ProbeTexts:
        """The texts that the training is followed on."""
        record = StepRecord(self.root / MANIFEST)
        if record.is_done() and self._probe_path.name in record.files():
            record.verified(self._probe_path.name)
        return ProbeTexts.load(self._probe_path)

    def result(self) -> FollowedTraining:
        """The result of the steps recorded so far, as it was written."""
        if not valid_path(self.result_path).exists():
            raise RunError(f"{self.root}: no step of this training has been recorded yet")
        return FollowedTraining.load(verified_result(self.root))

    def trace(self) -> Trace:
        """α, β and Δ at the recorded steps; the manifest has the checksums of the files."""
        folder = self.folder.trace_folder()
        names = {Path(name): checksum for name, checksum in self.manifest().files.items()}
        return Trace(folder, {name.name: sum for name, sum in names.items() if name.parent.name == folder.name})

    def claim(self, probe: ProbeTexts) -> None:
        """Lock the folder for this training; an error if another process has it, or it holds something else."""
        refuse_other(self.root, "followed", self._probe_path.name, "choose another folder")
        self._lock()
        try:
            if self.is_begun() and digest(self.probe()) != digest(probe):
                raise RunError(f"{self.root} follows a training on other texts, labels or words; choose another folder")
            self._clock = RunClock("followed")
            self._clock.begin(self.root)
            self._steps()  # a damaged result is an error now, not after hours of training
            if not self.is_begun():
                probe.save(self._probe_path)
        except BaseException:
            self._unlock()
            raise

    def keep(
        self, step: int, snapshot: Snapshot, special: float, source: str = "", sha256: str = ""
    ) -> FollowedTraining:
        """Store a step and update the result; later steps are removed, since training resumed before them.

        The run counts as finished only after `close`.
        """
        if self._key not in self._locks:  # another recorder had it meanwhile, or it was closed
            self.claim(self.probe())
        probe = self.probe()
        earlier = [s for s in self._steps() if s.step < step]
        kept = {s.step for s in earlier}
        for path in listed(self.folder.trace_folder(), "*.parquet"):
            if path.stem.isdecimal() and int(path.stem) not in kept and path.is_file():
                path.unlink()
        write_step(self.folder.trace_folder(), step, snapshot)
        trace = Trace(self.folder.trace_folder())
        measured = replace(_measure(trace, step, special, labelled=bool(probe.right)), source=source, sha256=sha256)
        result = FollowedTraining(
            name=probe.name,
            model=probe.model,
            texts=len(probe.words),
            random_agreement=random_agreement(trace.quantity("alpha", step).lengths),
            steps=(*earlier, measured),
            majority=probe.majority,
        )
        metrics = [{"step": s.step, "accuracy": s.accuracy, "loss": s.loss} for s in result.steps]
        self.folder.save_metrics([without_nan(line) for line in metrics])
        self._timed().keep(self.root, result, self._files(result))
        return result

    def close(self) -> FollowedTraining:
        """Complete the manifest, release the folder and return the result; once closed, nothing more is written."""
        result = self.result()
        if self._key in self._locks:
            self._timed().finish(self.root, result, self._files(result))
            self._unlock()
        return result

    def _steps(self) -> tuple[FollowedStep, ...]:
        """The steps recorded so far, also where it was killed after writing a result and before its manifest."""
        if not self.result_path.exists():
            return ()
        vouched = RESULT in self.manifest().files
        return (self.result() if vouched else FollowedTraining.load(self.result_path)).steps

    def _files(self, result: FollowedTraining) -> list[str]:
        traces = [f"{self.folder.trace_folder().name}/{step.step}.parquet" for step in result.steps]
        return [self._probe_path.name, "metrics.jsonl", *traces]

    def _timed(self) -> RunClock:
        self._clock = self._clock or RunClock("followed")
        return self._clock

    @property
    def _key(self) -> Path:
        return self.root.absolute()

    def _lock(self) -> None:
        self._unlock()
        stack = ExitStack()
        stack.enter_context(directory_lock(self.root))
        self._locks[self._key] = stack
        atexit.register(stack.close)

    def _unlock(self) -> None:
        if (stack := self._locks.pop(self._key, None)) is not None:
            atexit.unregister(stack.close)
            stack.close()


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
    def read(at: int) -> list[Ragged]:  # β on the log-odds scale, where it does not tie
        return [trace.quantity("beta_logit" if name == "beta" else name, at) for name in (u_name, v_name)]

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
