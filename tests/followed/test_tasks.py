"""Every task is followed, by a Trainer's callback and over saved checkpoints; and a callback never ends a training."""

import json
import warnings

import numpy as np
import pytest
import transformers

from heedful import api
from heedful.attribution.attention_maps import attention_maps, layer_name, read_attention
from heedful.attribution.interface import Subject
from heedful.attribution.task_passages import open_task
from heedful.followed.result import FollowedDirectory
from heedful.followed.training import TraceCallback
from tests.audits import tiny

PAIRS = (("the film was good", "it was bad"), ("a bad plot", "it was not good"))
TEXTS = ("the film was good", "a bad plot")
TAGS = (("O", "THING", "O", "O"), ("O", "O", "THING"))
ANSWERS = ("bad", "not good")
MASKED = ("the [MASK] was good", "a bad [MASK]")
# By task: texts, labels or outputs, the names of the outputs, and settings of the model.
TASKS = {
    "classification": (PAIRS, ("positive", "negative"), ("negative", "positive"), {}),
    "multi-label": (
        TEXTS,
        (["positive"], ["negative"]),
        ("not positive", "positive"),
        {"problem_type": "multi_label_classification"},
    ),
    "regression": (
        TEXTS,
        None,
        ("lower", "higher"),
        {"problem_type": "regression", "id2label": {0: "score"}, "label2id": {"score": 0}},
    ),
    "token-classification": (
        TEXTS,
        TAGS,
        ("O", "THING"),
        {"id2label": {0: "O", 1: "THING"}, "label2id": {"O": 0, "THING": 1}},
    ),
    "question-answering": (PAIRS, ANSWERS, ("another answer", "the answer"), {}),
    "fill-mask": (MASKED, ("film", "plot"), ("film", "plot", "another"), {}),
    "text-generation": (("the film was", "a bad"), (" good", " plot"), ("good", "plot", "another"), {}),
}


def made_for(task, seed=0):
    kind = transformers.GPT2Config if task == "text-generation" else transformers.BertConfig
    pieces = tiny.byte_pieces(template=False) if task == "text-generation" else None
    return tiny.for_task(kind, task, pieces, seed, num_hidden_layers=2, **TASKS[task][3])


def rows_of(task, tokenizer):
    """What a Trainer learns from: the texts with labels of the form that the model's loss takes."""
    texts = TASKS[task][0]
    for number, text in enumerate(texts):
        row = dict(tokenizer(*text) if isinstance(text, tuple) else tokenizer(text))
        pieces = len(row["input_ids"])
        match task:
            case "classification":
                row["labels"] = number
            case "multi-label":
                row["labels"] = [0.0, 1.0]
            case "regression":
                row["labels"] = float(number)
            case "token-classification":
                row["labels"] = [-100, *[1] * (pieces - 2), -100]
            case "question-answering":
                row |= {"start_positions": pieces - 3, "end_positions": pieces - 2}
            case _:
                row["labels"] = row["input_ids"]
        yield row


def train(folder, task, callback, made, steps=3):
    arguments = transformers.TrainingArguments(
        str(folder),
        **{"max_steps": steps, "per_device_train_batch_size": 1, "learning_rate": 0.01, "use_cpu": True},
        **{"report_to": [], "disable_tqdm": True, "logging_strategy": "no", "save_strategy": "no"},
    )
    rows = list(rows_of(task, made.tokenizer))
    collate = transformers.default_data_collator
    trainer = transformers.Trainer(
        made.model, arguments, train_dataset=rows, data_collator=collate, callbacks=[callback]
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize("task", TASKS)
def test_a_training_for_each_task(task, tmp_path):
    """What is recorded last is the attention of the trained model."""
    texts, labels, names, _ = TASKS[task]
    made, output = made_for(task), "positive" if task == "multi-label" else None
    callback = TraceCallback(
        tmp_path / "run", texts, made.tokenizer, labels=labels, task=task, output=output, every=2, name="tiny"
    )
    trained = train(tmp_path / "out", task, callback, made)
    assert trained.state.global_step == 3
    assert not callback.stopped
    run = FollowedDirectory(tmp_path / "run")
    assert [step.step for step in run.result().steps] == [0, 2, 3]
    assert tuple(name.strip() for name in run.probe().labels) == names
    recorded = run.trace().quantity("alpha", 3)
    with open_task(made.model, made.tokenizer, task=task, output=output) as opened:
        passages = [
            passage
            for i, text in enumerate(texts)
            for passage in opened.passages(i, text, labels and labels[i], str(text).split())
        ]
        reading = read_attention(Subject(opened.network, opened.reader), passages)
    last = attention_maps(passages, reading.attention, reading.rollout)[layer_name(1)]
    assert len(recorded) == len(last)
    np.testing.assert_allclose(recorded.values, last.values, atol=1e-5)


DATA = {
    "classification": "premise,hypothesis,label\nthe film was good,it was bad,1\na bad plot,it was not good,0\n",
    "regression": "text\nthe film was good\na bad plot\n",
    "question-answering": "question,context,answer\nwas it good,the film was bad,bad\nwas it,a bad plot,plot\n",
    "fill-mask": "text,word\nthe [MASK] was good,film\na bad [MASK],plot\n",
    "text-generation": "prompt,completion\nthe film was, good\na bad, plot\n",
}


@pytest.mark.parametrize("task", DATA)
def test_checkpoints_for_each_task(task, tmp_path):
    """The task is that of the checkpoints' architecture."""
    places = [made_for(task, seed).save(tmp_path / f"checkpoint-{seed}") for seed in (0, 1)]
    (tmp_path / "texts.csv").write_text(DATA[task])
    result = api.follow(places, tmp_path / "texts.csv", out=tmp_path / "run", progress=False)
    assert [step.step for step in result.steps] == [0, 1]
    assert result.texts == 2
    assert FollowedDirectory(tmp_path / "run").probe().labels[-1].strip() in (TASKS[task][2][-1], "positive")
    assert (tmp_path / "run" / "report.html").exists()


def test_tagged_checkpoints_by_rows_in_memory(tmp_path):
    places = [made_for("token-classification", seed).save(tmp_path / f"checkpoint-{seed}") for seed in (0, 1)]
    rows = [{"tokens": text.split(), "tags": list(tags)} for text, tags in zip(TEXTS, TAGS, strict=True)]
    result = api.follow(places, rows, out=tmp_path / "run", progress=False)
    assert json.loads((tmp_path / "run" / "following.json").read_text())["labels"] == ["O", "THING"]
    assert result.texts >= 2  # a word with another label than O in each


def test_a_recording_that_fails_warns_once_and_the_training_goes_on(tmp_path, monkeypatch):
    made = made_for("classification")
    callback = TraceCallback(tmp_path / "run", PAIRS, made.tokenizer, labels=(1, 0), every=1)

    def fail(model, step, source=""):
        raise OSError(f"no space left at step {step}")

    monkeypatch.setattr(callback.recorder, "_record", fail)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        trained = train(tmp_path / "out", "classification", callback, made, steps=4)
    own = [str(warning.message) for warning in heard if "TraceCallback" in str(warning.message)]
    assert own == ["TraceCallback stopped recording at step 0; the training goes on: no space left at step 0"]
    assert trained.state.global_step == 4
