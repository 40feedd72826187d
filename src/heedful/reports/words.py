"""How quantities are written for people."""

from heedful.markup import symbol

__all__ = ["ANSWERS", "MODEL_TITLES", "symbol"]

MODEL_TITLES = {
    "standard": "standard model",
    "uniform": "uniform twin",
    "attention-only": "frozen twin",
    "proxy": "bag-of-words proxy",
    "logistic": "logistic regression",
    "lexicon": "IBM Model 1",
}

ANSWERS = {"yes": "yes    ", "no": "no     ", "unclear": "unclear"}
