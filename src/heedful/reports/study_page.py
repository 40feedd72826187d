"""The page of a study: its data, agreements and models in words, and the numbers of its charts and slider."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig, study_preset
from heedful.data.catalog import is_named
from heedful.html import between, concept, symbol
from heedful.metrics.statistics import Estimate
from heedful.papers.published import published_agreements, published_bleu, published_stars
from heedful.reports import first_screen
from heedful.reports.examples import embed_heads, embed_pairs, embed_texts, embed_translations, embed_words, run_words
from heedful.reports.html import (
    MODEL_TITLES,
    NONE,
    TERMS,
    Arrays,
    Payload,
    duration,
    fill_training_page,
    interval,
    percent,
    with_interval,
)
from heedful.storage.serialization import digest
from heedful.studies.page_data import RECORDED, PageModel, PairExamples, StudyPageData, study_page_data
from heedful.studies.page_words import AttendedWords, TranslatedWords
from heedful.studies.result import (
    MIN_SEEDS,
    AgreementResult,
    AlignmentResult,
    Curve,
    ModelSummary,
    StudyResult,
    agreement_row,
)
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.verdict import size_of

_PURPOSES = {
    "standard": "attention learned with everything else; gives attention α, word knowledge β and influence Δ",
    "uniform": "attention frozen uniform; gives β^uf, word knowledge gained without attention",
    "attention-only": "attention learned, all else frozen at its random start; gives α^fr",
    "proxy": "a mean of word vectors; gives β^px, what counting words with {answer}s can teach",
    "logistic": "ℓ2-regularised unigram weights; gives β^log",
    "lexicon": "a table of which words stand opposite each other, then five rounds of EM; gives α^IBM",
}
_ENCODERS = {"lstm": "LSTM", "bilstm": "BiLSTM", "transformer": "Transformer", "affine": "affine", "embedding": "no"}


def render_study(run: RunDirectory) -> str:
    """The page as text."""
    run.config()
    result = run.result()
    data = study_page_data(run, result)
    payload = study_payload(run, result, data)
    command, about_command = rerun(run)
    return fill_training_page(
        "page.html.j2",
        payload,
        result=result,
        stage=result.verdict.status == "answered",
        kicker=first_screen.kicker(result, run.config()),
        headline=first_screen.headline(result, data.gain),
        trust=first_screen.trust(run.root),
        cards=first_screen.cards(result),
        gain=first_screen.gain_sentence(data.gain, result.task) if result.verdict.status == "answered" else "",
        decisions=result.data.get("decisions"),
        agreements=agreement_lines(result),
        learned=gate_sentences(result),
        alignment=alignment_sentences(result),
        has_paper=bool(payload.content["paper"]),
        models=model_lines(result),
        data_facts=data_facts(result),
        training_facts=training_facts(run, result),
        provenance=provenance(run, result),
        command=command,
        about_command=about_command,
    )


def agreement_key(name: str) -> str:
    """One key for A(u, v) and A(v, u): own and cross compare the same pair in either order.

    >>> agreement_key("A(beta_px,beta_uf)")
    'A(beta_uf,beta_px)'
    """
    u, v = name[2:-1].split(",")
    return f"A({v},{u})" if u in ("beta_px", "beta_log") else name


def agreement_lines(result: StudyResult) -> list[dict[str, str]]:
    """The table of agreements, own and cross of each pair together, with the paper's values where it has the corpus."""
    keys = list(dict.fromkeys(agreement_key(row.name) for row in result.agreements))
    ordered = sorted(result.agreements, key=lambda row: keys.index(agreement_key(row.name)))
    lines = [_agreement_line(row, result.data["name"]) for row in ordered]
    if result.task == "translation":
        lines = [line | {"control": line["control"].replace("label", "word")} for line in lines]
    return [line | {"size": size_word(row, result)} for line, row in zip(lines, ordered, strict=True)]


def size_word(row: AgreementResult, result: StudyResult) -> str:
    """How much an excess is, in words; a dash where the verdict answers nothing."""
    answered = row.evidence is not None and result.verdict.status == "answered"
    return (size_of(row.excess.value) or NONE) if answered else NONE


def _agreement_line(row: AgreementResult, corpus: str) -> dict[str, str]:
    """One row of the table, every cell as text."""
    published, bleu = published_agreements(corpus), published_bleu(corpus)
    key = agreement_key(row.name)
    xi_key = f"xi{key[1:]}"
    shown, seen = shown_value(row), row.evidence
    return {
        "name": symbol(row.name),
        "concept": concept(row.name),
        "whose": row.convention,
        "value": percent(shown.value),
        "interval": interval(shown),
        "n": f"{shown.n:,}",
        "expected": percent(largest_control(row)),
        "control": seen.control if seen else "shuffle",
        "excess": with_interval(row.excess),
        "random": percent(seen.random if seen else row.random),
        "shuffle": with_interval(seen.shuffle if seen else row.shuffle),
        "wrong": with_interval(seen.wrong) if seen and seen.wrong else NONE,
        "maximum": with_interval(row.estimate),
        "chosen": " · ".join(f"{step:,}" for step in row.chosen_steps or ()) or NONE,
        "accuracy_there": " · ".join(percent(share) for share in row.accuracy_there or ()) or NONE,
        "xi": percent(row.xi.value) + ("" if row.xi_reached else "*"),
        "xi_interval": interval(row.xi),
        "xi_seeds": " · ".join(percent(xi) for xi in row.xi_per_seed) or NONE,
        "seeds": with_interval(row.over_seeds)
        if len(row.per_seed) >= MIN_SEEDS
        else " · ".join(percent(share) for share in row.per_seed),
        "ties": f"{row.ties:,}",
        "xi_bleu": NONE if row.xi_bleu is None else f"{row.xi_bleu:.1f}",
        "paper": percent(published[key] / 100) if key in published else NONE,
        "paper_xi": (percent(published[xi_key] / 100) if xi_key in published else NONE)
        + ("*" if xi_key in published_stars(corpus) else ""),
        "paper_xi_bleu": f"{bleu[xi_key]:.1f}" if xi_key in bleu else NONE,
    }


def control_name(result: StudyResult) -> str:
    """What the chart's short lines are called."""
    return "largest control" if any(row.evidence for row in result.agreements) else "shuffle"


def gate_sentences(result: StudyResult) -> list[str]:
    """What the models learned, and where their highest weights lie; nothing for results that do not say."""
    gate, translating = result.verdict.gate, result.task == "translation"
    sentences = []
    if gate is not None:
        terms = TERMS[result.task]
        line = f"{terms['accuracy'].capitalize()} of the standard models on held-out {terms['examples']}: "
        line += with_interval(gate.accuracy)
        line += f"; always answering “{gate.answer}”: {percent(gate.baseline)}"
        if gate.logistic is not None:
            line += f"; logistic regression on word counts: {percent(gate.logistic)}"
        if gate.bleu is not None and gate.bleu_gain is not None:
            above = gate.bleu_gain
            line += (
                f"; BLEU {gate.bleu:.1f}, {above.value:.1f} ({between(f'{above.low:.1f}', f'{above.high:.1f}')}) more "
            )
            line += "than against other sentences’ references"
        sentences.append(f"{line}.")
    if result.top_positions:
        unit = "output words" if translating else "texts"
        parts = [
            f"{title} " + " · ".join(percent(getattr(top, kind)) for top in result.top_positions)
            for kind, title in (("word", "a word"), ("bos", "<bos>"), ("eos", "<eos>"), ("punctuation", "punctuation"))
        ]
        sentences.append(
            f"Share of {unit} whose highest weight lies on each kind of token, by seed: {'; '.join(parts)}."
        )
    return sentences


def model_lines(result: StudyResult) -> list[dict[str, str]]:
    """One line per kind of model, its seeds side by side."""
    lines = []
    for kind in dict.fromkeys(model.kind for model in result.models):
        models = [model for model in result.models if model.kind == kind]
        bleu = [f"{model.bleu[model.steps.index(model.best_step)]:.1f}" for model in models if model.bleu]
        fitted = kind == "lexicon" or all(len(model.steps) == 1 for model in models)
        lines.append(
            {
                "title": MODEL_TITLES[kind],
                "purpose": _PURPOSES[kind].format(**TERMS[result.task]),
                "accuracy": " · ".join(percent(model.best_accuracy) for model in models),
                "bleu": " · ".join(bleu) or NONE,
                "best_step": NONE if fitted else " · ".join(f"{model.best_step:,}" for model in models),
            }
        )
    return lines


def alignment_sentences(result: StudyResult) -> list[str]:
    """The alignment error rates in words; nothing where there are no gold alignments."""
    errors = result.alignment
    if errors is None:
        return []
    learned = _compared(errors.trained, errors.untrained)
    counted = _compared(errors.trained, errors.model_1)
    placed = _compared(errors.trained, errors.diagonal)
    course = {
        "lower": "So training has brought attention nearer to the gold alignment, though nobody showed it one",
        "higher": "So training has led attention away from the gold alignment",
        "open": "So it is not shown that training has brought attention nearer to the gold alignment",
    }
    than = {"lower": "better than", "higher": "worse than", "open": "not shown to differ from"}
    return [
        f"The alignment error rate (AER) of linking every word to the source word where attention is highest is "
        f"{with_interval(errors.trained)} after training, {with_interval(errors.untrained)} before, and "
        f"{percent(errors.chance)} by chance.",
        f"{course[learned]}. Its links are {than[counted]} those of IBM Model 1, which only counts words, "
        f"and {than[placed]} those of position alone.",
    ]


def _compared(one: Estimate, other: Estimate) -> str:
    """Whether the first of two error rates is lower or higher; open where their intervals overlap."""
    return "lower" if one.high < other.low else "higher" if one.low > other.high else "open"


def data_facts(result: StudyResult) -> list[tuple[str, str]]:
    """Facts about the corpus: name and value."""
    data, translating = result.data, result.task == "translation"
    length = f"{data['median_length']:,.0f} tokens, the two ends included"
    facts = [
        ("name", data["name"]),
        ("direction", " → ".join(data.get("languages", ()))),
        (
            TERMS[result.task]["examples"],
            f"{data['train']:,} to train on, {data['validation']:,} to validate, {data['test']:,} to test",
        ),
        ("labels", ", ".join(data["labels"])),
        ("most frequent label", f"{percent(data['majority'])} of the validation texts" if "majority" in data else ""),
        ("vocabulary", f"{data['vocabulary']:,} {'tokens for both sides' if translating else 'words'}"),
        ("median length", f"{length}, of the source" if translating else length),
        ("gold alignments", ("yes" if data["gold"] else "none") if "gold" in data else ""),
        ("licence", data["licence"]),
        ("source", data["source"]),
    ]
    return [(name, value) for name, value in facts if value]


def training_facts(run: RunDirectory, result: StudyResult) -> list[tuple[str, str]]:
    """Architecture, budget and seeds: name and value."""
    config = run.config()
    train = config.train
    parameters = run.model(ModelSpec("standard", result.seeds[0])).summary().get("parameters_outside_embedding")
    size = f"; {parameters:,} parameters besides the embedding" if parameters else ""
    budget = (
        f"{result.budget}: {train.steps:,} steps of {train.batch_size} {TERMS[result.task]['examples']}, "
        f"Adam at {train.learning_rate:g}; recorded at {len(train.evaluate_at)} steps"
    )
    return [
        ("architecture", _architecture(config) + size),
        ("budget", budget),
        ("seeds", ", ".join(map(str, result.seeds))),
    ]


def _architecture(config: StudyConfig) -> str:
    if config.task == "translation":
        translator = config.translator
        kind = {"lstm": "LSTM", "gru": "GRU", "transformer": "Transformer"}[translator.cell]
        layers = f"{translator.layers}-layer {kind} translator of width {translator.hidden}"
        return f"{translator.embedding}-wide embedding, {layers}"
    model = config.model
    directions = " per direction" if model.encoder == "bilstm" else ""
    encoder = f"{_ENCODERS[model.encoder]} encoder of width {model.hidden}{directions}"
    return f"{model.embedding}-wide embedding, {encoder}, {model.scorer} attention, {model.projection}"


def provenance(run: RunDirectory, result: StudyResult) -> list[tuple[str, str]]:
    """Time, machine and versions from the manifest; only the digests where there is none yet."""
    manifest = run.manifest()
    machine = manifest.machine
    facts = [
        ("finished", manifest.finished),
        ("took", None if manifest.seconds is None else duration(manifest.seconds)),
        ("machine", f"{machine['system']}, {machine['cores']} cores" if machine else None),
        ("device", manifest.details.get("device")),
        ("commit", manifest.commit),
        ("versions", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())),
        ("settings", result.config_digest),
        ("data", result.data["digest"]),
    ]
    return [(name, str(value)) for name, value in facts if value]


def rerun(run: RunDirectory) -> tuple[str | None, str]:
    """The command that repeats this study, where there is one, and a sentence about it."""
    config = run.config()
    if made_by := run.manifest().command:
        return (
            made_by,
            "The command that made this study. It continues from what its folder already has.",
        )
    if not is_named(config.data) and not Path(config.data).suffix:
        return None, "The texts of this study were passed in from Python, so no command can repeat it."
    command = _command(config)
    if command is None:
        return None, "Some of these settings have no option; they are in config.toml next to this page."
    return shlex.join(command), "This study was started from Python. This command runs the same study."


def _command(config: StudyConfig) -> list[str] | None:
    """`heedful study …` with the options that differ from the budget's preset; None where options cannot express it."""
    preset = study_preset(config.data, config.budget, config.task)
    columns = {name: getattr(config, name) for name in ("target", "text", "label", "validation", "test", "lower")}
    train = preset.train.changed(steps=config.train.steps, learning_rate=config.train.learning_rate)
    expressed = replace(preset, **columns, seeds=config.seeds, train=train, max_length=config.max_length)
    if digest(expressed) != digest(config) or config.seeds != tuple(range(len(config.seeds))):
        return None
    options: list[tuple[str, Any, Any]] = [
        ("--steps", config.train.steps, preset.train.steps),
        ("--learning-rate", config.train.learning_rate, preset.train.learning_rate),
        ("--max-length", config.max_length, preset.max_length),
        *((f"--{name}", value, None) for name, value in columns.items() if name not in ("target", "lower")),
    ]
    files = [config.data] if config.target is None else [config.data, config.target]
    command = ["heedful", "study", *files, "--budget", config.budget, "--seeds", str(len(config.seeds))]
    for option, value, usual in options:
        if value != usual:
            command += [option, str(value)]
    if config.lower is not None:
        command.append("--lower" if config.lower else "--no-lower")
    return command


def study_payload(run: RunDirectory, result: StudyResult, data: StudyPageData) -> Payload:
    """Agreements and curves from the result, examples and words from the page data."""
    arrays = Arrays()
    (models,) = data.models
    published = published_agreements(result.data["name"])
    content = {
        "task": result.task,
        "name": result.data["name"],
        "labels": result.data["labels"],
        "steps": list(models[0].steps),
        "agreements": drawn_agreements(result),
        "rows": [saved_row(row) for row in result.agreements],
        "paper": {name: value / 100 for name, value in published.items() if name.startswith("A(")},
        "random": result.random_agreement,
        "control": control_name(result),
        "accuracy": accuracy_curves(result),
        "references": _references(result),
        "entropy": asdict(result.entropy),
        "models": [shown_model(model) for model in models],
    }
    if result.task == "translation":
        content |= {"bleu": bleu_curves(result), "alignment": _alignment(result.alignment)}
    content |= embedded(data, [run], arrays)
    if data.heads is not None and data.examples is not None:
        content |= embed_heads(data.heads, data.examples, arrays)
    return Payload.of(content, arrays)


def embedded(
    data: StudyPageData,
    runs: Sequence[RunDirectory],
    arrays: Arrays,
    names: Sequence[str] = ("",),
    places: Sequence[Sequence[int]] = ((),),
) -> dict[str, Any]:
    """The examples and the words of all runs; names, places: of each run, as in `RunWords`."""
    if data.examples is None:
        return {}
    if isinstance(data.examples, PairExamples):
        translated = [table for table in data.words if isinstance(table, TranslatedWords)]
        content = embed_pairs(runs[0], data.examples, arrays)
        return content | embed_translations(translated, runs[0].tokeniser(), arrays, names, places)
    attended = [table for table in data.words if isinstance(table, AttendedWords)]
    rows = zip(runs, attended, names, places, strict=True)
    return embed_texts(runs[0], data.examples, arrays) | embed_words([run_words(*row) for row in rows], arrays)


def shown_model(model: PageModel) -> dict[str, Any]:
    """A model that the page lets choose, and what it is called there."""
    prefix = f"{model.run_name}: " if model.run_name else ""
    return {
        "name": model.name,
        "kind": model.kind,
        "title": f"{prefix}{MODEL_TITLES[model.kind]}, seed {model.seed}",
    }


def drawn_agreements(result: StudyResult) -> list[dict[str, Any]]:
    """What the charts know of the agreements of a study: the values that its verdict reads."""
    return [
        drawn_agreement(row.name, shown_value(row), largest_control(row), row.curve)
        | {"convention": row.convention, "read_at": _read_at(row)}
        for row in result.agreements
    ]


def _read_at(row: AgreementResult) -> list[int]:
    """The steps of the curve that the value is read at: chosen ones, or the last."""
    return sorted(set(row.chosen_steps)) if row.chosen_steps is not None else [row.curve.steps[-1]]


def shown_value(row: AgreementResult) -> Estimate:
    """The agreement on held-out texts with the interval that decides; as the paper reads it, where there is none."""
    return row.estimate if row.evidence is None else row.evidence.decisive_value


def largest_control(row: AgreementResult) -> float:
    """What the largest of the three controls gives; the matched shuffle where a result has no other."""
    return row.shuffle.value if row.evidence is None else row.evidence.expected


def drawn_agreement(name: str, estimate: Estimate, control: float, curve: Curve) -> dict[str, Any]:
    """What the charts know of an agreement; control: what chance or a control gives."""
    return {
        "key": agreement_key(name),
        "symbol": symbol(name),
        "concept": concept(name),
        "convention": "own",
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "control": control,
        "read_at": [],
        "curve": asdict(curve),
    }


def saved_row(row: AgreementResult) -> dict[str, Any]:
    """One line of the CSV file that the page offers; several seeds share a cell, separated by spaces."""
    several = {
        "per_seed": row.per_seed,
        "over_seeds_low": row.over_seeds.low,
        "over_seeds_high": row.over_seeds.high,
        "chosen_steps": row.chosen_steps,
        "accuracy_there": row.accuracy_there,
        **({} if row.xi_bleu is None else {"xi_bleu": row.xi_bleu}),
    }
    cells = agreement_row(row) | several
    return {name: " ".join(map(str, cell)) if isinstance(cell, tuple) else cell for name, cell in cells.items()}


def accuracy_curves(result: StudyResult) -> list[dict[str, Any]]:
    """Validation accuracy over training, one curve for each recorded model."""
    return [_curve(model, model.accuracy) for model in result.models if model.kind in RECORDED]


def bleu_curves(result: StudyResult) -> list[dict[str, Any]]:
    """BLEU over training as a share of 100, like all that is drawn."""
    return [_curve(model, [score / 100 for score in model.bleu]) for model in result.models if model.bleu]


def _curve(model: ModelSummary, values: Sequence[float | None]) -> dict[str, Any]:
    known = {"kind": model.kind, "title": MODEL_TITLES[model.kind], "seed": model.seed, "best": model.best_step}
    return known | {"steps": model.steps, "values": values}


def _references(result: StudyResult) -> list[dict[str, Any]]:
    """Levels to compare the curves of accuracy with."""
    levels = [(MODEL_TITLES["logistic"], result.mean_best_accuracy("logistic"))]
    levels.append(("most frequent label", result.data.get("majority")))
    return [{"title": title, "value": value} for title, value in levels if value is not None]


def _alignment(alignment: AlignmentResult | None) -> dict[str, Any] | None:
    """Alignment error of attention over training, and the levels to compare it with."""
    if alignment is None:
        return None
    levels = [
        ("counting α^IBM", alignment.counting),
        ("IBM Model 1", alignment.model_1),
        ("diagonal", alignment.diagonal),
    ]
    return {
        "curve": asdict(alignment.attention),
        "ends": [{"low": end.low, "high": end.high} for end in (alignment.untrained, alignment.trained)],
        "references": [{"title": title, "value": e.value, "low": e.low, "high": e.high} for title, e in levels]
        + [{"title": "chance", "value": alignment.chance}],
    }
