"""Models of other people's architectures, small enough for tests: random parameters, and tokenisers made on the spot.

Their parameters are drawn wide, so that attention is far from uniform and no two texts have the same probabilities.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import BpeTrainer

from heedful.attribution.tasks import TASKS

LABELS = ("negative", "positive")
TEXTS = (
    "the film was good",
    "the plot was not good, it was unwatchable!",
    "singing and bad",
    "a very good film and a very bad plot",
    "it was unsingable",
    "not bad",
)
PAIRS = (("the film was good", "der film war gut"), ("a bad plot", "eine schlechte handlung"))
WORDS = ("the", "a", "film", "plot", "was", "it", "not", "very", "good", "bad", "and", "sing", "watch", "un")
ENDINGS = ("able", "ing", "s", "watch", "sing", "er")
OUTPUTS = ("der", "eine", "film", "war", "gut", "schlecht", "hand")
SIGNS = tuple(".,!?'")
POSITIONS = 40
NAMES = {"id2label": dict(enumerate(LABELS)), "label2id": {name: i for i, name in enumerate(LABELS)}}
SIZES = {
    **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": POSITIONS},
    **{"intermediate_size": 32, "hidden_dim": 32, "n_inner": 32, "initializer_range": 0.5},
}
RELATIVE = {
    **{"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": POSITIONS},
    "initializer_range": 0.2,
}


@dataclass(frozen=True)
class Tiny:
    """A model and its tokeniser; `save` makes a folder that opens by its path."""

    model: Any
    tokenizer: Any

    def save(self, folder: Path) -> Path:
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        return folder


def bert(seed: int = 0, **settings: Any) -> Tiny:
    return _encoder(transformers.BertConfig, word_pieces(), seed, settings)


def distilbert(seed: int = 0, **settings: Any) -> Tiny:
    return _encoder(transformers.DistilBertConfig, word_pieces(), seed, settings)


def roberta(seed: int = 0, **settings: Any) -> Tiny:
    return _encoder(transformers.RobertaConfig, byte_pieces(), seed, settings)


def deberta(seed: int = 0, **settings: Any) -> Tiny:
    return _encoder(transformers.DebertaV2Config, word_pieces(), seed, RELATIVE | settings)


def deberta_v1(seed: int = 0, **settings: Any) -> Tiny:
    return _encoder(transformers.DebertaConfig, word_pieces(), seed, RELATIVE | settings)


def gpt2(seed: int = 0, **settings: Any) -> Tiny:
    return _encoder(transformers.GPT2Config, byte_pieces(template=False), seed, settings)


def modernbert(seed: int = 0, **settings: Any) -> Tiny:
    """Its head reads the first place, or the mean of all with classifier_pooling="mean"."""
    special = {"cls_token_id": 2, "sep_token_id": 3}
    return _encoder(transformers.ModernBertConfig, word_pieces(), seed, special | settings)


def xlnet(seed: int = 0, **settings: Any) -> Tiny:
    """Its head reads the last place."""
    sizes = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32, "mem_len": None}
    tokenizer = word_pieces()
    config = transformers.XLNetConfig(**{**special(tokenizer), **sizes, **NAMES, "initializer_range": 0.5, **settings})
    return made(seed, transformers.AutoModelForSequenceClassification, config, tokenizer)


def llama(seed: int = 0, **settings: Any) -> Tiny:
    sizes = {"num_key_value_heads": 2}
    return _encoder(transformers.LlamaConfig, byte_pieces(template=False), seed, sizes | settings)


def t5(seed: int = 0, **settings: Any) -> Tiny:
    tokenizer = sentence_pieces()
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "initializer_factor": 3.0}
    return _seq2seq(transformers.T5Config, tokenizer, seed, tokenizer.pad_token_id, sizes | settings)


def marian(seed: int = 0, **settings: Any) -> Tiny:
    tokenizer = sentence_pieces()
    sizes = {**_halves(), "scale_embedding": True}
    return _seq2seq(transformers.MarianConfig, tokenizer, seed, tokenizer.pad_token_id, sizes | settings)


def bart(seed: int = 0, **settings: Any) -> Tiny:
    tokenizer = byte_pieces()
    return _seq2seq(transformers.BartConfig, tokenizer, seed, tokenizer.eos_token_id, _halves() | settings)


def for_task(kind: Any, task: str, tokenizer: Any = None, seed: int = 0, **settings: Any) -> Tiny:
    """A model of a config's kind with the head of a task."""
    tokenizer = tokenizer or word_pieces(model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    config = kind(**{**special(tokenizer), **SIZES, **NAMES, **settings})
    return made(seed, getattr(transformers, TASKS[task].opens), config, tokenizer)


CLASSIFIERS: dict[str, Callable[..., Tiny]] = {
    "bert": bert,
    "distilbert": distilbert,
    "roberta": roberta,
    "deberta": deberta,
    "deberta_v1": deberta_v1,
    "gpt2": gpt2,
}
SEQUENCES: dict[str, Callable[..., Tiny]] = {"t5": t5, "marian": marian, "bart": bart}


def word_pieces(**settings: Any) -> Any:
    """Words split into pieces marked ##, [CLS] and [SEP] around them, as BERT has it."""
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    vocabulary = [*special, *WORDS, *(f"##{ending}" for ending in ENDINGS), *SIGNS]
    made = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names, **settings)


def byte_pieces(*, template: bool = True) -> Any:
    """Bytes merged into pieces, a space before a word being part of it; <s> and </s> around them as RoBERTa has it."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"] if template else ["<|end|>", "<pad>"]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    learned = [*WORDS, *(f" {word}" for word in (*WORDS, *OUTPUTS))] * 4
    made.train_from_iterator(
        learned, BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet, show_progress=False)
    )
    if not template:
        made.post_processor = processors.ByteLevel(trim_offsets=False)
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=made, bos_token="<|end|>", eos_token="<|end|>", pad_token="<pad>"
        )
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    names = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    rest = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names, **rest)


def sentence_pieces() -> Any:
    """Pieces of which those that begin a word are marked ▁, </s> after them, as T5 and Marian have it."""
    special = ("<pad>", "</s>", "<unk>")
    begins = (f"▁{word}" for word in dict.fromkeys((*WORDS, *OUTPUTS)))
    vocabulary = [*special, "▁", *begins, *ENDINGS, "e", "lung", "te", *SIGNS]
    made = Tokenizer(models.Unigram([(piece, -float(len(vocabulary)) / len(piece)) for piece in vocabulary], unk_id=2))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    names = dict(zip(("pad_token", "eos_token", "unk_token"), special, strict=True))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


def _encoder(kind: Any, tokenizer: Any, seed: int, settings: dict[str, Any]) -> Tiny:
    config = kind(**{**special(tokenizer), **SIZES, **NAMES, **settings})
    return made(seed, transformers.AutoModelForSequenceClassification, config, tokenizer)


def _seq2seq(kind: Any, tokenizer: Any, seed: int, start: int, settings: dict[str, Any]) -> Tiny:
    begin = {"decoder_start_token_id": start, "forced_eos_token_id": None}
    config = kind(**{**special(tokenizer), **begin, **settings})
    return made(seed, transformers.AutoModelForSeq2SeqLM, config, tokenizer)


def made(seed: int, kind: Any, config: Any, tokenizer: Any) -> Tiny:
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated")  # DeBERTa's module says so when imported
        torch.manual_seed(seed)
        return Tiny(kind.from_config(config).eval(), tokenizer)


def special(tokenizer: Any) -> dict[str, int]:
    names = ("pad_token_id", "bos_token_id", "eos_token_id")
    found = {name: getattr(tokenizer, name) for name in names if getattr(tokenizer, name) is not None}
    return {"vocab_size": len(tokenizer), **found}


def _halves() -> dict[str, Any]:
    sizes = {"layers": 2, "attention_heads": 2, "ffn_dim": 32}
    both = {f"{half}_{name}": size for half in ("encoder", "decoder") for name, size in sizes.items()}
    return {"d_model": 16, "init_std": 0.5, "max_position_embeddings": POSITIONS, **both}
