"""Each task from the command line: a saved model and a file; and what is wrong with either, in one sentence."""

import json
import re

import pytest
import transformers

from tests.audits import tiny
from tests.command import heedful

BERT, GPT2 = transformers.BertConfig, transformers.GPT2Config
TAGS = {"id2label": {0: "O", 1: "THING"}, "label2id": {"O": 0, "THING": 1}}
MANY = {"problem_type": "multi_label_classification"}
SCORE = {"problem_type": "regression", "id2label": {0: "score"}, "label2id": {"score": 0}}
QUICK = ("--only", "tau", "--integrated-steps", "0", "--json")
PAIRS = "premise,hypothesis,gold\nthe film was good,it was bad,0\na bad plot,it was not good,1\n"
TEXTS = "text,label\nthe film was good,positive\na bad plot,negative\n"

FIXED = {  # words between those that are explained
    "classification": "good [SEP] it",
    "question-answering": "good [SEP] the",
    "fill-mask": "the [MASK] was",
}


def saved(folder, config, task, **settings):
    pieces = tiny.byte_pieces(template=False) if config is GPT2 else None
    return str(tiny.for_task(config, task, pieces, num_hidden_layers=1, **settings).save(folder))


@pytest.mark.parametrize(
    ("task", "settings", "file", "content", "options", "outputs"),
    [
        ("classification", {}, "a.csv", PAIRS, ("--text", "premise,hypothesis", "--label", "gold"), 2),
        ("multi-label", MANY, "a.csv", TEXTS, ("--output", "positive"), 2),
        ("regression", SCORE, "a.txt", "the film was good\na bad plot\n", (), 2),
        ("token-classification", TAGS, "a.jsonl", '{"tokens": ["a", "plot"], "tags": ["THING", "THING"]}\n', (), 2),
        ("question-answering", {}, "a.tsv", "question\tcontext\tanswer\nwas it good\tthe film was bad\tbad\n", (), 1),
        ("fill-mask", {}, "a.txt", "the [MASK] was good\n", (), 1),
        ("text-generation", {}, "a.csv", "prompt,completion\nthe film was,not good\n", ("--max-new-tokens", "2"), 2),
    ],
)
def test_a_file_and_a_folder(task, settings, file, content, options, outputs, tmp_path, monkeypatch, capsys):
    model = saved(tmp_path / "model", GPT2 if task == "text-generation" else BERT, task, **settings)
    capsys.readouterr()
    (tmp_path / file).write_text(content)
    arguments = ("audit", model, str(tmp_path / file), "--out", str(tmp_path / "out"), *options, *QUICK)
    code, out, err = heedful(monkeypatch, capsys, *arguments)
    assert code == 0, err
    assert json.loads(out)["passages"] == outputs
    page = (tmp_path / "out" / "report.html").read_text()
    shown = re.sub("<[^>]+>", "", " ".join(re.findall('<p class="words".*?</p>', page)))
    assert FIXED.get(task, "") in shown


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (PAIRS, ("--text", "premise,hypotheses"), "there is no column 'hypotheses'"),
        (PAIRS, ("--text", "premise,hypothesis", "--label", "hypothesis"), "cannot be both the text and the label"),
        (TEXTS, ("--task", "fill-mask"), "this is a BertForSequenceClassification, for the task classification"),
        (PAIRS, ("--task", "naming"), "naming"),
        (TEXTS, ("--output", "positive"), "the labels exclude each other"),
        ("text,label\nso good,3\nso dull,7\n", (), "the model's labels are negative, positive, the data's 3, 7"),
        ("a,b,c\n1,2,3\n", (), "say which holds the text with --text"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(content, options, said, tmp_path, monkeypatch, capsys):
    model = saved(tmp_path / "model", BERT, "classification")
    (tmp_path / "a.csv").write_text(content)
    code, _, err = heedful(monkeypatch, capsys, "audit", model, str(tmp_path / "a.csv"), *options, *QUICK)
    assert code != 0
    assert said in " ".join(err.split())
    assert "Traceback" not in err
