"""The papers we have, by key; each is imported when it is asked for."""

from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files

from heedful.errors import ConfigError
from heedful.papers.experiment import Experiment
from heedful.papers.ledger import Claim

KEYS = ("snell2021", "meister2021", "sunlu2020")


@dataclass(frozen=True)
class Paper:
    """A paper's experiments and claims; `preface` opens its page."""

    key: str
    title: str
    experiments: tuple[Experiment, ...]
    claims: tuple[Claim, ...]
    preface: str

    def experiment(self, name: str) -> Experiment:
        """The experiment of that name; an error that lists them where there is none."""
        for experiment in self.experiments:
            if experiment.name == name:
                return experiment
        known = ", ".join(experiment.name for experiment in self.experiments)
        raise ConfigError(f"{self.key} has no {name!r}; it has {known}, or all")


def paper(key: str) -> Paper:
    """The paper of that key.

    >>> paper("snell2021").experiment("table2").title
    'Table 2: agreement and contextualised agreement'
    """
    if key not in KEYS:
        raise ConfigError(f"there is no paper {key!r}; there are {', '.join(KEYS)}")
    contents = import_module(f"heedful.papers.{key}.experiments")
    claims = import_module(f"heedful.papers.{key}.claims").CLAIMS
    preface = (files("heedful.papers") / key / "preface.md").read_text(encoding="utf-8")
    return Paper(key, contents.TITLE, contents.EXPERIMENTS, claims, preface)
