"""The claims of snell2021, S1 to S18, in our words. Shares are between 0 and 1; z is the log-rank statistic ± 1.96."""

from heedful.papers.ledger import Claim, Condition


def _above_chance(id: str, pair: str, sentence: str) -> Claim:
    return Claim(id, "snell2021", sentence, (Condition("table5", f"{pair} above chance, cross, lowest", lower=0.0),))


CLAIMS = (
    _above_chance("S1", "A(alpha,beta)", "Attention agrees with the lexical probe β far more often than chance."),
    _above_chance("S2", "A(alpha,beta_uf)", "It does so with the probe of a twin that never learned to attend."),
    _above_chance("S3", "A(beta_uf,beta_px)", "That probe agrees with the bag-of-words proxy's."),
    _above_chance("S4", "A(delta,beta_uf)", "Saliency agrees with it too."),
    Claim(
        "S5",
        "snell2021",
        "These agreements are worth a model that has learned something: ξ lies above the untrained model's accuracy.",
        (Condition("table5", "xi above untrained, cross, lowest", lower=0.0),),
    ),
    Claim(
        "S6",
        "snell2021",
        "Copying permutations of one set of 40 words is slower or fails; copying 40 of 60 words always succeeds.",
        (
            Condition("figure3", "slower (z), copy-permutation", lower=0.0),
            Condition("figure3", "share learned, copy-vocab", lower=0.8),
        ),
    ),
    Claim(
        "S7",
        "snell2021",
        "The same holds for permutations of either of two disjoint sets.",
        (
            Condition("figure3", "slower (z), copy-mixture", lower=0.0),
            Condition("figure3", "share learned, copy-vocab", lower=0.8),
        ),
    ),
    Claim(
        "S8",
        "snell2021",
        "There the proxy has nothing to learn from: its first step is zero for every word, as C is constant.",
        (Condition("eq53", "largest limit over permutations", upper=1e-9),),
    ),
    Claim(
        "S9",
        "snell2021",
        "The proxy's logits begin to move as twice the centred count table says, exactly so as its width grows.",
        (Condition("eq53", "correlation, d = 4096", lower=0.99), Condition("eq53", "slope, d = 4096", 0.95, 1.05)),
    ),
    Claim(
        "S10",
        "snell2021",
        "The count table in the proxy's first step is the one of IBM Model 1.",
        (Condition("eq53", "C of Eq. 16 less the count table", upper=1e-9),),
    ),
    Claim(
        "S11",
        "snell2021",
        "The proxy's probe and the weights of logistic regression agree with β^uf alike, within ten points.",
        (Condition("table11", "A(beta_uf,beta_log) - A(beta_uf,beta_px), cross, mean", -0.1, 0.1),),
    ),
    Claim(
        "S12",
        "snell2021",
        "Eight heads that each fail alone fail together; with one good head, or eight random ones, the model learns.",
        (
            Condition("figure6", "slower (z), all bad", lower=0.0),
            Condition("figure6", "share learned, all bad", upper=0.5),
            Condition("figure6", "share learned, random", lower=0.5),
        ),
    ),
    Claim(
        "S13",
        "snell2021",
        "Under uniform attention β first peaks at the keyword (Hypothesis 2), at last at the end (Observation 3).",
        (
            Condition("figure7", "early: keyword - next", lower=0.0),
            Condition("figure7", "early: next - mean", lower=0.0),
            Condition("figure7", "late: last - next", lower=0.0),
            Condition("figure7", "late: next - mean", lower=0.0),
        ),
    ),
    Claim(
        "S14",
        "snell2021",
        "A fixed permutation of positions is not learned where copying the same words is.",
        (
            Condition("section6.2", "share learned, permute", upper=0.5),
            Condition("section6.2", "share learned, copy-vocab", lower=0.8),
        ),
    ),
    Claim(
        "S15",
        "snell2021",
        "The loss-minimising attention mostly goes where β is largest, though it need not: the counterexample.",
        (
            Condition("a1", "A(alpha_opt,beta) above chance", lower=0.0),
            Condition("a1", "counterexample: alpha at the largest beta", upper=5e-4),
        ),
    ),
    Claim(
        "S16",
        "snell2021",
        "Attention trained while everything else stays random agrees less with normal attention than β^uf does.",
        (Condition("table10", "A(alpha,beta_uf) - A(alpha,alpha_fr), cross, lowest", lower=0.0),),
    ),
    Claim(
        "S17",
        "snell2021",
        "Agreement with β^uf rises and then falls as the uniform twin trains on.",
        (Condition("a7", "rise", lower=0.0), Condition("a7", "fall", lower=0.0)),
    ),
    Claim(
        "S18",
        "snell2021",
        "On SMS spam the attention of two seeds agrees less than on other corpora.",
        (Condition("a9", "between seeds: sms above the others", upper=0.0),),
    ),
)
