import re

import pytest

pytest.importorskip("transformers")

from heedful.config import MODEL_TASKS
from tests.audits import model_table


def _page() -> tuple[dict[str, list[str]], list[str]]:
    """The cells of docs/models.md by architecture, and its numbered sentences."""
    text = model_table.PAGE.read_text(encoding="utf-8").split(model_table.START)[1].split(model_table.END)[0]
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}, re.findall(r"^\d+\. (.*)$", text, flags=re.MULTILINE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("architecture", model_table.ARCHITECTURES)
def test_the_page_says_what_happens(architecture):
    rows, sentences = _page()
    for task, shown in zip(MODEL_TASKS, rows[architecture], strict=True):
        found = model_table.cell(architecture, task)
        if shown.startswith("✓"):
            assert found.startswith(f"audited: {shown[2:]},"), (task, found)
        else:
            assert found == sentences[int(shown.strip("()")) - 1], task
