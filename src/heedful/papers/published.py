"""Published numbers: the tables of the papers as data, by the names used here."""

import csv
from functools import cache
from importlib.resources import files

_ROWS = {
    "imdb": "IMDB",
    "sst": "SST",
    "20news-sport": "20 NG",
    "ag-news": "AG News",
    "amazon": "Amzn",
    "multi30k": "Multi30k",
    "multi30k:de-en": "Multi30k",
    "multi30k:en-de": "Multi30k",
}


def published_agreements(corpus_name: str) -> dict[str, float]:
    """Agreements, ξ and Â that snell2021 prints for a corpus, in percent; empty where it is none of the paper's.

    A and ξ are Table 5's (ξ by accuracy), A(α, α^fr) is Table 10's, A(β^uf, β^log) Table 11's. Multi30k stands beside
    either direction: the paper calls it En–De, its released code trains De→En.

    >>> published_agreements("sst")["A(alpha,beta)"], published_agreements("sst")["A(beta_uf,beta_log)"]
    (25.33, 46.0)
    >>> published_agreements("imdb-reviews")
    {}
    """
    return {quantity: value for quantity, (value, _) in _published(corpus_name).items()}


def published_stars(corpus_name: str) -> frozenset[str]:
    """The ξ that snell2021 marks `*`: an agreement that another seed's attention never exceeded.

    >>> sorted(published_stars("sst"))
    ['xi(beta_uf,beta_px)']
    """
    return frozenset(quantity for quantity, (_, never_reached) in _published(corpus_name).items() if never_reached)


def published_bleu(corpus_name: str) -> dict[str, float]:
    """ξ by BLEU that snell2021 prints for a parallel corpus (Table 6); empty where it is none of the paper's.

    >>> published_bleu("multi30k:de-en")["xi(alpha,beta)"], published_bleu("sst")
    (16.41, {})
    """
    row = _ROWS.get(corpus_name)
    return {
        line["quantity"]: float(line["value"])
        for line in _table("snell2021")
        if line["table"] == "6" and line["row"] == row and line["quantity"].startswith("xi")
    }


@cache
def published_table(paper: str, table: str) -> dict[tuple[str, str], tuple[float, bool]]:
    """A printed table by (row, quantity): the value, and whether it is marked `*`.

    >>> published_table("snell2021", "2")["SST", "A(alpha,beta)"]
    (25.0, False)
    """
    return {
        (line["row"], line["quantity"]): (float(line["value"]), line["never_reached"] == "1")
        for line in _table(paper)
        if line["table"] == table
    }


@cache
def published_accuracies() -> dict[tuple[str, str, float], float]:
    """Table 2 of sunlu2020, in percent, by (data set, model, λ).

    >>> published_accuracies()["SST", "DP", 10.0]
    82.2
    """
    return {
        (line["dataset"], line["model"], float(line["lambda"])): float(line["value"])
        for line in _table("sunlu2020")
        if line["table"] == "2"
    }


@cache
def published_sizes() -> dict[tuple[str, str], str]:
    """Table 1 of sunlu2020 by (data set, quantity); the sizes of a split are those of its labels, `3610/3310`.

    >>> published_sizes()["SST", "train"], published_sizes()["SST", "average length"]
    ('3610/3310', '18')
    """
    return {(line["dataset"], line["quantity"]): line["value"] for line in _table("sunlu2020") if line["table"] == "1"}


@cache
def published_means(table: str) -> dict[tuple[str, str, str], tuple[float, float | None]]:
    """A table of meister2021 by (dataset, model, quantity): the mean, and its standard deviation where one is printed.

    >>> published_means("1")["SST", "BiLSTM softmax", "entropy(g_h(x))"]
    (0.93, 0.05)
    """
    return {
        (line["dataset"], line["model"], line["quantity"]): (
            float(line["mean"]),
            float(line["std"]) if line["std"] else None,
        )
        for line in _table("meister2021")
        if line["table"] == table
    }


@cache
def _published(corpus_name: str) -> dict[str, tuple[float, bool]]:
    row = _ROWS.get(corpus_name)
    wanted = {("10", "A(alpha,alpha_fr)"): 1.0, ("11", "A(beta_uf,beta_log)"): 100.0}  # Table 11 prints shares
    values = {}
    for line in _table("snell2021"):
        scale = 1.0 if line["table"] == "5" else wanted.get((line["table"], line["quantity"]))
        if line["row"] == row and scale is not None:
            values[line["quantity"]] = (round(float(line["value"]) * scale, 2), line["never_reached"] == "1")
    return values


@cache
def _table(paper: str) -> list[dict[str, str]]:
    text = (files("heedful.papers") / "published" / f"{paper}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
