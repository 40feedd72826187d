"""Settings of studies and audits: frozen dataclasses that check their values, and presets for each budget."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from heedful.errors import ConfigError
from heedful.storage.serialization import LATER, coerce, hints_of, known, short

EncoderName = Literal["embedding", "affine", "lstm", "bilstm", "transformer"]
ProjectionName = Literal["softmax", "uniform", "sparsemax", "sparsegen", "entmax15", "entmax"]
AttentionMode = Literal["learned", "uniform", "frozen", "only"]
BudgetName = Literal["smoke", "quick", "paper"]
TaskName = Literal["classification", "translation"]
ModelTask = Literal[
    "classification",
    "multi-label",
    "regression",
    "token-classification",
    "question-answering",
    "fill-mask",
    "text-generation",
    "translation",
]
OptimiserName = Literal["adam", "adagrad"]

BUDGETS: tuple[BudgetName, ...] = get_args(BudgetName)
TASKS: tuple[TaskName, ...] = get_args(TaskName)
MODEL_TASKS: tuple[ModelTask, ...] = get_args(ModelTask)  # of models that are audited or followed
# Tasks on which the copying model is trained; some are families of tasks (`copy-dose:45`).
COPYING_TASKS = (
    "copy-vocab",
    "copy-permutation",
    "copy-mixture",
    "permute",
    "copy-dose",
    "copy-blocks",
    "copy-sets",
    "copy-zipf",
    "copy-noise",
)
MAX_WIDTH, MAX_DEPTH, MAX_STEPS, MAX_SEEDS = 1 << 16, 100, 10**8, 1_000  # larger values are typing errors
RESAMPLES = 2000  # of a bootstrap
READING = ("task", "text", "label", "validation", "test", "lower")  # settings that say how data are read

T = TypeVar("T")


@dataclass(frozen=True)
class ModelConfig:
    """A classifier: embedding → encoder → scorer → projection → linear. The defaults are snell2021's (A.8)."""

    embedding: int = 300
    encoder: EncoderName = "bilstm"
    hidden: int = 256  # per direction
    layers: int = 1
    scorer: str = "mlp"  # a name in `models.attention.SCORERS`
    scorer_hidden: int = 256
    scale: float = 1.0  # λ of sunlu2020, Eq. 1: scores are divided by it
    projection: ProjectionName = "softmax"
    projection_parameter: float | None = None  # λ of sparsegen, α of entmax
    dropout: float = 0.0
    output_bias: bool = True
    # Embeddings start uniform in ± this range; None: N(0, 1).
    embedding_range: float | None = field(default=None, metadata=LATER)
    # Coefficient of ∣VᵀW∣ in the loss (sunlu2020), with scorer `dot`.
    orthogonality: float = field(default=0.0, metadata=LATER)
    # Of the encoder `transformer`: heads of its self-attention, and whether it has sinusoidal positions.
    heads: int = field(default=1, metadata=LATER)
    positions: bool = field(default=True, metadata=LATER)

    def __post_init__(self) -> None:
        _require_sizes(self, "model", embedding=MAX_WIDTH, hidden=MAX_WIDTH, layers=MAX_DEPTH, scorer_hidden=MAX_WIDTH)
        _require_heads(self, "model", self.encoder == "transformer")
        _require(0 <= self.dropout < 1, "model.dropout", self.dropout, "at least 0 and below 1")
        _require(0 < self.scale < math.inf, "model.scale", self.scale, "above 0 and finite")
        for name in ("projection_parameter", "embedding_range", "orthogonality"):
            value = getattr(self, name)
            _require(value is None or math.isfinite(value), f"model.{name}", value, "a finite number")
        _require(
            self.orthogonality == 0 or (self.orthogonality > 0 and self.scorer == "dot"),
            "model.orthogonality",
            self.orthogonality,
            "0, or above 0 with scorer 'dot'",
        )
        needed = self.projection in ("sparsegen", "entmax")
        _require(
            needed == (self.projection_parameter is not None),
            "model.projection_parameter",
            self.projection_parameter,
            f"{'given' if needed else 'left out'} with projection {self.projection!r}",
        )


@dataclass(frozen=True)
class TranslatorConfig:
    """A sequence-to-sequence model; the defaults are snell2021's translator (A.8)."""

    embedding: int = 256
    hidden: int = 256  # per direction
    layers: int = 2
    bidirectional: bool = True
    # affine: (W s_t + b)·h_l, and a projection of each head's context, averaged; bilinear: s_tᵀ W h_l, contexts summed.
    attention: Literal["affine", "bilinear"] = "affine"
    heads: int = 1
    output: Literal["relu", "tanh", "linear"] = "relu"
    dropout: float = 0.5
    embedding_scale: float = 1.0  # standard deviation of the embedding at initialisation
    # transformer: self-attention in place of recurrence, and cross-attention by scaled dot products (`attention` and
    # `output` say nothing then); positions: whether it has sinusoidal ones.
    cell: Literal["lstm", "gru", "transformer"] = field(default="lstm", metadata=LATER)
    shared_embedding: bool = field(default=True, metadata=LATER)  # one for source and target
    positions: bool = field(default=True, metadata=LATER)

    def __post_init__(self) -> None:
        _require_sizes(self, "translator", embedding=MAX_WIDTH, hidden=MAX_WIDTH, layers=MAX_DEPTH, heads=MAX_DEPTH)
        _require(0 <= self.dropout < 1, "translator.dropout", self.dropout, "at least 0 and below 1")
        scale = self.embedding_scale
        _require(0 < scale < math.inf, "translator.embedding_scale", scale, "above 0 and finite")
        _require_heads(self, "translator", self.cell == "transformer")
        one_layer = self.layers == 1 and not self.bidirectional
        _require(
            self.cell != "gru" or one_layer,
            "translator.cell",
            self.cell,
            "'lstm' or 'transformer' unless layers = 1, one direction",
        )
        same_width = self.attention == "affine" or not self.bidirectional
        _require(
            self.output != "linear" or same_width,
            "translator.output",
            self.output,
            "'relu' or 'tanh' with bilinear attention over two directions: c_t and s_t differ in width",
        )


@dataclass(frozen=True)
class TrainConfig:
    """One training run. `evaluate_at` lists the steps at which the model is measured and its trace recorded."""

    steps: int = 4000
    batch_size: int = 32
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    amsgrad: bool = False
    optimiser: OptimiserName = field(default="adam", metadata=LATER)
    # Learning rate of the attention parameters as a multiple of the others', and whether they have weight decay.
    attention_rate: float = field(default=1.0, metadata=LATER)
    attention_decay: bool = field(default=True, metadata=LATER)
    # Batches of texts of similar length, which is faster; else texts are drawn in random order (snell2021).
    bucketed: bool = field(default=True, metadata=LATER)
    evaluate_at: tuple[int, ...] = (0, 10, 50, 100, 150, 200, *range(250, 4001, 250))  # snell2021 A.8

    def __post_init__(self) -> None:
        _require(0 <= self.steps <= MAX_STEPS, "train.steps", self.steps, f"0 or more, and at most {MAX_STEPS:,}")
        _require_sizes(self, "train", batch_size=MAX_WIDTH)
        for name in ("learning_rate", "attention_rate"):
            value = getattr(self, name)
            _require(0 < value < math.inf, f"train.{name}", value, "above 0 and finite")
        _require(0 <= self.weight_decay < math.inf, "train.weight_decay", self.weight_decay, "0 or more and finite")
        increasing = all(a < b for a, b in zip(self.evaluate_at, self.evaluate_at[1:], strict=False))
        in_range = all(0 <= step <= self.steps for step in self.evaluate_at)
        _require(
            bool(self.evaluate_at) and increasing and in_range,
            "train.evaluate_at",
            self.evaluate_at,
            f"increasing steps from 0 to {self.steps}",
        )

    def changed(self, *, steps: int | None = None, learning_rate: float | None = None) -> "TrainConfig":
        """Change the number of steps: keep the steps of `evaluate_at` below it, then every 250, and the last.

        >>> TrainConfig().changed(steps=120).evaluate_at
        (0, 10, 50, 100, 120)
        """
        total = self.steps if steps is None else steps
        _require(0 <= total <= MAX_STEPS, "train.steps", total, f"0 or more, and at most {MAX_STEPS:,}")
        added = range(self.evaluate_at[-1], total, 250)
        at = {step for step in (*self.evaluate_at, *added) if step < total} | {total}
        rate = self.learning_rate if learning_rate is None else learning_rate
        return replace(self, steps=total, learning_rate=rate, evaluate_at=tuple(sorted(at)))


@dataclass(frozen=True)
class ProxyConfig:
    """The bag-of-words proxy (snell2021 §2.3): d = 256; W and e ~ N(0, I/d); the step of best validation loss."""

    width: int = 256
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(steps=8000, learning_rate=1.5e-4, evaluate_at=tuple(range(0, 8001, 500)))
    )
    # Epochs to train for, in place of `train.steps`; it is evaluated after each.
    epochs: int | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        _require_sizes(self, "proxy", width=MAX_WIDTH)
        _require(self.epochs is None or 1 <= self.epochs <= MAX_STEPS, "proxy.epochs", self.epochs, "1 or more")

    def schedule(self, examples: int) -> TrainConfig:
        """How it trains on so many examples.

        >>> ProxyConfig(epochs=2).schedule(examples=65).evaluate_at
        (0, 3, 6)
        """
        if self.epochs is None:
            return self.train
        each = -(-examples // self.train.batch_size)
        at = tuple(range(0, self.epochs * each + 1, each))
        return replace(self.train, steps=at[-1], evaluate_at=at)


@dataclass(frozen=True)
class StudyConfig:
    """Everything that decides the result of a study; its digest identifies the study."""

    data: str
    task: TaskName = "classification"
    target: str | None = None  # the second file of a parallel corpus
    text: str | None = None  # column of the text, or of the source
    label: str | None = None  # column of the label, or of the target
    validation: str | None = None
    test: str | None = None
    lower: bool | None = None
    budget: BudgetName = "quick"
    seeds: tuple[int, ...] = (0, 1)
    min_count: int = 3
    subwords: int = 8000
    source_bos: bool = True  # source sentences begin with `<bos>`; those of snell2021's copying task do not
    max_length: int = 400
    max_train: int | None = None
    max_validation: int | None = None
    train_sample: int = 0  # training texts recorded in the trace besides the validation texts
    # Files of word vectors (text or .npz), or `glove`. Words of `known_words` are in the vocabulary however rare they
    # are; `embeddings` are what a classifier's embeddings start from, where they have the word.
    known_words: str | None = field(default=None, metadata=LATER)
    embeddings: str | None = field(default=None, metadata=LATER)
    # One uniform, one frozen and one proxy model for all seeds, with a seed of their own (snell2021's released code);
    # else one for each seed.
    shared_twins: bool = field(default=False, metadata=LATER)
    # Help for the standard models' attention at first. uniform_steps: it is held uniform for so many steps. guide: it
    # is drawn towards α^IBM, less and less, in `guide_steps` steps (a quarter of all by default); translation only.
    uniform_steps: int = field(default=0, metadata=LATER)
    guide: Literal["ibm"] | None = field(default=None, metadata=LATER)
    guide_steps: int | None = field(default=None, metadata=LATER)
    model: ModelConfig = field(default_factory=ModelConfig)
    translator: TranslatorConfig = field(default_factory=TranslatorConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    proxy: ProxyConfig = field(default_factory=ProxyConfig)

    def __post_init__(self) -> None:
        _require(
            len(set(self.seeds)) == len(self.seeds) >= 2,
            "seeds",
            self.seeds,
            "two or more different seeds: ξ and the cross convention compare seeds",
        )
        _require(len(self.seeds) <= MAX_SEEDS, "seeds", len(self.seeds), f"{MAX_SEEDS:,} at most")
        _require(all(0 <= seed < 2**32 for seed in self.seeds), "seeds", self.seeds, "from 0 to 2³² − 1 each")
        for name in ("min_count", "max_length", "subwords", "max_train", "max_validation"):
            value = getattr(self, name)
            _require(value is None or value >= 1, name, value, "1 or more")
        _require(self.train_sample >= 0, "train_sample", self.train_sample, "0 or more")
        _require(self.uniform_steps >= 0, "uniform_steps", self.uniform_steps, "0 or more")
        _require(self.guide is None or self.task == "translation", "guide", self.guide, "left out of a study of texts")
        steps = self.guide_steps
        _require(
            steps is None or (self.guide is not None and steps >= 1),
            "guide_steps",
            steps,
            "1 or more, and with a guide",
        )
        for name in ("known_words", "embeddings"):
            value = getattr(self, name)
            alone = value is None or self.task == "classification"
            _require(alone, name, value, "left out of a study of translation")

    def twin_seed(self, seed: int) -> int:
        """The seed of the twins (uniform, frozen and proxy models) of a standard model's seed.

        >>> StudyConfig("sst").twin_seed(1), StudyConfig("sst", shared_twins=True).twin_seed(1)
        (1, 2)
        """
        return (max(self.seeds) + 1) % 2**32 if self.shared_twins else seed

    def reading(self) -> dict[str, Any]:
        """How the data are read."""
        return {name: getattr(self, name) for name in READING}


MEASURES = {
    "tau": "importance of words (gradient, integrated gradients, leave one out) and its correlation with attention",
    "hidden": "integrated gradients and leave one out of hidden states",
    "random": "the same of re-initialised models",
    "erasure": "what is lost without the words that a map points to",
    "changes": "predictions under permuted and uniform attention",
    "adversary": "the search for another attention that gives the same prediction",
    "maps": "other maps than raw attention, and given explanations, ranked by the same questions",
}
MAPS = {
    "raw": "the weights themselves",
    "norm": "norms of what attention takes over from each word",
    "grad": "weights times the gradient of the prediction by them",
    "rollout": "weights followed through all layers",
    "value-zeroing": "how far a layer's output turns without the values of a word",
}


def chosen_measures(only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[str, ...]:
    """The measures of an audit: all, or those of `only`, without those of `skip`. Names may be joined by commas.

    >>> chosen_measures(only=["tau"]), chosen_measures(skip=["hidden,random", "erasure"])
    (('tau',), ('tau', 'changes', 'adversary', 'maps'))
    >>> chosen_measures(skip=["advesary"])
    Traceback (most recent call last):
    heedful.errors.ConfigError: --skip: unknown measure 'advesary'; did you mean 'adversary'?
    """
    named = {
        option: [name.strip() for names in given for name in names.split(",") if name.strip()]
        for option, given in (("--only", only), ("--skip", skip))
    }
    for option, names in named.items():
        for name in names:
            if name not in MEASURES:
                near = get_close_matches(name, MEASURES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"the measures are {', '.join(MEASURES)}"
                raise ConfigError(f"{option}: unknown measure {short(repr(name))}; {hint}")
    wanted = [name for name in MEASURES if name in (named["--only"] or MEASURES) and name not in named["--skip"]]
    if not wanted:
        raise ConfigError(f"--only and --skip leave nothing to measure; the measures are {', '.join(MEASURES)}")
    return tuple(wanted)


@dataclass(frozen=True)
class AuditSettings:
    """Everything except model and data that decides the result of an audit.

    sample: number of texts drawn at random; None uses all. include_special: also explain by special tokens such as
    [CLS]. headline: the attention map shown to readers; None is the mean of the last layer. integrated_steps: points
    on the path of integrated gradients, 0 for none. adversary_steps: steps of the search for a different attention with
    the same prediction, 0 for none. random_orders: random word orders that the chance baseline averages over.
    random_models: re-initialised models that attention is compared with. chunk: passages measured and saved together.
    resamples: of the bootstrap. examples: passages kept for display. measures: what is measured (see `MEASURES`). maps:
    which maps are ranked beside the one shown (see `MAPS`); all but value zeroing, which takes a run for each word.
    baseline: where the path of integrated gradients starts: embeddings of 0, or those of the padding or mask piece in
    the place of every word. erase: words are deleted, or replaced by the mask piece. spans: at most so many spans of
    words are left out of a text, in place of single words; None for single words.

    The smallest effects worth having decide the answers: movement, of the prediction under permuted attention (total
    variation); tau, agreement with an importance; excess, of the top word over other texts; drop, of the probability
    without words; divergence, of another map from the one shown (Jensen–Shannon, in nats; half of its maximum).

    >>> AuditSettings(sample=0)
    Traceback (most recent call last):
      ...
    heedful.errors.ConfigError: sample is 0; it must be 1 or more
    """

    sample: int | None = None
    seed: int = 0
    include_special: bool = False
    headline: str | None = None
    integrated_steps: int = 50
    adversary_steps: int = 100
    random_orders: int = 5
    random_models: int = 10
    chunk: int = 32
    resamples: int = RESAMPLES
    examples: int = 50
    measures: tuple[str, ...] = tuple(MEASURES)
    maps: tuple[str, ...] = ("raw", "norm", "grad", "rollout")
    baseline: Literal["zero", "pad", "mask"] = "zero"
    erase: Literal["delete", "mask"] = "delete"
    spans: int | None = None
    smallest_movement: float = 0.05
    smallest_tau: float = 0.05
    smallest_excess: float = 0.05
    smallest_drop: float = 0.01
    smallest_divergence: float = 0.3466

    def __post_init__(self) -> None:
        for name in ("sample", "random_orders", "chunk", "resamples"):
            value = getattr(self, name)
            _require(value is None or value >= 1, name, value, "1 or more")
        _require(self.spans is None or self.spans >= 2, "spans", self.spans, "2 or more")
        _require(bool(self.measures), "measures", self.measures, f"some of {', '.join(MEASURES)}")
        for name in self.measures:
            _require(name in MEASURES, "measures", name, f"among {', '.join(MEASURES)}")
        for name in self.maps:
            _require(name in MAPS, "maps", name, f"among {', '.join(MAPS)}")
        for name in ("seed", "integrated_steps", "adversary_steps", "examples", "random_models"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "0 or more")
        _require(self.random_models != 1, "random_models", self.random_models, "0, or 2 or more: one has no interval")
        for name in ("movement", "tau", "excess", "drop", "divergence"):
            value = getattr(self, f"smallest_{name}")
            _require(0 < value < 1, f"smallest_{name}", value, "between 0 and 1")


def study_preset(data: str, budget: str = "quick", task: str = "classification") -> StudyConfig:
    """The default settings of a study for a corpus, a budget and a task.

    >>> study_preset("sst", "quick").train.steps, study_preset("multi30k", "paper", "translation").subwords
    (500, 8000)
    """
    if budget not in BUDGETS:
        raise ConfigError(f"budget {budget!r} is not one of {', '.join(BUDGETS)}")
    if task not in TASKS:
        raise ConfigError(f"task {task!r} is not one of {', '.join(TASKS)}")
    copying = data.partition(":")[0] in COPYING_TASKS
    preset = _PRESETS["copying" if copying else task][budget]
    return StudyConfig(data, task=task, budget=budget, source_bos=not copying, **preset)


ARCHITECTURES = ("lstm", "transformer")


def with_architecture(config: StudyConfig, name: str) -> StudyConfig:
    """The same study of another kind of model: `lstm`, the preset, or `transformer`.

    A Transformer has two layers of four heads, half the learning rate and no larger widths than the preset.

    >>> with_architecture(StudyConfig("sst"), "transformer").model.encoder
    'transformer'
    """
    if name not in ARCHITECTURES:
        raise ConfigError(f"model is {short(repr(name))}; it must be {' or '.join(ARCHITECTURES)}")
    if name == "lstm":
        return config
    train = replace(config.train, learning_rate=config.train.learning_rate / 2)
    layers: dict[str, Any] = {"layers": 2, "heads": 4}
    if config.task == "translation":
        width = min(config.translator.hidden, 256)
        model = replace(config.translator, cell="transformer", hidden=width, dropout=0.1, bidirectional=False, **layers)
        return replace(config, train=train, translator=model)
    width = min(config.model.hidden, 128)
    return replace(config, train=train, model=replace(config.model, encoder="transformer", hidden=width, **layers))


def first_seeds(count: int) -> tuple[int, ...]:
    """The seeds 0, 1, …, count − 1.

    >>> first_seeds(3)
    (0, 1, 2)
    >>> first_seeds(10**9)
    Traceback (most recent call last):
    heedful.errors.ConfigError: seeds is 1000000000; it must be 1,000 at most
    """
    _require(count <= MAX_SEEDS, "seeds", count, f"{MAX_SEEDS:,} at most")
    return tuple(range(count))


def with_overrides(config: T, *, where: str = "settings", **overrides: Any) -> T:
    """Copy a config with some settings replaced; `None` keeps a setting, a mapping changes only the keys it has.

    >>> with_overrides(StudyConfig("sst"), text=None, train={"steps": 20}).train.evaluate_at
    (0, 10, 20)
    """
    hints = hints_of(type(config))  # type: ignore[arg-type]
    names = [f.name for f in fields(config)]  # type: ignore[arg-type]
    values = {}
    for key, value in overrides.items():
        known(key, names, where)
        place, kind = f"{where}: {key}", hints[key]
        if isinstance(value, Mapping) and is_dataclass(kind):
            values[key] = _nested_changes(getattr(config, key), value, place)
        elif value is not None:
            plain = str(value) if isinstance(value, Path) else value
            values[key] = value if is_dataclass(value) else coerce(plain, kind, place)
    return replace(config, **values)  # type: ignore[type-var]


def flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested settings as one level with dotted names.

    >>> flat({"data": "sst", "train": {"steps": 3}})
    {'data': 'sst', 'train.steps': 3}
    """
    level: dict[str, Any] = {}
    for name, value in table.items():
        level |= flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return level


def _require(holds: bool, name: str, value: Any, allowed: str) -> None:
    if not holds:
        raise ConfigError(f"{name} is {short(repr(value))}; it must be {allowed}")


def _require_sizes(config: Any, table: str, **limits: int) -> None:
    for name, limit in limits.items():
        value = getattr(config, name)
        _require(1 <= value <= limit, f"{table}.{name}", value, f"1 or more, and at most {limit:,}")


def _require_heads(config: Any, table: str, splits: bool) -> None:
    """Heads of a Transformer share its width; others have any number."""
    _require_sizes(config, table, heads=MAX_DEPTH)
    fits = config.hidden % config.heads == 0
    _require(fits or not splits, f"{table}.heads", config.heads, f"a divisor of the width {config.hidden}")


def _nested_changes(config: Any, changes: Mapping[str, Any], where: str) -> Any:
    """Change a nested config; where `steps` changes but not `evaluate_at`, see `TrainConfig.changed`."""
    steps = changes.get("steps")
    if isinstance(config, TrainConfig) and type(steps) is int and changes.get("evaluate_at") is None:
        _require(steps >= 0, f"{where}: steps", steps, "0 or more")
        config = config.changed(steps=steps)
    return with_overrides(config, where=where, **changes)


def _proxy(
    steps: int, every: int, width: int = 256, learning_rate: float = 1.5e-4, batch_size: int = 32
) -> ProxyConfig:
    at = tuple(range(0, steps + 1, every))
    train = TrainConfig(steps=steps, learning_rate=learning_rate, batch_size=batch_size, evaluate_at=at)
    return ProxyConfig(width=width, train=train)


_COPYING = TranslatorConfig(layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0)
_SMALL_COPYING = replace(_COPYING, embedding=24, hidden=24)

# Settings that differ from the defaults of `StudyConfig`, by kind of task and budget.
_PRESETS: dict[str, dict[BudgetName, dict[str, Any]]] = {
    "classification": {
        "smoke": {
            "max_train": 256,
            "max_validation": 48,
            "max_length": 40,
            "model": ModelConfig(embedding=24, hidden=16, scorer_hidden=16),
            "train": TrainConfig(steps=12, learning_rate=1e-2, evaluate_at=(0, 4, 8, 12)),
            "proxy": _proxy(60, 20, width=32, learning_rate=1e-2),
        },
        "quick": {
            "max_train": 25_000,
            "max_validation": 1_000,
            "max_length": 200,
            "seeds": (0, 1, 2, 3, 4),
            "train": TrainConfig(steps=500, evaluate_at=(0, 10, 50, 100, 150, 200, 250, 300, 400, 500)),
            "proxy": _proxy(4000, 250),
        },
        "paper": {"max_validation": 4_000, "seeds": (0, 1, 2, 3, 4)},
    },
    "translation": {
        "smoke": {
            "max_train": 300,
            "max_validation": 12,
            "max_length": 40,
            "subwords": 300,
            "translator": TranslatorConfig(embedding=24, hidden=24, layers=1, dropout=0.0),
            "train": TrainConfig(steps=12, learning_rate=1e-2, evaluate_at=(0, 6, 12)),
            "proxy": _proxy(60, 20, width=32, learning_rate=1e-2),
        },
        "quick": {
            "max_validation": 160,
            "max_length": 60,
            "subwords": 4000,
            "translator": TranslatorConfig(embedding=128, hidden=128, dropout=0.2),
            "train": TrainConfig(steps=1500, batch_size=32, evaluate_at=(0, 50, 100, 250, 500, 750, 1000, 1250, 1500)),
            "proxy": _proxy(3000, 300, width=128, learning_rate=1e-3),
        },
        "paper": {
            "max_length": 100,
            # 20 epochs of Multi30k in batches of 16; the steps that the released code records, and the last.
            "train": TrainConfig(
                steps=36_260,
                batch_size=16,
                evaluate_at=(
                    0,
                    50,
                    100,
                    500,
                    1000,
                    1500,
                    *range(2000, 20_001, 2000),
                    *range(24_000, 36_001, 4000),
                    36_260,
                ),
            ),
            "proxy": _proxy(20_000, 1000),
        },
    },
    "copying": {
        "smoke": {
            "max_train": 256,
            "max_validation": 8,
            "translator": _SMALL_COPYING,
            "train": TrainConfig(steps=6, batch_size=16, evaluate_at=(0, 3, 6)),
            "proxy": _proxy(20, 10, width=16),
        },
        "quick": {
            "max_validation": 32,
            "translator": _COPYING,
            "train": TrainConfig(steps=350, batch_size=64, evaluate_at=(*range(0, 101, 10), *range(150, 351, 50))),
            "proxy": _proxy(1000, 100, learning_rate=1e-3, batch_size=64),
        },
        "paper": {
            "max_validation": 200,
            "translator": _COPYING,
            "train": TrainConfig(steps=200, batch_size=128, evaluate_at=tuple(range(0, 201, 10))),
            "proxy": _proxy(1000, 100, learning_rate=1e-3, batch_size=64),
            "seeds": tuple(range(20)),
        },
    },
}
