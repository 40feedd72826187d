"""A.1, Eq. 53 and the worked examples of snell2021 (Figures 1, 4, 5 and 8): what is derived, checked in numbers."""

import itertools
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse

from heedful.config import StudyConfig
from heedful.data.ragged import Ragged, as_ids
from heedful.data.synthetic.tasks import stream_numbers
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate, bootstrap_mean, mean_over_seeds
from heedful.models.lexicon import CountTable, Lexicon, count_table, translation_table
from heedful.papers.experiment import Needs, Unit, Workspace
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, exactly
from heedful.papers.snell2021.config import EQ53_SEEDS, LINEAR_BUDGETS, TRANSLATION, studies
from heedful.papers.snell2021.models import linear_unit
from heedful.theory.gradient_flow import compare_with_limit, logit_limit
from heedful.theory.optimal import counterexample

WIDTHS = (16, 64, 256, 1024, 4096)
WORDS = 12
SENTENCES = 60


def eq53_needs(budget: str) -> Needs:
    """The proxy's first step at each width."""
    return Needs(units=tuple(_eq53_unit(d, budget) for d in WIDTHS))


def _eq53_unit(d: int, budget: str) -> Unit:
    return Unit(f"eq53-{d}", f"{__name__}:compare_width", {"width": d, "seeds": EQ53_SEEDS[budget]})


def compare_width(*, width: int, seeds: int, device: torch.device, report: OnEvent) -> dict[str, Any]:
    """A unit: how a proxy of one width moves at first, against the limit of infinite width, seed by seed."""
    source, target = _random_corpus()
    comparisons = []
    for seed in range(seeds):
        comparisons.append(asdict(compare_with_limit(source, target, WORDS, WORDS, width, seed)))
        report({"step": seed + 1, "steps": seeds})
    return {name: [comparison[name] for comparison in comparisons] for name in comparisons[0]}


def find_eq53(workspace: Workspace) -> Finding:
    """Eq. 53: the proxy's logits begin to move as the count table says, the better the wider it is.

    The corpus is random: 60 pairs of 3 to 8 words out of 12. Eq. 54 gives the same right-hand side to the probability,
    whose derivative is 1/∣O∣ of it.
    """
    units = {d: _eq53_unit(d, workspace.budget) for d in WIDTHS}
    answers = workspace.answers(units.values())
    rows, values = [], []
    curves: dict[str, list[Estimate]] = {"logit": [], "probability": []}
    for d, unit in units.items():
        mean = {name: mean_over_seeds(values) for name, values in answers[unit.name].items()}
        correlation, slope, printed = mean["logit_correlation"], mean["logit_slope"], mean["printed_slope"]
        rows.append(
            Row(f"d = {d}", tuple(Cell(e, digits=4) for e in (correlation, slope, mean["probability_slope"], printed)))
        )
        curves["logit"].append(correlation)
        curves["probability"].append(mean["probability_correlation"])
        values += [Value(f"correlation, d = {d}", correlation), Value(f"slope, d = {d}", slope)]
        values += [Value(f"slope against Eq. 54 as printed times ∣O∣, d = {d}", _times(printed, float(WORDS)))]
    lines = tuple(curve(f"of the {name}", [float(d) for d in WIDTHS], estimates) for name, estimates in curves.items())
    permutations = next(stream_numbers("copy-permutation"))[0][:200]
    constant = logit_limit(count_table(as_ids(permutations), as_ids(permutations)).matrix().toarray()[1:, 1:])
    values.append(Value("largest limit over permutations", exactly(float(np.abs(constant).max()))))
    values.append(Value("C of Eq. 16 less the count table", exactly(_count_difference(*_random_corpus()))))
    columns = ("correlation of the logit", "slope of the logit", "slope of θ, with 1/∣O∣", "slope of θ, as printed")
    panel = Panel(
        "derivative at the start against its limit", lines, x_label="width d", y_label="correlation", x_log=True
    )
    note = (
        f"Eq. 54 as printed lacks the factor 1/∣O∣ = {1 / WORDS:.4f}: the last column tends to it, the one before to 1."
    )
    return Finding(
        (ResultTable("Eq. 53 as the proxy grows wider", columns, tuple(rows)),),
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


def optimal_needs(budget: str) -> Needs:
    """The study whose data the linear translators of A.1 are trained on, and these."""
    return Needs((_translation_study(budget),), tuple(_linear_units(budget)))


def find_optimal(workspace: Workspace) -> Finding:
    """A.1: the counterexample, and how often the best attention goes where β is largest in a trained linear model."""
    example, data = counterexample(), _translation_study(workspace.budget).data
    answers = list(workspace.answers(_linear_units(workspace.budget)).values())
    mean_rows = {
        key: np.mean([np.array(a[key], dtype=np.float64) for a in answers], axis=0)
        for key in ("agreement", "shuffle", "learned_agreement")
    }
    text = np.array(answers[0]["text"])
    estimates = {key: bootstrap_mean(rows, groups=text) for key, rows in mean_rows.items()}
    chance = max(answers[0]["random"], estimates["shuffle"].value if estimates["shuffle"].n else 0.0)
    above = mean_over_seeds([float(np.mean(a["agreement"])) - chance for a in answers])
    gap = max(a["gap"] for a in answers)
    bleu = mean_over_seeds([a["bleu"] for a in answers])
    cells = (
        Cell(estimates["agreement"], 53.0, "%"),
        Cell(exactly(answers[0]["random"]), None, "%"),
        Cell(estimates["shuffle"], None, "%"),
        Cell(estimates["learned_agreement"], None, "%"),
        Cell(bleu, 38.2),
        Cell(text=f"{gap:.1e} nats"),
    )
    columns = ("A(α^opt, β)", "Â", "matched shuffle", "A(α^opt, α)", "BLEU", "largest duality gap")
    three = tuple(
        Row(
            f"l = {place + 1}",
            (
                Cell(exactly(float(example.beta[place])), digits=3),
                Cell(exactly(float(example.alpha[place])), digits=3),
            ),
        )
        for place in range(3)
    )
    name = TRANSLATION[0].row if data == TRANSLATION[0].data else data
    return Finding(
        (
            ResultTable("A.1, the counterexample: no weight where β is largest", ("β", "α^opt"), three),
            ResultTable("A.1, the linear translator", columns, (Row(f"{name}", cells),)),
        ),
        values=(
            Value("A(alpha_opt,beta) above chance", above),
            Value(
                "counterexample: alpha at the largest beta",
                exactly(float(example.alpha[int(np.argmax(example.beta))])),
            ),
            Value("largest duality gap", exactly(gap)),
        ),
        notes=(
            f"{len(text):,} output words of {len(np.unique(text))} sentences, {len(answers)} seeds; α^opt is certified "
            "by its duality gap, which bounds what any other attention could still gain.",
        ),
    )


def _linear_units(budget: str) -> list[Unit]:
    study, sizes = _translation_study(budget), LINEAR_BUDGETS[budget]
    return [linear_unit(seed, study, sizes) for seed in range(sizes.seeds)]


def _translation_study(budget: str) -> StudyConfig:
    return next(iter(studies(budget, "translation").values()))


def _times(estimate: Estimate, factor: float) -> Estimate:
    return Estimate(estimate.value * factor, estimate.low * factor, estimate.high * factor, estimate.n)


Matrix = NDArray[np.floating]
Pairs = Sequence[tuple[Sequence[str], Sequence[str]]]
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
        _panel("β of the attention model", np.array(PROBE), PROBE_WORDS, great[0]),
        _panel("1 count one pair", _count([great], GERMAN, ENGLISH), GERMAN, ENGLISH),
        _panel("2 add the next pair", _count([great, bad], GERMAN, ENGLISH), GERMAN, ENGLISH),
        _panel("   … and many others", summed, GERMAN, ENGLISH, digits=0),
        _panel("3 Trans(o | i)", lexicon.table.toarray(), GERMAN, ENGLISH),
        _panel("4 β of “movie”", beta[None], ("movie",), great[0]),
        _panel("5 α of “movie”", alpha[None], ("movie",), great[0]),
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
    words = "ABCD"
    pairs = [(p, tuple(f"{w}’" for w in p)) for p in itertools.permutations(words)]
    return _uninformative("figure4", "Figure 4: permutations of one set of words", pairs, tuple(words))


def find_figure8(workspace: Workspace) -> Finding:
    """Figure 8: over permutations of two disjoint sets it is constant within each."""
    pairs = [(p, tuple(f"{w}’" for w in p)) for words in ("ABCD", "EFGH") for p in itertools.permutations(words)]
    return _uninformative("figure8", "Figure 8: permutations of two disjoint sets of words", pairs, tuple("ABCDEFGH"))


def _uninformative(name: str, title: str, pairs: Pairs, words: tuple[str, ...]) -> Finding:
    outputs = tuple(f"{w}’" for w in words)
    counts = _count(pairs, words, outputs)
    sources, targets = _ids(pairs[:1], words, outputs)
    lexicon = count_table(*_ids(pairs, words, outputs)).lexicon()
    alpha = lexicon.alpha(sources, targets).values.reshape(len(pairs[0][1]), -1)
    panels = (
        _panel("C of one pair", _count(pairs[:1], words, outputs), words, outputs),
        _panel(f"C of all {len(pairs)}", counts, words, outputs, digits=0),
        _panel("Trans(o | i)", lexicon.table.toarray(), words, outputs),
        _panel("α of one pair", alpha, tuple(pairs[0][1]), tuple(pairs[0][0])),
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
        _panel("C of “great movie”", _count([great], words, labels), words, labels, digits=1),
        _panel("C of both", _count([great, bad], words, labels), words, labels, digits=1),
        _panel("Trans(label | word)", lexicon.table.toarray(), words, labels, digits=1),
        _panel("α of “great movie”", alpha[None], ("positive",), great[0]),
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


def _panel(title: str, matrix: Matrix, rows: Sequence[str], columns: Sequence[str], digits: int = 2) -> Panel:
    entries = tuple(tuple(float(x) for x in row) for row in matrix)
    return Panel(title, matrix=entries, row_labels=tuple(rows), column_labels=tuple(columns), digits=digits)
