"""The claims of sunlu2020, L1 to L11, in our words.

δ is Cliff's: how much more often a token of a class lies above a neutral one than below, in the class that fares worse.
"""

from heedful.papers.ledger import Claim, Condition

APART = 0.5  # a token of the class lies above a neutral one in three pairs of four


def _claim(id: str, sentence: str, *conditions: Condition) -> Claim:
    return Claim(id, "sunlu2020", sentence, conditions)


CLAIMS = (
    _claim(
        "L1",
        "At λ = 10 polarity scores tell positive, negative and neutral tokens apart.",
        Condition("figure2", "polarity δ, lowest", lower=APART),
    ),
    _claim(
        "L2",
        "At λ = 10 both kinds of polarity tokens have larger attention scores than neutral ones.",
        Condition("figure2", "attention δ, lowest", lower=0.0),
    ),
    _claim(
        "L3",
        "At λ = 100 one kind of polarity token scores below the neutral ones in attention, and polarity stays healthy.",
        Condition("figure3", "attention δ, λ = 100", upper=0.0),
        Condition("figure3", "polarity δ, λ = 100", lower=APART),
    ),
    _claim(
        "L4",
        "A small λ costs accuracy; a large one comes to mean pooling, within two points.",
        Condition("table2", "lost at small λ, DP, lowest", lower=0.0),
        Condition("table2", "large λ less mean pooling, DP", -0.02, 0.02),
    ),
    _claim(
        "L5",
        "Keeping VᵀW small makes attention scores interpretable again at λ = 100.",
        Condition("regulariser", "attention δ, strongest", lower=0.0),
        Condition("regulariser", "attention δ, strongest less none", lower=0.0),
    ),
    _claim(
        "L6",
        "Additive attention at λ = 10 shows the same: polarity apart, attention above neutral.",
        Condition("figure4", "polarity δ, AD", lower=APART),
        Condition("figure4", "attention δ, AD", lower=0.0),
    ),
    _claim(
        "L7",
        "Polarity tokens get larger average weights than neutral ones, in units of the uniform weight.",
        Condition("figure5", "n·α over neutral, δ", lower=0.0),
    ),
    _claim(
        "L8",
        "With three labels, tokens that go with one of them still have larger attention scores than neutral ones.",
        Condition("figure3", "attention δ, three labels", lower=0.0),
    ),
    _claim(
        "L9",
        "The terms A to F are exact: they are what autograd says of a trained model.",
        Condition("terms", "largest difference from autograd", upper=1e-10),
    ),
    _claim(
        "L10",
        "On generated data, where tokens are purely positive, negative or neutral, both patterns show.",
        Condition("synthetic", "polarity δ, λ = 10, lowest", lower=APART),
        Condition("synthetic", "attention δ, λ = 10, lowest", lower=0.0),
    ),
    _claim(
        "L11",
        "An LSTM or an affine map before attention changes neither the patterns nor that a small λ costs accuracy.",
        Condition("encoders", "polarity δ, lowest", lower=APART),
        Condition("encoders", "attention δ, lowest", lower=0.0),
        Condition("table2", "lost at small λ, DP-L", lower=0.0),
        Condition("table2", "lost at small λ, DP-A", lower=0.0),
    ),
)
