"""Table 5 and the trade-off behind it: how far can attention be moved, and what does it cost?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from heedful.data.batching import evaluation_batches
from heedful.data.vocabulary import EncodedSplit
from heedful.execution.pool import OnEvent
from heedful.metrics.statistics import mean_over_seeds
from heedful.models.adversary import Adversary, Attack, DivergenceName, attack_instances, compare, frozen_adversary
from heedful.models.training import evaluation_mode
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Panel, ResultTable, Row, Value, curve, seed_value
from heedful.papers.meister2021.config import (
    ARCHITECTURES,
    BUDGETS,
    NAMES,
    SOFTMAX,
    SPARSEMAX,
    Architecture,
    MeisterBudget,
    MeisterCorpus,
    Projection,
)
from heedful.papers.meister2021.models import WEIGHTS, MeisterModel, MeisterRun, build, load_base, train_by_epoch
from heedful.papers.published import published_means
from heedful.storage.serialization import content, from_mapping

Kind = Literal["frozen", "instance", "unfrozen"]
NEW_START = 10_007  # added to the base's seed: an adversary starts from other random numbers


@dataclass(frozen=True)
class MeisterAttack:
    """A kind of adversary; the attack on each of the first `seeds` of the base is a unit.

    epochs: of a trained adversary, where they are not its base's.
    """

    base: MeisterModel
    kind: Kind
    divergence: DivergenceName
    penalty: float | None
    seeds: int
    epochs: int | None = None

    def unit(self, seed: int, budget: str) -> Unit:
        """The attack on one seed of the base."""
        sizes, base = BUDGETS[budget].attacks, self.base.unit(seed, budget)
        arguments: dict[str, Any] = {
            "base": content(self.base.run(seed, budget)),
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
        if self.epochs is not None:
            arguments |= {"epochs": self.epochs}
            name += f"-epochs-{self.epochs}"
        return Unit(name, f"{__name__}:attack", arguments, paths=(WEIGHTS,), after=(replace(base, makes=(WEIGHTS,)),))

    def units(self, budget: str) -> list[Unit]:
        """The attacks on all seeds."""
        return [self.unit(seed, budget) for seed in range(self.seeds)]


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
    epochs: int | None = None,
) -> dict[str, Any]:
    """A unit: make one adversary; means over all test texts of JSD (and the highest possible), TVD and accuracy.

    Like its base, a trained adversary is that of its best epoch on the validation texts: the base by its accuracy, the
    adversary by its own loss.

    rate: the learning rate of the scores or of the scorer; None: the base's, of everything. steps: on each text.
    epochs: of training; None: as many as the base had.
    """
    run = from_mapping(MeisterRun, base)
    encoded, seed = run.encoded(), run.seed + NEW_START
    model = load_base(run.model, encoded.vocabulary, weights).to(device)
    if kind == "instance":
        assert rate is not None
        report({"step": 0, "steps": steps})
        return _summary(
            attack_instances(model, encoded.test, divergence, penalty, steps=steps, learning_rate=rate, seed=seed)
        )
    if kind == "frozen":
        adversary = frozen_adversary(model, len(encoded.vocabulary), seed)
    else:
        adversary = build(run.model, encoded.vocabulary, run.vectors, seed).to(device)
    if rate:
        run = replace(run, learning_rate=rate, attention_rate=1.0)
    if epochs:
        run = replace(run, epochs=epochs)
    rival = Adversary(adversary, model, divergence, penalty)
    best: dict[str, Any] = {"loss": math.inf}

    def at_epoch(epoch: int) -> None:
        loss = validation_loss(rival, encoded.validation)
        if loss < best["loss"]:
            state = {name: tensor.detach().clone() for name, tensor in adversary.state_dict().items()}
            best.update(loss=loss, epoch=epoch, state=state)

    train_by_epoch(rival, encoded.train, run, seed, device, report, at_epoch)
    adversary.load_state_dict(best["state"])
    return _summary(compare(adversary, model, encoded.test)) | {"epoch": best["epoch"]}


@torch.no_grad()
def validation_loss(rival: Adversary, split: EncodedSplit) -> float:
    """The adversary's own loss in the mean over texts; it is left as it was found."""
    with evaluation_mode((rival.model,)):
        batches = evaluation_batches(split, device=rival.model.output.weight.device)
        return sum(float(rival.loss(batch)) * len(batch.labels) for batch in batches) / len(split)


def _summary(attack: Attack) -> dict[str, Any]:
    return {
        "texts": len(attack.jsd),
        "jsd": float(attack.jsd.mean()),
        "highest jsd": float(attack.highest.mean()),
        "tvd": float(attack.tvd.mean()),
        "accuracy": float(attack.correct.mean()),
        "base_accuracy": float(attack.base_correct.mean()),
    }


AttackAnswers = Mapping[MeisterAttack, Sequence[Answer]]
Lines = dict[tuple[str, str], list[MeisterAttack]]  # by model and kind of adversary, one for each corpus
LABELS: dict[Kind, str] = {"frozen": "adv. frozen", "instance": "adv. per instance", "unfrozen": "adv. unfrozen"}
ALONE = "adv. frozen, divergence alone"
MEASURES = ("JSD", "accuracy", "accuracy change", "TVD", "highest JSD")


def table5_attacks(budget: MeisterBudget) -> list[MeisterAttack]:
    """The adversaries of Table 5."""
    return [attack for lines in _table5_lines(budget) for attacks in lines.values() for attack in attacks]


def find_table5(budget: MeisterBudget, seen: AttackAnswers) -> Finding:
    """Table 5: JSD and accuracy of adversaries to softmax bases; beside it, sparsemax bases and KL in place of JSD."""
    sizes, some = budget.attacks, _tradeoff_corpora(budget)
    main, sparse, by_kl = _table5_lines(budget)
    values: list[Value] = []
    for how in dict.fromkeys(label for _, label in main):
        for what in ("accuracy change", "JSD"):
            values += [
                _value(f"{what}, {how}, {kind.base.corpus.data}, {model}", seen[kind], what)
                for (model, label), kinds in main.items()
                for kind in kinds
                if label == how
            ]
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
            "Bases and adversaries are those of their best epochs on the validation texts, bases by accuracy, "
            "adversaries by their own loss.",
        ),
    )


def _table5_lines(budget: MeisterBudget) -> tuple[Lines, Lines, Lines]:
    """The adversaries to softmax bases, to sparsemax bases, and by KL."""
    some = _tradeoff_corpora(budget)
    return _lines(budget, budget.corpora, SOFTMAX), _lines(budget, some, SPARSEMAX), _lines(budget, some, SOFTMAX, "kl")


def _tradeoff_corpora(budget: MeisterBudget) -> list[MeisterCorpus]:
    return [corpus for corpus in budget.corpora if corpus.data in budget.attacks.tradeoff]


def _lines(
    budget: MeisterBudget, corpora: Sequence[MeisterCorpus], projection: Projection, divergence: DivergenceName = "jsd"
) -> Lines:
    """All kinds of adversary at the table's penalty; by JSD, also a frozen one whose loss is divergence alone."""
    sizes, lines = budget.attacks, Lines()
    penalty = sizes.kl_penalty if divergence == "kl" else sizes.penalty
    kinds: list[tuple[str, Kind, float | None]] = [(label, kind, penalty) for kind, label in LABELS.items()]
    if divergence == "jsd":
        kinds.append((ALONE, "frozen", None))
    for architecture in ARCHITECTURES:
        for corpus in corpora:
            base, n = MeisterModel(corpus, architecture, projection), min(sizes.seeds, corpus.seeds)
            for label, kind, weight in kinds:
                attack = MeisterAttack(base, kind, divergence, weight, n)
                lines.setdefault((NAMES[architecture], label), []).append(attack)
    return lines


def _table(title: str, corpora: Sequence[MeisterCorpus], lines: Lines, seen: AttackAnswers) -> ResultTable:
    printed = published_means("5") if title.startswith("Table 5") else {}
    rows = []
    for (model, label), kinds in lines.items():
        cells: list[Cell] = []
        for kind in kinds:
            for what in MEASURES:
                key = (kind.base.corpus.name, f"{model} {label.replace('.', '')}", what)
                digits = 3 if what == "accuracy change" else 2
                cells.append(_cell(seen[kind], what, printed.get(key, (None,))[0], digits))
        rows.append(Row(label, tuple(cells), model))
    heads = tuple(f"{corpus.name}: {what}" for corpus in corpora for what in MEASURES)
    return ResultTable(title, heads, tuple(rows))


def _value(name: str, answers: Sequence[Answer], what: str) -> Value:
    """A measure of adversaries, seed by seed."""
    changed = what == "accuracy change"
    per_seed = [a["accuracy"] - a["base_accuracy"] if changed else a[what.lower()] for a in answers]
    within = (-1.0, 1.0) if changed else (0.0, 1.0)
    return seed_value(name, per_seed, answers[0]["texts"], within)


def _cell(answers: Sequence[Answer], what: str, published: float | None = None, digits: int = 3) -> Cell:
    value = _value(what, answers, what)
    return Cell(value.estimate, published, digits=digits, seeds=value.seeds, texts=value.texts)


def tradeoff_attacks(budget: MeisterBudget) -> list[MeisterAttack]:
    """The adversaries of the trade-off."""
    return [attack for attacks in _along_penalties(budget).values() for attack in attacks]


def find_tradeoff(budget: MeisterBudget, seen: AttackAnswers) -> Finding:
    """Divergence against accuracy as the penalty λ grows, which the paper does not show."""
    sizes, along = budget.attacks, _along_penalties(budget)
    panels, rows = [], []
    for corpus in _tradeoff_corpora(budget):
        for architecture in ARCHITECTURES:
            title, lines = f"{corpus.name}, {NAMES[architecture]}", []
            for kind, label in LABELS.items():
                adversaries = along[corpus, architecture, kind]
                table = [
                    [_value(what, seen[adversary], what).estimate for what in MEASURES] for adversary in adversaries
                ]
                for penalty, adversary in zip(sizes.penalties, adversaries, strict=True):
                    cells = tuple(_cell(seen[adversary], what) for what in MEASURES)
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


@dataclass(frozen=True)
class LongerBudget:
    """Unfrozen adversaries to BiLSTMs: on which corpora, for how many times the base's epochs, at which penalties."""

    corpora: tuple[str, ...]
    seeds: int
    times: tuple[int, ...]
    penalties: tuple[float, ...]


LONGER_BUDGETS = {
    "smoke": LongerBudget(("rotten-tomatoes",), 2, (1, 2), (0.1,)),
    "quick": LongerBudget(("20news-sport", "imdb"), 3, (1, 4), (0.1,)),
    "paper": LongerBudget(("20news-sport", "imdb"), 5, (1, 2), (0.01, 0.1)),
}


def longer_attacks(budget: str) -> dict[str, list[MeisterAttack]]:
    """Adversaries by what they are given: more epochs, or a smaller penalty; one for each corpus."""
    sizes, given = LONGER_BUDGETS[budget], BUDGETS[budget]
    lines: dict[str, list[MeisterAttack]] = {}
    for corpus in (each for each in given.corpora if each.data in sizes.corpora):
        base, epochs = MeisterModel(corpus, "bilstm", SOFTMAX), corpus.epochs[0]
        for times in sizes.times:
            label = "the base's epochs" if times == 1 else f"{times} times the base's epochs"
            longer = None if times == 1 else times * epochs
            attack = MeisterAttack(base, "unfrozen", "jsd", given.attacks.penalty, sizes.seeds, longer)
            lines.setdefault(label, []).append(attack)
        for penalty in sizes.penalties:
            attack = MeisterAttack(base, "unfrozen", "jsd", penalty, sizes.seeds)
            lines.setdefault(f"the base's epochs, penalty {penalty:g}", []).append(attack)
    return lines


def longer_units(budget: str) -> dict[MeisterAttack, list[Unit]]:
    """The attacks of all lines."""
    return {attack: attack.units(budget) for attacks in longer_attacks(budget).values() for attack in attacks}


def find_longer(budget: str, seen: AttackAnswers) -> Finding:
    """Whether an unfrozen adversary that loses accuracy on long texts was trained too short, or pays for divergence."""
    lines = longer_attacks(budget)
    corpora = [attack.base.corpus for attack in next(iter(lines.values()))]
    printed, how = published_means("5"), "BiLSTM adv unfrozen"
    rows, values = [], []
    for label, attacks in lines.items():
        cells = []
        for attack in attacks:
            for what in MEASURES:
                cells.append(_cell(seen[attack], what, digits=3 if what == "accuracy change" else 2))
            values.append(
                _value(f"accuracy change, {label}, {attack.base.corpus.data}", seen[attack], "accuracy change")
            )
        rows.append(Row(label, tuple(cells)))
    goals = [printed.get((c.name, how, what), (None,))[0] for c in corpora for what in MEASURES]
    rows.append(Row("published", tuple(Cell(text="" if goal is None else f"{goal:.2f}") for goal in goals)))
    heads = tuple(f"{corpus.name}: {what}" for corpus in corpora for what in MEASURES)
    caption = "Adversaries at the epoch of their best validation loss; the first line is Table 5's."
    table = ResultTable("Unfrozen adversaries to BiLSTMs, trained longer or for less", heads, tuple(rows), caption)
    return Finding((table,), values=tuple(values))


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
