"""Embed examples and words in a page: numbers quantised to a byte or two, tokens spelt out.

What the page marks (the highest position, the rank of β) is embedded as it was computed, before any rounding, so that
the page agrees with `result.json`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.ragged import Ragged
from heedful.data.subwords import Subwords, Tokeniser
from heedful.data.vocabulary import BOS, EOS, PAD, UNK
from heedful.reports.html import Arrays
from heedful.studies.page_data import HeadExamples, ModelView, PairExamples, TextExamples, top
from heedful.studies.page_words import AttendedWords, TranslatedWords
from heedful.studies.run_directory import RunDirectory

ALPHA_LEVELS, SIGNED_LEVELS, ROW_LEVELS = 255, 127, 255
ODDS_SCALE, ODDS_LIMIT = 1000, 32  # log-odds are embedded to a thousandth, up to ±32
_SPECIAL = {PAD: "pad", UNK: "unknown", BOS: "start", EOS: "end"}
_WORD_BEGINS = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's sign for a space


def embed_texts(run: RunDirectory, examples: TextExamples, arrays: Arrays) -> dict[str, Any]:
    """The chosen validation texts of a study, spelt as they were written, as every model saw them."""
    written = run.words()
    used: dict[tuple[str, str], int] = {}
    places = [
        used.setdefault((word, special(token)), len(used))
        for i in map(int, examples.index)
        for token, word in zip(examples.split.text(i).tolist(), ["", *written[i], ""], strict=True)
    ]
    arrays.add("places", np.array(places, dtype=np.uint32))
    if examples.counted is not None:
        _add_attention(arrays, "lexicon/counting", [examples.counted])
    embed_views(examples, arrays)
    return {
        "texts": text_facts(examples),
        "words": [word for word, _ in used],
        "special": [kind for _, kind in used],
    }


def text_facts(examples: TextExamples, *, labelled: bool = True) -> dict[str, Any]:
    """Number, label and length of each text that is shown, and how many texts there are."""
    split, index = examples.split, examples.index
    return {
        "index": index.tolist(),
        "label": split.labels[index].tolist() if labelled else [None] * len(index),
        "length": split.lengths[index].tolist(),
        "of": len(split),
        "featured": examples.featured,
    }


def embed_views(examples: TextExamples, arrays: Arrays) -> None:
    """α, β and Δ of the texts, quantised, step by step, for every model.

    α is embedded as √α in 255 levels, β's log-odds and Δ as signed square roots in 127 levels each way of the largest.
    A model whose attention is fixed has no α, `top` or `higher`.
    """
    for view in examples.views:
        for quantity, rows in (("beta_logit", view.beta_logit), ("delta", view.delta)):
            values = np.stack([step.values for step in rows])
            largest = float(np.abs(values).max()) or 1.0
            arrays.add(f"{view.name}/{quantity}", _signed_levels(values / largest), largest=largest)
        if view.alpha:
            alpha = np.stack([step.values for step in view.alpha])
            arrays.add(f"{view.name}/alpha", np.rint(np.sqrt(alpha) * ALPHA_LEVELS).astype(np.uint8))
            arrays.add(f"{view.name}/top", _tops(view.alpha))
            arrays.add(f"{view.name}/higher", view.higher().astype(np.uint16))
            arrays.add(f"{view.name}/moved", view.moved().astype(np.float32))
        arrays.add(f"{view.name}/prediction", view.prediction.astype(np.uint16))
        arrays.add(f"{view.name}/log_odds", _odds(view.log_odds))


def embed_pairs(run: RunDirectory, examples: PairExamples, arrays: Arrays) -> dict[str, Any]:
    """The chosen validation pairs of a study, as every model saw them."""
    predictions = [view.prediction.ravel() for view in examples.views]
    used = np.unique(np.concatenate([examples.source.values, examples.outputs.values, *predictions]))
    kind = np.uint16 if len(used) < 1 << 16 else np.uint32
    arrays.add("source", np.searchsorted(used, examples.source.values).astype(kind))
    arrays.add("target", np.searchsorted(used, examples.outputs.values).astype(kind))
    for view in examples.views:
        _add_pair_view(arrays, view)
        arrays.add(f"{view.name}/prediction", np.searchsorted(used, view.prediction).astype(kind))
        if view.name in examples.errors:
            arrays.add(f"{view.name}/aer", examples.errors[view.name])
    for name, alpha in zip(("counting", "model_1"), examples.counted, strict=True):
        _add_attention(arrays, f"lexicon/{name}", [alpha])
    if examples.gold is not None:
        arrays.add("gold", examples.gold)
    return {
        "pairs": {
            "index": examples.index.tolist(),
            "length": examples.source.lengths.tolist(),
            "outputs": examples.outputs.lengths.tolist(),
            "of": len(examples.split),
            "gold": examples.gold is not None,
            "featured": examples.featured,
        },
        "languages": run.data_summary()["languages"],
        **spelling(run.tokeniser(), used),
    }


def embed_heads(heads: HeadExamples, examples: TextExamples | PairExamples, arrays: Arrays) -> dict[str, Any]:
    """What every head attends to, √α in 255 levels: step by step, text by text, layer by layer, head by head."""
    flat = np.concatenate([weights.ravel() for step in heads.weights for weights in step])
    arrays.add("heads", np.rint(np.sqrt(flat) * ALPHA_LEVELS).astype(np.uint8))
    places = {int(i): place for place, i in enumerate(examples.index)}
    items = [places[int(i)] for i in heads.index]
    return {"heads": {"layers": heads.layers, "heads": heads.heads, "items": items}}


def _add_pair_view(arrays: Arrays, view: ModelView) -> None:
    """One model's α, β and Δ of the pairs, quantised, step by step.

    α as for texts; β's log-odds in 255 levels between the lowest and the highest of their row; Δ as signed square roots
    in 127 levels each way of the row's largest.
    """
    levels, lows, highs = [], [], []
    for rows in view.beta_logit:
        starts = rows.offsets[:-1]
        low, high = np.minimum.reduceat(rows.values, starts), np.maximum.reduceat(rows.values, starts)
        span = np.where(high > low, high - low, 1.0)
        share = (rows.values - np.repeat(low, rows.lengths)) / np.repeat(span, rows.lengths)
        levels.append(np.rint(share * ROW_LEVELS))
        lows.append(low)
        highs.append(high)
    arrays.add(f"{view.name}/beta", np.stack(levels).astype(np.uint8))
    arrays.add(f"{view.name}/beta_low", _odds(np.stack(lows)))
    arrays.add(f"{view.name}/beta_high", _odds(np.stack(highs)))
    arrays.add(f"{view.name}/beta_top", _tops(view.beta_logit))
    peaks = [np.maximum.reduceat(np.abs(rows.values), rows.offsets[:-1]) for rows in view.delta]
    shares = [
        rows.values / np.repeat(np.where(peak > 0, peak, 1.0), rows.lengths)
        for rows, peak in zip(view.delta, peaks, strict=True)
    ]
    arrays.add(f"{view.name}/delta", _signed_levels(np.stack(shares)))
    arrays.add(f"{view.name}/delta_peak", np.stack(peaks).astype(np.float32))
    arrays.add(f"{view.name}/delta_top", _tops(view.delta))
    if view.alpha:
        _add_attention(arrays, f"{view.name}/alpha", view.alpha)
        arrays.add(f"{view.name}/higher", view.higher().astype(np.uint16))
    arrays.add(f"{view.name}/log_odds", _odds(view.log_odds))


def _add_attention(arrays: Arrays, name: str, alphas: Sequence[Ragged]) -> None:
    """α, or α^IBM, of every position at every step, and the highest position of every row."""
    values = np.stack([rows.values for rows in alphas])
    arrays.add(name, np.rint(np.sqrt(values) * ALPHA_LEVELS).astype(np.uint8))
    arrays.add(f"{name}_top", _tops(alphas))


def _tops(steps: Sequence[Ragged]) -> NDArray[np.uint16]:
    return np.stack([top(rows) for rows in steps]).astype(np.uint16)


def _signed_levels(shares: NDArray[np.floating]) -> NDArray[np.int8]:
    levels: NDArray[np.int8] = np.rint(np.sign(shares) * np.sqrt(np.abs(shares)) * SIGNED_LEVELS).astype(np.int8)
    return levels


def _odds(log_odds: NDArray[np.floating]) -> NDArray[np.int16]:
    bounded = np.clip(log_odds, -ODDS_LIMIT, ODDS_LIMIT)
    thousandths: NDArray[np.int16] = np.rint(bounded * ODDS_SCALE).astype(np.int16)
    return thousandths


@dataclass(frozen=True)
class RunWords:
    """The words of one run.

    name: the run's, on a page of several. places: which of the run's own steps is shown at each step of the slider;
    empty where they are the same. spelt: each row of the table as it is written, and its name if it is no word.
    """

    table: AttendedWords
    spelt: tuple[tuple[str, str], ...]
    name: str = ""
    places: tuple[int, ...] = ()


def run_words(run: RunDirectory, table: AttendedWords, name: str = "", places: Sequence[int] = ()) -> RunWords:
    """The words of a study, spelt by its vocabulary."""
    vocabulary = run.vocabulary().words
    return RunWords(table, tuple((vocabulary[i], special(int(i))) for i in table.ids), name, tuple(places))


def embed_words(runs: Sequence[RunWords], arrays: Arrays) -> dict[str, Any]:
    """The words that all runs have, with n·α and β of each run."""
    rows = [{spelt: row for row, spelt in enumerate(run.spelt)} for run in runs]
    shared = [spelt for spelt in runs[0].spelt if all(spelt in row_of for row_of in rows)]
    for run, row_of in zip(runs, rows, strict=True):
        chosen = [row_of[spelt] for spelt in shared]
        arrays.add(f"{_prefix(run.name)}tokens/attention", run.table.attention[:, chosen])
        arrays.add(f"{_prefix(run.name)}tokens/beta", run.table.beta[:, chosen])
        if run.table.polarity is not None:
            arrays.add(f"{_prefix(run.name)}tokens/polarity", run.table.polarity[:, chosen])
    alone = runs[0].table.moments if len(runs) == 1 else ()
    return {
        "moments": [{"place": m.place, "text": spelt_word(*runs[0].spelt[m.word])} for m in alone],
        "tokens": {
            "words": [word for word, _ in shared],
            "special": [kind for _, kind in shared],
            "counts": [int(runs[0].table.counts[rows[0][spelt]]) for spelt in shared],
            "least": max(run.table.least for run in runs),
            "seeds": max(run.table.seeds for run in runs),
            "runs": [{"name": run.name, "places": list(run.places) or None} for run in runs],
        },
    }


def embed_translations(
    tables: Sequence[TranslatedWords],
    tokeniser: Tokeniser,
    arrays: Arrays,
    names: Sequence[str] = ("",),
    places: Sequence[Sequence[int]] = ((),),
) -> dict[str, Any]:
    """The source words of the first run with their translations in every run; counts are the first run's.

    names, places: of each run, as in `RunWords`.
    """
    table = tables[0]
    rankings = {"counting": table.counting, "model_1": table.model_1}
    for name, one in zip(names, tables, strict=True):
        rankings |= {f"{_prefix(name)}knowledge": one.knowledge, f"{_prefix(name)}attention": one.attention}
    used = np.unique(np.concatenate([table.ids, *(ranking.tokens.ravel() for ranking in rankings.values())]))
    used = used[used >= 0]
    for name, ranking in rankings.items():
        tokens = np.where(ranking.tokens < 0, len(used), np.searchsorted(used, ranking.tokens))
        arrays.add(f"translations/{name}", tokens.astype(np.uint16))
        arrays.add(f"translations/{name}_score", ranking.scores)
    alone = len(tables) == 1
    if alone:
        arrays.add("translations/course", table.course)
        arrays.add("translations/raised", table.raised)
    spelt = spelling(tokeniser, used)

    def word(token: int) -> str:
        at = int(np.searchsorted(used, token))
        return spelt_word(spelt["words"][at], spelt["special"][at])

    moments = table.moments if alone else ()
    return {
        "moments": [
            {"place": m.place, "text": f"{word(int(table.ids[m.word]))} → {word(m.to)}"}
            for m in moments
            if m.to is not None
        ],
        "translations": {
            "source": np.searchsorted(used, table.ids).tolist(),
            "counts": table.counts.tolist(),
            "least": table.least,
            "meetings": table.meetings,
            "seeds": max(one.seeds for one in tables),
            "best": table.counting.tokens.shape[-1],
            "runs": [{"name": name, "places": list(own) or None} for name, own in zip(names, places, strict=True)],
            **spelt,
        },
    }


def spelt_word(word: str, kind: str) -> str:
    """A word, or the name of a token that is none.

    >>> spelt_word("dog", ""), spelt_word("", "end")
    ('dog', '‹end›')
    """
    return word or f"‹{kind}›"


def special(token: int) -> str:
    """The name of a token that is no word; empty for all others.

    >>> special(3), special(4)
    ('end', '')
    """
    return _SPECIAL.get(token, "")


def spelling(tokeniser: Tokeniser, tokens: Sequence[int] | NDArray[np.integer]) -> dict[str, list[Any]]:
    """The text of each token; its name if it is no word; and whether it continues the word before it.

    >>> from heedful.data.subwords import Words
    >>> from heedful.data.vocabulary import Vocabulary
    >>> spelling(Words(Vocabulary.build([["ein"]], min_count=1)), [2, 4])
    {'words': ['<bos>', 'ein'], 'special': ['start', ''], 'joined': [0, 0]}
    """
    spelt: dict[str, list[Any]] = {"words": [], "special": [], "joined": []}
    for token in map(int, tokens):
        piece = _piece(tokeniser, token)
        begins = not isinstance(tokeniser, Subwords) or piece.startswith(_WORD_BEGINS)
        spelt["words"].append(piece.removeprefix(_WORD_BEGINS) or piece if isinstance(tokeniser, Subwords) else piece)
        spelt["special"].append(special(token))
        spelt["joined"].append(int(not begins and not special(token)))
    return spelt


def _piece(tokeniser: Tokeniser, token: int) -> str:
    if isinstance(tokeniser, Subwords):
        return str(tokeniser.processor.id_to_piece(token))
    words: tuple[str, ...] = tokeniser.vocabulary.words  # type: ignore[attr-defined]
    return words[token]


def _prefix(name: str) -> str:
    return f"{name}/" if name else ""
