"""The claims of meister2021, M1 to M7, in our words. Entropies lie between 0 and 1, accuracies too, JSD below 0.69."""

from heedful.papers.ledger import Claim, Condition

PAPER = "meister2021"

CLAIMS = (
    Claim(
        "M1",
        PAPER,
        "In every model attention is ordered more like the importance of hidden states than like that of the inputs.",
        (
            Condition("table6", "tau of I less tau of x, gradient, lowest", lower=0.0),
            Condition("table6", "tau of I less tau of x, leave-one-out, lowest", lower=0.0),
        ),
    ),
    Claim(
        "M2",
        PAPER,
        "No hidden state belongs to one input: H̃(g_h(x)) is above 0.4 in every model (the paper's lowest is 0.46).",
        (Condition("table1", "entropy of g_h(x), lowest", lower=0.4),),
    ),
    Claim(
        "M3",
        PAPER,
        "However sparse attention is, the importance of inputs is spread out: H̃ is above 0.5 at every λ.",
        (Condition("figure2", "entropy of input importance, lowest", lower=0.5),),
    ),
    Claim(
        "M4",
        PAPER,
        "H̃(g_y(x)) falls as λ rises: the sign that Table 2 prints, the opposite of what the paper's text says.",
        (Condition("table2", "tau(lambda, entropy of g_y(x)), highest", upper=0.0),),
    ),
    Claim(
        "M5",
        PAPER,
        "Sparser attention is ordered less like the importance of the inputs: τ falls as λ rises.",
        (
            Condition("figure3", "trend of tau with g_y(x), all positions, highest", upper=0.0),
            Condition("figure3", "trend of tau with D_y(x), all positions, highest", upper=0.0),
        ),
    ),
    Claim(
        "M6",
        PAPER,
        "Attention can be moved far away; a frozen model pays for it in accuracy, a new one hardly (three points).",
        (
            Condition("table5", "accuracy change, adv. frozen, divergence alone, highest", upper=0.0),
            Condition("table5", "JSD, adv. frozen, divergence alone, lowest", lower=0.5),
            Condition("table5", "accuracy change, adv. unfrozen, lowest", lower=-0.03),
            Condition("table5", "JSD, adv. unfrozen, lowest", lower=0.5),
        ),
    ),
    Claim(
        "M7",
        PAPER,
        "Softmax models reach the accuracies of Table 3 to within three points, on the corpora used in full.",
        (Condition("table3", "accuracy less the paper's, corpora in full, lowest", lower=-0.03),),
    ),
)
