"""A.1, Eq. 53 and the worked examples of snell2021 (Figures 1, 4, 5 and 8): what is derived, checked in numbers."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from heedful.config import TrainConfig
from heedful.data.batching import copying_batches
from heedful.data.ragged import Ragged, as_ids
from heedful.data.synthetic.tasks import LENGTH, stream_numbers
from heedful.data.vocabulary import EOS
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate, bootstrap_mean, mean_over_seeds
from heedful.models.classifier import BagOfWordsProxy
from heedful.models.lexicon import CountTable, Lexicon, count_table, translation_table
from heedful.models.training import train
from heedful.papers.experiment import Answer, Unit, Workspace
from heedful.papers.findings import (
    Cell,
    Figure,
    Finding,
    Panel,
    ResultTable,
    Row,
    Sizes,
    Value,
    curve,
    exactly,
    matrix_panel,
    nested_value,
    seed_value,
)
from heedful.papers.snell2021.config import EQ53_SEEDS, LINEAR_BUDGETS, TRANSLATION, translation_study
from heedful.papers.snell2021.models import HELD_OUT, linear_unit
from heedful.papers.snell2021.models import WORDS as WORDS_OF
from heedful.theory.gradient_flow import compare_with_limit, logit_limit
from heedful.theory.optimal import counterexample

WIDTHS = (16, 64, 256, 1024, 4096)
Matrix = NDArray[np.floating]
PROXY_TASKS = {"permutations": "copy-permutation", "40 of 60 words": "copy-vocab"}
PROXY_STEPS = {"smoke": 4, "quick": 2000, "paper": 10_000}
PROXY_BATCH, HELD_OUT_SEQUENCES = 64, 500
WORDS = 12
SENTENCES = 60


def eq53_units(budget: str) -> dict[int | str, list[Unit]]:
    """The proxy's first step at each width, and its training on sequences of words that are always the same or not."""
    function, seeds = f"{__name__}:compare_width", EQ53_SEEDS[budget]
    units: dict[int | str, list[Unit]] = {
        d: [Unit(f"eq53-{d}", function, {"width": d, "seeds": seeds})] for d in WIDTHS
    }
    for name, task in PROXY_TASKS.items():
        units[name] = [
            Unit(
                f"proxy-{task}-{seed}",
                f"{__name__}:train_proxy",
                {"task": task, "seed": seed, "steps": PROXY_STEPS[budget]},
            )
            for seed in range(seeds)
        ]
    return units


def train_proxy(*, task: str, seed: int, steps: int, device: torch.device, report: OnEvent) -> dict[str, Any]:
    """A unit: train the proxy on fresh sequences; its held-out loss on the way, and that of the unigram, in nats."""
    torch.manual_seed(seed)
    size = EOS + 1 + WORDS_OF[task]
    model = BagOfWordsProxy(size, size).to(device)
    test = next(copying_batches(task, HELD_OUT_SEQUENCES, seed=HELD_OUT, device=device))
    config = TrainConfig(steps=steps, evaluate_at=tuple(range(0, steps + 1, max(1, steps // 20))))
    seen: dict[str, Any] = {"steps": [], "loss": [], "unigram": unigram_loss(task)}

    @torch.no_grad()
    def at_step(step: int, loss: float) -> None:
        seen["steps"].append(step)
        seen["loss"].append(float(model.loss(test)))
        report({"step": step, "steps": steps, "loss": seen["loss"][-1]})

    train(model, copying_batches(task, PROXY_BATCH, seed=seed, device=device), config, at_step)
    return seen


def unigram_loss(task: str) -> float:
    """The loss of a model that knows how frequent each word and `<eos>` are, and nothing else, in nats a word.

    >>> round(unigram_loss("copy-permutation") - float(np.log(41)), 12)
    0.0
    """
    share = 1 / (LENGTH + 1)
    word = LENGTH * share / WORDS_OF[task]
    return float(-share * np.log(share) - LENGTH * share * np.log(word))


def compare_width(*, width: int, seeds: int, device: torch.device, report: OnEvent) -> dict[str, Any]:
    """A unit: how a proxy of one width moves at first, against the limit of infinite width, seed by seed."""
    source, target = _random_corpus()
    comparisons = []
    for seed in range(seeds):
        comparisons.append(asdict(compare_with_limit(source, target, WORDS, WORDS, width, seed)))
        report({"step": seed + 1, "steps": seeds})
    return {name: [comparison[name] for comparison in comparisons] for name in comparisons[0]}


def find_eq53(budget: str, answers: Mapping[int | str, Sequence[Answer]]) -> Finding:
    """Eq. 53: the proxy's logits begin to move as the count table says, the better the wider it is.

    The corpus is random: 60 pairs of 3 to 8 words out of 12. Eq. 54 gives the same right-hand side to the probability,
    whose derivative is 1/∣O∣ of it. Beside it the proxy is trained on permutations, where all sequences have the same
    words, and on 40 of 60 words.
    """
    rows, values = [], []
    curves: dict[str, list[Estimate]] = {"logit": [], "probability": []}
    for d in WIDTHS:
        (answer,) = answers[d]
        mean = {name: mean_over_seeds(values) for name, values in answer.items()}
        shown = ("logit_correlation", "logit_slope", "probability_slope", "printed_slope")
        n = len(answer["logit_slope"])
        rows.append(Row(f"d = {d}", tuple(Cell(mean[name], digits=4, seeds=n) for name in shown)))
        for name, estimates in curves.items():
            estimates.append(mean[f"{name}_correlation"])
        printed = mean["printed_slope"]
        scaled = Estimate(printed.value * WORDS, printed.low * WORDS, printed.high * WORDS, printed.n)
        values += [
            seed_value(f"correlation, d = {d}", answer["logit_correlation"]),
            seed_value(f"slope, d = {d}", answer["logit_slope"]),
            Value(f"slope against Eq. 54 as printed times ∣O∣, d = {d}", scaled),
        ]
    lines = tuple(curve(f"of the {name}", [float(d) for d in WIDTHS], estimates) for name, estimates in curves.items())
    permutations = next(stream_numbers("copy-permutation"))[0][:200]
    constant = logit_limit(count_table(as_ids(permutations), as_ids(permutations)).matrix().toarray()[1:, 1:])
    values.append(Value("largest limit over permutations", exactly(float(np.abs(constant).max()))))
    values.append(Value("C of Eq. 16 less the count table", exactly(_count_difference(*_random_corpus()))))
    trained = []
    for name in PROXY_TASKS:
        lowest = [min(run["loss"]) - run["unigram"] for run in answers[name]]
        values.append(seed_value(f"proxy loss less the unigram's, {name}", lowest))
        cells = (Cell(exactly(answers[name][0]["unigram"]), digits=3), Cell(values[-1].estimate, digits=3))
        trained.append(Row(name, tuple(replace(cell, seeds=len(lowest)) for cell in cells)))
    columns = ("correlation of the logit", "slope of the logit", "slope of θ, with 1/∣O∣", "slope of θ, as printed")
    panel = Panel(
        "derivative at the start against its limit", lines, x_label="width d", y_label="correlation", x_log=True
    )
    note = (
        f"Eq. 54 as printed lacks the factor 1/∣O∣ = {1 / WORDS:.4f}: the last column tends to it, the one before to 1."
    )
    return Finding(
        (
            ResultTable("Eq. 53 as the proxy grows wider", columns, tuple(rows)),
            ResultTable(
                "The proxy trained: lowest held-out loss, nats a word",
                ("unigram", "proxy less unigram"),
                tuple(trained),
            ),
        ),
        (Figure("eq53", "Eq. 53: counts foretell what is learned first", (panel,)),),
        tuple(values),
        (note,),
    )


def _count_difference(source: Ragged, target: Ragged) -> float:
    """The largest difference between Eq. 16, summed word by word, and the count table of Model 1 (§4.2)."""
    C = np.zeros((WORDS, WORDS))
    for x, y in zip(source, target, strict=True):
        for i in x:
            for o in y:
                C[i, o] += 1 / len(x)
    counted = count_table(source, target, source_size=WORDS, target_size=WORDS).matrix().toarray()
    return float(np.abs(C - counted).max())


def _random_corpus() -> tuple[Ragged, Ragged]:
    rng = np.random.default_rng(53)
    sentences = [[rng.integers(WORDS, size=rng.integers(3, 9)) for _ in range(SENTENCES)] for _ in range(2)]
    return as_ids(sentences[0]), as_ids(sentences[1])


def linear_units(budget: str) -> dict[str, list[Unit]]:
    """The linear translators of A.1, trained on the data of the translation study."""
    study, sizes = translation_study(budget), LINEAR_BUDGETS[budget]
    return {study.data: [linear_unit(seed, study, sizes) for seed in range(sizes.seeds)]}


def find_optimal(budget: str, seen: Mapping[str, Sequence[Answer]]) -> Finding:
    """A.1: the counterexample, and how often the best attention goes where β is largest in a trained linear model."""
    example, ((data, answers),) = counterexample(), seen.items()
    text = np.array(answers[0]["text"])
    keys = ("agreement", "shuffle", "learned_agreement", "untrained", "random_logits")
    by_seed = {key: np.array([a[key] for a in answers], dtype=np.float64) for key in keys}  # (seeds, words)
    estimates = {key: bootstrap_mean(rows.mean(axis=0), groups=text) for key, rows in by_seed.items()}
    above = nested_value("A(alpha_opt,beta) above controls", _above_controls(by_seed, answers[0]["random"], text))
    gap = max(a["gap"] for a in answers)
    sizes: Sizes = {"seeds": len(answers), "texts": len(np.unique(text))}
    bleu = seed_value("BLEU", [a["bleu"] for a in answers], sizes["texts"], (0.0, 100.0))
    cells = (
        Cell(estimates["agreement"], 53.0, "%", **sizes),
        Cell(exactly(answers[0]["random"]), None, "%", **sizes),
        Cell(estimates["shuffle"], None, "%", **sizes),
        Cell(estimates["random_logits"], None, "%", **sizes),
        Cell(estimates["untrained"], None, "%", **sizes),
        Cell(above.estimate, None, "%", **sizes),
        Cell(estimates["learned_agreement"], None, "%", **sizes),
        Cell(bleu.estimate, 38.2, **sizes),
        Cell(text=f"{gap:.1e} nats"),
    )
    columns = (
        "A(α^opt, β)",
        "Â",
        "matched shuffle",
        "random logits",
        "untrained model",
        "above the largest",
        "A(α^opt, α)",
        "BLEU",
        "largest duality gap",
    )
    three = tuple(
        Row(f"l = {place}", tuple(Cell(exactly(float(weight)), digits=3) for weight in weights))
        for place, weights in enumerate(zip(example.beta, example.alpha, strict=True), start=1)
    )
    at_largest = exactly(float(example.alpha[int(np.argmax(example.beta))]))
    name = TRANSLATION[0].row if data == TRANSLATION[0].data else data
    return Finding(
        (
            ResultTable("A.1, the counterexample: no weight where β is largest", ("β", "α^opt"), three),
            ResultTable("A.1, the linear translator", columns, (Row(f"{name}", cells),)),
        ),
        values=(
            above,
            bleu,
            Value("counterexample: alpha at the largest beta", at_largest),
            Value("largest duality gap", exactly(gap)),
        ),
        notes=(
            f"{len(text):,} output words of {len(np.unique(text))} sentences, {len(answers)} seeds; α^opt is certified "
            "by its duality gap, which bounds what any other attention could still gain.",
            "Random logits have the spread of the trained model's and no other structure; α^opt then goes where β is "
            "largest just as well, so that only what exceeds them says something about training.",
        ),
    )


def _above_controls(
    by_seed: Mapping[str, NDArray[np.float64]], random: float, text: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Agreement less the largest of its controls in each seed, as means over the words of a text: (seeds, texts)."""
    rows = []
    for seed, agreed in enumerate(by_seed["agreement"]):
        controls = [
            np.full(len(text), random),
            *(by_seed[key][seed] for key in ("shuffle", "untrained", "random_logits")),
        ]
        known = [each for each in controls if not np.isnan(each).all()]
        excess = agreed - max(known, key=np.nanmean)
        rows.append(
            [np.nanmean(part) if not np.isnan(part := excess[text == t]).all() else np.nan for t in np.unique(text)]
        )
    return np.array(rows)


Pairs = Sequence[tuple[Sequence[str], Sequence[str]]]
Find = Callable[[Workspace], Finding]
GERMAN = ("Dieser", "Film", "großartig", "ist", "schlecht")
ENGLISH = ("bad", "great", "is", "movie", "This")
# The summed table and the probe that the paper's Figure 1 shows.
COUNTS = ((22, 26, 97, 13, 200), (4, 2, 15, 20, 12), (1, 43, 2, 3, 35), (18, 22, 100, 8, 54), (44, 1, 19, 3, 35))
PROBE_WORDS = ("a", "bad", "great", "is", "movie", "This")
PROBE = (
    (0.11, 0.04, 0.02, 0.03),
    (0.04, 0.04, 0.02, 0.04),
    (0.02, 0.02, 0.01, 0.71),
    (0.04, 0.03, 0.90, 0.01),
    (0.01, 0.60, 0.02, 0.03),
    (0.80, 0.05, 0.01, 0.03),
)


def find_figure1(workspace: Workspace) -> Finding:
    """Figure 1: β of the worked German–English example, and Model 1 from one sentence's counts to an alignment."""
    great = ("Dieser", "Film", "ist", "großartig"), ("This", "movie", "is", "great")
    bad = ("Dieser", "Film", "ist", "schlecht"), ("This", "movie", "is", "bad")
    summed = np.array(COUNTS, dtype=np.float64)
    lexicon = Lexicon(translation_table(sparse.csr_array(summed)))
    source = [GERMAN.index(word) for word in great[0]]
    target = [ENGLISH.index("movie")]
    beta, alpha = (f([source], [target]).values for f in (lexicon.beta, lexicon.alpha))
    panels = (
        matrix_panel("β of the attention model", np.array(PROBE), PROBE_WORDS, great[0]),
        matrix_panel("1 count one pair", _count([great], GERMAN, ENGLISH), GERMAN, ENGLISH),
        matrix_panel("2 add the next pair", _count([great, bad], GERMAN, ENGLISH), GERMAN, ENGLISH),
        matrix_panel("   … and many others", summed, GERMAN, ENGLISH, digits=0),
        matrix_panel("3 Trans(o | i)", lexicon.table.toarray(), GERMAN, ENGLISH),
        matrix_panel("4 β of “movie”", beta[None], ("movie",), great[0]),
        matrix_panel("5 α of “movie”", alpha[None], ("movie",), great[0]),
    )
    note = (
        "The paper's step 3 divides by 4 + 2 + 15 + 20 + 21 and prints .32 and α = .74; its table has 12 where the sum "
        f"has 21. From the table as it stands Trans(movie | Film) = {beta[1]:.2f} and α = {alpha[1]:.2f}."
    )
    values = (
        Value("Trans(movie|Film)", exactly(float(beta[1]))),
        Value("alpha(movie, Film)", exactly(float(alpha[1]))),
    )
    return Finding(
        figures=(Figure("figure1", "Figure 1: from counts to alignment", panels),), values=values, notes=(note,)
    )


def find_figure4(workspace: Workspace) -> Finding:
    """Figure 4: over permutations of one set of words the count table is constant."""
    return _uninformative("figure4", "Figure 4: permutations of one set of words", "ABCD")


def find_figure8(workspace: Workspace) -> Finding:
    """Figure 8: over permutations of two disjoint sets it is constant within each."""
    return _uninformative("figure8", "Figure 8: permutations of two disjoint sets of words", "ABCD", "EFGH")


def _uninformative(name: str, title: str, *sets: str) -> Finding:
    words = "".join(sets)
    pairs = [(p, tuple(f"{w}’" for w in p)) for each in sets for p in itertools.permutations(each)]
    outputs = tuple(f"{w}’" for w in words)
    counts = _count(pairs, words, outputs)
    sources, targets = _ids(pairs[:1], words, outputs)
    lexicon = count_table(*_ids(pairs, words, outputs)).lexicon()
    alpha = lexicon.alpha(sources, targets).values.reshape(len(pairs[0][1]), -1)
    panels = (
        matrix_panel("C of one pair", _count(pairs[:1], words, outputs), words, outputs),
        matrix_panel(f"C of all {len(pairs)}", counts, words, outputs, digits=0),
        matrix_panel("Trans(o | i)", lexicon.table.toarray(), words, outputs),
        matrix_panel("α of one pair", alpha, tuple(pairs[0][1]), tuple(pairs[0][0])),
    )
    values = (Value("spread of alpha", exactly(float(np.ptp(alpha)))),)
    return Finding(figures=(Figure(name, title, panels),), values=values)


def find_figure5(workspace: Workspace) -> Finding:
    """Figure 5: in classification the count table gives words their polarity, which then attracts attention."""
    words, labels = ("bad", "great", "movie"), ("positive", "negative")
    great, bad = (("great", "movie"), ("positive",)), (("bad", "movie"), ("negative",))
    lexicon = count_table(*_ids([great, bad], words, labels)).lexicon()
    alpha = lexicon.alpha(*_ids([great], words, labels)).values
    panels = (
        matrix_panel("C of “great movie”", _count([great], words, labels), words, labels, digits=1),
        matrix_panel("C of both", _count([great, bad], words, labels), words, labels, digits=1),
        matrix_panel("Trans(label | word)", lexicon.table.toarray(), words, labels, digits=1),
        matrix_panel("α of “great movie”", alpha[None], ("positive",), great[0]),
    )
    values = (Value("alpha(great)", exactly(float(alpha[0]))), Value("alpha(movie)", exactly(float(alpha[1]))))
    return Finding(
        figures=(Figure("figure5", "Figure 5: polarity is learned, then attended to", panels),), values=values
    )


def _ids(pairs: Pairs, words: Sequence[str], outputs: Sequence[str]) -> tuple[Ragged, Ragged]:
    return (
        as_ids([[words.index(w) for w in source] for source, _ in pairs]),
        as_ids([[outputs.index(o) for o in target] for _, target in pairs]),
    )


def _count(pairs: Pairs, words: Sequence[str], outputs: Sequence[str]) -> Matrix:
    table: CountTable = count_table(*_ids(pairs, words, outputs), source_size=len(words), target_size=len(outputs))
    counts: Matrix = table.matrix().toarray()
    return counts
