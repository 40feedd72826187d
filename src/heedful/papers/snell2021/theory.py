"""A.1 and Eq. 53 of snell2021: what is derived, checked in numbers."""

import numpy as np

from heedful.data.ids import Ids
from heedful.data.synthetic import stream_numbers
from heedful.measure.uncertainty import Estimate, bootstrap_mean, mean_over_seeds
from heedful.model.lexicon import count_table
from heedful.papers.experiment import Lab
from heedful.papers.finding import Cell, Figure, Finding, Panel, Row, Table, Value
from heedful.papers.snell2021 import linear
from heedful.papers.snell2021.studies import TRANSLATION, corpora, study_of
from heedful.papers.tables import curve, exactly
from heedful.theory.gradient_flow import compare_with_limit, logit_limit
from heedful.theory.optimal import counterexample

WIDTHS = (16, 64, 256, 1024, 4096)
WORDS = 12
SENTENCES = 60
SEEDS = {"smoke": 2, "quick": 5, "paper": 20}


def find_eq53(lab: Lab) -> Finding:
    """Eq. 53: the proxy's logits begin to move as the count table says, the better the wider it is.

    The corpus is random: 60 pairs of 3 to 8 words out of 12. Eq. 54 gives the same right-hand side to the probability,
    whose derivative is 1/∣O∣ of it.
    """
    source, target = _random_corpus()
    rows, curves = [], {"logit": [], "probability": []}  # type: ignore[var-annotated]
    values = []
    for d in WIDTHS:
        seen = [compare_with_limit(source, target, WORDS, WORDS, d, seed) for seed in range(SEEDS[lab.budget])]
        correlation = mean_over_seeds([s.logit_correlation for s in seen])
        slope = mean_over_seeds([s.logit_slope for s in seen])
        printed = mean_over_seeds([s.printed_slope for s in seen])
        corrected = mean_over_seeds([s.probability_slope for s in seen])
        rows.append(Row(f"d = {d}", tuple(Cell(e, digits=4) for e in (correlation, slope, corrected, printed))))
        curves["logit"].append(correlation)
        curves["probability"].append(mean_over_seeds([s.probability_correlation for s in seen]))
        values += [Value(f"correlation, d = {d}", correlation), Value(f"slope, d = {d}", slope)]
        values += [Value(f"slope against Eq. 54 as printed times ∣O∣, d = {d}", _times(printed, float(WORDS)))]
    lines = tuple(curve(f"of the {name}", [float(d) for d in WIDTHS], estimates) for name, estimates in curves.items())
    permutations = next(stream_numbers("copy-permutation"))[0][:200]
    constant = logit_limit(count_table(Ids.of(permutations), Ids.of(permutations)).matrix().toarray()[1:, 1:])
    values.append(Value("largest limit over permutations", exactly(float(np.abs(constant).max()))))
    values.append(Value("C of Eq. 16 less the count table", exactly(_count_difference(source, target))))
    columns = ("correlation of the logit", "slope of the logit", "slope of θ, with 1/∣O∣", "slope of θ, as printed")
    panel = Panel(
        "derivative at the start against its limit", lines, x_label="width d", y_label="correlation", x_log=True
    )
    note = (
        f"Eq. 54 as printed lacks the factor 1/∣O∣ = {1 / WORDS:.4f}: the last column tends to it, the one before to 1."
    )
    return Finding(
        (Table("Eq. 53 as the proxy grows wider", columns, tuple(rows)),),
        (Figure("eq53", "Eq. 53: counts foretell what is learned first", (panel,)),),
        tuple(values),
        (note,),
    )


def _count_difference(source: Ids, target: Ids) -> float:
    """The largest difference between Eq. 16, summed word by word, and the count table of Model 1 (§4.2)."""
    C = np.zeros((WORDS, WORDS))
    for x, y in zip(source, target, strict=True):
        for i in x:
            for o in y:
                C[i, o] += 1 / len(x)
    counted = count_table(source, target, source_size=WORDS, target_size=WORDS).matrix().toarray()
    return float(np.abs(C - counted).max())


def _random_corpus() -> tuple[Ids, Ids]:
    rng = np.random.default_rng(53)
    sentences = [[rng.integers(WORDS, size=rng.integers(3, 9)) for _ in range(SENTENCES)] for _ in range(2)]
    return Ids.of(sentences[0]), Ids.of(sentences[1])


def find_optimal(lab: Lab) -> Finding:
    """A.1: the counterexample, and how often the best attention goes where β is largest in a trained linear model."""
    example = counterexample()
    data = next(c.data for c in corpora(lab.budget, "translation") if c.data)
    study, sizes = study_of(data, lab.budget), linear.BUDGETS[lab.budget]
    run = lab.study(study)
    answers = list(lab.compute([linear.unit(seed, study, run, sizes) for seed in range(sizes.seeds)]).values())
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
            Table("A.1, the counterexample: no weight where β is largest", ("β", "α^opt"), three),
            Table("A.1, the linear translator", columns, (Row(f"{name}", cells),)),
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
            f"{len(text):,} output words of {len(np.unique(text))} sentences, {sizes.seeds} seeds; α^opt is certified "
            "by its duality gap, which bounds what any other attention could still gain.",
        ),
    )


def _times(estimate: Estimate, factor: float) -> Estimate:
    return Estimate(estimate.value * factor, estimate.low * factor, estimate.high * factor, estimate.n)
