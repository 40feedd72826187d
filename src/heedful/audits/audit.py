"""An audit from beginning to end: passages are measured in chunks, the numbers become estimates and a verdict."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from heedful.audits.aligning import alignment_errors, output_words
from heedful.audits.asking import Subject
from heedful.audits.estimating import Table, chance, contrasts, scores
from heedful.audits.integrating import can_integrate, why_not
from heedful.audits.maps import asked
from heedful.audits.measuring import Examination, Part
from heedful.audits.parts import fingerprint, measured
from heedful.audits.passage import Passage
from heedful.audits.plausible import Rationales, marked_percent
from heedful.audits.result import AuditResult, LabelCount, Score
from heedful.audits.settings import AuditSettings
from heedful.audits.verdict import judge
from heedful.data.alignments import Alignment
from heedful.errors import ConfigError, DataError
from heedful.files import usable
from heedful.studies.lock import held
from heedful.studies.pool import OnProgress
from heedful.typed import digest

__all__ = ["AuditSettings", "run_audit"]


def run_audit(
    subject: Subject,
    passages: Sequence[Passage],
    *,
    out: Path | str,
    settings: AuditSettings | None = None,
    rationales: Rationales | None = None,
    links: Mapping[int, Alignment] | None = None,
    model: str = "",
    data: str = "",
    on_progress: OnProgress = lambda line: None,
) -> AuditResult:
    """Audit a model's attention on some passages; the model is left as it was found.

    out: a folder for `result.json` and for `parts/`, from which an audit that was broken off goes on. rationales: of a
    text, by its number, which of its words (special ones apart) people marked. links: of a text, its gold alignment
    (source word, output word), where the passages of a text are its output words in order. model, data: their names.
    """
    settings, out = settings or AuditSettings(), Path(out)
    usable = [passage for passage in passages if passage.pieces and asked(passage).any()]
    if not usable:
        raise DataError(f"none of {len(passages)} passages has a word to explain")
    left_out = () if can_integrate() or not settings.integrated_steps else (why_not(),)
    for sentence in left_out:
        on_progress({"model": "audit", "notice": sentence})
    drawn = _sample(usable, settings)
    examination = _examination(subject, drawn, settings, rationales)
    marked = [(passage, i < settings.examples) for i, passage in enumerate(drawn)]
    ordered = sorted(marked, key=lambda pair: _size(pair[0]), reverse=True)  # the longest first: memory fails at once
    with held(out):
        parts = measured(
            out / "parts",
            [ordered[i : i + settings.chunk] for i in range(0, len(ordered), settings.chunk)],
            lambda chunk: examination.measure([p for p, _ in chunk], examples=[kept for _, kept in chunk]),
            key=_key(examination),
            on_progress=on_progress,
        )
        read = [passage for passage, _ in ordered]
        table = _table(parts, read, settings)
        errors: tuple[Score, ...] = ()
        if links is not None:
            errors = alignment_errors(read, table.numbers, links, output_words(usable), settings)
        result = replace(
            _result(examination, read, parts, table, errors),
            model=model,
            data=data,
            wordless=len(passages) - len(usable),
            left_out=left_out,
        )
        result.save(out / "result.json")
    return result


def free_folder(out: Path | str) -> Path:
    """A folder for an audit: new, or of an audit before; never one in which something else lives.

    >>> free_folder("runs/audit-mine").name
    'audit-mine'
    """
    folder = Path(out)
    others = {"config.toml": "a study", "following.json": "a followed training", "config.json": "a model"}
    if usable(folder).exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; an audit needs a folder")
    for name, what in others.items():
        if (folder / name).exists():
            raise ConfigError(f"{folder} holds {what}; choose another folder for the audit")
    return folder


def _size(passage: Passage) -> tuple[int, int]:
    return len(passage.pieces), len(passage.before)


def _sample(passages: Sequence[Passage], settings: AuditSettings) -> list[Passage]:
    """The passages of as many texts as were asked for, in their order."""
    texts = sorted({passage.text for passage in passages})
    kept = set(np.random.default_rng(settings.seed).permutation(texts)[: settings.sample].tolist())
    return [passage for passage in passages if passage.text in kept]


def _examination(
    subject: Subject, passages: Sequence[Passage], settings: AuditSettings, rationales: Rationales | None
) -> Examination:
    random = subject.network.randomised(settings.seed)
    frozen = None if random is None else Subject(random, subject.reader, max_tokens=subject.max_tokens)
    percent = None if rationales is None else marked_percent(passages, rationales)
    return Examination(subject, frozen, settings, rationales, percent)


def _key(examination: Examination) -> str:
    """Whatever decides what is measured of a passage."""
    frozen, rationales = examination.frozen, examination.rationales or {}
    return digest(
        {
            "settings": replace(examination.settings, sample=None, resamples=1, chunk=1, examples=0),
            "networks": [fingerprint(examination.subject.network), frozen and fingerprint(frozen.network)],
            "labels": examination.subject.reader.labels,
            "rationales": {text: np.asarray(marked, dtype=bool).tolist() for text, marked in rationales.items()},
            "percent": examination.percent,
            "integrates": can_integrate(),
        }
    )


def _table(parts: Sequence[Part], passages: Sequence[Passage], settings: AuditSettings) -> Table:
    """All parts end to end; a number that a part does not have is NaN there."""
    names = dict.fromkeys(name for part in parts for name in part.numbers)
    special = settings.include_special
    return Table(
        text=np.array([passage.text for passage in passages]),
        words=np.array([int(asked(passage, include_special=special).sum()) for passage in passages]),
        position=np.array([len(passage.before) for passage in passages]),
        numbers={
            name: np.concatenate([part.numbers.get(name, np.full(len(part.outputs), np.nan)) for part in parts])
            for name in names
        },
        important={name: [row for part in parts for row in part.important[name]] for name in parts[0].important},
        seed=settings.seed,
        resamples=settings.resamples,
    )


def _result(
    examination: Examination,
    passages: Sequence[Passage],
    parts: Sequence[Part],
    table: Table,
    errors: tuple[Score, ...],
) -> AuditResult:
    network, headline, right = examination.subject.network, examination.headline, table.numbers["correct"]
    found = scores(table) + errors
    differ = contrasts(table, headline)
    guessed = chance(table)
    return AuditResult(
        settings=asdict(examination.settings),
        fingerprint=fingerprint(network),
        layers=network.layers,
        heads=network.heads,
        query=network.query,
        headline=headline,
        texts=len(np.unique(table.text)),
        passages=len(passages),
        cut=sum(passage.cut > 0 for passage in passages),
        cut_pieces=sum(passage.cut for passage in passages),
        labels=_labels(examination.subject.reader.labels, passages, parts),
        accuracy=None if np.isnan(right).all() else table.mean(right),
        random_agreement=guessed,
        rationale_percent=examination.percent,
        scores=found,
        contrasts=differ,
        verdict=judge(
            found,
            differ,
            headline=headline,
            layers=network.layers,
            random_agreement=guessed,
            searched=examination.settings.adversary_steps,
        ),
        examples=tuple(sorted((e for part in parts for e in part.examples), key=lambda example: example.text)),
    )


def _labels(names: Sequence[str], passages: Sequence[Passage], parts: Sequence[Part]) -> tuple[LabelCount, ...]:
    gold = Counter(passage.label for passage in passages)
    predicted = Counter(name for part in parts for name in part.predicted)
    known = dict.fromkeys((*names, *sorted(label for label in gold if label is not None))) if names else {}
    return tuple(LabelCount(name, gold[name], predicted[name]) for name in known)
