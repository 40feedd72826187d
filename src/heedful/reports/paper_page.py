"""Pages of a paper's stored results: one in Markdown for the docs, one in HTML to share.

The HTML page is one file: its figures are embedded, it can be read without a script, and its Content-Security-Policy
lets nothing run but the one that saves files, and nothing be fetched. Findings are words and numbers, never markup, and
are escaped in both.
"""

import base64
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from heedful.errors import DataError
from heedful.papers.findings import Figure, ResultTable
from heedful.reports.html import assets, duration, estimate_text, fill, one_line
from heedful.reports.paper_figures import draw_figure, figure_svg
from heedful.reports.paper_tables import html_table, legend, markdown_table, markdown_text, table_rows
from heedful.storage.atomic_files import without_nan, write_text

if TYPE_CHECKING:  # what runs experiments is slow to import
    from heedful.papers.claims import LedgerEntry
    from heedful.papers.experiment import Result

_CLAIM = ("id", "sentence", "statistic", "expected", "measured", "budget", "verdict")
_COUNTED = (
    ("holds", "holds here", "hold here"),
    ("fails", "fails", "fail"),
    ("inconclusive", "stays open", "stay open"),
    ("not run", "was not run", "were not run"),
)
_BADGES = {"holds": "yes", "fails": "no", "inconclusive": "unclear", "not run": "unclear"}


def write_docs_page(results: "Sequence[Result]", claims_markdown: str, preface: str, out: Path, figures: Path) -> Path:
    """Write a paper's page of the docs, with its figures in `figures`; returns the page's path.

    preface, claims_markdown: Markdown of our own, taken as it is; everything that comes from results is escaped.
    """
    paper = _one_paper(results)
    names = [figure.name for result in results for figure in result.finding.figures]
    if len(set(names)) < len(names):
        raise DataError(f"{out}: two figures are called {next(name for name in names if names.count(name) > 1)!r}")
    title = "" if preface.lstrip().startswith("# ") else f"# {markdown_text(paper)}"
    blocks = [
        f"<!-- Written by a command from the results of {re.sub('[^A-Za-z0-9]', '', paper)}; do not edit. -->",
        title,
        preface.strip(),
        markdown_text(legend(_tables(results))),
        *(block for result in results for block in _docs_section(result, out, figures)),
        "" if claims_markdown.lstrip().startswith("#") or not claims_markdown.strip() else "## Claims",
        claims_markdown.strip(),
    ]
    write_text(out, "\n\n".join(block for block in blocks if block) + "\n")
    return out


def write_paper_report(
    results: "Sequence[Result]", claims_rows: Sequence[Mapping[str, str]], out: Path, about: str = ""
) -> Path:
    """Write a paper's results as one self-contained HTML page; returns its path.

    claims_rows: id, sentence, statistic, expected, measured, budget and verdict of each claim, all of them words.
    about: the paper's title, or another text for below the headline.
    """
    paper = _one_paper(results)
    for row in claims_rows:
        if missing := [name for name in _CLAIM if name not in row]:
            raise DataError(f"claim {row.get('id', '?')!r} lacks {', '.join(missing)}")
    anchors = _anchors(results)
    judged = [row for row in claims_rows if row["verdict"] in _BADGES]
    tables = {
        f"{anchor}-{i}": table_rows(table)
        for anchor, result in zip(anchors, results, strict=True)
        for i, table in enumerate(result.finding.tables)
    } | {"claims": [{name: row[name] for name in _CLAIM} for row in claims_rows]}
    page = fill(
        "paper.html.j2",
        without_nan({"name": paper, "tables": tables}),
        style=assets("page.css", "paper.css"),
        script=assets("draw.js", "paper.js"),
        paper=paper,
        about=about,
        headline=headline(paper, judged),
        judged=judged,
        results=results,
        anchors=anchors,
        legend=legend(_tables(results)),
        claims=claims_rows,
        badges=_BADGES,
        html_table=html_table,
        embedded=_embedded,
        description=_description,
        provenance=_provenance,
    )
    write_text(out, page)
    return out


def headline(paper: str, claims_rows: Sequence[Mapping[str, str]]) -> str:
    """How many of the paper's claims hold, in one sentence; without claims, only what the page is.

    >>> headline("snell2021", [{"verdict": "holds"}, {"verdict": "fails"}, {"verdict": "holds"}])
    'snell2021: of 3 claims, 2 hold here and 1 fails.'
    """
    counts = Counter(row["verdict"] for row in claims_rows)
    parts = [
        f"{counts[verdict]} {one if counts[verdict] == 1 else many}"
        for verdict, one, many in _COUNTED
        if counts.get(verdict)
    ]
    if not parts:
        return f"{paper}: measured beside published"
    listed = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
    return f"{paper}: of {len(claims_rows)} claims, {listed}."


def _docs_section(result: "Result", out: Path, figures: Path) -> list[str]:
    blocks = [f"## {markdown_text(result.title)}"]
    for table in result.finding.tables:
        title = "" if table.title == result.title else f"**{markdown_text(table.title)}**"
        blocks += [title, markdown_table(table), markdown_text(table.caption)]
    for figure in result.finding.figures:
        svg, _ = draw_figure(figure, figures)
        place = quote(Path(os.path.relpath(svg, out.parent)).as_posix())
        caption = figure.caption if figure.title == result.title else _description(figure)
        blocks += [f"![{markdown_text(_description(figure))}]({place})", markdown_text(caption)]
    blocks.append("\n".join(f"- {markdown_text(note)}" for note in result.finding.notes))
    provenance = " · ".join(markdown_text(part) for part in _provenance(result))
    blocks.append(f"<sub><code>{markdown_text(result.manifest.command or '')}</code> · {provenance}</sub>")
    return blocks


def _provenance(result: "Result") -> list[str]:
    """How a result was made, besides its command."""
    made = result.manifest
    return [
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
    """A row for each condition of each claim; the sentence and the verdict of the claim stand in its first."""
    rows = []
    for entry in entries:
        lines = zip(entry.claim.conditions, entry.measured, entry.verdicts, strict=True)
        for k, (condition, estimate, verdict) in enumerate(lines):
            rows.append(
                {
                    "id": entry.claim.id if k == 0 else "",
                    "sentence": entry.claim.sentence if k == 0 else "",
                    "statistic": condition.experiment,
                    "expected": str(condition),
                    "measured": estimate_text(estimate),
                    "budget": entry.budget if k == 0 else "",
                    "verdict": f"{entry.verdict}" if k == 0 else ("" if len(entry.verdicts) == 1 else f"({verdict})"),
                }
            )
    return rows


def claims_markdown(entries: "Sequence[LedgerEntry]") -> str:
    """The ledger as a Markdown table, with a count of its verdicts below."""
    lines = ["| | claim | experiment | expected | measured | verdict |", "|---|---|---|---|---|---|"]
    for row in claim_rows(entries):
        verdict = f"**{row['verdict']}**" if row["id"] else row["verdict"]
        cells = (
            row["id"],
            *(markdown_text(one_line(row[key])) for key in ("sentence", "statistic", "expected", "measured")),
        )
        lines.append(f"| {' | '.join((*cells, verdict))} |")
    counts = {word: sum(entry.verdict == word for entry in entries) for word in _BADGES}
    total = ", ".join(f"{word} {n}" for word, n in counts.items() if n)
    return "\n".join([*lines, "", f"{len(entries)} claims: {total}."]) + "\n"
