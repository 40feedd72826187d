"""Train BiLSTMs with attention on film reviews in which people marked the words that decide; then audit one of them.

    pip install -c constraints.txt '.[demo,hf]'
    export HEEDFUL_DATA=…                     # a mirror that holds eraser_movies; see `heedful data show eraser-movies`
    python examples/study_marked_films.py runs/films
    heedful audit runs/films eraser-movies --sample 100 --out runs/films-audit

Smaller than the models of snell2021, since there are 1,600 reviews to learn from.
"""

import argparse
from pathlib import Path

import heedful
from heedful import ModelConfig, TrainConfig

LONGEST = 300  # words; the rest of a review is cut, and counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a folder for the study")
    parser.add_argument("--steps", type=int, default=600, help="updates of 32 reviews; 50 see each review once")
    options = parser.parse_args()
    marks = sorted({0, 50, 100, 150, 200, options.steps // 2, options.steps} & set(range(options.steps + 1)))
    result = heedful.study(
        "eraser-movies",
        out=options.out,
        seeds=(0, 1),
        max_length=LONGEST,
        model=ModelConfig(embedding=100, hidden=64, scorer_hidden=64, dropout=0.3),
        train=TrainConfig(steps=options.steps, evaluate_at=tuple(marks)),
    )
    print(result.verdict.sentence)


if __name__ == "__main__":
    main()
