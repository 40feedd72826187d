"""Result of an audit: frozen dataclasses with save, load and tables."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from heedful import html as markup
from heedful.errors import ConfigError, DataError
from heedful.metrics.rank import kendall_tau_b
from heedful.metrics.statistics import Estimate
from heedful.storage.manifest import Manifest
from heedful.storage.serialization import Stored, frame
from heedful.studies.result import Answer

if TYPE_CHECKING:
    import pandas

Grade = Literal["show", "show with a caveat", "do not show"]
Sense = Literal["reassuring", "worrying", "open"]
OWN_TEXTS = "its validation texts"  # the data of an audit of a study, where no other texts are given
FORMAT = 1
TABLES = ("scores", "explanations", "words")
COLUMNS = (  # of the ranking: name, quantity, against
    ("tau", "tau", "leave one out"),
    ("comprehensiveness", "comprehensiveness", ""),
    ("sufficiency", "sufficiency", ""),
    ("token f1", "token f1", ""),
    ("iou f1", "iou f1", ""),
    ("auprc", "auprc", ""),
)


@dataclass(frozen=True)
class AuditQuestion:
    """One question about the map shown, and what decided it.

    sense: whether the answer speaks for showing the map or against it. statistic: the name of the number that decided,
    `estimate` its value (n is the number of texts), `threshold` the smallest effect worth having, `effect` the distance
    between the two in standard deviations between texts.
    """

    question: str
    answer: Answer
    because: str
    sense: Sense = "open"
    statistic: str = ""
    estimate: Estimate | None = None
    threshold: float | None = None
    effect: float | None = None


@dataclass(frozen=True)
class AuditVerdict:
    """The questions, the grade that follows from their answers, and one sentence that gives the reason.

    grade: None where questions that it rests on were left out, and in results stored before there were grades.
    """

    sentence: str
    questions: tuple[AuditQuestion, ...]
    grade: Grade | None = None


@dataclass(frozen=True)
class Score:
    """The mean of one quantity over passages, its interval over texts.

    tau, random tau (the mean of random models, its interval over them), agreement, shuffled agreement and excess
    agreement: of a map (or importance) against an importance. concordance, random concordance: Somers' d of the map
    shown, given leave one out. entropy: of a map. comprehensiveness, sufficiency, token
    f1, auprc: of a map, an importance or random order. tvd, flip: of predictions under permuted or uniform attention,
    against where it was changed.
    adversary: Jensen–Shannon divergence of another map that gives the same prediction. aer: of a map or importance.
    """

    quantity: str
    of: str
    against: str
    estimate: Estimate


@dataclass(frozen=True)
class Contrast:
    """A difference on the same texts: the mean of first − second, tested and corrected for multiplicity."""

    quantity: str
    first: str
    second: str
    difference: Estimate
    p: float
    corrected: float


@dataclass(frozen=True)
class LabelCount:
    """How many passages have a label, and for how many it was predicted."""

    name: str
    gold: int
    predicted: int


@dataclass(frozen=True)
class Weights:
    """One value for each word of an example."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class AuditExample:
    """A passage to show: its words, the prediction, the headline map and all importances, with their signs.

    rationale: which words people marked, if known. other: the most different map that was found to give the same
    prediction, `divergence` its distance from the map (Jensen–Shannon, in nats), `other_probability` that of the output
    under it; empty and None where none was looked for. explanations: other maps, and explanations that were given.
    position: of a translation, how many output pieces come before the one explained. maps: of every head and layer, for
    a few examples. fixed: what stands before each word without being explained, such as the separator of two texts, a
    mask or an answer; empty where there is nothing of the kind.
    """

    text: int
    words: tuple[str, ...]
    output: str
    label: str | None
    probability: float
    map: tuple[float, ...]
    importances: tuple[Weights, ...]
    rationale: tuple[bool, ...] = ()
    other: tuple[float, ...] = ()
    divergence: float | None = None
    other_probability: float | None = None
    explanations: tuple[Weights, ...] = ()
    position: int = 0
    maps: tuple[Weights, ...] = ()
    fixed: tuple[str, ...] = ()

    def tau(self) -> dict[str, float]:
        """Kendall's τ-b of the map with each importance in favour of the output, by name."""
        rows = [np.array(self.map)] * len(self.importances)
        favour = [np.maximum(np.array(weights.values), 0) for weights in self.importances]
        taus = kendall_tau_b(rows, favour) if rows else ()
        return {weights.name: float(tau) for weights, tau in zip(self.importances, taus, strict=True)}


@dataclass(frozen=True)
class Explanation:
    """One explanation that was ranked, and its own verdict.

    method: `raw`, `norm`, `grad`, `rollout` or `value-zeroing` for a map of the model, `given` for what was computed
    elsewhere. contrasts: its differences from random order, from random models and from the map shown.
    """

    name: str
    method: str
    verdict: AuditVerdict
    contrasts: tuple[Contrast, ...] = ()


@dataclass(frozen=True)
class AuditResult(Stored):
    """Everything an audit measured; `result.json` is this and nothing else.

    wordless: passages without a word to explain, which were left out. cut: passages that lost pieces to truncation;
    cut_pieces: how many pieces. headline: the map that the verdict is about. accuracy: None where no label is known.
    random_agreement: the agreement of a word drawn at random. rationale_percent: the share of words that explanations
    mark when they are compared with people's. left_out: a sentence for each measure whose package is not installed.
    explanations: every explanation that was ranked, the best first, each with a verdict of its own.
    """

    settings: dict[str, Any]
    fingerprint: str
    layers: int
    heads: int
    query: str
    headline: str
    texts: int
    passages: int
    cut: int
    cut_pieces: int
    labels: tuple[LabelCount, ...]
    accuracy: Estimate | None
    random_agreement: float
    rationale_percent: int | None
    scores: tuple[Score, ...]
    contrasts: tuple[Contrast, ...]
    verdict: AuditVerdict
    examples: tuple[AuditExample, ...]
    model: str = ""
    data: str = ""
    wordless: int = 0
    left_out: tuple[str, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    format: int = FORMAT

    folder: ClassVar[Path | None] = None

    @classmethod
    def load(cls, path: Path | str) -> "AuditResult":
        """Read what `save` wrote; the words of every text are beside it."""
        return super().load(path).at(Path(path).parent)

    def at(self, folder: Path) -> "AuditResult":
        """The same result, with the folder where the words of every text are."""
        object.__setattr__(self, "folder", folder if (folder / "words.parquet").is_file() else None)
        return self

    def score(self, quantity: str, of: str, against: str = "") -> Estimate:
        """The estimate of that name, such as `score("tau", "layer 2", "leave one out")`."""
        estimate = find(self.scores, quantity, of, against)
        if estimate is None:
            there = [f"{s.of}/{s.against}" for s in self.scores if s.quantity == quantity]
            known = there or sorted({s.quantity for s in self.scores})
            raise KeyError(f"{quantity} of {of!r} against {against!r} was not measured; there are {', '.join(known)}")
        return estimate

    def to_pandas(self, table: str = "scores") -> "pandas.DataFrame":
        """One row for each score, for each explanation (best first), or for each word of every text."""
        if table == "words":
            from heedful.audits.words import read_words

            return frame(read_words(self).to_pylist())
        if table == "explanations":
            return frame(self.ranking())
        if table != "scores":
            raise ConfigError(f"there is no table {table!r}; there are {', '.join(TABLES)}")
        return frame([score_row(score) for score in self.scores])

    def explain(self, text: int, position: int | None = None) -> AuditExample:
        """All explanations of one text, by its number in the data.

        position: of a text with several outputs, how many output pieces come before the one explained.
        """
        from heedful.audits.words import read_example

        example = read_example(self, text, position)
        if example is None:
            place = "" if position is None else f" with {position} output pieces before it"
            raise DataError(f"the audit has no text {text}{place}")
        return example

    def ranking(self) -> list[dict[str, Any]]:
        """One row for each explanation, the best first: its grade, and its scores where they were measured."""
        seconds = self.seconds()
        return [
            {
                "explanation": e.name,
                "method": e.method,
                "grade": e.verdict.grade,
                **{
                    name: None if (found := find(self.scores, quantity, e.name, against)) is None else found.value
                    for name, quantity, against in COLUMNS
                },
                "seconds": seconds.get(e.name),
            }
            for e in self.explanations
        ]

    def seconds(self) -> dict[str, float]:
        """The time that each explanation took on all texts, by name; empty without the audit's folder."""
        if self.folder is None:
            return {}
        return {name: float(s) for name, s in Manifest.read(self.folder).details.get("seconds", {}).items()}

    def _repr_html_(self) -> str:
        rows = [score_row(score) for score in self.scores]
        return markup.notebook(self.verdict.sentence, markup.answers(self.verdict.questions), markup.table(rows))


def find(scores: tuple[Score, ...], quantity: str, of: str, against: str = "") -> Estimate | None:
    """The estimate of that name, if it was measured.

    >>> find((Score("entropy", "mean", "", Estimate(0.5, 0.4, 0.6, 9)),), "entropy", "mean").value
    0.5
    """
    key = (quantity, of, against)
    return next((s.estimate for s in scores if (s.quantity, s.of, s.against) == key), None)


def score_row(score: Score) -> dict[str, Any]:
    """One score as a flat row of a table."""
    return {"quantity": score.quantity, "of": score.of, "against": score.against, **asdict(score.estimate)}
