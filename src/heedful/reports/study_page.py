"""The page of a study: what was studied, the table of agreements, the models, how to run it again."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig, study_preset
from heedful.data.catalog import is_named
from heedful.html import symbol
from heedful.metrics.statistics import Estimate
from heedful.papers.published import published_agreements, published_bleu, published_stars
from heedful.reports.html import MODEL_TITLES, NONE, duration, fill_training_page, interval, percent, with_interval
from heedful.reports.study_payload import agreement_key, study_payload
from heedful.storage.serialization import digest
from heedful.studies.page_data import study_page_data
from heedful.studies.result import AgreementResult, StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory

_PURPOSES = {
    "standard": "attention learned with everything else; gives α, β and Δ",
    "uniform": "attention frozen uniform; gives β^uf, word knowledge gained without attention",
    "attention-only": "attention learned, all else frozen at its random start; gives α^fr",
    "proxy": "a mean of word vectors; gives β^px, what counting words with {answers} can teach",
    "logistic": "ℓ2-regularised unigram weights; gives β^log",
    "lexicon": "a table of which words stand opposite each other, then five rounds of EM; gives α^IBM",
}
_ENCODERS = {"lstm": "LSTM", "bilstm": "BiLSTM", "transformer": "Transformer", "affine": "affine", "embedding": "no"}


@dataclass(frozen=True)
class AgreementLine:
    """One row of the table of agreements, every cell as text."""

    name: str
    whose: str
    value: str
    interval: str
    n: str
    random: str
    shuffle: str
    split_half: str
    chosen: str
    accuracy_there: str
    xi: str
    xi_interval: str
    seeds: str
    ties: str
    xi_bleu: str
    paper: str
    paper_xi: str
    paper_xi_bleu: str


@dataclass(frozen=True)
class ModelLine:
    """One kind of model: its purpose and its accuracy."""

    title: str
    purpose: str
    accuracy: str
    bleu: str
    best_step: str


@dataclass(frozen=True)
class GlossaryTerms:
    """The terms of one kind of study."""

    example: str
    examples: str
    row: str
    rows: str
    accuracy: str
    answer: str


TERMS = {
    "classification": GlossaryTerms("text", "texts", "text", "texts", "accuracy", "label"),
    "translation": GlossaryTerms(
        "sentence pair", "pairs", "output word", "output words", "token accuracy", "output word"
    ),
}


def render_study(run: RunDirectory) -> str:
    """The page as text."""
    run.config()
    result = run.result()
    payload = study_payload(run, result, study_page_data(run, result))
    command, about_command = rerun(run)
    return fill_training_page(
        "page.html.j2",
        payload,
        result=result,
        decisions=result.data.get("decisions"),
        agreements=agreement_lines(result),
        terms=terms(result),
        alignment=alignment_sentences(result),
        has_paper=bool(payload.content["paper"]),
        models=model_lines(result),
        data_facts=data_facts(result),
        training_facts=training_facts(run, result),
        provenance=provenance(run, result),
        command=command,
        about_command=about_command,
    )


def terms(result: StudyResult) -> GlossaryTerms:
    """The terms of a study's task."""
    return TERMS[result.task]


def agreement_lines(result: StudyResult) -> list[AgreementLine]:
    """The table of agreements, own and cross of each pair together, with the paper's values where it has the corpus."""
    name = result.data["name"]
    published, stars, bleu = published_agreements(name), published_stars(name), published_bleu(name)
    keys = list(dict.fromkeys(agreement_key(row.name) for row in result.agreements))
    ordered = sorted(result.agreements, key=lambda row: keys.index(agreement_key(row.name)))
    return [_agreement_line(row, published, stars, bleu) for row in ordered]


def model_lines(result: StudyResult) -> list[ModelLine]:
    """One line per kind of model, its seeds side by side."""
    lines = []
    for kind in dict.fromkeys(model.kind for model in result.models):
        models = [model for model in result.models if model.kind == kind]
        best = [percent(model.best_accuracy) for model in models]
        at = [f"{model.best_step:,}" for model in models]
        bleu = [f"{model.bleu[model.steps.index(model.best_step)]:.1f}" for model in models if model.bleu]
        fitted = kind == "lexicon" or all(len(model.steps) == 1 for model in models)
        lines.append(
            ModelLine(
                MODEL_TITLES[kind],
                _PURPOSES[kind].format(answers=f"{terms(result).answer}s"),
                " · ".join(best),
                " · ".join(bleu) or NONE,
                NONE if fitted else " · ".join(at),
            )
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
            terms(result).examples,
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
        f"{result.budget}: {train.steps:,} steps of {train.batch_size} {terms(result).examples}, "
        f"Adam at {train.learning_rate:g}; recorded at {len(train.evaluate_at)} steps"
    )
    return [
        ("architecture", _architecture(config) + size),
        ("budget", budget),
        ("seeds", ", ".join(map(str, result.seeds))),
    ]


def provenance(run: RunDirectory, result: StudyResult) -> list[tuple[str, str]]:
    """Time, machine and versions from the manifest; only the digests where there is none yet."""
    facts = [("settings", result.config_digest), ("data", result.data["digest"])]
    manifest = run.manifest()
    machine = manifest.machine
    recorded: list[tuple[str, Any]] = [
        ("finished", manifest.finished),
        ("took", None if manifest.seconds is None else duration(manifest.seconds)),
        ("machine", f"{machine['system']}, {machine['cores']} cores" if machine else None),
        ("device", manifest.details.get("device")),
        ("commit", manifest.commit),
        ("versions", ", ".join(f"{name} {version}" for name, version in manifest.versions.items())),
    ]
    return [*((name, str(value)) for name, value in recorded if value), *facts]


def rerun(run: RunDirectory) -> tuple[str | None, str]:
    """The command that repeats this study, where there is one, and a sentence about it."""
    config = run.config()
    if made_by := run.manifest().command:
        return made_by, "The command that made this study. It goes on from what its folder already holds."
    if not is_named(config.data) and not Path(config.data).suffix:
        return None, "The texts of this study were handed over from Python, so no command can name them."
    command = _command(config)
    if command is None:
        return None, "No command can say these settings; they stand in config.toml beside this page."
    return shlex.join(command), "This study was started from Python; this command asks for the same."


def _architecture(config: StudyConfig) -> str:
    if config.task == "translation":
        translator = config.translator
        layers = f"{translator.layers}-layer LSTM translator of width {translator.hidden}"
        return f"{translator.embedding}-wide embedding, {layers}"
    model = config.model
    directions = " per direction" if model.encoder == "bilstm" else ""
    encoder = f"{_ENCODERS[model.encoder]} encoder of width {model.hidden}{directions}"
    return f"{model.embedding}-wide embedding, {encoder}, {model.scorer} attention, {model.projection}"


def _agreement_line(
    row: AgreementResult, published: dict[str, float], stars: frozenset[str], bleu: dict[str, float]
) -> AgreementLine:
    key = agreement_key(row.name)
    xi_key = f"xi{key[1:]}"
    return AgreementLine(
        name=symbol(row.name),
        whose=row.convention,
        value=percent(row.estimate.value),
        interval=interval(row.estimate),
        n=f"{row.estimate.n:,}",
        random=percent(row.random),
        shuffle=with_interval(row.shuffle),
        split_half=percent(row.split_half),
        chosen=" · ".join(f"{step:,}" for step in row.chosen_steps or ()) or NONE,
        accuracy_there=" · ".join(percent(share) for share in row.accuracy_there or ()) or NONE,
        xi=percent(row.xi.value) + ("" if row.xi_reached else "*"),
        xi_interval=interval(row.xi),
        seeds=with_interval(row.over_seeds),
        ties=f"{row.ties:,}",
        xi_bleu=NONE if row.xi_bleu is None else f"{row.xi_bleu:.1f}",
        paper=_printed(published.get(key)),
        paper_xi=_printed(published.get(xi_key)) + ("*" if xi_key in stars else ""),
        paper_xi_bleu=f"{bleu[xi_key]:.1f}" if xi_key in bleu else NONE,
    )


def _printed(value: float | None) -> str:
    return NONE if value is None else percent(value / 100)


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
