"""How kernels are compiled: cached, without the interpreter's lock, and with NaN respected."""

import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

Args = ParamSpec("Args")
Result = TypeVar("Result")


def jit(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile ``function`` on first call.

    No ``fastmath``: it deletes NaN tests, and NaN is how a missing entry looks. No
    ``parallel``: it is not safe under other people's threads.
    """
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast("Callable[Args, Result]", compiled)


def jit_sums(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile ``function`` with sums in any order, so that they use the whole width of the machine.

    Of ``fastmath`` only what leaves NaN and infinity alone: a missing entry is still seen.
    """
    compiled = numba.njit(
        cache=True,
        nogil=True,
        error_model="numpy",
        fastmath={"reassoc", "contract", "arcp", "nsz"},
    )(function)
    return cast("Callable[Args, Result]", compiled)


@jit
def is_finite(number: float) -> bool:
    """Whether a number is neither NaN nor infinite, also where sums may take any order.

    ``math.isfinite`` compares x − x with 0, which is then simplified to True.
    """
    return abs(number) < math.inf
