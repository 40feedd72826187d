"""The ledger of claims as rows, as Markdown and in a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from heedful.measure.uncertainty import Estimate
from heedful.papers.ledger import Entry
from heedful.reports.paper_tables import markdown_text, one_line

COLORS = {"holds": "green", "fails": "red", "inconclusive": "yellow", "not run": "dim"}


def claim_rows(entries: Sequence[Entry]) -> list[dict[str, str]]:
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
                    "measured": figures(estimate),
                    "budget": entry.budget if k == 0 else "",
                    "verdict": f"{entry.verdict}" if k == 0 else ("" if len(entry.verdicts) == 1 else f"({verdict})"),
                }
            )
    return rows


def claims_markdown(entries: Sequence[Entry]) -> str:
    """The ledger as a Markdown table, with a count of its verdicts below."""
    lines = ["| | claim | experiment | expected | measured | verdict |", "|---|---|---|---|---|---|"]
    for row in claim_rows(entries):
        verdict = f"**{row['verdict']}**" if row["id"] else row["verdict"]
        cells = (
            row["id"],
            *(markdown_text(one_line(row[key])) for key in ("sentence", "statistic", "expected", "measured")),
        )
        lines.append(f"| {' | '.join((*cells, verdict))} |")
    counts = {word: sum(entry.verdict == word for entry in entries) for word in COLORS}
    said = ", ".join(f"{word} {n}" for word, n in counts.items() if n)
    return "\n".join([*lines, "", f"{len(entries)} claims: {said}."]) + "\n"


def print_claims(entries: Sequence[Entry]) -> None:
    """The ledger in a terminal: each claim with its verdict, below it what was measured and what was expected."""
    console = Console()
    for entry in entries:
        word = f"[{COLORS[entry.verdict]}]{entry.verdict:<12}[/]"
        console.print(f"[bold]{entry.claim.id:<4}[/bold]{word} {escape(entry.claim.sentence)}", highlight=False)
        for condition, estimate in zip(entry.claim.conditions, entry.measured, strict=True):
            said = f"{figures(estimate)}   expected {condition}   ({condition.experiment}, {entry.budget})"
            console.print(f"                 {escape(said)}", highlight=False, style="dim", soft_wrap=True)
    counts = ", ".join(f"{sum(e.verdict == word for e in entries)} {word}" for word in COLORS)
    console.print(f"{len(entries)} claims: {counts}", highlight=False)


def figures(estimate: Estimate | None) -> str:
    """A number with its interval, in three significant digits; exact numbers have none.

    >>> figures(Estimate(0.123456, 0.1, 0.2, 5)), figures(Estimate(0.0, 0.0, 0.0, 1)), figures(None)
    ('0.123 [0.1, 0.2]', '0', '–')
    """
    if estimate is None or estimate.value != estimate.value:
        return "–"
    if estimate.low == estimate.high:
        return f"{estimate.value:.3g}"
    return f"{estimate.value:.3g} [{estimate.low:.3g}, {estimate.high:.3g}]"
