"""Arguments of the metrics: checked, brought to (N, T), and averaged over entries and tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import BoolArray, FloatArray, refuse_dates, without_mask
from deeptobit.likelihood import Predictive, of_tasks
from deeptobit.targets import BoundsLike, CensoredTargets, by_entry

TargetsLike: TypeAlias = ArrayLike | CensoredTargets


def read_targets(
    Y: TargetsLike, lower: BoundsLike = None, upper: BoundsLike = None
) -> CensoredTargets:
    """Outcomes with their bounds, which are per task or, with the shape of Y, per entry.

    Examples
    --------
    >>> read_targets([[0.0, 3.0], [1.0, 9.0]], 0, [[9.0, 9.0], [1.0, 9.0]]).at_upper
    array([[False, False],
           [ True,  True]])
    """
    if isinstance(Y, CensoredTargets):
        if lower is not None or upper is not None:
            raise ValueError(
                "a CensoredTargets brings its own bounds; pass lower and upper with a plain array "
                "only"
            )
        return Y
    bounds: dict[str, Any] = {}
    for name, bound in (("lower", lower), ("upper", upper)):
        bounds[f"entry_{name}" if _is_per_entry(bound, Y) else name] = bound
    return CensoredTargets.from_bounds(Y, **bounds)


def read_predictions(P: ArrayLike, targets: CensoredTargets, what: str) -> FloatArray:
    """Predictions as finite (N, T) floats, in the order of the targets.

    Examples
    --------
    >>> read_predictions([1, 2], read_targets([0.5, 0.7]), "P")
    array([[1.],
           [2.]])
    """
    given = np.asarray(without_mask(P), dtype=np.float64)
    values = by_entry(P, given, targets.shape, targets.names, what)
    for row, task in np.argwhere(~np.isfinite(values))[:1].tolist():
        raise ValueError(
            f"{what} is {values[row, task]:g} for target {targets.names[task]!r} in row {row}; "
            "predictions must be finite"
        )
    return values


def read_scale(
    values: ArrayLike, targets: CensoredTargets, what: str, *, may_be_zero: bool = False
) -> FloatArray:
    """Noise scales, or steps between scores: finite and positive, broadcast to (N, T).

    Examples
    --------
    >>> read_scale([2.0, 3.0], read_targets([[0.5, 0.7], [0.1, 0.2]]), "sigma")
    array([[2., 3.],
           [2., 3.]])
    """
    scales = np.asarray(without_mask(values), dtype=np.float64)
    shape = targets.shape
    if shape[1] == 1 and scales.shape == shape[:1]:
        scales = scales[:, None]
    if scales.shape not in ((), shape[1:], shape):
        raise ValueError(
            f"{what} must be a number, one per target or one per entry of Y, which has shape "
            f"{shape}; got shape {scales.shape}"
        )
    scales = np.broadcast_to(scales, shape)
    good = np.isfinite(scales) & (scales >= 0.0 if may_be_zero else scales > 0.0)
    for row, task in np.argwhere(~good)[:1].tolist():
        wanted = "not negative" if may_be_zero else "positive"
        found = f"got {scales[row, task]:g} for target {targets.names[task]!r}"
        raise ValueError(f"{what} must be finite and {wanted}; {found}")
    return scales


def read_forecast(
    Y: TargetsLike, latent: ArrayLike, sigma: ArrayLike, lower: BoundsLike, upper: BoundsLike
) -> tuple[CensoredTargets, FloatArray, FloatArray]:
    """Outcomes, their predicted scores and noise scales, each (N, T)."""
    targets = read_targets(Y, lower, upper)
    eta = read_predictions(latent, targets, "latent")
    return targets, eta, read_scale(sigma, targets, "sigma")


def read_weights(
    sample_weight: ArrayLike | None, n_samples: int, *, may_be_zero: bool = False
) -> FloatArray:
    """One weight per row, 1 by default; a row of weight 0 is left out.

    ``may_be_zero`` allows weights that are zero in every row.

    Examples
    --------
    >>> read_weights(None, 3)
    array([1., 1., 1.])
    """
    if sample_weight is None:
        return np.ones(n_samples)
    refuse_dates(sample_weight, "sample_weight")
    try:
        weights = np.asarray(without_mask(sample_weight), dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold numbers, one weight per row") from None
    if weights.shape != (n_samples,):
        wanted = f"sample_weight must hold one weight per row, shape ({n_samples},)"
        raise ValueError(f"{wanted}; got {weights.shape}")
    wrong = np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))
    for row in wrong[:1].tolist():
        found = f"row {row} has {weights[row]:g} ({len(wrong)} such rows)"
        raise ValueError(f"sample_weight must be finite and not negative; {found}")
    if n_samples > 0 and not (may_be_zero or weights.any()):
        raise ValueError("sample_weight is zero in every row")
    return weights


def _is_per_entry(bound: BoundsLike, Y: ArrayLike) -> bool:
    """Whether a bound has the shape of Y: 2-d, or as long as the column of a single task."""
    shape = () if isinstance(bound, Mapping) else np.shape(cast(ArrayLike, bound))
    if len(shape) != 1:
        return len(shape) > 1
    rows = np.shape(Y)
    return shape != (1,) and shape == rows[:1] and rows[1:] in ((), (1,))


# Means over the known entries of a task, and over tasks.

Multioutput: TypeAlias = Literal["uniform_average", "raw_values"] | ArrayLike


def read_entry_weights(
    sample_weight: ArrayLike | None, known: BoolArray, names: Sequence[str]
) -> FloatArray:
    """Weights of shape (N, T), 0 where an entry is not known; every task must have one above 0.

    Examples
    --------
    >>> read_entry_weights([2.0, 2.0], np.array([[True], [False]]), ["MMSE"])
    array([[2.],
           [0.]])
    """
    weights = np.where(known, read_weights(sample_weight, len(known))[:, None], 0.0)
    for task in np.flatnonzero(~weights.any(axis=0)).tolist():
        raise ValueError(
            f"target {names[task]!r} has no known entry (of positive weight) to score; leave it out"
        )
    return weights


def average_rows(losses: FloatArray, weights: FloatArray) -> FloatArray:
    """Weighted mean of each task over the N rows; losses of weight 0 are ignored, even NaN.

    Examples
    --------
    >>> average_rows(np.array([[1.0], [4.0], [np.nan]]), np.array([[2.0], [1.0], [0.0]]))
    array([2.])
    """
    counted = np.where(weights > 0.0, losses, 0.0)
    return np.asarray((weights * counted).sum(axis=0) / weights.sum(axis=0))


def combine_tasks(
    per_task: FloatArray, multioutput: Multioutput, names: Sequence[str]
) -> float | FloatArray:
    """All T values, their mean, or their weighted mean; a NaN is an error.

    Examples
    --------
    >>> combine_tasks(np.array([1.0, 4.0]), "uniform_average", ["a", "b"])
    2.5
    >>> combine_tasks(np.array([1.0, 4.0]), [2.0, 1.0], ["a", "b"])
    2.0
    """
    for task in np.flatnonzero(np.isnan(per_task)).tolist():
        raise ValueError(
            f"the score of target {names[task]!r} is not a number: outcomes or predictions are too "
            "large to compute with"
        )
    if isinstance(multioutput, str) and multioutput in ("uniform_average", "raw_values"):
        return per_task if multioutput == "raw_values" else float(per_task.mean())
    weights = np.zeros(0) if isinstance(multioutput, str) else np.asarray(multioutput, np.float64)
    good = np.isfinite(weights) & (weights >= 0.0)
    if weights.shape != per_task.shape or not good.all() or not weights.any():
        raise ValueError(
            "multioutput must be 'uniform_average', 'raw_values' or one finite weight per target, "
            f"not negative and not all 0; got {multioutput!r}"
        )
    counted = weights > 0.0
    return float(np.average(per_task[counted], weights=weights[counted]))


# Entries with one recorded value, and the bounds at which it was censored.


def recorded(
    targets: CensoredTargets, latent: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Recorded values and the bounds in force, each (N, T); elsewhere a value inside the bounds.

    An entry that is left-censored at a limit c of its own (not at the bound of the scale) was
    recorded as max(c, y): c is its lower bound. The right side is the mirror image.

    Examples
    --------
    >>> low, high = [[2.0], [-np.inf]], [[2.0], [0.5]]
    >>> y, lower, upper = recorded(
    ...     CensoredTargets.from_intervals(low, high, lower=0), np.zeros((2, 1))
    ... )
    >>> lower.ravel()
    array([0. , 0.5])
    """
    y, lower, upper = targets.values, targets.lower_bounds, targets.upper_bounds
    for row, task in np.argwhere((y < lower) | (y > upper))[:1].tolist():
        raise ValueError(
            f"target {targets.names[task]!r}: the value {y[row, task]:g} in row {row} "
            "lies outside the bounds of its scale, where the predictive distribution has no mass"
        )
    y = np.where(targets.has_value, y, np.clip(latent, lower, upper))
    return y, np.where(targets.at_lower, y, lower), np.where(targets.at_upper, y, upper)


# Some of the targets.


def some_targets(targets: CensoredTargets, tasks: Sequence[int]) -> CensoredTargets:
    """Outcomes of some tasks, with their bounds.

    Examples
    --------
    >>> both = CensoredTargets.from_bounds([[0.0, 3.0]], lower=[0, 1], names=["ADAS", "MMSE"])
    >>> one = some_targets(both, [1])
    >>> one.names, one.values, one.lower
    (('MMSE',), array([[3.]]), array([1.]))
    """
    chosen = list(tasks)
    columns: dict[str, Any] = {"names": tuple(targets.names[task] for task in chosen)}
    for name in ("low", "high", "lower", "upper", "entry_lower", "entry_upper"):
        array = getattr(targets, name)
        columns[name] = None if array is None else array[..., chosen]
    return replace(targets, **columns)


def some_predictive(predictive: Predictive, tasks: Sequence[int]) -> Predictive:
    """Predictive distributions of some tasks; bounds and σ are arrays, per task or per entry.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> bounds = np.zeros(2), np.full(2, 9.0)
    >>> both = Predictive(Gaussian(), np.array([[1.0, 2.0]]), np.array([1.0, 3.0]), *bounds)
    >>> some_predictive(both, [1]).sigma
    array([3.])
    """
    chosen = list(tasks)
    names = "latent", "sigma", "lower", "upper"
    columns: Any = {name: np.asarray(getattr(predictive, name))[..., chosen] for name in names}
    return replace(predictive, noise=of_tasks(predictive.noise, chosen), **columns)
