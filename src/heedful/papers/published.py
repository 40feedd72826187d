"""Published numbers: the tables of the papers as data, by the names used here."""

import csv
from functools import cache
from importlib.resources import files

_ROWS = {
    "imdb": "IMDB",
    "sst": "SST",
    "20news-sport-quoted": "20 NG",
    "ag-news": "AG News",
    "amazon": "Amzn",
    "yelp": "Yelp",
    "iwslt14": "IWSLT14",
    "iwslt14:de-en": "IWSLT14",
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
    found = {name: value for name, (value, _) in _row("5", corpus_name).items()}
    for table, name, scale in (("10", "A(alpha,alpha_fr)", 1.0), ("11", "A(beta_uf,beta_log)", 100.0)):
        if name in _row(table, corpus_name):
            found[name] = round(_row(table, corpus_name)[name][0] * scale, 2)  # Table 11 prints shares
    return found


def published_stars(corpus_name: str) -> frozenset[str]:
    """The ξ that snell2021 marks `*`: an agreement that another seed's attention never exceeded.

    >>> sorted(published_stars("sst"))
    ['xi(beta_uf,beta_px)']
    """
    return frozenset(name for name, (_, star) in _row("5", corpus_name).items() if star)


def published_bleu(corpus_name: str) -> dict[str, float]:
    """ξ by BLEU that snell2021 prints for a parallel corpus (Table 6); empty where it is none of the paper's.

    >>> published_bleu("multi30k:de-en")["xi(alpha,beta)"], published_bleu("sst")
    (16.41, {})
    """
    return {name: value for name, (value, _) in _row("6", corpus_name).items() if name.startswith("xi")}


def _row(table: str, corpus_name: str) -> dict[str, tuple[float, bool]]:
    printed = published_table("snell2021", table)
    return {name: number for (row, name), number in printed.items() if row == _ROWS.get(corpus_name)}


@cache
def published_table(paper: str, table: str) -> dict[tuple[str, str], tuple[float, bool]]:
    """A printed table by (row, quantity): the value, and whether it is marked `*`.

    >>> published_table("snell2021", "2")["SST", "A(alpha,beta)"]
    (25.0, False)
    """
    lines = published_lines(paper, table)
    return {(line["row"], line["quantity"]): (float(line["value"]), line["never_reached"] == "1") for line in lines}


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
        for line in published_lines("meister2021", table)
    }


def published_lines(paper: str, table: str) -> list[dict[str, str]]:
    """The lines of a printed table by the heads of its columns.

    >>> published_lines("sunlu2020", "1")[0]["quantity"]
    'average length'
    """
    return [line for line in csv_rows(paper) if line["table"] == table]


@cache
def csv_rows(name: str) -> list[dict[str, str]]:
    """The rows of a file that comes with the package.

    >>> csv_rows("snell2021_claims")[0]["id"]
    'S1'
    """
    text = (files("heedful.papers") / "published" / f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
