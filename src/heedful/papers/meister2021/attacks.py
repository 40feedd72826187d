"""One adversary of meister2021 (App. C.1) against one trained model: a unit for each, read from the model's weights."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch

from heedful.config import ModelConfig
from heedful.data.jain_wallace import prepare
from heedful.model.adversary import Adversary, Attack, DivergenceName, attack_instances, compare, frozen_adversary
from heedful.papers.experiment import Lab
from heedful.papers.meister2021.budgets import BUDGETS
from heedful.papers.meister2021.training import (
    WEIGHTS,
    Trained,
    answers,
    build,
    load_base,
    train_by_epoch,
    train_settings,
    weights_of,
)
from heedful.papers.units import Unit
from heedful.studies.answers import Report
from heedful.typed import from_mapping

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

    def unit(self, seed: int, lab: Lab) -> Unit:
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


def attacks(lab: Lab, wanted: Iterable[Attacked]) -> dict[Attacked, list[dict[str, Any]]]:
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
