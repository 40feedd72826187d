"""The zoo: tiny models whose attention is known by construction, with the answers that an audit must give for them.

Every text holds one key, `dull` or `fine`, which is its label, one decoy `the`, and fillers. A word is embedded in four
numbers: its value (−1 or 1 for a key, 0 otherwise), whether it is a key, whether it is the decoy, and a number of its
own that tells fillers apart. Each model scores the words for attention and reads the pooled values in its own way.

Answers are in the order of the questions: the attention shown moves the prediction; agrees with importance; agrees
better than random models; the prediction needs the words; another attention gives the same prediction; it agrees in
every layer. An entry allows one answer or several: where two right measures may differ, both are allowed.

Where attention reads the words themselves (`pooled` over values), a word matters as much as it is attended to, whatever
the parameters are. Random models of that shape agree with importance too, so the construction does not decide whether
the third answer is *yes* or stays open; with all weight on one word they agree fully, and *yes* would be wrong.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import ModuleNetwork, WordReader
from heedful.attribution.network import Output, Query
from heedful.audits.result import Grade
from heedful.config import AuditSettings

LABELS = ("bad", "good")
FILLER = tuple(f"w{i}" for i in range(43))
WORDS = ("<s>", "dull", "fine", "the", *FILLER)
READER = WordReader({word: i for i, word in enumerate(WORDS)}, LABELS, first=("<s>", 0))
VALUE, KEY, DECOY, OWN = range(4)
SETTINGS = AuditSettings(integrated_steps=0, random_orders=3, resamples=500, examples=3)
Answers = tuple[str, str, str, str, str, str]
Layers = tuple[Tensor, ...]  # α (B, H, Q, L) of each layer
Score = Callable[[Tensor], Layers]
Read = Callable[[Tensor, Layers], Tensor]
Values = Callable[[int, Tensor], Tensor]


@dataclass(frozen=True)
class Exhibit:
    """A model and what an audit must say of it; an answer or grade may name several, as in `yes|unclear`."""

    name: str
    make: Callable[[], Subject]
    answers: Answers
    grade: str
    headline: str | None = None
    norm: str = "do not show"  # the grade of the map of norms, made of the same weights
    key_first: bool = False  # in every text the key is the first word

    def allows(self, grade: Grade | None) -> bool:
        """Whether a grade is right."""
        return grade in self.grade.split("|")


def embeddings(seed: int | None = None) -> nn.Embedding:
    """The table of the construction, or a random one."""
    draw = torch.Generator().manual_seed(0 if seed is None else 7919 + seed)
    if seed is not None:
        return nn.Embedding.from_pretrained(0.3 * torch.randn(len(WORDS), 4, generator=draw, dtype=torch.float64))
    table = torch.zeros(len(WORDS), 4, dtype=torch.float64)
    table[1, VALUE], table[2, VALUE] = -1.0, 1.0
    table[1:3, KEY], table[3, DECOY] = 1.0, 1.0
    table[4:, OWN] = torch.linspace(0.2, 1.0, len(FILLER), dtype=torch.float64)
    return nn.Embedding.from_pretrained(table)


def built(
    score: Score,
    read: Read,
    *,
    layers: int = 1,
    heads: int = 1,
    query: Query = "only",
    seed: int | None = None,
    values: Values = lambda layer, e: e[:, None, :, VALUE : VALUE + 1],
) -> Subject:
    """A network of two functions; a re-initialised one has random embeddings. read: the logit of `good`.

    values: what is read of each place through attention, (B, H, L, 1); for most models its value.
    """
    table = embeddings(seed)

    def run(embedded: Tensor, change: Callable[[int, Tensor], Tensor] | None) -> Output:
        own = score(embedded)
        alphas = own if change is None else tuple(change(layer, alpha) for layer, alpha in enumerate(own))
        logit = read(embedded, alphas)
        return Output(torch.stack([-logit, logit], -1).div(2).softmax(-1), alphas, (embedded,) * layers)

    network = ModuleNetwork(
        (table,),
        table,
        run,
        layers=layers,
        heads=heads,
        query=query,
        can_change=True,
        fresh=lambda other: (
            built(score, read, layers=layers, heads=heads, query=query, seed=other, values=values).network
        ),
        values=values,
    )
    return Subject(network, READER)


def texts(
    n: int, *, seed: int = 0, lengths: tuple[int, ...] = (8, 9, 11), key_first: bool = False
) -> list[tuple[str, str]]:
    """Texts of fillers, one decoy and one key, which gives the label away; the key at a random place or the first."""
    draw = np.random.default_rng(seed)
    made = []
    for i in range(n):
        words = list(draw.choice(FILLER, lengths[i % len(lengths)], replace=False))
        key, decoy = (0, draw.integers(1, len(words))) if key_first else draw.choice(len(words), 2, replace=False)
        words[int(key)], words[int(decoy)] = ("dull", "fine")[i % 2], "the"
        made.append((" ".join(words), LABELS[i % 2]))
    return made


def passages(n: int = 60, *, seed: int = 0, key_first: bool = False) -> list[Passage]:
    return [READER.read(i, text, label) for i, (text, label) in enumerate(texts(n, seed=seed, key_first=key_first))]


def softmax(*scores: Tensor) -> Layers:
    """One head in each layer, one query."""
    return tuple(score.softmax(-1)[:, None, None] for score in scores)


def nothing(layer: int, e: Tensor) -> Tensor:
    """Attention is not read."""
    return torch.zeros_like(e[:, None, :, :1])


def pooled(values: Tensor, alpha: Tensor, head: int = 0) -> Tensor:
    return (alpha[:, head, -1] * values).sum(-1)


def at_key(e: Tensor, strength: float = 5.0) -> Tensor:
    return strength * e[..., KEY] + 0.3 * e[..., OWN]


def at_fillers(e: Tensor) -> Tensor:
    """Sharply at the filler with the largest number of its own; never at a key."""
    return 200 * e[..., OWN] - 3 * e[..., KEY]


def bag(e: Tensor) -> Tensor:
    """The key's value, whatever attention does; cubed, so that its gradient at fillers is 0."""
    return (e[..., VALUE] ** 3).sum(-1)


def decides() -> Subject:
    return built(lambda e: softmax(at_key(e)), lambda e, a: 3 * pooled(e[..., VALUE], a[0]))


def saturated() -> Subject:
    """All weight is on one word, so a random model of this shape, too, attends to all that its prediction rests on."""
    return built(lambda e: softmax(at_key(e, 1000.0)), lambda e, a: 3 * pooled(e[..., VALUE], a[0]))


def twins() -> Subject:
    """Every place holds the value of the key, as after an encoder that has spread it."""
    return built(
        lambda e: softmax(at_key(e)),
        lambda e, a: 3 * pooled(bag(e)[:, None].expand(e.shape[:2]), a[0]),
        values=lambda layer, e: bag(e)[:, None, None, None].expand(-1, 1, e.shape[1], 1),
    )


def no_output() -> Subject:
    """W_O = 0: nothing of what attention reads goes on, and the place that is read holds no word."""
    return built(lambda e: softmax(at_key(e)), lambda e, a: 0 * pooled(e[..., VALUE], a[0]) + 0.4, values=nothing)


def bag_of_words() -> Subject:
    return built(lambda e: softmax(at_fillers(e)), lambda e, a: 3 * bag(e), values=nothing)


def right_but_ignored() -> Subject:
    return built(lambda e: softmax(at_key(e)), lambda e, a: 3 * bag(e), values=nothing)


def worthless_decoy() -> Subject:
    """The decoy has 88 % of the attention and the value 0; what is left on the key decides."""

    def score(e: Tensor) -> Layers:
        return softmax(7 * e[..., DECOY] + 4.85 * e[..., KEY] + 0.1 * e[..., OWN])

    return built(score, lambda e, a: 28 * pooled(e[..., VALUE], a[0]))


def harmful_decoy() -> Subject:
    """The decoy holds nearly all attention and weakens the prediction, which rests on the key without attention."""

    def read(e: Tensor, a: Layers) -> Tensor:
        return bag(e) * (3 - 2 * pooled(e[..., DECOY], a[0]))

    return built(
        lambda e: softmax(7 * e[..., DECOY] - 2 * e[..., KEY] + 0.3 * e[..., OWN]),
        read,
        values=lambda layer, e: e[:, None, :, DECOY : DECOY + 1],
    )


def first_layer() -> Subject:
    """The first layer decides; the second has W_O = 0 and looks at fillers."""
    return built(
        lambda e: softmax(at_key(e), at_fillers(e)),
        lambda e, a: 3 * pooled(e[..., VALUE], a[0]),
        layers=2,
        values=lambda layer, e: (layer == 0) * e[:, None, :, VALUE : VALUE + 1],
    )


def one_head() -> Subject:
    """The second of three heads decides; the other two look at fillers and are not read."""

    def score(e: Tensor) -> Layers:
        return (torch.stack([at_fillers(e), at_key(e), at_fillers(e)], 1).softmax(-1)[:, :, None],)

    return built(
        score,
        lambda e, a: 3 * pooled(e[..., VALUE], a[0], head=1),
        heads=3,
        values=lambda layer, e: torch.stack([0 * e[..., :1], e[..., VALUE : VALUE + 1], 0 * e[..., :1]], 1),
    )


def undoing() -> Subject:
    """Both layers look at the key; what the first adds, the second takes away, and the key's own value is left."""

    def read(e: Tensor, a: Layers) -> Tensor:
        first, second = (pooled(e[..., VALUE], alpha) for alpha in a)
        return bag(e) + 2 * first - 2 * second

    return built(lambda e: softmax(at_key(e), at_key(e)), read, layers=2)


def decoder() -> Subject:
    """Each place sees itself and what came before; the last one predicts."""

    def score(e: Tensor) -> Layers:
        L = e.shape[1]
        seen = at_key(e)[:, None].expand(-1, L, -1)
        return (seen.masked_fill(torch.ones(L, L, dtype=torch.bool).triu(1), -torch.inf).softmax(-1)[:, None],)

    return built(score, lambda e, a: 3 * pooled(e[..., VALUE], a[0]), query="last")


def constant() -> Subject:
    """Attention decides how sure the model is, but it always says the same."""
    return built(lambda e: softmax(at_key(e)), lambda e, a: 2 + 1.5 * pooled(e[..., VALUE], a[0]))


def flat() -> Subject:
    """Every word has nearly the same weight: there is nothing to permute, and what is read are the values."""
    return built(lambda e: softmax(0.01 * at_key(e)), lambda e, a: 30 * pooled(e[..., VALUE], a[0]))


def first_word() -> Subject:
    """Looks at the first word, whatever it is (the place before it is special); attention is not read."""

    def score(e: Tensor) -> Layers:
        place = torch.arange(e.shape[1]) == 1
        return softmax((5.0 * place.double()).expand(e.shape[:2]))

    return built(score, lambda e, a: 3 * bag(e), values=nothing)


ANY = "yes|no|unclear"
SHOW: Answers = ("yes", "yes", "yes|unclear", "yes", "no", "yes")
IGNORED: Answers = ("no", "no", "no|unclear", "no", "yes", "no")
EXHIBITS = (
    Exhibit("attention decides", decides, SHOW, "show", norm="show"),
    Exhibit(
        "attention decides, softmax saturated",
        saturated,
        ("yes", "yes", "no|unclear", "yes", "no", "yes"),
        "show|show with a caveat",
        norm="show|show with a caveat",
    ),
    Exhibit(
        "twin value on every filler",
        twins,
        ("no", "yes", "yes", "yes", "yes", "yes"),
        "show with a caveat",
        norm="show with a caveat",
    ),
    Exhibit("W_O = 0", no_output, ("no", "unclear", "unclear", "no", "yes", "unclear"), "do not show"),
    Exhibit("bag of embeddings", bag_of_words, IGNORED, "do not show"),
    Exhibit(
        "right words, attention ignored",
        right_but_ignored,
        ("no", "yes", "yes", "yes", "yes", "yes"),
        "show with a caveat",
    ),
    Exhibit(
        "decoy with the value 0", worthless_decoy, ("yes", "no", ANY, ANY, "yes", "no"), "do not show", norm="show"
    ),
    Exhibit(
        "decoy that weakens, key ignored", harmful_decoy, ("yes", "no", "no|unclear", "no", "no", "no"), "do not show"
    ),
    Exhibit("layer 1 decides, layer 2 shown", first_layer, IGNORED, "do not show"),
    Exhibit("layer 1 decides and is shown", first_layer, (*SHOW[:5], "no"), "show", "layer 1", norm="show"),
    Exhibit("the head that decides", one_head, (*SHOW[:5], "no"), "show", "layer 1 head 2", norm="show"),
    Exhibit("a head that is not read", one_head, IGNORED, "do not show", "layer 1 head 1"),
    Exhibit(
        "the mean of three heads, one read", one_head, ("yes", "no", ANY, ANY, ANY, "no"), "do not show", norm="show"
    ),
    Exhibit("two layers that undo each other", undoing, ("yes", "yes", "yes", "yes", "no", "yes"), "show", norm="show"),
    Exhibit("decoder that reads its last place", decoder, SHOW, "show", norm="show"),
    Exhibit("always the same label", constant, ("yes", ANY, ANY, ANY, "no", ANY), "do not show"),
    # By position alone other texts agree as well: a yes would not be earned by a map that knows no words, and a no
    # would be wrong about one that does.
    Exhibit(
        "attention decides, key always first",
        decides,
        ("yes", "yes|unclear", "yes|unclear", "yes", "no", "yes|unclear"),
        "show|show with a caveat",
        norm="show|show with a caveat",
        key_first=True,
    ),
    Exhibit(
        "always at the first word, key always first",
        first_word,
        ("no", "unclear", ANY, "yes", "yes", "unclear"),
        "do not show",
        key_first=True,
    ),
    Exhibit(
        "flat attention",
        flat,
        ("no", "yes|unclear", ANY, "yes", "yes|no", "yes|unclear"),
        "show with a caveat",
        norm="show with a caveat",
    ),
)
