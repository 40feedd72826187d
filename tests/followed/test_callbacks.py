"""A Trainer's training, followed: the same weights as without, and what was recorded."""

import subprocess
import sys
from copy import deepcopy

import numpy as np
import pytest
import torch
import transformers

from heedful.errors import ConfigError
from heedful.followed.result import FollowedDirectory
from heedful.followed.training import Recorder, TraceCallback
from tests.audits import tiny

LABELS = (1, 0, 0, 1, 0, 1)
DROPOUT = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.3}


def callback(folder, tokenizer, **settings):
    chosen = {"labels": LABELS, "every": 2, "name": "tiny"} | settings
    return TraceCallback(folder, tiny.TEXTS, tokenizer, **chosen)


def trained(tmp_path, *callbacks, made=None, steps=5, resume=None, save=False, **settings):
    """The Trainer after a short training with dropout; the same every time but for the callbacks."""
    made = made or tiny.bert(**DROPOUT)
    rows = [{**made.tokenizer(text), "labels": y} for text, y in zip(tiny.TEXTS, LABELS, strict=True)]
    kept = {"save_strategy": "steps", "save_steps": 2} if save else {"save_strategy": "no"}
    args = transformers.TrainingArguments(
        str(tmp_path / "out"),
        **{"max_steps": steps, "per_device_train_batch_size": 2, "learning_rate": 0.05, "seed": 3, "use_cpu": True}
        | {"report_to": [], "disable_tqdm": True, "logging_strategy": "no"}
        | kept
        | settings,
    )
    trainer = transformers.Trainer(
        made.model,
        args,
        train_dataset=rows,
        eval_dataset=rows,
        data_collator=transformers.DataCollatorWithPadding(made.tokenizer),
        callbacks=list(callbacks),
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def tensors(trainer):
    """Weights, and what the optimiser remembers."""
    state = trainer.optimizer.state_dict()["state"]
    return [*trainer.model.state_dict().values(), *(value for each in state.values() for value in each.values())]


def test_the_same_weights_with_and_without(tmp_path):
    ends = []
    for followed in (False, True):
        made = tiny.bert(**DROPOUT)
        callbacks = [callback(tmp_path / "run", made.tokenizer, every=1)] if followed else []
        trainer = trained(tmp_path, *callbacks, made=made)
        ends.append((tensors(trainer), [torch.rand(3), torch.from_numpy(np.random.rand(3))]))
    (before, drawn), (after, drawn_after) = ends
    assert len(before) == len(after) > 20
    assert all(map(torch.equal, before, after))
    assert all(map(torch.equal, drawn, drawn_after))
    assert FollowedDirectory(tmp_path / "run").trace().steps == (0, 1, 2, 3, 4, 5)


def test_first_chosen_and_last_steps(tmp_path):
    made = tiny.bert()
    trained(tmp_path, callback(tmp_path / "run", made.tokenizer, every=None, steps=(1, 4)), made=made)
    run = FollowedDirectory(tmp_path / "run")
    assert run.trace().steps == (0, 1, 4, 5)
    result = run.result()
    assert (result.name, result.model, result.texts) == ("tiny", "BertForSequenceClassification", len(tiny.TEXTS))
    assert run.probe().labels == tiny.LABELS
    assert run.probe().words[0] == ("the", "film", "was", "good")
    assert run.probe().words[4] == ("it", "was", "unsingable")
    assert 0 < result.steps[0].special < 1
    assert result.steps[-1].loss < result.steps[0].loss


def test_what_is_recorded_is_what_the_model_says(tmp_path):
    made = tiny.bert()
    trained(tmp_path, callback(tmp_path / "run", made.tokenizer), made=made)
    trace = FollowedDirectory(tmp_path / "run").trace()
    made.model.eval()
    for row, (text, label) in enumerate(zip(tiny.TEXTS, LABELS, strict=True)):
        with torch.no_grad():
            given = made.model(**made.tokenizer(text, return_tensors="pt")).logits[0].softmax(-1)
        assert trace.prediction(5)[row] == given.argmax()
        assert trace.log_odds(5)[row] == pytest.approx(given[label].logit().item(), rel=1e-3, abs=1e-4)
    with torch.no_grad():
        alone = made.model(**made.tokenizer("good", return_tensors="pt")).logits[0].softmax(-1)[1]
    assert trace.quantity("beta", 5)[0][3] == pytest.approx(alone.item(), rel=1e-4)


def test_attention_is_as_it_was_between_recordings(tmp_path):
    """And gradients that have gathered are left alone."""
    made = tiny.bert(attn_implementation="sdpa", **DROPOUT)
    made.model.train()
    batch = made.tokenizer(list(tiny.TEXTS), return_tensors="pt", padding=True)
    made.model(**batch, labels=torch.tensor(LABELS)).loss.backward()
    gradients = deepcopy([p.grad for p in made.model.parameters()])
    Recorder(tmp_path / "run", tiny.TEXTS, made.tokenizer, labels=LABELS).record(made.model, 0)
    assert made.model.config._attn_implementation == "sdpa"
    assert made.model.training
    assert all(module.training for module in made.model.modules())
    assert all(p.requires_grad for p in made.model.parameters())
    assert all(map(torch.equal, gradients, (p.grad for p in made.model.parameters())))


@pytest.mark.parametrize("kind", ["distilbert", "roberta", "gpt2"])
def test_other_architectures(tmp_path, kind):
    made = tiny.CLASSIFIERS[kind]()
    trained(tmp_path, callback(tmp_path / "run", made.tokenizer, labels=None, every=5), made=made)
    run = FollowedDirectory(tmp_path / "run")
    assert run.trace().steps == (0, 5)
    assert [text[-1] for text in run.probe().words][2:3] == ["bad"]
    assert (run.result().steps[0].special == pytest.approx(0)) == (kind == "gpt2")


def test_a_plain_loop_learns_the_same(tmp_path):
    ends = []
    for followed in (False, True):
        made = tiny.bert(attn_implementation="sdpa", **DROPOUT)
        torch.manual_seed(0)
        batch = made.tokenizer(list(tiny.TEXTS), return_tensors="pt", padding=True)
        optimiser = torch.optim.AdamW(made.model.train().parameters(), lr=0.05)
        recorder = Recorder(tmp_path / "run", tiny.TEXTS, made.tokenizer, labels=LABELS, every=2) if followed else None
        for step in range(4):
            if recorder is not None:
                recorder.record(made.model, step)
            made.model(**batch, labels=torch.tensor(LABELS)).loss.backward()
            optimiser.step()
            optimiser.zero_grad()
        if recorder is not None:
            recorder.close(made.model, 4)
        ends.append([*made.model.state_dict().values(), torch.rand(3)])
    assert all(map(torch.equal, *ends))
    assert FollowedDirectory(tmp_path / "run").trace().steps == (0, 2, 4)


def test_taken_up_from_a_checkpoint(tmp_path):
    whole, broken = tiny.bert(**DROPOUT), tiny.bert(**DROPOUT)
    trained(tmp_path / "whole", callback(tmp_path / "a", whole.tokenizer), made=whole, steps=6)
    trained(tmp_path / "broken", callback(tmp_path / "b", broken.tokenizer), made=broken, steps=6, save=True)
    again = tiny.bert(seed=1, **DROPOUT)
    checkpoint = str(tmp_path / "broken" / "out" / "checkpoint-2")
    trained(tmp_path / "broken", callback(tmp_path / "b", again.tokenizer), made=again, steps=6, resume=checkpoint)
    assert FollowedDirectory(tmp_path / "b").trace().steps == (0, 2, 4, 6)
    assert FollowedDirectory(tmp_path / "a").result() == FollowedDirectory(tmp_path / "b").result()


class Stop(transformers.TrainerCallback):
    """Ends the training after three steps."""

    def on_step_end(self, args, state, control, **rest):
        control.should_training_stop = state.global_step == 3


def test_stopped_early(tmp_path):
    made = tiny.bert()
    trained(tmp_path, callback(tmp_path / "run", made.tokenizer), Stop(), made=made)
    assert FollowedDirectory(tmp_path / "run").trace().steps == (0, 2, 3)


def test_the_best_model_is_not_taken_for_the_last(tmp_path):
    """The Trainer puts the best checkpoint's weights in place before it says that training has ended."""
    best = {"load_best_model_at_end": True, "metric_for_best_model": "loss", "eval_strategy": "steps", "eval_steps": 1}
    kept = {"save_strategy": "steps", "save_steps": 1, "learning_rate": 5.0}
    runs = {}
    for name, settings in (("plain", {"learning_rate": 5.0}), ("best", {**best, **kept})):
        made = tiny.bert()
        trainer = trained(tmp_path, callback(tmp_path / name, made.tokenizer), made=made, steps=3, **settings)
        runs[name] = FollowedDirectory(tmp_path / name).trace()
    assert trainer.state.best_model_checkpoint.endswith("checkpoint-1")
    assert runs["best"].steps == (0, 2, 3)
    np.testing.assert_array_equal(runs["best"].log_odds(3), runs["plain"].log_odds(3))


def test_only_one_of_several_processes_records(tmp_path):
    made = tiny.bert()
    seen = callback(tmp_path / "run", made.tokenizer)
    state, args = transformers.TrainerState(is_world_process_zero=False), transformers.TrainingArguments(use_cpu=True)
    seen.on_train_begin(args, state, None, model=made.model)
    seen.on_step_end(args, state, None, model=made.model)
    seen.on_train_end(args, state, None, model=made.model)
    assert not (tmp_path / "run").exists()


def test_without_transformers():
    code = "import sys; sys.modules['transformers'] = None; import heedful.followed.training"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "TraceCallback needs the package transformers" in ended.stderr


def test_steps_have_to_be_chosen(tmp_path):
    with pytest.raises(ConfigError, match="no steps to record"):
        callback(tmp_path / "run", None, every=None)
