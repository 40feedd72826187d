"""IBM Model 1 against nltk, systran-align (fast_align) and eflomal: 30,000 pairs of 15 words, 8,000 types, Zipf."""

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from benchmarks.case import Case, Point

from heedful.data.ragged import Ragged
from heedful.models.lexicon import count_table, ibm_model_1
from heedful.preflights.information import informativeness

PAIRS, LENGTH, TYPES = 30_000, 15, 8_000


def cases(quick: bool) -> Iterator[Case]:
    sources, targets = corpus(PAIRS)
    size = f"{PAIRS:,} pairs of {LENGTH} words, {TYPES:,} types"
    if find_spec("nltk"):
        from nltk.translate import AlignedSent, IBMModel1

        given = PAIRS // 10 if quick else PAIRS
        bitext = [
            AlignedSent([str(w) for w in y], [str(w) for w in x])
            for x, y in zip(list(sources)[:given], list(targets)[:given], strict=True)
        ]
        yield Case(
            work=f"IBM Model 1, one iteration, {size}",
            peer="nltk.translate.IBMModel1",
            ours=lambda: ibm_model_1(sources, targets, 1),
            theirs=lambda: IBMModel1(bitext, 1),
            bar=80,
            share=given / PAIRS,
        )
    folder = Path(tempfile.mkdtemp())
    one, other = ([" ".join(map(str, row)) for row in side] for side in (sources, targets))
    if find_spec("systran_align"):
        import systran_align

        text = folder / "both"
        text.write_text("".join(f"{x} ||| {y}\n" for x, y in zip(one, other, strict=True)))
        files = str(text), str(folder / "forward"), str(folder / "backward")
        yield Case(
            work=f"IBM Model 1, five iterations in both directions, {size}",
            peer="systran-align (from and to files)",
            ours=lambda: (ibm_model_1(sources, targets, 5), ibm_model_1(targets, sources, 5)),
            theirs=lambda: systran_align.generate_alignment_probabilities(*files, iterations=5, no_null_word=True),
            bar=8,
        )
    if find_spec("eflomal"):
        import eflomal

        (folder / "source").write_text("\n".join(one) + "\n")
        (folder / "target").write_text("\n".join(other) + "\n")

        def theirs():
            aligner = eflomal.Aligner(model=1, n_iterations=(5, 0, 0), n_samplers=1)
            with (folder / "source").open() as x, (folder / "target").open() as y:
                aligner.align(x, y, links_filename_fwd=str(folder / "links"), quiet=True)

        yield Case(
            work=f"IBM Model 1, five iterations, {size}",
            peer="eflomal (Gibbs sampling, from and to files)",
            ours=lambda: ibm_model_1(sources, targets, 5),
            theirs=theirs,
            bar=1.3,
        )


def growth() -> Iterator[Point]:
    few = corpus(100)
    count_table(*few).matrix(), ibm_model_1(*few, 5), informativeness(*few)  # compiled here, not on the clock
    for pairs in (10_000, 100_000, 1_000_000):
        sources, targets = corpus(pairs)
        yield Point("count table C", f"{pairs:,} pairs", lambda x=sources, y=targets: count_table(x, y).matrix())
    for pairs in (10_000, 100_000, 1_000_000):
        sources, targets = corpus(pairs)
        yield Point(
            "IBM Model 1, five iterations", f"{pairs:,} pairs", lambda x=sources, y=targets: ibm_model_1(x, y, 5)
        )
    for pairs in (10_000, 100_000):
        sources, targets = corpus(pairs)
        yield Point("informativeness", f"{pairs:,} pairs", lambda x=sources, y=targets: informativeness(x, y))


def corpus(pairs: int) -> tuple[Ragged, Ragged]:
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(1, TYPES + 1)
    offsets = np.arange(pairs + 1, dtype=np.int64) * LENGTH
    drawn = rng.choice(TYPES, size=(2, pairs * LENGTH), p=weights / weights.sum()).astype(np.int32)
    return Ragged(drawn[0], offsets), Ragged(drawn[1], offsets)
