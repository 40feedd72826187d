"""A study before it is run: its settings as TOML, its models, what they are expected to take."""

from rich import box
from rich.console import Console
from rich.table import Table

from heedful.reports.numbers import duration
from heedful.studies.rehearsal import Plan
from heedful.toml import to_toml


def print_plan(plan: Plan) -> None:
    """The resolved settings, then the models, as comments: all of it is TOML that `--config` takes."""
    print(to_toml(plan.config))
    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for column in ("model", "steps", "evaluations", "time", "disk"):
        table.add_column(column, justify="left" if column == "model" else "right", no_wrap=True)
    for model in plan.models:
        steps = f"{model.steps:,}" if model.steps else "–"
        table.add_row(model.name, steps, str(model.evaluations), duration(model.seconds), size(model.disk))
    with console.capture() as drawn:
        console.print(table)
    for line in drawn.get().splitlines():
        print(f"# {line}".rstrip())
    sizes = ", ".join(f"{plan.data[name]:,} {name}" for name in ("train", "validation", "test"))
    print(f"# data: {sizes}; vocabulary {plan.data['vocabulary']:,}")
    print(
        f"# estimated from a few steps of each kind: about {duration(plan.seconds)} to train and record, "
        f"{plan.jobs} at a time; {size(plan.disk)} of disk"
    )
    print("# measuring and the page come on top; nothing was written")


def size(count: int) -> str:
    """Bytes as people read them.

    >>> size(900), size(61_300_000)
    ('900 B', '61.3 MB')
    """
    for unit, unit_size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= unit_size:
            return f"{count / unit_size:.1f} {unit}"
    return f"{count:.0f} B"
