"""Each task: what is explained is what the model itself predicts, and what a row becomes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from torch.testing import assert_close

from heedful.attribution.attention_maps import read_attention
from heedful.attribution.importance import d_y_x, gradients
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.task_passages import open_task, with_values
from heedful.attribution.tasks import refusal, task_of_model
from heedful.errors import ConfigError, DataError
from tests.audits import tiny

BERT, GPT2 = transformers.BertConfig, transformers.GPT2Config
TAGS = {"id2label": {0: "O", 1: "THING", 2: "QUALITY"}, "label2id": {"O": 0, "THING": 1, "QUALITY": 2}}


def outputs(made, *text):
    """What anybody would get who calls the model."""
    made.model.set_attn_implementation("eager")
    with torch.no_grad():
        return made.model(**made.tokenizer(*text, return_tensors="pt"), output_attentions=True)


def probabilities(subject, passages):
    return torch.from_numpy(read_attention(subject, passages).probabilities).float()


def test_a_pair_is_read_with_its_segments():
    made, pair = tiny.for_task(BERT, "classification"), ("the film was good", "it was not bad")
    plain = outputs(made, *pair)
    with open_task(made.model, made.tokenizer) as opened:
        (passage,) = opened.passages(0, pair)
        assert passage.words[5:8] == ("[SEP]", "it", "was")
        assert passage.segments == (0,) * 6 + (1,) * 5
        subject = Subject(opened.network, opened.reader)
        assert_close(probabilities(subject, [passage]), plain.logits.softmax(-1))
        rows = read_attention(subject, [passage]).attention[0]
        assert_close(torch.from_numpy(rows[1]).float(), plain.attentions[1][0, :, 0])
        keep = np.ones(11, dtype=bool)
        keep[[1, 8]] = False
        shorter = ("film was good", "it was bad")
        expected = outputs(made, *shorter).logits.softmax(-1)[0, 1].item()
        predicted = subject.predict([replace(passage, target=1)], [keep])[0]
        assert predicted == pytest.approx(expected, abs=1e-6)
        unsegmented = replace(passage, segments=())
        assert not torch.allclose(probabilities(subject, [passage]), probabilities(subject, [unsegmented]))


def test_one_label_of_several_that_do_not_exclude_each_other():
    made = tiny.for_task(BERT, "multi-label", problem_type="multi_label_classification")
    with pytest.raises(ConfigError, match="2 outputs; choose one with --output: negative, positive"):
        open_task(made.model, made.tokenizer).__enter__()
    with pytest.raises(ConfigError, match="--output rude: the model's outputs are negative, positive"):
        open_task(made.model, made.tokenizer, output="rude").__enter__()
    expected = outputs(made, tiny.TEXTS[0]).logits.sigmoid()[0, 1]
    with open_task(made.model, made.tokenizer, output="positive") as opened:
        assert opened.reader.labels == ("not positive", "positive")
        passages = [
            opened.passages(0, tiny.TEXTS[0], label)[0] for label in (("positive",), ("0",), ("negative",), None)
        ]
        assert [p.label for p in passages] == ["positive", "not positive", "not positive", None]
        assert_close(probabilities(Subject(opened.network), passages)[0, 1], expected)


def test_a_value_is_explained_by_its_rank():
    made = tiny.for_task(BERT, "regression", id2label={0: "score"}, label2id={"score": 0}, problem_type="regression")
    values = [outputs(made, text).logits.item() for text in tiny.TEXTS]
    with open_task(made.model, made.tokenizer) as opened:
        read = [passage for i, text in enumerate(tiny.TEXTS) for passage in opened.passages(i, text)]
        network, passages = with_values(opened.network, read)
        found = probabilities(Subject(network), passages)[:, 1]
        normal = torch.distributions.Normal(float(np.mean(values)), float(np.std(values)))
        assert_close(found, normal.cdf(torch.tensor(values)), atol=1e-5, rtol=0)
        assert [p.output for p in passages] == [f"{value:.4g}" for value in values]
        subject = Subject(network, opened.reader)
        deleted = d_y_x(subject, passages[:1])[0]
        raw = [values[0] - outputs(made, text).logits.item() for text in ("film was good", "the was good")]
        assert (deleted[1] > deleted[2]) == (raw[0] > raw[1])


def test_the_label_of_a_word():
    made = tiny.for_task(BERT, "token-classification", seed=2, **TAGS)
    text, tags = "the film was unwatchable", ("O", "THING", "O", "QUALITY")
    plain = outputs(made, text)
    with open_task(made.model, made.tokenizer) as opened:
        subject = Subject(opened.network, opened.reader)
        passages = opened.passages(0, text, tags, text.split())
        by_word = {passage.at[0]: passage for passage in passages}
        assert by_word[2].label == "THING"
        assert by_word[4].label == "QUALITY"  # the first of its pieces decides
        assert by_word[2].words[2] == "film"
        assert by_word[2].special == (True, False, True, False, False, True)
        found = probabilities(subject, passages)
        for row, passage in zip(found, passages, strict=True):
            assert_close(row, plain.logits.softmax(-1)[0, passage.at[0]])
        rows = read_attention(subject, [by_word[4]]).attention[0][1]
        assert_close(rows, by_word[4].words_of(plain.attentions[1][0, :, 4].double().numpy()), atol=1e-6, rtol=0)
        one = d_y_x(subject, [replace(by_word[2], target=1)])[0]
        without = outputs(made, "film was unwatchable").logits.softmax(-1)[0, 1, 1].item()
        assert one[1] == pytest.approx(plain.logits.softmax(-1)[0, 2, 1].item() - without, abs=1e-6)
        with pytest.raises(DataError, match="4 words, but 1 labels"):
            opened.passages(0, text, ("O",), text.split())


def test_an_answer():
    made = tiny.for_task(BERT, "question-answering", seed=1)
    pair = ("was it good", "the film was not bad")
    plain = outputs(made, *pair)
    start, end = plain.start_logits.softmax(-1)[0], plain.end_logits.softmax(-1)[0]
    with open_task(made.model, made.tokenizer) as opened:
        (own,), (given,) = opened.passages(0, pair), opened.passages(0, pair, "not bad")
        inside = [(i, j) for i in range(5, 10) for j in range(i, 10)]
        assert own.at == max(inside, key=lambda span: float(start[span[0]] * end[span[1]]))
        assert (given.at, given.output) == ((8, 9), "not bad")
        assert not given.explained()[8:].any()
        found = probabilities(Subject(opened.network), [given, own])
        assert_close(found[0, 1], start[8] * end[9])
        for answer, said in (("good", "is not in its context"), ("", "")):
            if said:
                with pytest.raises(DataError, match=said):
                    opened.passages(0, pair, answer)
        with pytest.raises(DataError, match="a question and a context"):
            opened.passages(0, "the film was not bad")


def test_a_mask():
    made = tiny.for_task(BERT, "fill-mask")
    text = "the film [MASK] good"
    plain = outputs(made, text).logits.softmax(-1)[0, 3]
    with open_task(made.model, made.tokenizer) as opened:
        (own,), (given,) = opened.passages(0, text), opened.passages(0, text, "was")
        assert (own.at, own.target) == ((3,), int(plain.argmax()))
        assert (given.output, made.tokenizer.convert_ids_to_tokens(given.target)) == ("was", "was")
        assert_close(probabilities(Subject(opened.network), [given])[0], plain)
        with pytest.raises(DataError, match=r"text 0 has no \[MASK\]; this model fills masks"):
            opened.passages(0, "the film was good")
        with pytest.raises(DataError, match="'unwatchable' is not one piece"):
            opened.passages(0, text, "unwatchable")


def test_a_continuation_word_by_word():
    made = tiny.for_task(GPT2, "text-generation", tiny.byte_pieces(template=False))
    with open_task(made.model, made.tokenizer, max_new_tokens=3) as opened:
        passages = opened.passages(0, "the film was", "not good")
        assert [p.output for p in passages] == ["not", "good"]
        assert passages[1].words == ("the", "film", "was", "not")
        assert passages[1].special == (False, False, False, True)
        plain = outputs(made, "the film was not")
        subject = Subject(opened.network, opened.reader)
        assert_close(probabilities(subject, passages[1:])[0], plain.logits[0, -1].softmax(-1))
        own = opened.passages(0, "the film was")
        best = outputs(made, "the film was").logits[0, -1].argmax()
        assert own[0].target == int(best)
        assert len(own[-1].pieces) < 3 + 3
        (full,) = opened.passages(0, ("the film was " * 40).strip(), "not good")
        assert (len(full.pieces), full.words[-1]) == (tiny.POSITIONS, "was")  # a prompt is cut at its beginning
        assert full.cut == 120 - tiny.POSITIONS


@pytest.mark.parametrize("task", ["token-classification", "fill-mask", "question-answering"])
def test_a_batch_is_as_one_by_one(task):
    made = tiny.for_task(BERT, task, **(TAGS if task == "token-classification" else {}))
    made.model.double()
    texts = {
        "token-classification": ["the film was good", "bad", "a very bad plot and a film"],
        "fill-mask": ["the [MASK] was good", "[MASK] bad", "a very bad [MASK] and a film"],
        "question-answering": [("was it", "the film was good"), ("it", "not bad"), ("was it good", "a very bad plot")],
    }[task]
    with open_task(made.model, made.tokenizer) as opened:
        whole = Subject(opened.network, opened.reader)
        passages = whole.with_targets([p for i, text in enumerate(texts) for p in opened.passages(i, text)])
        many = read_attention(whole, passages), gradients(whole, passages).g_y_x
        one = [(read_attention(whole, [p]), gradients(whole, [p]).g_y_x) for p in passages]
        for i, (reading, gradient) in enumerate(one):
            np.testing.assert_allclose(many[0].attention[i], reading.attention[0], atol=1e-12)
            np.testing.assert_allclose(many[0].probabilities[i], reading.probabilities[0], atol=1e-12)
            np.testing.assert_allclose(many[1][i], gradient[0], atol=1e-12)


def copying(words: tuple[str, ...], secrets: tuple[str, ...]) -> tiny.Tiny:
    """A language model of one layer and one head, made by hand, that says the one secret word of its prompt.

    The embedding of a word is a unit vector, and of a secret word one more, which every position looks for.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = ("[UNK]", *words, *secrets)
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")
    V, D = len(vocabulary), len(vocabulary) + 2
    config = GPT2(
        vocab_size=V,
        n_embd=D,
        n_layer=1,
        n_head=1,
        n_positions=32,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        parameter.data.zero_()
    eye, one, flag = torch.eye(D), D - 2, D - 1
    table = model.transformer.wte.weight.data
    table += eye[:V]
    table[:, one] = 1.0
    table[-len(secrets) :, flag] = 3.0
    block = model.transformer.h[0]
    for norm in (block.ln_1, block.ln_2, model.transformer.ln_f):
        norm.weight.data.fill_(1.0)
    projection = block.attn.c_attn.weight.data  # (D, 3D): queries, keys, values
    block.attn.c_attn.bias.data[0] = 1.0  # every query is the same
    projection[flag, D] = 10.0  # a key is the flag
    projection[:V, 2 * D : 2 * D + V] = eye[:V, :V]  # a value is the word
    block.attn.c_proj.weight.data[:] = 20 * eye
    model.lm_head.weight.data[:, :V] = 5 * eye[:V, :V]
    return tiny.Tiny(model, tokenizer)


def test_the_explanation_of_a_copied_word_is_that_word():
    made = copying(("the", "code", "is", "so", "we", "say"), ("red", "green", "blue"))
    prompts = ("the code is red so we say", "so we say the blue code is", "green is the code we say")
    with open_task(made.model, made.tokenizer, max_new_tokens=1) as opened:
        subject = Subject(opened.network, opened.reader)
        for i, (prompt, secret) in enumerate(zip(prompts, ("red", "blue", "green"), strict=True)):
            (passage,) = opened.passages(i, prompt)
            assert passage.output == secret
            at = passage.words.index(secret)
            attention = read_attention(subject, [passage]).attention[0][0, 0]
            deleted, gradient = d_y_x(subject, [passage])[0], gradients(subject, [passage]).g_y_x[0]
            assert attention.argmax() == deleted.argmax() == gradient.argmax() == at
            assert attention[at] > 0.9
            assert deleted[at] > 0.5
            assert np.delete(np.abs(deleted), at).max() < 0.1


def test_the_task_is_that_of_the_architecture(tmp_path):
    made = tiny.for_task(BERT, "fill-mask")
    assert task_of_model(made.model) == "fill-mask"
    assert task_of_model(made.save(tmp_path)) == "fill-mask"
    assert task_of_model(tmp_path / "nowhere") == "classification"
    with pytest.raises(DataError, match="this is a BertForMaskedLM, for the task fill-mask; its classification head"):
        open_task(tmp_path, task="classification").__enter__()
    with pytest.raises(DataError, match="'bert' has no decoder, and sentence pairs need one"):
        open_task(tmp_path, task="translation").__enter__()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (transformers.ViTConfig(architectures=["ViTForImageClassification"]), "this is a vision model"),
        (transformers.Wav2Vec2Config(architectures=["Wav2Vec2ForCTC"]), "this is a speech model"),
        (BERT(architectures=["BertModel"]), "a bare BertModel without a head; classification needs a trained"),
        (BERT(architectures=["BertForMultipleChoice"]), "predicts one of several texts, which is not audited"),
    ],
)
def test_a_refusal_names_the_true_reason(config, said, tmp_path):
    made = tiny.bert()
    made.save(tmp_path)
    config.save_pretrained(tmp_path)
    with pytest.raises(DataError, match=said):
        open_task(tmp_path).__enter__()


def test_nothing_is_known_against_a_model_without_a_name():
    assert refusal("mine", (), "classification") is None
    with pytest.raises(DataError, match="must be pieces of special words"):
        Passage(0, ("a",), (False,), (1,), (0,), at=(0,))
