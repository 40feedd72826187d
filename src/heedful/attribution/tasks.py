"""Tasks of models: which number of a model's output is explained, and from which positions its attention is read.

A task names the class that loads its models and makes probabilities (B, K) of what they return. What a row of data
becomes is in `task_passages`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attribution.model_files import CONFIG, MAX_CONFIG, read_json
from heedful.attribution.network import Layout, Query
from heedful.config import MODEL_TASKS, ModelTask
from heedful.errors import DataError


@dataclass(frozen=True)
class Focus:
    """What of a model's output is read: the number of a label (or of a value), and for values their mean and spread."""

    output: int = 0
    mean: float = 0.0
    spread: float = 1.0


WHOLE = Focus()
Probabilities = Callable[[Any, Layout | None, Focus], Float[Tensor, "B K"]]


@dataclass(frozen=True)
class PredictionTask:
    """opens: the class that loads its models; known: its list of architectures; head, data: what these need, in words.

    query: the positions whose attention explains; None where they are found by the gradient of the logits.
    probabilities: of what a model returned.
    """

    name: ModelTask
    opens: str
    known: str
    head: str
    data: str
    query: Query | None
    probabilities: Probabilities


def class_probabilities(returned: Any, layout: Layout | None, focus: Focus) -> Float[Tensor, "B K"]:
    """A softmax over the labels; a single logit is that of a yes.

    >>> from types import SimpleNamespace
    >>> class_probabilities(SimpleNamespace(logits=torch.tensor([[0.0]])), None, Focus())
    tensor([[0.5000, 0.5000]])
    """
    logits = label_logits(returned)
    return _yes_or_no(logits) if logits.shape[1] == 1 else single_or_better(logits).softmax(-1)


def one_label(returned: Any, layout: Layout | None, focus: Focus) -> Float[Tensor, "B 2"]:
    """Of labels that do not exclude each other, one: no and yes."""
    return _yes_or_no(label_logits(returned)[:, focus.output : focus.output + 1])


def value_rank(returned: Any, layout: Layout | None, focus: Focus) -> Float[Tensor, "B 2"]:
    """The share of texts with a higher and with a lower value, by the normal distribution of the values of all texts.

    It rises with the value, so that the order of words by importance is that for the value itself.
    """
    values = single_or_better(label_logits(returned)[:, focus.output])
    lower = torch.special.ndtr((values - focus.mean) / focus.spread)
    return torch.stack([1 - lower, lower], dim=1)


def at_piece(returned: Any, layout: Layout | None, focus: Focus) -> Float[Tensor, "B K"]:
    """A softmax over the outputs at one piece: the labels of a word, or what a mask may stand for."""
    at = _positions(layout)[:, 0]
    return single_or_better(returned.logits[torch.arange(len(at), device=at.device), at]).softmax(-1)


def answer_span(returned: Any, layout: Layout | None, focus: Focus) -> Float[Tensor, "B 2"]:
    """Another answer, and this one: the probability that it starts at its first piece and ends at its last."""
    at = _positions(layout)
    start, end = (single_or_better(logits).softmax(-1) for logits in (returned.start_logits, returned.end_logits))
    this = (start.gather(1, at[:, :1]) * end.gather(1, at[:, 1:2]))[:, 0]
    return torch.stack([1 - this, this], dim=1)


def next_piece(returned: Any, layout: Layout | None, focus: Focus) -> Float[Tensor, "B V"]:
    """A softmax over the next pieces."""
    return single_or_better(returned.logits[:, -1]).softmax(-1)


def label_logits(returned: Any) -> Float[Tensor, "B K"]:
    """The logits of a classification head; an error where there is none."""
    logits = getattr(returned, "logits", None)
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        raise DataError("the model has no classification head: it does not return one logit for each label")
    return logits


def single_or_better(logits: Tensor) -> Tensor:
    """Logits in single precision or better."""
    return logits if logits.dtype == torch.float64 else logits.float()


def _yes_or_no(logit: Float[Tensor, "B 1"]) -> Float[Tensor, "B 2"]:
    return single_or_better(torch.cat([torch.zeros_like(logit), logit], dim=1)).softmax(-1)


def _positions(layout: Layout | None) -> Tensor:
    if layout is None or layout.at is None:
        raise DataError("the output of this model is read at certain pieces, and the input does not say at which")
    return layout.at


_CLASSIFIER = (
    "AutoModelForSequenceClassification",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
    "classification head",
)
TASKS: dict[ModelTask, PredictionTask] = {
    "classification": PredictionTask("classification", *_CLASSIFIER, "texts with labels", None, class_probabilities),
    "multi-label": PredictionTask("multi-label", *_CLASSIFIER, "texts", None, one_label),
    "regression": PredictionTask("regression", *_CLASSIFIER, "texts", None, value_rank),
    "token-classification": PredictionTask(
        "token-classification",
        "AutoModelForTokenClassification",
        "MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING",
        "head for words",
        "texts whose words have labels",
        "at",
        at_piece,
    ),
    "question-answering": PredictionTask(
        "question-answering",
        "AutoModelForQuestionAnswering",
        "MODEL_FOR_QUESTION_ANSWERING_MAPPING",
        "question-answering head",
        "questions with contexts",
        "at",
        answer_span,
    ),
    "fill-mask": PredictionTask(
        "fill-mask",
        "AutoModelForMaskedLM",
        "MODEL_FOR_MASKED_LM_MAPPING",
        "masked language model's head",
        "texts with a mask",
        "at",
        at_piece,
    ),
    "text-generation": PredictionTask(
        "text-generation",
        "AutoModelForCausalLM",
        "MODEL_FOR_CAUSAL_LM_MAPPING",
        "causal language model's head",
        "prompts",
        "last",
        next_piece,
    ),
    "translation": PredictionTask(
        "translation",
        "AutoModelForSeq2SeqLM",
        "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
        "decoder",
        "sentence pairs",
        "last",
        next_piece,
    ),
}
# The ending of an architecture's name, and the task of such models.
ENDINGS: dict[str, ModelTask] = {
    "ForSequenceClassification": "classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForQuestionAnsweringSimple": "question-answering",
    "ForMaskedLM": "fill-mask",
    "WithLMHeadModel": "fill-mask",
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "ForConditionalGeneration": "translation",
    "MTModel": "translation",
}
_OTHER_INPUTS = {
    "a vision model, which reads pixels": (
        r"Image|Vision|Video|ObjectDetection|Segmentation|DepthEstimation|Keypoint|Pose|ViT|CLIPModel|Pixel|TextRecognition"
    ),
    "a speech model, which reads sound": r"Audio|Speech|ForCTC|Whisper|Wav2Vec|Hubert|XVector|Spectrogram|Waveform",
    "a model of time series": r"TimeSeries",
    "a model of tables": r"TableQuestion|Tapas",
}
_NOT_DONE = {
    "ForNextSentencePrediction": "whether a sentence follows another",
    "ForMultipleChoice": "one of several texts",
    "ForPreTraining": "the outputs of pretraining",
}


def task_of_architecture(architecture: str, problem_type: str | None = None) -> ModelTask | None:
    """The task of a class of models; None where its name does not say.

    >>> task_of_architecture("BertForMaskedLM"), task_of_architecture("GPT2LMHeadModel"), task_of_architecture("Bert")
    ('fill-mask', 'text-generation', None)
    """
    ending = next((e for e in sorted(ENDINGS, key=len, reverse=True) if architecture.endswith(e)), None)
    if ending is None:
        return None
    task = ENDINGS[ending]
    by_type: dict[str | None, ModelTask] = {"multi_label_classification": "multi-label", "regression": "regression"}
    return by_type.get(problem_type, task) if task == "classification" else task


def task_of_model(model: Any) -> ModelTask:
    """The task of a model object or of a folder, by the name of its architecture; else classification.

    >>> task_of_model("no/such/folder")
    'classification'
    """
    architectures, problem_type = _architectures(model)
    found = (task_of_architecture(name, problem_type) for name in architectures)
    return next((task for task in found if task is not None), "classification")


def _architectures(model: Any) -> tuple[Sequence[str], str | None]:
    config = getattr(model, "config", None)
    if config is not None:
        return (type(model).__name__,), getattr(config, "problem_type", None)
    if not isinstance(model, str | Path):
        return (), None
    try:
        content = read_json(Path(model) / CONFIG, MAX_CONFIG)
        return tuple(map(str, content.get("architectures") or ())), content.get("problem_type")
    except (DataError, TypeError, ValueError):  # loading it says what is wrong
        return (), None


def reads_no_text(place: str, architectures: Sequence[str]) -> str | None:
    """Why models of these architectures are not audited for any task; None where they may read text.

    >>> reads_no_text("my/vit", ["ViTForImageClassification"])
    'my/vit: this is a vision model, which reads pixels (ViTForImageClassification); models that read text are audited'
    """
    for name in architectures:
        for kind, pattern in _OTHER_INPUTS.items():
            if re.search(pattern, name):
                return f"{place}: this is {kind} ({name}); models that read text are audited"
    return None


def refusal(place: str, architectures: Sequence[str], task: ModelTask) -> str | None:
    """Why a model of these architectures cannot do the task; None where nothing is known against it.

    >>> refusal("mine", ["BertModel"], "classification")
    'mine: this is a bare BertModel without a head; classification needs a trained classification head'
    """
    for name in architectures:
        own, head = task_of_architecture(name), TASKS[task].head
        for ending, predicts in _NOT_DONE.items():
            if name.endswith(ending):
                return f"{place}: {name} predicts {predicts}, which is not audited; there are {', '.join(MODEL_TASKS)}"
        if own is not None and TASKS[own].opens != TASKS[task].opens:
            return (
                f"{place}: this is a {name}, for the task {own}; its {head}, which {task} needs, was never trained; "
                f"pass --task {own}, or train a {head}"
            )
        if own is None and name.endswith("Model"):
            return f"{place}: this is a bare {name} without a head; {task} needs a trained {head}"
    return None
