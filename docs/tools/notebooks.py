"""Run the notebooks and write them as pages: `python docs/tools/notebooks.py`.

A page has the words, the code, and what the code printed or showed; pictures lie beside it.
"""

import base64
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"


def run(path, folder):
    """Run a notebook in a folder, and give it back with its output."""
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    client.execute(env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    return notebook


def markdown(notebook, name):
    """The page, and its pictures by name."""
    blocks, pictures = [], {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            blocks.append(cell.source)
            continue
        blocks.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stdout":
                blocks.append(f"```text\n{output.text.rstrip()}\n```")
            elif output.output_type in ("execute_result", "display_data"):
                if "image/png" in output.data:
                    picture = f"{name}-{len(pictures) + 1}.png"
                    pictures[picture] = base64.b64decode(output.data["image/png"])
                    blocks.append(f"![{output.data.get('text/plain', 'a picture')}]({picture})")
                else:
                    blocks.append(f"```text\n{output.data['text/plain']}\n```")
    return "\n\n".join(blocks) + "\n", pictures


def main(names):
    """Write a page for each notebook."""
    import tempfile

    for path in sorted(FOLDER.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        print(path.stem, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            page, pictures = markdown(run(path, folder), path.stem)
        path.with_suffix(".md").write_text(page, encoding="utf-8")
        for name, content in pictures.items():
            (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main(sys.argv[1:])
