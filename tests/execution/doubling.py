"""A piece of work that a worker imports in no time."""

import os

from heedful.errors import DataError


def double(shared: int, piece: int) -> int:
    if piece == 17:
        os._exit(1)
    if piece == 13:
        raise DataError("thirteen")
    return shared * piece
