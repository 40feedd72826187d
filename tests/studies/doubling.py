"""A piece of work that a worker imports in no time."""

from heedful.errors import DataError


def double(shared: int, piece: int) -> int:
    if piece == 13:
        raise DataError("thirteen")
    return shared * piece
