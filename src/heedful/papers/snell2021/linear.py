"""Is attention drawn to large β (snell2021 A.1)? The linear translator, whose best attention can be computed.

    p_t = σ(W(c_t + s_t)) = σ(Σ_l α_{t,l} γ_l + γ_s),   γ_l = W h_l,  γ_s = W s_t            (Eqs 31–33)

α^opt, the attention that makes y_t as probable as it can be, is found for every output word of a trained model and
certified by its duality gap; then A(α^opt, β) is measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.config import StudyConfig, TrainConfig, TranslatorConfig
from heedful.data.batch import collate, training_batches
from heedful.data.subwords import EncodedPairs
from heedful.measure.agreement import agreement, random_agreement, shuffled_agreement
from heedful.measure.bleu import corpus_bleu
from heedful.measure.ragged import Ragged
from heedful.model.decode import translate
from heedful.model.train import train
from heedful.model.translator import Translator, lexical_probe
from heedful.papers.units import Unit
from heedful.studies.answers import Report
from heedful.studies.run import Run
from heedful.theory.optimal import optimal_attention
from heedful.typed import content, from_mapping


@dataclass(frozen=True)
class LinearBudget:
    """Sizes of the linear translator's experiment; its data are those of the study of the same corpus."""

    seeds: int
    sentences: int  # validation sentences whose words' optimal attention is found
    steps: int | None = None  # None: as the study's translator


BUDGETS = {
    "smoke": LinearBudget(2, 3),
    "quick": LinearBudget(5, 30, steps=400),
    "paper": LinearBudget(5, 200),
}


def unit(seed: int, study: StudyConfig, run: Run, sizes: LinearBudget) -> Unit:
    """One seed's training and its optimal attention."""
    arguments = {
        "seed": seed,
        "data": study.data,
        "translator": content(replace(study.translator, output="linear")),
        "train": content(study.train.changed(steps=sizes.steps)),
        "sentences": sizes.sentences,
    }
    return Unit(f"linear-{seed}", f"{__name__}:optimal_of_trained", arguments, {"run": str(run.root)})


def optimal_of_trained(
    *,
    seed: int,
    data: str,
    translator: Mapping[str, Any],
    train: Mapping[str, Any],
    sentences: int,
    run: str,
    device: torch.device,
    report: Report,
) -> dict[str, Any]:
    """Train one linear translator on the study's data; compare α^opt with β and with the α that was learned."""
    source, tokeniser = Run(Path(run)), Run(Path(run)).tokeniser()
    validation = source.pairs("validation")
    chosen = validation.take(np.arange(min(sentences, len(validation))))
    torch.manual_seed(seed)
    model = Translator(from_mapping(TranslatorConfig, translator), len(tokeniser)).to(device)
    _train(model, source, from_mapping(TrainConfig, train), seed, device, report)
    report({"step": 1, "steps": 1})
    rows = _rows(model, chosen, device)
    opt, beta, alpha, text = rows["alpha_opt"], rows["beta"], rows["alpha"], rows["text"]
    output = np.concatenate([np.arange(n) for n in np.bincount(text)])
    said = [tokeniser.decode(ids) for ids in translate(model, chosen)]
    return {
        "text": text.tolist(),
        "agreement": agreement(opt, beta).tolist(),
        "shuffle": [None if np.isnan(s) else s for s in shuffled_agreement(opt, beta, position=output, text=text)],
        "learned_agreement": agreement(opt, alpha).tolist(),
        "random": random_agreement(beta.lengths),
        "gap": float(rows["gap"].max()),
        "accuracy": float(rows["correct"].mean()),
        "bleu": corpus_bleu(said, [tokeniser.decode(target) for target in chosen.target]).score,
    }


def _train(
    model: Translator,
    run: Run,
    config: TrainConfig,
    seed: int,
    device: torch.device,
    report: Report,
) -> None:
    def at_step(step: int, loss: float) -> None:
        report({"step": step, "steps": config.steps, **({} if np.isnan(loss) else {"loss": loss})})

    train(model, training_batches(run.pairs("train"), config.batch_size, seed, device=device), config, at_step)
    model.eval()


@torch.no_grad()
def _rows(model: Translator, pairs: EncodedPairs, device: torch.device) -> dict[str, Any]:
    """α^opt, β and α of every output word, sentence by sentence."""
    found: dict[str, list[Any]] = {name: [] for name in ("alpha_opt", "beta", "alpha", "text", "gap", "correct")}
    for m in range(len(pairs)):
        batch = collate(pairs, np.array([m]), device)
        output = model(batch)
        words = batch.target_out[0].cpu().numpy()
        gamma, gamma_state = (model.output(x[0]).double().cpu().numpy() for x in (output.hidden, output.states))
        best = optimal_attention(np.broadcast_to(gamma, (len(words), *gamma.shape)), gamma_state, words)
        found["alpha_opt"] += list(best.alpha)
        found["beta"] += list(lexical_probe(model, output.hidden, output.states, batch.target_out)[0].cpu().numpy())
        found["alpha"] += list(output.alpha[0, 0].cpu().numpy())
        found["text"] += [m] * len(words)
        found["gap"] += best.gap.tolist()
        logits = model.read(output.context, output.states)[0]
        found["correct"] += (logits.argmax(-1) == batch.target_out[0]).tolist()
    arrays = {name: np.array(found[name]) for name in ("text", "gap", "correct")}
    return arrays | {name: Ragged.of(found[name]) for name in ("alpha_opt", "beta", "alpha")}
