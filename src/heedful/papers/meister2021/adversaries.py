"""Table 5 and the trade-off behind it: how far can attention be moved, and what does it cost?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from heedful.config import ModelConfig
from heedful.execution.worker import Report
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.models.adversary import Adversary, Attack, DivergenceName, attack_instances, compare, frozen_adversary
from heedful.papers.experiment import Workspace
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, extremes
from heedful.papers.meister2021.config import (
    ARCHITECTURES,
    BUDGETS,
    NAMES,
    SOFTMAX,
    SPARSEMAX,
    Attacks,
    MeisterCorpus,
    Projection,
)
from heedful.papers.meister2021.data import prepare
from heedful.papers.meister2021.models import (
    WEIGHTS,
    Trained,
    answers,
    build,
    load_base,
    train_by_epoch,
    train_settings,
    weights_of,
)
from heedful.papers.meister2021.tables import columns
from heedful.papers.published import published_means
from heedful.papers.units import Unit
from heedful.storage.serialization import from_mapping

Kind = Literal["frozen", "instance", "unfrozen"]
NEW_START = 10_007  # added to the base's seed: an adversary starts from other random numbers


@dataclass(frozen=True)
class Attacked:
    """A kind of adversary, of which each of the first `seeds` of the base is a unit."""

    base: Trained
    kind: Kind
    divergence: DivergenceName
    penalty: float | None
    seeds: int

    def unit(self, seed: int, lab: Workspace) -> Unit:
        """The attack on one seed of the base."""
        sizes, base = BUDGETS[lab.budget].attacks, self.base.unit(seed, lab)
        arguments: dict[str, Any] = {
            "base": dict(base.arguments),
            "kind": self.kind,
            "divergence": self.divergence,
            "penalty": self.penalty,
        }
        if self.kind == "instance":
            arguments |= {"rate": sizes.instance_rate, "steps": sizes.instance_steps}
        elif self.kind == "frozen":
            arguments |= {"rate": sizes.frozen_rate}
        name = f"{base.name}-{self.kind}-{self.divergence}-{self.penalty}"
        return Unit(name, f"{__name__}:attacked", arguments, {WEIGHTS: str(weights_of(base, lab))})


def attacks(lab: Workspace, wanted: Iterable[Attacked]) -> dict[Attacked, list[dict[str, Any]]]:
    """What each kind of adversary came to, seed by seed; bases that are missing are trained first."""
    kinds = dict.fromkeys(wanted)
    answers(lab, (kind.base for kind in kinds), weights=True)
    units = {kind: [kind.unit(seed, lab) for seed in range(kind.seeds)] for kind in kinds}
    distinct = {unit.name: unit for each in units.values() for unit in each}
    found = lab.compute(list(distinct.values()))
    return {kind: [found[unit.name] for unit in each] for kind, each in units.items()}


def attacked(
    *,
    base: Mapping[str, Any],
    kind: Kind,
    divergence: DivergenceName,
    penalty: float | None,
    weights: str,
    device: torch.device,
    report: Report,
    rate: float | None = None,
    steps: int = 0,
) -> dict[str, Any]:
    """Make one adversary; returns means over all test texts of JSD (and the highest possible) and TVD, and
    accuracy before and after.

    rate: the learning rate of the scores or of the scorer; None: the base's, of everything. steps: on each text.
    """
    encoded = prepare(*(base[name] for name in ("data", "max_train", "max_test", "longest")))
    config, seed = from_mapping(ModelConfig, base["model"]), base["seed"] + NEW_START
    model = load_base(config, encoded.vocabulary, weights).to(device)
    if kind == "instance":
        assert rate is not None
        report({"step": 0, "steps": steps})
        return _summary(
            attack_instances(model, encoded.test, divergence, penalty, steps=steps, learning_rate=rate, seed=seed)
        )
    if kind == "frozen":
        adversary = frozen_adversary(model, len(encoded.vocabulary), seed)
    else:
        adversary = build(config, encoded.vocabulary, base["vectors"], seed).to(device)
    settings = train_settings(
        len(encoded.train),
        base["epochs"],
        base["batch_size"],
        rate or base["learning_rate"],
        attention_rate=1.0 if rate else base["attention_rate"],
        weight_decay=base["weight_decay"],
    )
    train_by_epoch(Adversary(adversary, model, divergence, penalty), encoded.train, settings, seed, device, report)
    return _summary(compare(adversary, model, encoded.test))


def _summary(attack: Attack) -> dict[str, Any]:
    return {
        "texts": len(attack.jsd),
        "jsd": float(attack.jsd.mean()),
        "highest jsd": float(attack.highest.mean()),
        "tvd": float(attack.tvd.mean()),
        "accuracy": float(attack.correct.mean()),
        "base_accuracy": float(attack.base_correct.mean()),
    }


Seen = Mapping[Attacked, Sequence[Mapping[str, Any]]]
Lines = dict[tuple[str, str], list[Attacked]]  # by model and kind of adversary, one for each corpus
LABELS: dict[Kind, str] = {"frozen": "adv. frozen", "instance": "adv. per instance", "unfrozen": "adv. unfrozen"}
ALONE = "adv. frozen, divergence alone"
MEASURES = ("JSD", "accuracy", "accuracy change", "TVD", "highest JSD")


def find_table5(lab: Workspace) -> Finding:
    """Table 5: JSD and accuracy of adversaries to softmax bases; beside it, sparsemax bases and KL in place of JSD."""
    budget = BUDGETS[lab.budget]
    sizes, some = budget.attacks, [c for c in budget.corpora if c.data in budget.attacks.tradeoff]
    main = _against(budget.corpora, SOFTMAX, sizes)
    sparse = _against(some, SPARSEMAX, sizes)
    by_kl = _by_kl(some, sizes)
    seen = attacks(lab, [kind for lines in (main, sparse, by_kl) for kinds in lines.values() for kind in kinds])
    values: list[Value] = []
    for how in dict.fromkeys(label for _, label in main):
        for what in ("accuracy change", "JSD"):
            each = [
                Value(f"{what}, {how}, {kind.base.corpus.data}, {model}", _measured(seen[kind], what))
                for (model, label), kinds in main.items()
                for kind in kinds
                if label == how
            ]
            values += [*each, *extremes(f"{what}, {how}", each)]
    tables = (
        _table("Table 5: adversaries to models with softmax", budget.corpora, main, seen),
        _table("Adversaries to models with sparsemax, whose base has exact zeros", some, sparse, seen),
        _table("KL(α ‖ α_base) in place of JSD", some, by_kl, seen),
    )
    return Finding(
        tables,
        values=tuple(values),
        notes=(
            f"The penalty λ is {sizes.penalty:g} throughout ({sizes.kl_penalty:g} with KL); the trade-off has others. "
            "JSD is in nats, at most 0.69, and no higher than the last column: from a base that spreads its weight "
            "attention cannot go far. TVD is between predictions. Changes of accuracy are against the same base on the "
            "same texts; intervals are over seeds.",
            "A frozen adversary has the base's parameters but for a scorer that starts anew; its loss is that of the "
            "unfrozen one, or divergence alone, as the paper's text can also be read. Per instance, the scores of each "
            "text are chosen directly. The paper's frozen numbers stand beside the first.",
        ),
    )


def _against(corpora: Sequence[MeisterCorpus], projection: Projection, sizes: Attacks) -> Lines:
    """All kinds of adversary at the table's penalty."""
    lines: Lines = {}
    for architecture in ARCHITECTURES:
        for corpus in corpora:
            base, n = Trained(corpus, architecture, projection), min(sizes.seeds, corpus.seeds)
            kinds = {label: Attacked(base, kind, "jsd", sizes.penalty, n) for kind, label in LABELS.items()}
            for label, kind in (kinds | {ALONE: Attacked(base, "frozen", "jsd", None, n)}).items():
                lines.setdefault((NAMES[architecture], label), []).append(kind)
    return lines


def _by_kl(corpora: Sequence[MeisterCorpus], sizes: Attacks) -> Lines:
    lines: Lines = {}
    for architecture in ARCHITECTURES:
        for corpus in corpora:
            base = Trained(corpus, architecture, SOFTMAX)
            for kind, label in LABELS.items():
                adversary = Attacked(base, kind, "kl", sizes.kl_penalty, sizes.seeds)
                lines.setdefault((NAMES[architecture], label), []).append(adversary)
    return lines


def _table(title: str, corpora: Sequence[MeisterCorpus], lines: Lines, seen: Seen) -> ResultTable:
    printed = published_means("5") if title.startswith("Table 5") else {}
    rows = []
    for (model, label), kinds in lines.items():
        cells: list[Cell] = []
        for kind in kinds:
            for what in MEASURES:
                key = (str(kind.base.corpus.published_as), f"{model} {label.replace('.', '')}", what)
                digits = 3 if what == "accuracy change" else 2
                cells.append(Cell(_measured(seen[kind], what), printed.get(key, (None,))[0], digits=digits))
        rows.append(Row(label, tuple(cells), model))
    heads = tuple(f"{name}: {what}" for name in columns(corpora) for what in MEASURES)
    return ResultTable(title, heads, tuple(rows))


def _measured(answers: Sequence[Mapping[str, Any]], what: str) -> Estimate:
    if what == "accuracy change":
        return mean_over_seeds([answer["accuracy"] - answer["base_accuracy"] for answer in answers])
    return mean_over_seeds([answer[what.lower()] for answer in answers])


def find_tradeoff(lab: Workspace) -> Finding:
    """Divergence against accuracy as the penalty λ grows, which the paper does not show."""
    budget = BUDGETS[lab.budget]
    sizes, some = budget.attacks, [c for c in budget.corpora if c.data in budget.attacks.tradeoff]
    along = {
        (corpus, architecture, kind): [
            Attacked(Trained(corpus, architecture, SOFTMAX), kind, "jsd", penalty, sizes.seeds)
            for penalty in sizes.penalties
        ]
        for corpus in some
        for architecture in ARCHITECTURES
        for kind in LABELS
    }
    seen = attacks(lab, [kind for kinds in along.values() for kind in kinds])
    panels, rows = [], []
    for corpus, name in zip(some, columns(some), strict=True):
        for architecture in ARCHITECTURES:
            title, lines = f"{name}, {NAMES[architecture]}", []
            for kind, label in LABELS.items():
                adversaries = along[corpus, architecture, kind]
                table = [[_measured(seen[adversary], what) for what in MEASURES] for adversary in adversaries]
                for penalty, measured in zip(sizes.penalties, table, strict=True):
                    cells = tuple(Cell(estimate, digits=3) for estimate in measured)
                    rows.append(Row(f"{label}, λ = {penalty:g}", cells, title))
                lines.append(curve(label, [jsd.value for jsd, *_ in table], [reached for _, reached, *_ in table]))
            base = [answer["base_accuracy"] for answer in seen[along[corpus, architecture, "frozen"][0]]]
            panels.append(
                Panel(
                    title,
                    tuple(lines),
                    x_label="JSD(α, α_base), nats",
                    y_label="accuracy",
                    y_percent=True,
                    reference=mean_over_seeds(base).value,
                )
            )
    caption = f"Softmax bases, {sizes.seeds} seeds; the dotted line is the base's accuracy."
    return Finding(
        (ResultTable("The trade-off in numbers", MEASURES, tuple(rows), "Intervals are over seeds."),),
        (Figure("tradeoff", "Divergence against accuracy over the penalty λ", tuple(panels), caption),),
    )
