import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from heedful.config import StudyConfig, TrainConfig, study_preset
from heedful.errors import RunError
from heedful.metrics.statistics import Estimate
from heedful.papers.published import published_agreements, published_bleu, published_stars
from heedful.reports import study_page
from heedful.reports.pages import write_report
from heedful.reports.study_page import render_study
from heedful.reports.terminal import print_study
from heedful.studies.result import AlignmentResult, StudyResult
from heedful.studies.run_directory import RunDirectory
from tests.conftest import restamp
from tests.reports.elements import Elements, admits_one_style_and_one_script


def agreement_lines(run):
    lines = study_page.agreement_lines(StudyResult.load(run.result_path))
    return {(line["name"], line["whose"]): line for line in lines}


@pytest.fixture(scope="module")
def page(smoke_run):
    return render_study(RunDirectory(smoke_run))


@pytest.fixture
def own_run(smoke_run, tmp_path):
    return RunDirectory(shutil.copytree(smoke_run, tmp_path / "run"))


def test_everything_asked_for_is_on_the_page(page, smoke_run):
    result = StudyResult.load(smoke_run / "result.json")
    text = " ".join("".join(Elements(page).text).split())
    assert result.verdict.sentence in text
    for question in result.verdict.questions:
        assert question.question in text
    for row in result.agreements:
        assert f"{100 * row.estimate.value:.1f}\N{NO-BREAK SPACE}%" in page
    assert result.config_digest in text
    assert "tiny <i>corpus</i>" in text
    assert '<b>bad</b>, good "&"' in text


def test_text_of_the_data_is_never_markup(page):
    seen = Elements(page)
    assert "i" not in seen.tags
    assert "u" not in seen.tags
    assert seen.tags.count("script") == 3
    assert "alert(1)</script>" not in page
    assert "{{7*7}}" not in page or "49" not in "".join(seen.text)


def test_nothing_is_fetched(page):
    assert all(link.startswith("#") for link in Elements(page).links)
    assert not re.search(r"@import|url\(", page)


def test_the_policy_admits_this_style_and_this_script_alone(page):
    admits_one_style_and_one_script(page)


def test_the_same_run_gives_the_same_page(page, smoke_run):
    assert render_study(RunDirectory(smoke_run)) == page


def test_written_where_asked(smoke_run, tmp_path):
    assert write_report(smoke_run, out=tmp_path / "deep" / "a.html").read_text(encoding="utf-8").endswith("</html>\n")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.html"]


def test_written_into_the_run_by_default(own_run):
    assert write_report(own_run.root) == own_run.root / "report.html"


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(RunError, match="not a run of heedful"):
        write_report(tmp_path)


def test_a_study_that_is_not_finished(own_run):
    own_run.result_path.unlink()
    with pytest.raises(RunError, match="not finished"):
        write_report(own_run.root)


def test_a_result_that_no_manifest_vouches_for_is_not_shown(own_run):
    own_run.manifest_path.unlink()
    with pytest.raises(RunError, match=r"manifest\.json: damaged \(it is gone\); the command that made it"):
        render_study(own_run)


def test_half_a_surrogate_pair_in_a_label(own_run):
    result = json.loads(own_run.result_path.read_text(encoding="utf-8"))
    result["data"]["labels"] = ["\ud83d", "pos"]
    own_run.result_path.write_text(json.dumps(result), encoding="utf-8")
    write_report(restamp(own_run.root).root)


def test_estimates_of_nothing_leave_a_dash(own_run):
    result = StudyResult.load(own_run.result_path)
    nothing = replace(result.agreements[0].shuffle, value=float("nan"), low=float("nan"), high=float("nan"), n=0)
    rows = tuple(replace(row, shuffle=nothing, excess=nothing, evidence=None) for row in result.agreements)
    replace(result, agreements=rows).save(own_run.result_path)
    assert "nan" not in Elements(render_study(restamp(own_run.root))).text
    assert {line["shuffle"] for line in agreement_lines(own_run).values()} == {"–"}


def test_the_paper_stands_beside_its_corpus_alone(own_run):
    assert "Paper’s ξ" not in render_study(own_run)
    result = StudyResult.load(own_run.result_path)
    replace(result, data=result.data | {"name": "sst"}).save(own_run.result_path)
    page = render_study(restamp(own_run.root))
    assert "Paper’s ξ" in page
    assert "25.3\N{NO-BREAK SPACE}%" in page
    lines = agreement_lines(own_run)
    for row in (("A(β^uf, β^px)", "own"), ("A(β^px, β^uf)", "cross")):
        assert lines[row]["paper"] == "33.6\N{NO-BREAK SPACE}%"
    assert lines["A(β^px, β^uf)", "cross"]["paper_xi"] == "83.5\N{NO-BREAK SPACE}%*"
    assert lines["A(α, α^fr)", "own"]["paper"] == "14.0\N{NO-BREAK SPACE}%"


def test_published_values():
    assert published_agreements("20news-sport-quoted")["A(alpha,beta)"] == 63.07
    assert published_agreements("ag-news")["A(beta_uf,beta_log)"] == 58.0
    assert published_agreements("amazon")["A(alpha,alpha_fr)"] == 15.0
    assert published_agreements("imdb")["xi_final"] == 89.55
    assert published_agreements("rotten-tomatoes") == {}
    assert published_stars("amazon") == {"xi(beta_uf,beta_px)"}


def with_config(run, config, command=None):
    run.save_config(config)
    replace(run.manifest(), command=command).write(run.root)
    return study_page.rerun(run)


def test_the_command_as_it_was_given(own_run):
    command, _ = with_config(own_run, StudyConfig("sst"), "heedful study 'my file.csv'")
    assert command == "heedful study 'my file.csv'"


def test_a_command_for_what_python_asked(own_run):
    preset = study_preset("my file.csv")
    shorter = replace(preset, text="review", lower=False, seeds=(0, 1, 2), max_length=50)
    shorter = replace(shorter, train=preset.train.changed(steps=120))
    assert with_config(own_run, shorter)[0] == (
        "heedful study 'my file.csv' --budget quick --seeds 3 --steps 120 --max-length 50 --text review --no-lower"
    )


def test_no_command_where_none_can_say_it(own_run):
    unsayable = replace(study_preset("sst"), train=TrainConfig(steps=3, batch_size=7, evaluate_at=(0, 3)))
    command, sentence = with_config(own_run, unsayable)
    assert command is None
    assert "config.toml" in sentence
    command, sentence = with_config(own_run, StudyConfig("in memory"))
    assert command is None
    assert "from Python" in sentence


def test_a_report_needs_no_torch(smoke_run, tmp_path):
    code = (
        "import sys; from pathlib import Path; from heedful.reports.pages import write_report; "
        "write_report(Path(sys.argv[1]), out=Path(sys.argv[2])); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(smoke_run), str(tmp_path / "a.html")], check=True)


@pytest.fixture(scope="module")
def translation(smoke_translation_run):
    return render_study(RunDirectory(smoke_translation_run))


@pytest.fixture
def own_translation(smoke_translation_run, tmp_path):
    return RunDirectory(shutil.copytree(smoke_translation_run, tmp_path / "run"))


def test_a_translation_page_has_its_own_words(translation, smoke_translation_run):
    result = StudyResult.load(smoke_translation_run / "result.json")
    text = " ".join("".join(Elements(translation).text).split())
    for sentence in (
        result.verdict.sentence,
        *study_page.alignment_sentences(result),
        "Validation token accuracy",
        "BLEU",
    ):
        assert " ".join(sentence.split()) in text
    assert "d<b>e → e&n" in text
    assert "most frequent label" not in text.split("const page")[0]


def test_text_of_sentence_pairs_is_never_markup(translation):
    seen = Elements(translation)
    assert not {"i", "u", "img"} & set(seen.tags)
    assert seen.tags.count("script") == 3
    assert "alert(1)</script>" not in translation
    assert all(link.startswith("#") for link in seen.links)


def test_no_alignment_where_there_is_no_gold(own_translation):
    table = pq.read_table(own_translation.data_path("validation.parquet"))
    pq.write_table(table.drop_columns("alignment"), own_translation.data_path("validation.parquet"))
    replace(StudyResult.load(own_translation.result_path), alignment=None).save(own_translation.result_path)
    page = render_study(restamp(own_translation.root))
    assert 'id="alignment"' not in page
    assert "worst aligned" not in page
    assert 'id="examples"' in page


def test_multi30k_stands_beside_the_paper(own_translation):
    assert "Paper’s ξ" not in render_study(own_translation)
    result = StudyResult.load(own_translation.result_path)
    replace(result, data=result.data | {"name": "multi30k:de-en"}).save(own_translation.result_path)
    page = render_study(restamp(own_translation.root))
    assert "Paper’s ξ by BLEU" in page
    assert "trains De→En" in page
    lines = agreement_lines(own_translation)
    line = lines["A(α, β)", "cross"]
    assert (line["paper"], line["paper_xi"], line["paper_xi_bleu"]) == (
        "48.8\N{NO-BREAK SPACE}%",
        "48.6\N{NO-BREAK SPACE}%",
        "16.4",
    )
    assert lines["A(α, α^IBM)", "own"]["paper"] == lines["A(α, α^IBM)", "own"]["paper_xi_bleu"] == "–"


def test_published_values_of_multi30k():
    for name in ("multi30k", "multi30k:de-en", "multi30k:en-de"):
        assert published_agreements(name)["A(alpha,beta_uf)"] == 31.02
        assert published_agreements(name)["xi_final"] == 66.29
        assert published_bleu(name) == {
            "xi(alpha,beta_uf)": 11.43,
            "xi(beta_uf,beta_px)": 11.43,
            "xi(delta,beta_uf)": 11.43,
            "xi(alpha,beta)": 16.41,
            "xi_final": 37.89,
        }


@pytest.mark.parametrize(
    ("trained", "said"),
    [
        (0.1, "nearer to the gold alignment, though nobody showed it one. Its links are better than"),
        (
            0.3,
            "Its links are worse than those of IBM Model 1, which only counts words, and better than those of position",
        ),
        (0.5, "not shown to differ from those of position alone"),
        (0.9, "not shown that training has brought attention nearer"),
        (0.99, "led attention away"),
    ],
)
def test_what_alignment_errors_say(smoke_translation_run, trained, said):
    def near(value):
        return Estimate(value, value - 0.02, value + 0.02, 90)

    result = StudyResult.load(smoke_translation_run / "result.json")
    found = AlignmentResult(
        result.alignment.attention, near(0.9), near(trained), near(0.25), near(0.2), near(0.5), chance=0.91
    )
    assert said in " ".join(study_page.alignment_sentences(replace(result, alignment=found)))


def test_a_command_for_two_files(own_translation):
    preset = replace(study_preset("a.de", "smoke", "translation"), target="a.en")
    assert with_config(own_translation, preset)[0] == "heedful study a.de a.en --budget smoke --seeds 2"
    named = study_preset("multi30k:en-de", "quick", "translation")
    assert with_config(own_translation, named)[0] == "heedful study multi30k:en-de --budget quick --seeds 2"


def test_a_translation_report_needs_no_torch(smoke_translation_run, tmp_path):
    test_a_report_needs_no_torch(smoke_translation_run, tmp_path)


def test_the_terminal_says_bleu_and_alignment(smoke_translation_run, smoke_run, capsys):
    print_study(StudyResult.load(smoke_translation_run / "result.json"), smoke_translation_run / "report.html")
    said = " ".join(capsys.readouterr().out.split())
    assert "ξ BLEU" in said
    assert "BLEU at the end, by seed: standard model" in said
    assert "alignment error of attention:" in said
    print_study(StudyResult.load(smoke_run / "result.json"), smoke_run / "report.html")
    said = capsys.readouterr().out
    assert "BLEU" not in said
    assert "alignment" not in said
