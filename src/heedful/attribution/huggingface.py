"""Hugging Face models of one stack of layers as networks, left exactly as they were found."""

import inspect
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.attribution.huggingface_text import TokenReader, load, longest_input, table_rows
from heedful.attribution.interface import Passage, layout_of
from heedful.attribution.layer_stack import LayerStack, find_stack
from heedful.attribution.model_files import in_words
from heedful.attribution.network import Before, Change, Embedded, Layout, Output, Pieces, Query
from heedful.attribution.opened_model import (
    SAMPLE,
    OpenedModel,
    attention_of,
    call,
    check_embeddings,
    first_call,
    name_of,
    restored_afterwards,
)
from heedful.attribution.taps import find_taps, states_recorded
from heedful.attribution.tasks import TASKS, WHOLE, Focus, PredictionTask, label_logits
from heedful.config import ModelTask
from heedful.data.rows import Text
from heedful.errors import ConfigError, DataError

SHORT_SAMPLE = "A text may be short."
UNREAD = 1e-4  # share of the largest gradient below which the head does not read a position
EVEN = 1e-3  # relative difference below which two gradients are equal
OTHER_PROBLEMS = {
    "regression": ("predicts numbers", "regression"),
    "multi_label_classification": ("may predict several labels", "multi-label"),
}
SAME = 1e-5  # difference of probabilities or weights that is rounding


@contextmanager
def open_model(
    model: str | Path | nn.Module,
    tokenizer: Any = None,
    *,
    device: str | torch.device = "cpu",
    task: ModelTask = "classification",
    output: str | None = None,
    query: Query | None = None,
    trust_remote_code: bool = False,
) -> Iterator[tuple["HuggingFaceModel", TokenReader]]:
    """A model for any task but translation as a network, and its tokeniser as a reader.

    model: a folder, a Hub id, or a model with its tokeniser; a model stays on its device. output: of several labels
    that do not exclude each other, or of several values, the one to explain. query: whose attention explains the
    prediction; by default the positions that the model's head reads, by the gradient of its logits.

    >>> from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> made = Tokenizer(models.WordLevel({"[UNK]": 0, "good": 1, "bad": 2}, unk_token="[UNK]"))
    >>> made.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    >>> model = BertForSequenceClassification(BertConfig(vocab_size=3, **sizes))
    >>> with open_model(model, PreTrainedTokenizerFast(tokenizer_object=made)) as (network, reader):
    ...     pieces = torch.tensor([reader.read(0, "not bad").pieces])
    ...     output = network.run(network.embed(pieces))
    >>> network.query, network.can_change, output.attention[0].shape, reader.labels
    ('first', True, torch.Size([1, 2, 2, 2]), ('LABEL_0', 'LABEL_1'))
    """
    loaded, tokenizer = load(task, model, tokenizer, device, trust_remote_code=trust_remote_code)
    if loaded.config.is_encoder_decoder:
        raise DataError(f"{name_of(loaded)} is an encoder–decoder; {task} needs one stack of layers")
    with in_words(name_of(loaded), "reading its labels and its longest input"):
        labels, focus = _labels(loaded.config, task, output)
        longest = longest_input(loaded, tokenizer)
    if task == "text-generation":
        tokenizer.truncation_side = "left"  # what comes next depends on the end of a prompt
    reader = TokenReader(tokenizer, labels, longest, table_rows(loaded))
    with restored_afterwards(loaded), _without_padding_warning(loaded):
        with in_words(name_of(loaded), "a first prediction"):
            network = _network(loaded, reader, TASKS[task], focus, query)
        yield network, reader


@dataclass(frozen=True)
class HuggingFaceModel(OpenedModel):
    """A `Network` with the probabilities of its task; hidden[l] is the input of layer l.

    focus: what of the output is read. layout: of the inputs, where they have one. pads: whether texts of different
    lengths can be run together. stack: the modules of the layers, if they were found, and `sample` the embeddings of a
    text, by which it is tried whether the model can be run from a layer on. narrow: the parts of the last layer after
    which predictions need only the first position; none where they need more.
    """

    task: PredictionTask = TASKS["classification"]
    focus: Focus = WHOLE
    layout: Layout | None = None
    pads: bool = False
    stack: LayerStack | None = None
    sample: Tensor | None = None
    narrow: tuple[str, ...] = ()
    _resumes: dict[int, bool] = field(default_factory=dict, compare=False, repr=False)

    def embed(self, pieces: Pieces) -> Embedded:
        """The word embeddings, without position information."""
        table = self.model.get_input_embeddings()
        embedded: Tensor = table(pieces.to(table.weight.device))
        return embedded

    def run(self, embedded: Embedded, before: Before = None, change: Change | None = None) -> Output:
        """Run on B inputs of one length; differentiable. A classifier does not use `before`."""
        return self._output(self.call(self._inputs(embedded), change), embedded)

    def with_layout(self, layout: Layout) -> "HuggingFaceModel":
        """The same network, for inputs of this layout."""
        return replace(self, layout=layout)

    def outputs(self, passage: Passage) -> Any:
        """Whatever the model returns for one passage, on its own terms."""
        placed = replace(self, layout=layout_of([passage], self.model.device))
        embedded = self.embed(torch.tensor([passage.pieces]))
        with torch.no_grad():
            return self.model(**placed._inputs(embedded, everywhere=True), return_dict=True)

    def run_padded(self, embedded: Embedded, mask: Bool[Tensor, "B L"], change: Change | None = None) -> Output:
        """Run on B inputs that are padded on the right; mask: which positions are no padding."""
        return self._output(self.call(self._inputs(embedded, mask), change), embedded)

    def randomised(self, seed: int) -> Any:
        """The same architecture with new random parameters; None if its class needs more than a config."""
        fresh = super().randomised(seed)
        return fresh if fresh is None else replace(fresh, stack=find_stack(fresh.model, self.layers), _resumes={})

    def predict(
        self, embedded: Embedded, mask: Bool[Tensor, "B L"] | None = None, change: Change | None = None
    ) -> Float[Tensor, "B K"]:
        """The probabilities alone; differentiable."""
        return self._predicted(embedded, mask, change)

    def states(
        self, embedded: Embedded, mask: Bool[Tensor, "B L"] | None = None, change: Change | None = None
    ) -> tuple[Float[Tensor, "B L D"], ...]:
        """The states that each layer reads; differentiable. Of the attention nothing is kept."""
        return self._states(self._changed(self._inputs(embedded, mask) | {"output_hidden_states": True}, change))

    def resumes_at(self, layer: int) -> bool:
        """Whether the model can be run from this layer on; tried once, on a sample."""
        if layer not in self._resumes:
            self._resumes[layer] = layer > 0 and self.taps is not None and self._tried(layer)
        return self._resumes[layer]

    def reads_first_row(self, layer: int) -> bool:
        """Whether the prediction depends on a layer's attention from the first position alone."""
        return bool(self.narrow) and layer == self.layers - 1

    def resume(
        self,
        layer: int,
        states: Tensor,
        mask: Bool[Tensor, "B L"] | None = None,
        change: Change | None = None,
        remembered: dict[nn.Module, Any] | None = None,
        everywhere: bool = False,
    ) -> Float[Tensor, "B K"]:
        """The probabilities for these states at the input of a layer; differentiable.

        remembered: filled with what the layer computes from the states alone, for further runs on the same tensor.
        everywhere: whether all positions are computed, also those that the prediction does not depend on.
        """
        assert self.stack is not None
        with self.stack.starting_at(layer, states, remembered):
            return self._predicted(self._filler(states), mask, change, layer, everywhere)

    def _predicted(
        self,
        embedded: Embedded,
        mask: Bool[Tensor, "B L"] | None,
        change: Change | None,
        first_layer: int = 0,
        everywhere: bool = False,
    ) -> Float[Tensor, "B K"]:
        stack = None if everywhere or not self.narrow else self.stack
        with nullcontext() if stack is None else stack.first_position_after(self.narrow):
            return self._probabilities(self._changed(self._inputs(embedded, mask), change, first_layer))

    def _changed(self, inputs: dict[str, Any], change: Change | None, first_layer: int = 0) -> Any:
        """What the model returns for these arguments, with its attention changed."""

        def returned() -> Any:
            return self.model(**inputs, return_dict=True)

        if change is None:
            return returned()
        if self.taps is None:
            raise DataError(f"{name_of(self.model)} computes its attention where it cannot be replaced")
        return self.taps.run(returned, change, first_layer)

    def _inputs(
        self, embedded: Embedded, mask: Bool[Tensor, "B L"] | None = None, *, everywhere: bool = False
    ) -> dict[str, Any]:
        """The arguments of a call; of a language model's logits only the last are computed, unless `everywhere`."""
        takes = inspect.signature(self.model.forward).parameters
        inputs: dict[str, Any] = {"inputs_embeds": embedded}
        if mask is not None:
            inputs["attention_mask"] = mask.long()
        if self.layout is not None and self.layout.segments is not None and "token_type_ids" in takes:
            inputs["token_type_ids"] = self.layout.segments.to(embedded.device)
        if self.task.query == "last" and not everywhere and "logits_to_keep" in takes:
            inputs["logits_to_keep"] = 1
        return inputs

    def _probabilities(self, returned: Any) -> Float[Tensor, "B K"]:
        return self.task.probabilities(returned, self.layout, self.focus)

    @torch.no_grad()
    def reading(self, embedded: Embedded, mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B L"]:
        """The share of each position in the gradient of the logits; they sum to 1."""
        weights = torch.stack(
            [
                nn.functional.pad(_read_by_head(self, row[None, : int(m.sum())])[0], (0, int((~m).sum())))
                for row, m in zip(embedded, mask, strict=True)
            ]
        )
        return weights / weights.sum(1, keepdim=True)

    def _output(self, returned: Any, embedded: Embedded) -> Output:
        attention = attention_of(self.model, returned.attentions, embedded.shape[1])
        hidden = self._states(returned)
        final = returned.hidden_states[len(hidden)] if len(returned.hidden_states) > len(hidden) else None
        return Output(self._probabilities(returned), attention, hidden, final)

    def _states(self, returned: Any) -> tuple[Tensor, ...]:
        hidden = tuple(returned.hidden_states or ())
        if len(hidden) < self.layers:
            raise DataError(f"{name_of(self.model)} has {self.layers} attentions, but {len(hidden)} hidden states")
        return hidden[: self.layers]

    def _filler(self, states: Tensor) -> Tensor:
        """Embeddings of the right shape; what is made of them is not used."""
        width = self.model.get_input_embeddings().weight.shape[1]
        return states.new_zeros((*states.shape[:2], width))

    @torch.no_grad()
    def _tried(self, layer: int) -> bool:
        """Whether a run from this layer gives the same as the whole model, with its own attention and with another."""
        if self.stack is None or self.sample is None:
            return False

        def other(number: int, alpha: Tensor) -> Tensor:
            return alpha.flip(-1) if number == layer else alpha

        own = self.run(self.sample)
        whole = self.run(self.sample, change=other)
        try:
            found = (self.resume(layer, own.hidden[layer]), self.resume(layer, own.hidden[layer], change=other))
        except Exception:  # any error of a model that cannot be run this way
            return False
        return all(map(_same_probabilities, found, (own.probabilities, whole.probabilities)))


def _same_probabilities(first: Tensor, second: Tensor) -> bool:
    return torch.allclose(first, second, rtol=0, atol=SAME)


@torch.no_grad()
def _network(
    model: Any, reader: TokenReader, task: PredictionTask, focus: Focus, query: Query | None
) -> HuggingFaceModel:
    text, short_text = (_sample(reader, task, words) for words in (SAMPLE, SHORT_SAMPLE))
    passage, short_passage = (_placed(reader, task, words) for words in (text, short_text))
    L = len(passage.pieces)
    given = {name: values[:, :L] for name, values in reader.encoded(text).items()}  # without a final end symbol
    returned = first_call(model, given)
    attention = attention_of(model, getattr(returned, "attentions", None), L)
    if model.config.pad_token_id is None:
        model.config.pad_token_id = 0  # decoders refuse batches without one; it is never used, since nothing is padded
    layout = layout_of([passage], model.device)
    fixed: Query | None = query or task.query
    network = HuggingFaceModel(
        model, fixed or "mean", len(attention), attention[0].shape[1], task=task, focus=focus, layout=layout
    )
    expected = network._probabilities(returned)
    embedded = network.embed(torch.tensor([passage.pieces]))
    check_embeddings(model, network.run(embedded).probabilities, expected)
    short = network.embed(torch.tensor([short_passage.pieces]))
    network = replace(network, query=fixed or _query(network, (embedded, short)))
    network = replace(
        network,
        taps=find_taps(lambda: network.run(embedded).attention),
        pads=_pads(network, (embedded, short), (passage, short_passage)),
        stack=find_stack(model, network.layers),
        sample=embedded,
    )
    return replace(network, narrow=_narrow(network))


def _sample(reader: TokenReader, task: PredictionTask, words: str) -> Text:
    """A text of the kind that the task is about."""
    if task.name == "question-answering":
        return "What is this?", words
    mask = reader.tokenizer.mask_token
    if task.name == "fill-mask":
        if mask is None:
            raise DataError("the tokeniser has no mask token, which fill-mask needs")
        return f"{words.rsplit(' ', 1)[0]} {mask}"
    return words


def _placed(reader: TokenReader, task: PredictionTask, text: Text) -> Passage:
    """The sample as a passage; where the output is read at a piece, that of its last words."""
    passage = without_end(reader, reader.read(0, text)) if task.name == "text-generation" else reader.read(0, text)
    if task.query != "at":
        return passage
    plain = [i for i, word in enumerate(passage.word) if not passage.special[word]]
    at = (plain[-2], plain[-1]) if task.name == "question-answering" else (plain[-1],)
    words = {passage.word[i] for i in at}
    return replace(passage, at=at, special=tuple(s or w in words for w, s in enumerate(passage.special)))


def without_end(reader: TokenReader, passage: Passage) -> Passage:
    """A prompt without the end symbol that some tokenisers add: it would have to be continued."""
    if len(passage.words) < 2 or not passage.special[-1] or passage.pieces[-1] != reader.special_piece("eos"):
        return passage
    return replace(
        passage,
        words=passage.words[:-1],
        special=passage.special[:-1],
        pieces=passage.pieces[:-1],
        word=passage.word[:-1],
    )


def _narrow(network: HuggingFaceModel) -> tuple[str, ...]:
    """The parts of the last layer after which the first position suffices; tried on a sample, with other attention too.

    A part of that part is tried besides: attention has an output of its own, which is computed position by position.
    None where no part shortens what the layer computes, or where the prediction would change.
    """
    if network.query != "first" or network.stack is None or network.sample is None or network.taps is None:
        return ()
    last = network.stack.layers[-1]
    outer = next((part for part, _ in last.named_children() if _narrows(network, (part,))), None)
    if outer is None:
        return ()
    inner = (f"{outer}.{part}" for part, _ in last.get_submodule(outer).named_children())
    return next((both for part in inner if _narrows(network, both := (part, outer))), (outer,))


def _narrows(network: HuggingFaceModel, parts: tuple[str, ...]) -> bool:
    """Whether the last layer returns one position and the model the same prediction, without these parts' others."""
    assert network.stack is not None
    assert network.sample is not None
    lengths: list[int] = []

    def record(module: nn.Module, given: Any, result: Any) -> None:
        lengths.append((result[0] if isinstance(result, tuple) else result).shape[1])

    def other(number: int, alpha: Tensor) -> Tensor:
        if alpha.shape[-2:] != (length, length):
            raise DataError(f"attention of shape {tuple(alpha.shape)} for {length} pieces")
        return alpha.flip(-1)

    sample, length, changes = network.sample, network.sample.shape[1], (None, other)
    tried = replace(network, narrow=parts)
    handle = network.stack.layers[-1].register_forward_hook(record)
    try:
        found = [tried.predict(sample, change=change) for change in changes]
    except Exception:  # any error of a model that cannot be run this way
        return False
    finally:
        handle.remove()
    whole = [network.run(sample, change=change).probabilities for change in changes]
    return set(lengths) == {1} and all(map(_same_probabilities, found, whole))


def _query(network: HuggingFaceModel, samples: Sequence[Tensor]) -> Query:
    """The positions whose final states the head reads: where the gradient of the logits by them is not 0.

    A saturated head has no gradient; the same architecture with new random parameters reads the same positions.
    """
    shares = [_read_by_head(network, embedded)[0] for embedded in samples]
    if any(not bool((share > 0).any()) for share in shares) and (fresh := network.randomised(0)) is not None:
        shares = [_read_by_head(fresh, embedded / embedded.std().clamp(min=1))[0] for embedded in samples]
    if any(not bool((share > 0).any()) for share in shares):
        raise DataError(
            f"{name_of(network.model)}: it cannot be found out which positions its head reads; name them with --query "
            "(first, last or mean)"
        )
    read = [share > UNREAD * share.max() for share in shares]
    if all(bool(r[0]) and int(r.sum()) == 1 for r in read):
        return "first"
    if all(bool(r[-1]) and int(r.sum()) == 1 for r in read):
        return "last"
    even = all(bool((share > (1 - EVEN) * share.max()).all()) for share in shares)
    return "mean" if even else "weighted"


@torch.enable_grad()
def _read_by_head(network: HuggingFaceModel, embedded: Embedded) -> Float[Tensor, "1 L"]:
    """‖∂z/∂h_q‖ of the final state h_q at each position, summed over the logits z.

    The states may be computed several times over (a transposed copy that is returned, another that the head reads), so
    the largest gradient counts.
    """
    model = network.model
    returned, seen = states_recorded(lambda: call(model, {"inputs_embeds": embedded.detach().requires_grad_()}))
    final = returned.hidden_states[-1] if getattr(returned, "hidden_states", None) else None
    places = [] if final is None else [h for h in seen if h.shape == final.shape and torch.equal(h, final)]
    total = torch.zeros(embedded.shape[:2], device=embedded.device)
    for logit in label_logits(returned).unbind(1):
        found = torch.autograd.grad(logit.sum(), places, allow_unused=True, retain_graph=True) if places else ()
        norms = [gradient.norm(dim=-1) for gradient in found if gradient is not None]
        total = total + (torch.stack(norms).amax(0).to(total) if norms else 0)
    return total.detach()


def _pads(network: HuggingFaceModel, samples: Sequence[Tensor], passages: Sequence[Passage]) -> bool:
    """Whether a text gives the same next to a longer one, padded, as it does alone."""
    long, short = samples
    takes = inspect.signature(network.model.forward).parameters
    # The probability of an answer is a share of all pieces, padding among them.
    if network.query == "last" or network.task.name == "question-answering" or "attention_mask" not in takes:
        return False
    L, width = short.shape[1], long.shape[1] - short.shape[1]
    both = torch.cat([nn.functional.pad(short, (0, 0, 0, width)), long])
    mask = torch.ones(both.shape[:2], dtype=torch.bool, device=both.device)
    mask[0, L:] = False
    device = network.model.device
    try:
        together = replace(network, layout=layout_of(passages[::-1], device)).run_padded(both, mask)
    except Exception:  # any error of a model that does not accept padding
        return False
    alone = replace(network, layout=layout_of(passages[1:], device)).run(short)
    pairs = [(a[0, :, :L, :L], b[0]) for a, b in zip(together.attention, alone.attention, strict=True)]
    padding = [a[0, :, :L, L:] for a in together.attention]
    return (
        width > 0
        and _same_probabilities(together.probabilities[:1], alone.probabilities)
        and all(a.shape == b.shape and _same_probabilities(a, b) for a, b in pairs)
        and not any(bool(weights.any()) for weights in padding)
    )


def _labels(config: Any, task: ModelTask, output: str | None) -> tuple[tuple[str, ...], Focus]:
    """The names of the outputs, none where they are not labels; and which of several is explained."""
    if task not in ("classification", "multi-label", "regression", "token-classification"):
        if output is not None:
            raise ConfigError(f"--output {output}: {task} has no labels to choose from")
        return (), WHOLE
    names = tuple(str(config.id2label[i]) for i in range(config.num_labels))
    if task == "classification" and config.problem_type in OTHER_PROBLEMS:
        does, other = OTHER_PROBLEMS[config.problem_type]
        raise ConfigError(f"the model {does} (problem_type {config.problem_type!r}); its task is {other}")
    if task in ("classification", "token-classification"):
        if output is not None:
            raise ConfigError(f"--output {output}: the labels exclude each other, and the predicted one is explained")
        is_single = task == "classification" and len(names) == 1
        return ((f"not {names[0]}", names[0]) if is_single else names), WHOLE
    if output is None and len(names) > 1:
        raise ConfigError(f"the model has {len(names)} outputs; choose one with --output: {', '.join(names)}")
    if output is not None and output not in names:
        raise ConfigError(f"--output {output}: the model's outputs are {', '.join(names)}")
    focus = Focus(names.index(output) if output else 0)
    chosen = names[focus.output]
    return (() if task == "regression" else (f"not {chosen}", chosen)), focus


@contextmanager
def _without_padding_warning(model: Any) -> Iterator[None]:
    """Silence the warning of decoders that they cannot detect padding in embeddings; there is none."""

    def keep(record: logging.LogRecord) -> bool:
        return "will not detect padding tokens" not in record.getMessage()

    loggers = [logging.getLogger(name) for name in {type(model).__module__, "transformers.modeling_layers"}]
    for logger in loggers:
        logger.addFilter(keep)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(keep)
