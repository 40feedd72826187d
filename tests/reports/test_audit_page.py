import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attribution.attention_maps import DELETION, HIDDEN, RANDOM
from heedful.audits.result import OWN_TEXTS, AuditResult, LabelCount
from heedful.metrics.rank import kendall_tau_b
from heedful.metrics.statistics import Estimate
from heedful.reports.audit_page import (
    Scores,
    another_section,
    argument,
    head_grids,
    kicker,
    largest_tau,
    movement_section,
    order_section,
    render_audit,
    tau_section,
    write_audit_page,
)
from heedful.reports.charts import STEPS, ChartLine, ChartMark, ChartScale, contrast, dots_svg, shade_css, share_shade
from heedful.reports.html import assets, percent
from heedful.reports.terminal import print_audit
from tests.reports.audit_example import (
    EXAMPLES,
    HEAD_MAPS,
    HEADLINE,
    HEADS,
    HOSTILE_WORDS,
    INPUTS,
    LAYER_MAPS,
    LAYERS,
    around,
    audit_example,
)
from tests.reports.elements import Elements, admits_one_style_and_one_script

COMMAND = "heedful audit models/reviews 'a <file>.csv' --sample 40"


@pytest.fixture(scope="module")
def result():
    return audit_example()


@pytest.fixture(scope="module")
def page(result):
    return render_audit(result, COMMAND)


def payload(page):
    return json.loads(re.search(r'<script type="application/json" id="payload">(.*?)</script>', page, re.DOTALL)[1])


def without(result, *quantities):
    return replace(result, scores=tuple(score for score in result.scores if score.quantity not in quantities))


def test_everything_asked_for_is_on_the_page(page, result):
    text = " ".join("".join(Elements(page).text).split())
    for question in result.verdict.questions:
        assert question.question in text
    for words in (
        "Show with a caveat Quite different weights give the same prediction.",
        "divergence 0.512 (0.472–0.552), threshold 0.347",
        "40 texts of rotten-tomatoes <test> · 3 layers × 4 heads · accuracy 85.0 % (72–95)",
        COMMAND,
        result.fingerprint,
        result.data,
        "<b>negative</b>",
        "2 of 40 passages lost 31 pieces",
        "85.0 % (72–95)",
    ):
        assert words in text, words
    for name in (*LAYER_MAPS, *HEAD_MAPS, *INPUTS, HIDDEN, "mean", "rollout", RANDOM):
        assert name in text, name
    assert "−0.142 (−0.172 to −0.112)" in text
    assert "40 texts, 1.25 standard deviations from the threshold" in text
    badges = ("yes reassuring", "yes worrying", "no worrying", "unclear open")
    assert [page.count(f'class="badge {badge}"') for badge in badges] == [3, 1, 1, 1]
    assert page.index('class="grade show-with-a-caveat"') < page.index('id="argument"') < page.index('class="badge')
    assert page.count('<article class="example" id="example=') == EXAMPLES
    assert page.count('class="gauge"') == sum(question.estimate is not None for question in result.verdict.questions)


def test_words_stand_in_the_page_as_they_are(page, result):
    seen = Elements(page)
    first = argument(result, 0.3466)
    twice = 2 * [word.word for word in first.words]
    assert seen.words == twice + [word for example in result.examples for word in example.words]
    assert set(HOSTILE_WORDS) <= set(seen.words)
    assert seen.tags.count("script") == 2
    assert not {"img", "iframe"} & set(seen.tags)
    assert "alert(1)</script>" not in page
    assert seen.marked[len(twice) :] == [m for e in result.examples for m in (e.rationale or (False,) * len(e.words))]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1), min_size=1, max_size=6
    )
)
def test_any_word_is_shown_and_never_run(words):
    made, n = audit_example(scores=(), contrasts=()), len(words)
    example = replace(
        made.examples[0], words=tuple(words), map=(1 / n,) * n, importances=(), rationale=(), output=words[0], other=()
    )
    seen = Elements(
        render_audit(replace(made, examples=(example,), model=words[0], labels=(LabelCount(words[-1], 1, 1),)))
    )
    assert seen.words == words
    assert seen.tags.count("script") == 2


def test_the_page_opens_with_two_maps_of_one_prediction(page, result):
    """A typical example of those that are short, both maps on one scale; texts count from 1, as on a study's page."""
    first, typical = argument(result, 0.3466), result.examples[6]
    assert (first.text, first.found, first.far, first.examples) == (typical.text + 1, False, 5, EXAMPLES)
    assert [word.word for word in first.words] == list(typical.words)
    assert [word.own for word in first.words] == [share_shade(w) for w in typical.map]
    assert [word.other_share for word in first.words] == [percent(w) for w in typical.other]
    assert first.furthest == result.examples[11].text + 1
    assert "5 of 12 examples have such a map" in page
    assert "its two maps differ by 0.300 nats" in page
    far = replace(result, examples=tuple(replace(e, divergence=0.5) for e in result.examples))
    assert "One text, two maps, the same prediction" in render_audit(far)
    assert "All 12 examples have such a map" in render_audit(far)


def test_where_none_was_found_the_furthest_is_shown(result):
    near = replace(result, examples=tuple(replace(e, divergence=0.02) for e in result.examples))
    assert "Here even the furthest one we found is close" in render_audit(near)
    assert "0 of 12 examples have such a map" in render_audit(near)
    none = replace(result, examples=tuple(replace(e, other=(), divergence=None) for e in result.examples))
    assert argument(none, 0.3466) is None
    assert 'id="argument"' not in render_audit(none)


def test_half_a_surrogate_pair_is_written(result, tmp_path):
    out = write_audit_page(replace(result, model="\ud83d"), tmp_path / "new" / "page.html")
    assert 'audit of <span dir="auto">?</span>' in out.read_text(encoding="utf-8")


def test_nothing_is_fetched(page):
    links = Elements(page).links
    assert links
    assert all(link.startswith("#") and f'id="{link[1:]}"' in page for link in links)
    assert not re.search(r"@import|url\(", page)
    assert "style=" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)  # the policy would refuse it


def test_the_policy_admits_this_style_and_this_script_alone(page):
    admits_one_style_and_one_script(page)


def test_a_stored_result_gives_the_same_page(page, result, tmp_path):
    result.save(tmp_path / "result.json")
    assert render_audit(AuditResult.load(tmp_path / "result.json"), COMMAND) == page


def test_the_script_gets_every_number(page, result):
    found = payload(page)
    assert len(found["scores"]) == len(result.scores)
    assert found["scores"][0] == {
        "quantity": "tau",
        "of": HEAD_MAPS[0],
        "against": INPUTS[0],
        "value": result.scores[0].estimate.value,
        "low": result.scores[0].estimate.low,
        "high": result.scores[0].estimate.high,
        "n": 40,
        "undefined": 0,
    }
    assert found["scores"][-1]["value"] is None
    assert found["contrasts"][0]["difference"] == 0.081
    assert found["contrasts"][0]["low"] == pytest.approx(0.061)
    shown, example = found["examples"][3], result.examples[3]
    assert shown["map"] == pytest.approx(example.map, abs=1e-5)
    tau = kendall_tau_b([list(example.map)], [list(example.importances[-1].values)])[0]
    assert shown["tau"][DELETION] == pytest.approx(tau)
    assert shown["text"] == example.text + 1
    assert shown["other"] == pytest.approx(example.other, abs=1e-5)
    assert found["examples"][0]["maps"][HEAD_MAPS[4]] == list(result.examples[0].maps[4].values)
    assert found["examples"][7]["tau"][DELETION] is None  # its map is flat
    assert [found["examples"][i]["right"] for i in (0, 1, 11)] == [False, True, None]


def test_only_what_was_measured_is_shown(result):
    poor = without(
        result, "tvd", "flip", "adversary", "token f1", "auprc", "aer", "random tau", "comprehensiveness", "sufficiency"
    )
    page = render_audit(
        replace(poor, contrasts=(), examples=(), labels=(), accuracy=None, rationale_percent=None, cut=0, wordless=0)
    )
    for section in ("people", "alignment", "contrasts", "examples"):
        assert f'id="{section}"' not in page
        assert f'href="#{section}"' not in page
    assert page.count("Not measured: ") == 3
    assert "nothing was cut" in page
    assert "Run it again" not in page
    assert "accuracy" not in "".join(Elements(page[: page.index('id="importance"')]).text).split()


def test_nothing_measured_at_all(result, capsys, tmp_path):
    page = render_audit(replace(result, scores=(), contrasts=(), examples=()))
    assert "<h1" in page
    print_audit(replace(result, scores=(), contrasts=()), tmp_path / "page.html")
    assert result.verdict.questions[0].question in capsys.readouterr().out


def test_one_head_in_one_layer_needs_no_grid(result):
    single = replace(
        result, layers=1, heads=1, headline="layer 1", scores=tuple(s for s in result.scores if s.of == "layer 1")
    )
    assert 'id="heads"' not in render_audit(single)


def test_the_grid_has_every_head_and_each_layers_mean(result):
    scores = Scores(result)
    grids = head_grids(scores, LAYERS, HEADS)
    assert [grid.against for grid in grids] == [DELETION, *INPUTS[:3], HIDDEN]
    for grid in grids:
        assert [layer for layer, _ in grid.rows] == list(LAYER_MAPS)
        assert [cell.map for _, cells in grid.rows for cell in cells if cell.map in HEAD_MAPS] == list(HEAD_MAPS)
        assert [cells[-1].map for _, cells in grid.rows] == list(LAYER_MAPS)
    taus = [
        s.estimate.value for s in result.scores if s.quantity == "tau" and s.of.startswith("layer") and s.estimate.n
    ]
    assert max(map(abs, taus)) <= largest_tau(scores) < max(map(abs, taus)) + 0.1
    cell = grids[0].rows[1][1][2]
    tau = result.score("tau", "layer 2 head 3", DELETION).value
    assert cell.text.replace("−", "-") == f"{tau:.2f}"
    assert cell.shade[0] == ("n" if tau < 0 else "p")


def test_layers_with_one_head_each(result):
    kept = tuple(score for score in result.scores if score.of not in HEAD_MAPS)
    single = replace(result, heads=1, scores=kept)
    grids = head_grids(Scores(single), LAYERS, 1)
    assert [[cell.map for cell in cells] for _, cells in grids[0].rows] == [[name] for name in LAYER_MAPS]
    assert "its one head" in render_audit(single)


def test_a_head_can_be_the_headline(result):
    scores = Scores(replace(result, headline=HEAD_MAPS[5]))
    assert scores.maps == [HEAD_MAPS[5], *LAYER_MAPS, "mean", "rollout"]
    assert HEAD_MAPS[5] in tau_section(scores).pictures[0].svg


def test_pictures_have_a_line_for_each_number(result):
    scores = Scores(result)
    tau = tau_section(scores)
    assert len(tau.pictures) == 5
    first = ElementTree.fromstring(tau.pictures[0].svg)
    assert first.get("aria-label") == f"τ with {DELETION}"
    kinds = [node.get("class").strip() for node in first if node.tag == "path"]
    assert [kinds.count(f"dot m{mark}") for mark in range(3)] == [5, 5, 3]
    erased = [ElementTree.fromstring(picture.svg) for picture in order_section(scores, "comprehensiveness").pictures]
    marks = [len(erased[0].findall(f"path[@class='dot m{mark}']")) for mark in range(3)]
    assert marks == [1, 1, 4]  # attention, random order, importances
    moved = movement_section(scores, LAYERS)
    assert [len(ElementTree.fromstring(picture.svg).findall("path")) for picture in moved.pictures] == [8, 8]
    assert dict(moved.tables[0].rows)["all layers"][0].startswith(
        f"{result.score('tvd', 'permuted', 'all layers').value:.3f}"
    )
    assert len(another_section(scores, 0.3466).pictures) == 1


def test_tables_of_tau_have_a_row_for_each_importance(result):
    """There are more importances than maps, so that the table stays narrow."""
    tau, agreement = tau_section(Scores(result)).tables
    assert (tau.what, agreement.what) == ("τ with", "Agreement with")
    assert HEADLINE in tau.columns
    assert DELETION in dict(tau.rows)
    assert dict(tau.rows)[DELETION][tau.columns.index(HEADLINE)].startswith(
        f"{result.score('tau', HEADLINE, DELETION).value:.3f}"
    )


def test_an_audit_of_a_study_names_its_texts(result):
    assert kicker(replace(result, data=OWN_TEXTS, texts=25)).startswith("25 of its validation texts ·")
    assert kicker(replace(result, data="reviews.csv", texts=25)).startswith("25 texts of reviews")


def test_whiskers_end_where_the_interval_ends():
    line = ChartLine("a & <b>", (ChartMark(Estimate(0.2, -0.1, 0.4, 9)), ChartMark(around(0.0, 0.0), 1)), strong=True)
    scale = ChartScale.over([line])
    assert (scale.low, scale.high, scale.step) == (-0.1, 0.4, 0.1)
    svg = ElementTree.fromstring(dots_svg("title", [line], scale, references=[(0.3, "asked")]))
    whisker = svg.find("line[@class='whisker m0']")
    dot, other = (float(path.get("transform").removeprefix("translate(").split()[0]) for path in svg.findall("path"))
    ticks = svg.findall("line[@class='grid']")
    assert whisker.get("x1") == ticks[0].get("x1")
    assert whisker.get("x2") == ticks[-1].get("x1")
    share = (dot - float(whisker.get("x1"))) / (float(whisker.get("x2")) - float(whisker.get("x1")))
    assert share == pytest.approx(0.6, abs=0.001)
    assert float(svg.find("line[@class='axis']").get("x1")) == other
    assert svg.find("text[@class='strong']").text == "a & <b>"


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (-1.0, 1.0), (0.0, 0.0003), (-0.02, 0.7), (0.1, 0.100001)])
def test_scales_hold_what_is_drawn_with_few_ticks(low, high):
    scale = ChartScale.over([ChartLine("a", (ChartMark(Estimate((low + high) / 2, low, high, 9)),))])
    assert scale.low <= min(low, 0)
    assert scale.high >= max(high, 0)
    assert 2 <= len(scale.ticks()) <= 8
    assert len({scale.tick(tick) for tick in scale.ticks()}) == len(scale.ticks())


def test_one_scale_of_colours_for_all_pages():
    """The scripts of a study's page and the style of an audit's have the same colours for the same share."""
    light, dark = (re.findall(r'"(#\w{6})"', part) for part in assets("shades.js").split("dark: {")[:2])
    rules = re.findall(r"\.(\w)(\d+) \{ background: (#\w{6})", shade_css())
    for colours, found in zip(
        (light[:12], dark[:12]), (rules[: len(rules) // 2], rules[len(rules) // 2 :]), strict=True
    ):
        ends = {name: (colours[4 * i], colours[4 * i + 3]) for i, name in enumerate("apn")}
        assert {(n, k, c) for n, k, c in found if k in ("0", "10")} == {
            (name, step, colour) for name, two in ends.items() for step, colour in zip(("0", "10"), two, strict=True)
        }


def test_every_shade_can_be_read():
    rules = re.findall(r"\.([apn])(\d+) \{ background: (#\w{6}); color: (#\w{3}); \}", shade_css())
    assert len(rules) == 2 * 3 * (STEPS + 1)
    for _, _, ground, ink in rules:
        assert contrast(ground, f"#{ink[1] * 2}{ink[2] * 2}{ink[3] * 2}") >= 4.5
    light = [contrast(ground, "#ffffff") for ramp, _, ground, _ in rules[: STEPS + 1] if ramp == "a"]
    assert light == sorted(light)


def test_a_flat_map_has_one_shade(page):
    article = page.split('<article class="example"')[8]
    assert set(re.findall(r'class="w (a\d+)"', article)) == {"a5"}  # four words, each with 25 %


def test_in_a_terminal(result, capsys, tmp_path):
    print_audit(replace(result, model="[bold]a[/bold] :smile:", data="b\x1b[31m"), tmp_path / "page.html")
    text = " ".join(capsys.readouterr().out.split())
    assert result.verdict.sentence in text
    assert "[bold]a[/bold] :smile: on b [31m" in text
    for question in result.verdict.questions:
        assert f"{question.answer} {question.question}" in " ".join(text.split())
    tau = result.score("tau", HEADLINE, DELETION)
    assert f"{DELETION} {tau.value:.2f} {tau.low:.2f}–{tau.high:.2f}" in text
    assert "layer 3 permuted moves predictions by" in text
    assert "page.html" in text
