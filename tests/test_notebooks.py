"""The notebooks of the docs run from top to bottom, and say what they promise."""

from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PROMISES = {
    "study-your-csv": ("sentiment", "words that predict the label by themselves (", "A(alpha,beta)"),
    "audit-your-model": ("Show it with a caveat", "Does the attention shown move the prediction?"),
    "watch-attention-being-learned": ("shuffled baseline", "at random"),
}


def test_there_are_no_others():
    assert {path.stem for path in (DOCS / "notebooks").glob("*.ipynb")} == set(PROMISES)


@pytest.mark.parametrize("name", PROMISES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    monkeypatch.syspath_prepend(str(DOCS / "tools"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    import notebooks

    page, pictures = notebooks.markdown(notebooks.run(DOCS / "notebooks" / f"{name}.ipynb", tmp_path), name)
    for words in PROMISES[name]:
        assert words in page
    assert len(pictures) == (2 if name.startswith("watch") else 0)
