"""How quantities are written for people."""

_SYMBOLS = {
    "alpha": "α",
    "alpha_hat": "α̂",
    "alpha_fr": "α^fr",
    "alpha_ibm": "α^IBM",
    "beta": "β",
    "beta_uf": "β^uf",
    "beta_px": "β^px",
    "beta_log": "β^log",
    "delta": "Δ",
}

MODEL_TITLES = {
    "standard": "standard model",
    "uniform": "uniform twin",
    "attention-only": "frozen twin",
    "proxy": "bag-of-words proxy",
    "logistic": "logistic regression",
    "lexicon": "IBM Model 1",
}

ANSWERS = {"yes": "yes    ", "no": "no     ", "unclear": "unclear"}


def symbol(name: str) -> str:
    """A quantity or an agreement in the papers' letters.

    >>> symbol("A(alpha,beta_uf)"), symbol("delta")
    ('A(α, β^uf)', 'Δ')
    """
    if name.startswith("A(") and name.endswith(")"):
        return f"A({', '.join(symbol(part) for part in name[2:-1].split(','))})"
    return _SYMBOLS.get(name, name)
