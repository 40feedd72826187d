"""Pages of a paper's stored results: one in Markdown for the docs, one in HTML to share.

The HTML page is one file: its figures are embedded, it can be read without a script, and its Content-Security-Policy
lets nothing run but the one that saves files, and nothing be fetched. Findings are words and numbers, never markup, and
are escaped in both.
"""

import base64
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from heedful.errors import DataError
from heedful.html import in_letters
from heedful.papers.findings import Figure, ResultTable
from heedful.reports.html import NONE, assets, duration, estimate_text, fill, one_line
from heedful.reports.paper_closeness import (
    SUMMARY_HEADS,
    ComparedCell,
    close_tables,
    closeness_figure,
    closeness_html,
    closeness_markdown,
    closeness_rows,
    compared_cells,
    how_close_sentence,
    share_covered,
    summary_rows,
)
from heedful.reports.paper_figures import draw_figure, figure_svg
from heedful.reports.paper_tables import html_table, legend, markdown_table, markdown_text, table_rows
from heedful.storage.atomic_files import without_nan, write_text

if TYPE_CHECKING:  # what runs experiments is slow to import
    from heedful.papers.claims import Condition, LedgerEntry
    from heedful.papers.experiment import Result

_CLAIM = ("id", "verdict", "sentence", "statistic", "expected", "measured", "size", "tested", "note", "budget")
_COUNTED = (
    ("holds", "holds here", "hold here"),
    ("holds in part", "holds in part", "hold in part"),
    ("fails", "fails", "fail"),
    ("inconclusive", "can’t be decided yet", "can’t be decided yet"),
    ("not run", "was not run", "were not run"),
)
_BADGES = {
    "holds": "yes",
    "holds in part": "unclear",
    "fails": "no",
    "inconclusive": "unclear",
    "not run": "unclear",
}


def write_docs_page(
    results: "Sequence[Result]",
    claims_markdown: str,
    preface: str,
    out: Path,
    figures: Path,
    earlier: Collection[str] = (),
    behind: "Sequence[Result]" = (),
) -> Path:
    """Write a paper's page of the docs, with its figures in `figures`; returns the page's path.

    What the paper is about comes first, then how close we are (of our own experiments, which nobody has published, the
    first figure), then claims, then results, then the rest of the preface
    from its first section on: equations and departures. preface, claims_markdown: Markdown of our own, taken as it is;
    everything that comes from results is escaped. earlier: experiments whose results were made with earlier settings.
    behind: results of a smaller budget, whose tables are folded behind those of the same experiment.
    """
    paper = _one_paper(results)
    names = [figure.name for result in results for figure in result.finding.figures]
    if len(set(names)) < len(names):
        raise DataError(f"{out}: two figures are called {next(name for name in names if names.count(name) > 1)!r}")
    title = "" if preface.lstrip().startswith("# ") else f"# {markdown_text(paper)}"
    cells = compared_cells(results)
    opening_figure = _opening_figure(results, cells)
    opening, *sections = re.split(r"^(?=## )", preface.strip(), maxsplit=1, flags=re.MULTILINE)
    blocks = [
        f"<!-- Written by a command from the results of {re.sub('[^A-Za-z0-9]', '', paper)}; do not edit. -->",
        title,
        opening.strip(),
        *_docs_closeness(paper, cells, out, figures),
        *([] if opening_figure is None else _docs_figure(opening_figure, opening_figure.caption, out, figures)),
        "" if claims_markdown.lstrip().startswith("#") or not claims_markdown.strip() else "## Claims",
        claims_markdown.strip(),
        markdown_text(legend(_tables(results))),
        *(
            block
            for result in results
            for block in _docs_section(result, out, figures, earlier, behind, opening_figure)
        ),
        *(section.strip() for section in sections),
    ]
    write_text(out, "\n\n".join(block for block in blocks if block) + "\n")
    return out


def write_paper_report(
    results: "Sequence[Result]",
    claims_rows: Sequence[Mapping[str, str]],
    out: Path,
    about: str = "",
    earlier: Collection[str] = (),
    behind: "Sequence[Result]" = (),
) -> Path:
    """Write a paper's results as one self-contained HTML page; returns its path.

    claims_rows: what `claim_rows` returns, all of it words.
    about: the paper's title, or another text for below the headline. earlier: experiments whose results were made with
    earlier settings. behind: results of a smaller budget, folded behind those of the same experiment.
    """
    paper = _one_paper(results)
    cells = compared_cells(results)
    for row in claims_rows:
        if missing := [name for name in _CLAIM if name not in row]:
            raise DataError(f"claim {row.get('id', '?')!r} lacks {', '.join(missing)}")
    anchors = _anchors(results)
    judged = [row for row in claims_rows if row["verdict"] in _BADGES]
    tables = {
        f"{anchor}-{i}": table_rows(table)
        for anchor, result in zip(anchors, results, strict=True)
        for i, table in enumerate(result.finding.tables)
    } | {"claims": [{name: row[name] for name in _CLAIM} for row in claims_rows], "close": closeness_rows(cells)}
    page = fill(
        "paper.html.j2",
        without_nan({"name": paper, "tables": tables}),
        style=assets("page.css", "paper.css"),
        script=assets("draw.js", "paper.js"),
        paper=paper,
        about=about,
        headline=headline(paper, judged, share_covered(cells)),
        judged=judged,
        close=close_tables(cells),
        close_sentence=how_close_sentence(cells),
        close_figure=closeness_figure(paper, cells),
        opening_figure=_opening_figure(results, cells),
        close_summary=summary_rows(cells),
        close_heads=SUMMARY_HEADS,
        closeness_html=closeness_html,
        behind={each.experiment: each for each in behind},
        results=results,
        anchors=anchors,
        legend=legend(_tables(results)),
        claims=claims_rows,
        badges=_BADGES,
        html_table=html_table,
        embedded=_embedded,
        description=_description,
        provenance=partial(_provenance, earlier=earlier),
    )
    write_text(out, page)
    return out


def headline(paper: str, claims_rows: Sequence[Mapping[str, str]], share: float | None = None) -> str:
    """How close we are and how many of the paper's claims hold, in one sentence; without either, what the page is.

    share: of published numbers that our intervals cover.

    >>> headline("snell2021", [{"verdict": "holds"}, {"verdict": "fails"}, {"verdict": "holds"}])
    'Of 3 claims, 2 hold here and 1 fails'
    >>> headline("snell2021", [{"verdict": "holds"}], 0.25)
    'Our intervals cover 25 % of the published numbers; of 1 claim, 1 holds here'
    """
    close = "" if share is None else f"our intervals cover {100 * share:.0f} % of the published numbers"
    counts = Counter(row["verdict"] for row in claims_rows)
    parts = [
        f"{counts[verdict]} {one if counts[verdict] == 1 else many}"
        for verdict, one, many in _COUNTED
        if counts.get(verdict)
    ]
    claims = ""
    if parts:
        listed = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
        claims = f"of {len(claims_rows)} claim{'' if len(claims_rows) == 1 else 's'}, {listed}"
    words = "; ".join(part for part in (close, claims) if part) or f"{paper}: measured and published numbers"
    return words[0].upper() + words[1:] if parts or close else words


def _docs_closeness(paper: str, cells: Sequence[ComparedCell], out: Path, figures: Path) -> list[str]:
    """How close measured numbers are to published ones; nothing where no number was published."""
    figure = closeness_figure(paper, cells)
    if figure is None:
        return []
    drawn = _docs_figure(figure, figure.caption, out, figures)
    return ["## How close are we?", *drawn, closeness_markdown(cells)]


def _opening_figure(results: "Sequence[Result]", cells: Sequence[ComparedCell]) -> Figure | None:
    """The figure that opens the page of experiments of our own; None where there are published numbers to compare."""
    return None if cells else next((figure for result in results for figure in result.finding.figures), None)


def _docs_figure(figure: Figure, caption: str, out: Path, figures: Path) -> list[str]:
    """A figure, drawn into `figures`, and its caption."""
    svg, _ = draw_figure(figure, figures)
    place = quote(Path(os.path.relpath(svg, out.parent)).as_posix())
    return [f"![{markdown_text(_description(figure))}]({place})", markdown_text(caption)]


def _docs_section(
    result: "Result",
    out: Path,
    figures: Path,
    earlier: Collection[str],
    behind: "Sequence[Result]",
    shown: Figure | None,
) -> list[str]:
    """A result with its tables and figures; shown: a figure that the page has already."""
    blocks = [f"## {markdown_text(result.title)}", *_docs_tables(result)]
    for figure in result.finding.figures:
        caption = figure.caption if figure.title == result.title else _description(figure)
        blocks += [] if figure is shown else _docs_figure(figure, caption, out, figures)
    blocks.append("\n".join(f"- {markdown_text(note)}" for note in result.finding.notes))
    provenance = " · ".join(markdown_text(part) for part in _provenance(result, earlier))
    blocks.append(f"<sub><code>{markdown_text(result.manifest.command or '')}</code> · {provenance}</sub>")
    for smaller in behind:
        if smaller.experiment == result.experiment and smaller.finding.tables:
            blocks.append(f"<details>\n<summary>The same within the budget {markdown_text(smaller.budget)}</summary>")
            blocks += [*_docs_tables(smaller), "</details>"]
    return blocks


def _docs_tables(result: "Result") -> list[str]:
    blocks = []
    for table in result.finding.tables:
        title = "" if table.title == result.title else f"**{markdown_text(table.title)}**"
        blocks += [title, markdown_table(table), markdown_text(table.caption)]
    return blocks


def _provenance(result: "Result", earlier: Collection[str]) -> list[str]:
    """How a result was made, besides its command."""
    made = result.manifest
    return [
        *(["made with earlier settings"] if result.experiment in earlier else []),
        f"budget {result.budget}",
        f"version {result.version}",
        f"settings {result.config_digest[:12]}",
        f"commit {made.commit[:8]}" if made.commit else "no commit",
        duration(made.seconds or 0.0),
        (made.finished or "")[:10],
    ]


def _description(figure: Figure) -> str:
    """A figure in words: its title, then its caption."""
    return f"{figure.title.rstrip('.')}. {figure.caption}".strip() if figure.caption else figure.title


def _embedded(figure: Figure) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(figure_svg(figure).encode()).decode('ascii')}"


def _tables(results: "Sequence[Result]") -> list[ResultTable]:
    return [table for result in results for table in result.finding.tables]


def _anchors(results: "Sequence[Result]") -> list[str]:
    """A name for each result within the page; no two are the same."""
    names = [re.sub(r"\W+", "-", f"{result.experiment}-{result.budget}") for result in results]
    return [f"{name}-{i}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _one_paper(results: "Sequence[Result]") -> str:
    papers = sorted({result.paper for result in results})
    if len(papers) != 1:
        raise DataError(f"a page is of one paper; the results are of {', '.join(papers) or 'none'}")
    return papers[0]


def claim_rows(entries: "Sequence[LedgerEntry]") -> list[dict[str, str]]:
    """A row for each condition of each claim; what is of the whole claim stands in its first.

    measured: the weakest case, how many cases hold, and the random-effects mean over them. size: seeds and texts of the
    case with the fewest, and the smallest effect that could have been seen. tested: the adjusted p-value. note: which
    cases, and what it would take.
    """
    rows = []
    for entry in entries:
        for k, condition in enumerate(entry.claim.conditions):
            first = k == 0
            role = "" if condition.decides else "(for comparison)"
            rows.append(
                {
                    "id": entry.claim.id if first else "",
                    "verdict": entry.verdict if first else role,
                    "sentence": entry.claim.sentence if first else "",
                    "statistic": condition.experiment,
                    "expected": in_letters(str(condition)),
                    "measured": in_letters(_measured_cases(entry, condition)),
                    "size": _size(entry, condition),
                    "tested": _tested(entry) if first else "",
                    "note": in_letters(entry.explanation if first else condition.reason),
                    "budget": entry.budget if first else "",
                }
            )
    return rows


def _measured_cases(entry: "LedgerEntry", condition: "Condition") -> str:
    cases = entry.cases_of(condition)
    if not cases:
        return NONE
    weakest = max(cases, key=lambda each: (each.right, -each.margin))
    words = estimate_text(weakest.case.estimate)
    if len(cases) == 1:
        return words
    words += f" in {weakest.case.name}; {sum(each.status == 'right' for each in cases)} of {len(cases)} cases hold"
    pooled = entry.pooled(condition)
    return f"{words}; mean over cases {estimate_text(pooled.mean)}" if pooled else words


def _size(entry: "LedgerEntry", condition: "Condition") -> str:
    """Seeds and texts, as few to as many as the cases have, and the smallest effect that could have been seen."""
    cases = entry.cases_of(condition)
    if not cases:
        return condition.experiment
    if condition.threshold.kind == "exact":
        return f"{condition.experiment}, exact"
    unit = "seeds" if condition.threshold.kind == "mean" else "runs"
    parts = [condition.experiment, f"{_span([each.case.seeds for each in cases])} {unit}"]
    if texts := [each.case.texts for each in cases if each.case.texts is not None]:
        parts.append(f"{_span(texts)} texts")
    if smallest := [each.smallest for each in cases if each.smallest == each.smallest]:
        parts.append(f"smallest effect seen {max(smallest):.2g}")
    return ", ".join(parts)


def _span(counts: Sequence[int]) -> str:
    return f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"


def _tested(entry: "LedgerEntry") -> str:
    p = entry.judgement.adjusted
    if p != p:
        return entry.budget
    exact = all(each.threshold.kind == "exact" for each in entry.judgement.cases)
    return f"{entry.budget}, exact" if exact else f"{entry.budget}, adjusted p {p:.2g}"


def claims_markdown(entries: "Sequence[LedgerEntry]") -> str:
    """The ledger as a Markdown table, with a count of its verdicts below."""
    heads = {"sentence": "claim", "expected": "expected", "measured": "measured", "size": "on", "note": "note"}
    lines = [f"| | verdict | {' | '.join(heads.values())} |", f"|---|---|{'---|' * len(heads)}"]
    for row in claim_rows(entries):
        verdict = f"**{row['verdict']}**<br><sub>{row['tested']}</sub>" if row["id"] else row["verdict"]
        cells = (row["id"], verdict, *(markdown_text(one_line(row[key])) for key in heads))
        lines.append(f"| {' | '.join(cells)} |")
    counts = {word: sum(entry.verdict == word for entry in entries) for word in _BADGES}
    total = ", ".join(f"{word} {n}" for word, n in counts.items() if n)
    how = (
        "A claim holds if every case does (intersection–union test), and holds in part if some cases do and others are "
        "shown not to. p-values are adjusted over the ledger (Benjamini & Hochberg). Below five seeds or a hundred "
        "texts for each case nothing is decided."
    )
    return "\n".join([*lines, "", f"{len(entries)} claims: {total}. {how}"]) + "\n"
