"""A study so small that it can be broken many times: trained in this process, or in a child that is killed."""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from heedful.config import ModelConfig, ProxyConfig, StudyConfig, TrainConfig, TranslatorConfig
from heedful.data.corpus import Corpus, Split
from heedful.data.parallel import ParallelCorpus, ParallelSplit
from heedful.studies.study import run_study
from heedful.studies.training import SETTING, train_all, train_model

_TRAIN = TrainConfig(steps=5, batch_size=4, learning_rate=1e-2, evaluate_at=(0, 2, 5))
_PROXY = ProxyConfig(4, TrainConfig(steps=6, batch_size=8, learning_rate=1e-2, evaluate_at=(0, 2, 4, 6)))

TEXTS = StudyConfig(
    "small",
    budget="smoke",
    min_count=1,
    train_sample=3,
    model=ModelConfig(embedding=4, hidden=3, scorer_hidden=3, dropout=0.5),
    train=_TRAIN,
    proxy=_PROXY,
)
PAIRS = StudyConfig(
    "small",
    task="translation",
    budget="smoke",
    translator=TranslatorConfig(embedding=4, hidden=4, layers=1, dropout=0.5),
    train=_TRAIN,
    proxy=_PROXY,
)


def corpus_of(config: StudyConfig) -> Corpus | ParallelCorpus:
    """A few made-up texts, or sentence pairs."""
    draw = random.Random(0)
    if config.task == "translation":
        words = {"ein": "a", "hund": "dog", "bellt": "barks", "laut": "loudly", "und": "and", "rennt": "runs"}
        german = [draw.choices(list(words), k=draw.randint(2, 5)) for _ in range(24)]
        said = [(" ".join(s), " ".join(words[w] for w in s)) for s in german]

        def pairs(chosen: list[tuple[str, str]]) -> ParallelSplit:
            sources, targets = zip(*chosen, strict=True)
            return ParallelSplit(sources, targets)

        return ParallelCorpus(
            "small", pairs(said[:16]), pairs(said[16:20]), pairs(said[20:]), "de", "en", in_words=True
        )
    texts = tuple(
        f"{' '.join(draw.choices(('film', 'plot', 'actor', 'scene'), k=draw.randint(2, 6)))} {('bad', 'good')[i % 2]}"
        for i in range(30)
    )
    labels = tuple(i % 2 for i in range(30))
    cuts = ((0, 20), (20, 26), (26, 30))
    return Corpus("small", ("bad", "good"), *(Split(texts[a:b], labels[a:b]) for a, b in cuts))


def finish(config: StudyConfig, out: Path, notices: list[str] | None = None, *, workers: bool = False) -> bytes:
    """Run the study to its end with a checkpoint before every step; its result's bytes.

    It is trained in this process, which takes a second, or by a worker, as studies are.
    """

    def listen(line: dict[str, Any]) -> None:
        if notices is not None and "notice" in line:
            notices.append(line["notice"])

    def train_here(run: Any, specs: Any, *, on_progress: Any, **_: Any) -> None:
        for spec in specs:
            train_model(run, spec, device="cpu", report=on_progress)

    train = train_all if workers else train_here
    with patch.dict(os.environ, {SETTING: "0"}):
        run_study(config, out, corpus=corpus_of(config), jobs=1, device="cpu", train=train, on_progress=listen)
    return (out / "result.json").read_bytes()


def die_at_rename(config: StudyConfig, out: Path, number: int, *, before: bool) -> bool:
    """Begin or go on with the study in a child that is killed at its `number`-th rename; false where it ended first."""
    renames = 0
    rename = os.replace

    def counted(source: Any, target: Any) -> None:
        nonlocal renames
        renames += 1
        if not before:
            rename(source, target)
        if renames == number:
            os.kill(os.getpid(), signal.SIGKILL)
        if before:
            rename(source, target)

    def child() -> None:
        with patch.object(os, "replace", counted):
            finish(config, out)

    return in_child(child) == -signal.SIGKILL


def in_child(work: Callable[[], object]) -> int:
    """Fork, work, and how that ended: an exit code, or a signal's number below zero."""
    return kill_in_child(work, None)


def kill_in_child(work: Callable[[], object], after: float | None) -> int:
    """Fork, work, be killed after so many seconds (or never), and how that ended."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    if after is not None:
        until = time.monotonic() + after
        while time.monotonic() < until:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(min(0.01, max(0.0, until - time.monotonic())))
        os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
