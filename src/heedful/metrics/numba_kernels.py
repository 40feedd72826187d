"""Inner loops compiled by numba, single-threaded, kept on disk between runs where the disk allows it."""

import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")

FREEDOMS = {"reassoc", "contract"}  # sums in any order, so that they vectorise; NaN and infinities keep their meaning


def compiled(kernel: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of arrays and numbers at its first call.

    >>> @compiled
    ... def triple(x: float) -> float:
    ...     return 3 * x
    >>> triple(2.0)
    6.0
    """
    plain = inspect.unwrap(kernel)  # a type checker may have wrapped it, and numba compiles only the function itself
    # The file on disk names its module: one imported under another name would leave a file that nobody else can read.
    cache = plain.__module__.startswith("heedful.")
    try:
        fast: Callable[P, R] = numba.njit(cache=cache, nogil=True, fastmath=FREEDOMS)(plain)
    except RuntimeError:  # neither the package's directory nor the user's can be written to
        fast = numba.njit(nogil=True, fastmath=FREEDOMS)(plain)
    return fast
