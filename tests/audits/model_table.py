"""The table of docs/models.md: tiny random models of many architectures, audited for every task or refused.

`python -m tests.audits.model_table` writes the page anew; `test_model_table` makes the table again and compares.
"""

import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import transformers

from heedful.attribution.tasks import TASKS
from heedful.audits.audit import run_audit
from heedful.audits.request import open_request
from heedful.config import MODEL_TASKS, AuditSettings
from heedful.errors import HeedfulError
from tests.audits import tiny

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
START, END = "<!-- table: python -m tests.audits.model_table -->", "<!-- end of table -->"
SETTINGS = AuditSettings(
    integrated_steps=0,
    adversary_steps=2,
    random_orders=1,
    random_models=0,
    resamples=10,
    measures=("tau", "changes", "adversary"),
)
GROUPED = {"num_key_value_heads": 1}
EIGHT = {"head_dim": 8}
HALVES = {
    f"{half}_{part}": size
    for half in ("encoder", "decoder")
    for part, size in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 32))
} | {"d_model": 16, "init_std": 0.5}
# The name of a config, its tokeniser and its settings; the last is the task that the architecture is mostly used for.
ARCHITECTURES: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "BERT": ("BertConfig", "words", {}, "fill-mask"),
    "ModernBERT": (
        "ModernBertConfig",
        "words",
        {"cls_token_id": 2, "sep_token_id": 3, "global_attn_every_n_layers": 1},
        "fill-mask",
    ),
    "DeBERTa-v2": ("DebertaV2Config", "words", tiny.RELATIVE, "fill-mask"),
    "DistilBERT": ("DistilBertConfig", "words", {}, "fill-mask"),
    "GPT-2": ("GPT2Config", "bytes", {}, "text-generation"),
    "Llama": ("LlamaConfig", "bytes", GROUPED, "text-generation"),
    "Qwen2": ("Qwen2Config", "bytes", GROUPED, "text-generation"),
    "Qwen3": ("Qwen3Config", "bytes", GROUPED | EIGHT, "text-generation"),
    "Mistral": ("MistralConfig", "bytes", GROUPED | {"sliding_window": 4}, "text-generation"),
    "Gemma 2": ("Gemma2Config", "bytes", GROUPED | EIGHT | {"query_pre_attn_scalar": 8}, "text-generation"),
    "gpt-oss": (
        "GptOssConfig",
        "bytes",
        GROUPED | EIGHT | {"num_local_experts": 2, "num_experts_per_tok": 1},
        "text-generation",
    ),
    "T5": (
        "T5Config",
        "pieces",
        {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2},
        "translation",
    ),
    "BART": ("BartConfig", "pairs", HALVES, "translation"),
    "Marian": ("MarianConfig", "pieces", HALVES, "translation"),
}
DATA: dict[str, Any] = {
    "classification": {"premise": ["the film was good", "a bad plot"], "hypothesis": ["it was bad", "it was not good"]},
    "multi-label": ["the film was good", "a bad plot"],
    "regression": ["the film was good", "a bad plot"],
    "token-classification": ["the film was good", "a bad plot"],
    "question-answering": {"question": ["was it good"], "context": ["the film was not bad"]},
    "fill-mask": {"text": ["the {mask} was good", "a bad {mask}"]},
    "text-generation": {"prompt": ["the film was", "a very"], "completion": ["good", "bad plot"]},
    "translation": {"source": ["the film was good"], "target": ["der film war gut"]},
}
SPECIAL: dict[str, dict[str, Any]] = {
    "multi-label": {"problem_type": "multi_label_classification"},
    "regression": {"problem_type": "regression", "id2label": {0: "score"}, "label2id": {"score": 0}},
}


def cells() -> Iterator[tuple[str, str]]:
    """Every architecture with every task."""
    return ((name, task) for name in ARCHITECTURES for task in MODEL_TASKS)


def cell(architecture: str, task: str) -> str:
    """`audited` with layers × heads and passages, or the sentence that refuses."""
    kind, tokeniser, settings, main = ARCHITECTURES[architecture]
    tokenizer = _tokenizer(tokeniser)
    config = _config(kind, tokenizer, settings | SPECIAL.get(task, {}))
    known = type(config) in getattr(transformers, TASKS[task].known)
    made = tiny.made(0, getattr(transformers, TASKS[task if known else main].opens), config, tokenizer)
    data = DATA[task]
    if task == "fill-mask":
        data = [text.format(mask=tokenizer.mask_token or "[MASK]") for text in data["text"]]
    options = {"output": "positive"} if task == "multi-label" else {}
    with tempfile.TemporaryDirectory() as folder:
        place: Any = made.save(Path(folder) / "MODEL") if not known else made.model
        try:
            with open_request(place, data, tokenizer=tokenizer, task=task, **options) as asked:
                result = run_audit(asked.subject, asked.passages, out=Path(folder) / "audit", settings=SETTINGS)
        except HeedfulError as refused:
            return plain(str(refused))
    return f"audited: {result.query}, {result.passages} passages"


def plain(sentence: str) -> str:
    """A sentence without the names of this model, its class and its architecture."""
    unplaced = re.sub(r"\S*/MODEL", "MODEL", sentence)
    return re.sub(r"the architecture '[\w-]+'", "the architecture '…'", re.sub(r"\b\w+(For[A-Z]\w+)", r"…\1", unplaced))


def _tokenizer(name: str) -> Any:
    types = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    made = {"words": lambda: tiny.word_pieces(**types), "bytes": lambda: tiny.byte_pieces(template=False)}
    return {**made, "pieces": tiny.sentence_pieces, "pairs": tiny.byte_pieces}[name]()


def _config(kind: str, tokenizer: Any, settings: dict[str, Any]) -> Any:
    start = {"decoder_start_token_id": tokenizer.eos_token_id, "forced_eos_token_id": None}
    sizes = tiny.SIZES | {"num_hidden_layers": 1}
    both = {**tiny.special(tokenizer), **sizes, **tiny.NAMES, **settings}
    return getattr(transformers, kind)(**(both | start if "d_model" in settings else both))


def table() -> str:
    """The table in Markdown, and below it each sentence that refuses, once."""
    found = {pair: cell(*pair) for pair in cells()}
    sentences = list(dict.fromkeys(text for text in found.values() if not text.startswith("audited")))
    lines = ["| | " + " | ".join(MODEL_TASKS) + " |", "| --- " * (len(MODEL_TASKS) + 1) + "|"]
    for name in ARCHITECTURES:
        shown = []
        for task in MODEL_TASKS:
            text = found[name, task]
            shown.append(
                f"✓ {text.split()[1].strip(',')}" if text.startswith("audited") else f"({sentences.index(text) + 1})"
            )
        lines.append(f"| {name} | " + " | ".join(shown) + " |")
    return "\n".join([*lines, "", *(f"{i}. {sentence}" for i, sentence in enumerate(sentences, start=1))])


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START)
    _, after = rest.split(END)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PAGE.write_text(f"{before}{START}\n\n{table()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
