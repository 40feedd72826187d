"""Table 5 and the trade-off behind it: how far can attention be moved, and what does it cost?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from heedful.config import ModelConfig
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.models.adversary import Adversary, Attack, DivergenceName, attack_instances, compare, frozen_adversary
from heedful.papers.experiment import Needs, Unit, Workspace
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, extremes
from heedful.papers.meister2021.config import (
    ARCHITECTURES,
    BUDGETS,
    NAMES,
    SOFTMAX,
    SPARSEMAX,
    Architecture,
    Attacks,
    MeisterBudget,
    MeisterCorpus,
    Projection,
)
from heedful.papers.meister2021.data import encode_corpus
from heedful.papers.meister2021.models import (
    WEIGHTS,
    MeisterModel,
    build,
    load_base,
    train_by_epoch,
    train_settings,
)
from heedful.papers.meister2021.tables import columns
from heedful.papers.published import published_means
from heedful.storage.serialization import from_mapping

Kind = Literal["frozen", "instance", "unfrozen"]
NEW_START = 10_007  # added to the base's seed: an adversary starts from other random numbers


@dataclass(frozen=True)
class MeisterAttack:
    """A kind of adversary; the attack on each of the first `seeds` of the base is a unit."""

    base: MeisterModel
    kind: Kind
    divergence: DivergenceName
    penalty: float | None
    seeds: int

    def unit(self, seed: int, budget: str) -> Unit:
        """The attack on one seed of the base."""
        sizes, base = BUDGETS[budget].attacks, self.base.unit(seed, budget)
        arguments: dict[str, Any] = {
            "base": self.base.arguments(seed, budget),
            WEIGHTS: base.arguments[WEIGHTS],
            "kind": self.kind,
            "divergence": self.divergence,
            "penalty": self.penalty,
        }
        if self.kind == "instance":
            arguments |= {"rate": sizes.instance_rate, "steps": sizes.instance_steps}
        elif self.kind == "frozen":
            arguments |= {"rate": sizes.frozen_rate}
        name = f"{base.name}-{self.kind}-{self.divergence}-{self.penalty}"
        return Unit(name, f"{__name__}:attack", arguments, paths=(WEIGHTS,))

    def units(self, budget: str) -> list[Unit]:
        """The attacks on all seeds."""
        return [self.unit(seed, budget) for seed in range(self.seeds)]


def attack_needs(kinds: Iterable[MeisterAttack], budget: str) -> Needs:
    """What `read_attacks` reads, and before that the bases with their weights."""
    kinds = list(dict.fromkeys(kinds))
    bases = [unit for base in dict.fromkeys(kind.base for kind in kinds) for unit in base.units(budget)]
    attacks = tuple(unit for kind in kinds for unit in kind.units(budget))
    return Needs(
        units=tuple(replace(unit, makes=(WEIGHTS,)) for unit in bases), then=lambda workspace: Needs(units=attacks)
    )


def read_attacks(workspace: Workspace, kinds: Iterable[MeisterAttack]) -> dict[MeisterAttack, list[dict[str, Any]]]:
    """What was measured on each kind of adversary, seed by seed."""
    return {kind: list(workspace.answers(kind.units(workspace.budget)).values()) for kind in dict.fromkeys(kinds)}


def attack(
    *,
    base: Mapping[str, Any],
    kind: Kind,
    divergence: DivergenceName,
    penalty: float | None,
    weights: str,
    device: torch.device,
    report: OnEvent,
    rate: float | None = None,
    steps: int = 0,
) -> dict[str, Any]:
    """A unit: make one adversary; means over all test texts of JSD (and the highest possible), TVD and accuracy.

    rate: the learning rate of the scores or of the scorer; None: the base's, of everything. steps: on each text.
    """
    encoded = encode_corpus(*(base[name] for name in ("data", "max_train", "max_test", "longest")))
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


Seen = Mapping[MeisterAttack, Sequence[Mapping[str, Any]]]
Lines = dict[tuple[str, str], list[MeisterAttack]]  # by model and kind of adversary, one for each corpus
LABELS: dict[Kind, str] = {"frozen": "adv. frozen", "instance": "adv. per instance", "unfrozen": "adv. unfrozen"}
ALONE = "adv. frozen, divergence alone"
MEASURES = ("JSD", "accuracy", "accuracy change", "TVD", "highest JSD")


def table5_needs(budget: str) -> Needs:
    """What Table 5 reads."""
    lines = _table5_lines(BUDGETS[budget])
    return attack_needs((kind for each in lines for kinds in each.values() for kind in kinds), budget)


def find_table5(workspace: Workspace) -> Finding:
    """Table 5: JSD and accuracy of adversaries to softmax bases; beside it, sparsemax bases and KL in place of JSD."""
    budget = BUDGETS[workspace.budget]
    sizes, some = budget.attacks, _tradeoff_corpora(budget)
    main, sparse, by_kl = lines = _table5_lines(budget)
    seen = read_attacks(workspace, [kind for each in lines for kinds in each.values() for kind in kinds])
    values: list[Value] = []
    for how in dict.fromkeys(label for _, label in main):
        for what in ("accuracy change", "JSD"):
            each = [
                Value(f"{what}, {how}, {kind.base.corpus.data}, {model}", _estimate(seen[kind], what))
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


def _table5_lines(budget: MeisterBudget) -> tuple[Lines, Lines, Lines]:
    """The adversaries to softmax bases, to sparsemax bases, and by KL."""
    sizes, some = budget.attacks, _tradeoff_corpora(budget)
    return _against(budget.corpora, SOFTMAX, sizes), _against(some, SPARSEMAX, sizes), _by_kl(some, sizes)


def _tradeoff_corpora(budget: MeisterBudget) -> list[MeisterCorpus]:
    return [corpus for corpus in budget.corpora if corpus.data in budget.attacks.tradeoff]


def _against(corpora: Sequence[MeisterCorpus], projection: Projection, sizes: Attacks) -> Lines:
    """All kinds of adversary at the table's penalty."""
    lines: Lines = {}
    for architecture in ARCHITECTURES:
        for corpus in corpora:
            base, n = MeisterModel(corpus, architecture, projection), min(sizes.seeds, corpus.seeds)
            kinds = {label: MeisterAttack(base, kind, "jsd", sizes.penalty, n) for kind, label in LABELS.items()}
            for label, kind in (kinds | {ALONE: MeisterAttack(base, "frozen", "jsd", None, n)}).items():
                lines.setdefault((NAMES[architecture], label), []).append(kind)
    return lines


def _by_kl(corpora: Sequence[MeisterCorpus], sizes: Attacks) -> Lines:
    lines: Lines = {}
    for architecture in ARCHITECTURES:
        for corpus in corpora:
            base = MeisterModel(corpus, architecture, SOFTMAX)
            for kind, label in LABELS.items():
                adversary = MeisterAttack(base, kind, "kl", sizes.kl_penalty, sizes.seeds)
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
                cells.append(Cell(_estimate(seen[kind], what), printed.get(key, (None,))[0], digits=digits))
        rows.append(Row(label, tuple(cells), model))
    heads = tuple(f"{name}: {what}" for name in columns(corpora) for what in MEASURES)
    return ResultTable(title, heads, tuple(rows))


def _estimate(answers: Sequence[Mapping[str, Any]], what: str) -> Estimate:
    if what == "accuracy change":
        return mean_over_seeds([answer["accuracy"] - answer["base_accuracy"] for answer in answers])
    return mean_over_seeds([answer[what.lower()] for answer in answers])


def tradeoff_needs(budget: str) -> Needs:
    """What the trade-off reads."""
    kinds = _along_penalties(BUDGETS[budget])
    return attack_needs((kind for each in kinds.values() for kind in each), budget)


def find_tradeoff(workspace: Workspace) -> Finding:
    """Divergence against accuracy as the penalty λ grows, which the paper does not show."""
    budget = BUDGETS[workspace.budget]
    sizes, some, along = budget.attacks, _tradeoff_corpora(budget), _along_penalties(budget)
    seen = read_attacks(workspace, [kind for kinds in along.values() for kind in kinds])
    panels, rows = [], []
    for corpus, name in zip(some, columns(some), strict=True):
        for architecture in ARCHITECTURES:
            title, lines = f"{name}, {NAMES[architecture]}", []
            for kind, label in LABELS.items():
                adversaries = along[corpus, architecture, kind]
                table = [[_estimate(seen[adversary], what) for what in MEASURES] for adversary in adversaries]
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


def _along_penalties(budget: MeisterBudget) -> dict[tuple[MeisterCorpus, Architecture, Kind], list[MeisterAttack]]:
    """The adversaries of the trade-off, one for each penalty."""
    sizes = budget.attacks
    return {
        (corpus, architecture, kind): [
            MeisterAttack(MeisterModel(corpus, architecture, SOFTMAX), kind, "jsd", penalty, sizes.seeds)
            for penalty in sizes.penalties
        ]
        for corpus in _tradeoff_corpora(budget)
        for architecture in ARCHITECTURES
        for kind in LABELS
    }
