"""What maps of attention, importances and orders of words are called, here and in every result."""

MEAN, ROLLOUT = "mean", "rollout"
GRADIENT, PRODUCT = "gradient", "gradient × input"
INTEGRATED, DELETION = "integrated gradients", "leave one out"
HIDDEN, HIDDEN_PRODUCT = "hidden gradient", "hidden gradient × state"
HIDDEN_INTEGRATED, HIDDEN_DELETION = "hidden integrated gradients", "hidden leave one out"
RANDOM = "random order"
EVERYWHERE = "all layers"


def layer_name(layer: int, head: int | None = None) -> str:
    """A map's name; people count from 1.

    >>> layer_name(0), layer_name(1, 0)
    ('layer 1', 'layer 2 head 1')
    """
    return f"layer {layer + 1}" if head is None else f"{layer_name(layer)} head {head + 1}"


def is_head(name: str) -> bool:
    """Whether a map is of one head alone.

    >>> is_head("layer 2 head 1"), is_head("layer 2")
    (True, False)
    """
    return " head " in name


def is_hidden(name: str) -> bool:
    """Whether an importance is of hidden states, not of the words that are read.

    >>> is_hidden("hidden leave one out"), is_hidden("leave one out")
    (True, False)
    """
    return name.startswith("hidden ")


def layer_of(name: str) -> int | None:
    """The layer that a map is of, counted from 0; None where it is of several.

    >>> layer_of("layer 2 head 1"), layer_of("mean")
    (1, None)
    """
    return int(name.split()[1]) - 1 if name.startswith("layer ") else None


def head_of(name: str) -> int | None:
    """The head that a map is of, counted from 0; None where it is of several.

    >>> head_of("layer 2 head 1"), head_of("layer 2")
    (0, None)
    """
    return int(name.split()[3]) - 1 if is_head(name) else None
