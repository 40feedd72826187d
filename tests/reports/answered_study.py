"""A study of a few steps as if it had learned something: what pages show of answers, without a real training."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from heedful.studies.result import Answer, Size, StudyResult
from heedful.studies.run_directory import RunDirectory
from tests.conftest import restamp

ANSWERS: tuple[Answer, ...] = ("yes",) * 6


def answered(
    result: StudyResult, answers: Sequence[Answer] = ANSWERS, size: Size = "strongly", status: str = "answered"
) -> StudyResult:
    """The result with these answers to its six questions."""
    questions = tuple(
        replace(question, answer=answer, size=size if answer == "yes" else None)
        for question, answer in zip(result.verdict.questions, answers, strict=True)
    )
    return replace(result, verdict=replace(result.verdict, questions=questions, status=status))


def answered_run(run: Path, folder: Path) -> RunDirectory:
    """A copy of a run whose questions are all answered yes."""
    copy = RunDirectory(Path(shutil.copytree(run, folder / "answered")))
    answered(StudyResult.load(copy.result_path)).save(copy.result_path)
    return restamp(copy.root)
