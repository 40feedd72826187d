"""`heedful doctor`: is everything here?"""

from typing import TYPE_CHECKING, Annotated

import typer

from heedful.commands.shared import print_json

if TYPE_CHECKING:
    from heedful.doctor import Examination


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the examination as JSON, and nothing else.")] = False,
) -> None:
    """Say what is here and what is missing: versions, device, cores, memory, data, extras."""
    from heedful.doctor import examine

    found = examine()
    if as_json:
        print_json(found.to_dict())
    else:
        _print(found)
    if not found.healthy:
        raise typer.Exit(1)


def _print(found: "Examination") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from heedful.doctor import PURPOSES
    from heedful.reports.plan import size

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")

    def say(name: str, words: str) -> None:
        table.add_row(Text(name), Text(words))

    for name, version in found.versions.items():
        say(name, version)
    say("system", found.machine["system"])
    say("device", f"{found.machine['device']}, {found.machine['cores']} cores")
    if "memory" in found.machine:
        say("memory", size(found.machine["memory"]))
    say("disk free", size(found.machine["disk_free"]))
    say("needed", _listed(found, None))
    for extra, whole in found.extras.items():
        say(f"[{extra}]", f"{'✓' if whole else '✗'} {PURPOSES[extra]}: {_listed(found, extra)}")
    say("data", f"{found.data['directory']}{'' if found.data['exists'] else ' (not there)'}")
    say("corpora", ", ".join(found.data["found"]) or "none found")
    say("generated", ", ".join(found.data["generated"]))
    for name, path in found.browser.items():
        say(name, path or "✗ not on the path")
    console = Console(highlight=False)
    console.print(table)
    console.print("[bold]missing[/bold]" if found.advice else "[bold]nothing is missing[/bold]")
    for sentence in found.advice:
        console.print(Text(f"  {sentence}"), soft_wrap=True)


def _listed(found: "Examination", extra: str | None) -> str:
    return ", ".join(f"{p.name} {p.version or '✗'}" for p in found.packages if p.extra == extra)
