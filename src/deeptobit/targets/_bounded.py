"""Outcomes on bounded scales, from what users write to intervals."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.targets._bounds import BoundsLike, entry_bounds, task_bounds
from deeptobit.targets._censor import censor
from deeptobit.targets._checks import check_order, refuse_outside
from deeptobit.targets._read import read_outcomes


class Bounded(NamedTuple):
    """The fields of :class:`CensoredTargets`, in their order."""

    low: FloatArray
    high: FloatArray
    lower: FloatArray
    upper: FloatArray
    names: tuple[str, ...]
    entry_lower: FloatArray | None
    entry_upper: FloatArray | None
    one_dimensional: bool


def read_bounded(
    Y: Any,
    lower: BoundsLike = None,
    upper: BoundsLike = None,
    *,
    entry_lower: ArrayLike | None = None,
    entry_upper: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    outside: Literal["raise", "clip"] = "raise",
    advice: str = "or pass outside='clip' to treat them as censored there",
) -> Bounded:
    """Outcomes and their bounds, checked; see :meth:`CensoredTargets.from_bounds`.

    ``advice`` says what a caller can do about values beyond a bound, beside correcting either.

    Examples
    --------
    >>> read_bounded([0.0, 4.0], lower=0).low.ravel()
    array([-inf,   4.])
    """
    values, found_names, one_dimensional = read_outcomes(Y, names)
    task_lower, task_upper = task_bounds(lower, upper, found_names)
    by_row_lower = entry_bounds(entry_lower, len(values), found_names, "lower")
    by_row_upper = entry_bounds(entry_upper, len(values), found_names, "upper")
    lower_at = task_lower if by_row_lower is None else by_row_lower
    upper_at = task_upper if by_row_upper is None else by_row_upper
    check_order(lower_at, upper_at, found_names)
    if outside == "raise":
        refuse_outside(values, lower_at, upper_at, found_names, advice)
    elif outside != "clip":
        raise ValueError(f"outside must be 'raise' or 'clip'; got {outside!r}")
    low, high = censor(values, lower_at, upper_at)
    return Bounded(
        low,
        high,
        task_lower,
        task_upper,
        found_names,
        by_row_lower,
        by_row_upper,
        one_dimensional,
    )
