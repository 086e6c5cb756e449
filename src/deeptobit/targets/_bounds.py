"""Bounds as users write them: a number, one per task, a dict by name, ``None``; or per entry."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray, without_mask

_LARGEST = 1e150  # beyond this, squares overflow

BoundsLike: TypeAlias = (
    float | Sequence[float | None] | Mapping[Any, float | None] | ArrayLike | None
)


def task_bounds(
    lower: BoundsLike, upper: BoundsLike, names: Sequence[str]
) -> tuple[FloatArray, FloatArray]:
    """One lower and one upper bound per task; −inf and +inf where a side is open.

    Parameters
    ----------
    lower, upper : number, sequence of T, dict or Series by target name, or None
        ``None`` (also inside a sequence or dict) is an open side; a dict may leave names out.
    names : sequence of str
        The T target names.

    Returns
    -------
    lower, upper : arrays of shape (T,)

    Examples
    --------
    >>> task_bounds(0, {"MMSE": 30}, ["MMSE", "errors"])
    (array([0., 0.]), array([30., inf]))
    """
    low = _one_per_task(lower, names, "lower", -np.inf)
    high = _one_per_task(upper, names, "upper", np.inf)
    for task in np.flatnonzero(~(low < high)).tolist():
        raise ValueError(
            f"target {names[task]!r}: the lower bound {low[task]:g} is not below the upper bound "
            f"{high[task]:g}"
        )
    return low, high


def by_name(values: Any) -> Any:
    """A Series whose index holds names as the dict that it is; anything else as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> by_name(pd.Series({"MMSE": 30, "ADAS": 70})), by_name(pd.Series([30, 70])).tolist()
    ({'MMSE': 30, 'ADAS': 70}, [30, 70])
    """
    named = _is_series(values) and any(isinstance(label, str) for label in values.index)
    return values.to_dict() if named else values


def by_target(values: Any, names: Sequence[str], what: str) -> Any:
    """Values by the targets' names, which are strings, as a dict; anything else as it is.

    A column 0 of a data frame is the target ``"0"``, and so is the key 0. A Series of numbers
    for labels is by name if these are names of targets, and in the order of the targets if not.

    Parameters
    ----------
    values : Any
        A mapping or a Series by name, or what a user may write instead.
    names : sequence of str
        The T target names.
    what : str
        What the values are, for errors.

    Examples
    --------
    >>> by_target({0: 30, 1: None}, ["0", "1"], "upper"), by_target(30, ["0", "1"], "upper")
    ({'0': 30, '1': None}, 30)
    """
    if _is_series(values):
        labels = [str(label) for label in values.index]
        if not (isinstance(by_name(values), dict) or (labels and set(labels) <= set(names))):
            return values
    elif not isinstance(values, Mapping):
        return values
    found: dict[str, Any] = {}
    for key, value in values.items():
        if str(key) in found:
            raise ValueError(f"{what} names target {str(key)!r} twice")
        found[str(key)] = value
    return found


def entry_bounds(
    bound: ArrayLike | None, n_samples: int, names: Sequence[str], side: str
) -> FloatArray | None:
    """Per-entry bounds of shape (N, T), checked; ``None`` stays ``None``.

    Examples
    --------
    >>> entry_bounds([0.5, 0.1], 2, ["assay"], "lower")
    array([[0.5],
           [0.1]])
    """
    if bound is None:
        return None
    _refuse_other_order(bound, names, side)
    shape = (n_samples, len(names))
    entries = np.array(_as_floats(bound, side, -np.inf if side == "lower" else np.inf))
    if entries.ndim == 1 and shape[1] == 1:
        entries = entries[:, None]
    if entries.shape != shape:
        raise ValueError(
            f"{side} holds one bound per entry and must have the shape of Y, {shape}; "
            f"got {entries.shape}"
        )
    if np.isnan(entries).any():
        row, task = np.argwhere(np.isnan(entries))[0]
        raise ValueError(
            f"{side} is NaN in row {row}, column {task}; write -inf or inf where there is no bound"
        )
    _refuse_large(entries, names, side)
    return entries


def _one_per_task(
    bound: BoundsLike, names: Sequence[str], side: str, open_side: float
) -> FloatArray:
    bound = by_target(bound, names, side)
    if isinstance(bound, dict):
        bound = _from_mapping(bound, names, side)
    values = _as_floats(bound, side, open_side)
    if values.ndim == 0:
        values = np.full(len(names), values)
    if values.shape != (len(names),):
        raise ValueError(
            f"{side} must be a number, a dict by target name or one value per target "
            f"({len(names)}); got {values.size} values of shape {values.shape}"
        )
    if np.isnan(values).any():
        name = names[int(np.flatnonzero(np.isnan(values))[0])]
        raise ValueError(f"{side} bound of target {name!r} is NaN; use None for an open side")
    _refuse_large(values[None], names, side)
    return values


def _is_series(values: Any) -> bool:
    return hasattr(values, "index") and hasattr(values, "to_dict")


def _refuse_large(bounds: FloatArray, names: Sequence[str], side: str) -> None:
    """Bounds (N, T) of which nothing can be computed: some mean by 1e300 that there is none."""
    large = np.isfinite(bounds) & (np.abs(bounds) > _LARGEST)
    for row, task in np.argwhere(large)[:1].tolist():
        raise ValueError(
            f"{side} bound of target {names[task]!r} is too large ({bounds[row, task]:g}); use "
            "None for an open side, or rescale the target"
        )


def _from_mapping(
    bound: Mapping[str, float | None], names: Sequence[str], side: str
) -> list[float | None]:
    unknown = [name for name in bound if name not in names]
    if unknown:
        raise ValueError(
            f"{side} names unknown target(s) {', '.join(map(repr, unknown))}; "
            f"the targets are {', '.join(map(repr, names))}"
        )
    return [bound.get(name) for name in names]


def _refuse_other_order(bound: object, names: Sequence[str], side: str) -> None:
    """A data frame of bounds must not hold the targets in another order than Y does."""
    columns = [str(name) for name in getattr(bound, "columns", names)]
    if columns != list(names) and sorted(columns) == sorted(names):
        raise ValueError(
            f"the columns of {side} are {', '.join(columns)}, but the targets are "
            f"{', '.join(names)}, in this order"
        )


def _as_floats(bound: object, side: str, open_side: float) -> FloatArray:
    values = np.asarray(without_mask(bound), dtype=object)
    try:
        return np.asarray(np.where(values == np.array(None), open_side, values), dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{side} must hold numbers or None; got {bound!r}") from None
