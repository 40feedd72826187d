"""Store the golden results anew: `python -m tests.golden.make [CASE…]`, all cases where none is named."""

import json
import sys
import tempfile
import time
from pathlib import Path

import heedful
from tests.golden.cases import CASES, STORED, machine, run_case


def make(names: list[str]) -> None:
    """Run the cases, write one file for each of their results, and say which of them changed."""
    print(f"results of {heedful.__file__}")
    for name in names or list(CASES):
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            contents = run_case(name, Path(folder).resolve())
        for stored, content in contents.items():
            path = STORED / f"{stored}.json"
            text = json.dumps({"machine": machine(), "result": content}, indent=1, ensure_ascii=False) + "\n"
            changed = not path.exists() or path.read_text(encoding="utf-8") != text
            path.write_text(text, encoding="utf-8")
            print(f"{path.name:<28}{len(text):>9,} bytes  {'changed' if changed else 'same'}")
        print(f"{name}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    make(sys.argv[1:])
