"""What users pass to a measure, checked and brought to (N, T)."""

from collections.abc import Mapping
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray, without_mask
from deeptobit.targets import BoundsLike, CensoredTargets, read_bounded

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
    lower_by_entry, upper_by_entry = _is_per_entry(lower, Y), _is_per_entry(upper, Y)
    bounded = read_bounded(
        Y,
        None if lower_by_entry else lower,
        None if upper_by_entry else upper,
        entry_lower=cast(ArrayLike, lower) if lower_by_entry else None,
        entry_upper=cast(ArrayLike, upper) if upper_by_entry else None,
        advice="or pass CensoredTargets.from_bounds(…, outside='clip') as Y to treat them as "
        "censored there",
    )
    return CensoredTargets(*bounded)


def read_predictions(P: ArrayLike, targets: CensoredTargets, what: str) -> FloatArray:
    """Predictions as finite (N, T) floats, in the order of the targets.

    Examples
    --------
    >>> read_predictions([1, 2], read_targets([0.5, 0.7]), "P")
    array([[1.],
           [2.]])
    """
    refuse_other_order(P, targets, what)
    values = np.asarray(without_mask(P), dtype=np.float64)
    given = values.shape
    if values.ndim == 1 and targets.shape[1] == 1:
        values = values[:, None]
    if values.shape != targets.shape:
        expected = targets.shape[:1] if targets.one_dimensional else targets.shape
        raise ValueError(f"Y has shape {expected} but {what} has shape {given}")
    for row, task in np.argwhere(~np.isfinite(values))[:1].tolist():
        raise ValueError(
            f"{what} is {values[row, task]:g} for target {targets.names[task]!r} in row {row}; "
            "predictions must be finite"
        )
    return values


def refuse_other_order(P: ArrayLike, targets: CensoredTargets, what: str) -> None:
    """A data frame with the targets' names in another order would be scored task against task."""
    columns = tuple(str(name) for name in getattr(P, "columns", ()))
    if columns != targets.names and sorted(columns) == sorted(targets.names):
        raise ValueError(
            f"the columns of {what} are the targets in another order: {', '.join(columns)} against "
            f"{', '.join(targets.names)}"
        )


def read_sigma(sigma: ArrayLike, targets: CensoredTargets) -> FloatArray:
    """Noise scales, positive and finite, broadcast to (N, T).

    Examples
    --------
    >>> read_sigma([2.0, 3.0], read_targets([[0.5, 0.7], [0.1, 0.2]]))
    array([[2., 3.],
           [2., 3.]])
    """
    scales = np.asarray(without_mask(sigma), dtype=np.float64)
    shape = targets.shape
    if scales.shape not in ((), shape[1:], shape) and not (
        shape[1] == 1 and scales.shape == shape[:1]
    ):
        raise ValueError(
            f"sigma must be a number, one per target or one per entry of Y, which has shape "
            f"{shape}; got shape {scales.shape}"
        )
    if shape[1] == 1 and scales.shape == shape[:1]:
        scales = scales[:, None]
    scales = np.broadcast_to(scales, shape)
    wrong = ~((scales > 0.0) & np.isfinite(scales))
    for row, task in np.argwhere(wrong)[:1].tolist():
        raise ValueError(
            f"sigma must be positive and finite; got {scales[row, task]:g} for target "
            f"{targets.names[task]!r}"
        )
    return scales


def read_weights(sample_weight: ArrayLike | None, n_samples: int) -> FloatArray:
    """One weight per row, 1 by default; a weight of 0 is as if the row were not there.

    Examples
    --------
    >>> read_weights(None, 3)
    array([1., 1., 1.])
    """
    if sample_weight is None:
        return np.ones(n_samples)
    weights = np.asarray(without_mask(sample_weight), dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have shape ({n_samples},), one per row; got {weights.shape}"
        )
    for row in np.flatnonzero(~((weights >= 0.0) & np.isfinite(weights)))[:1].tolist():
        raise ValueError(
            f"sample_weight must not be negative, NaN or infinite; got {weights[row]:g} in row "
            f"{row}"
        )
    if n_samples > 0 and not weights.any():
        raise ValueError("sample_weight is 0 in every row")
    return weights


def _is_per_entry(bound: BoundsLike, Y: ArrayLike) -> bool:
    """Whether a bound has the shape of Y: 2-d, or as long as the column of a single task."""
    if isinstance(bound, Mapping) or np.ndim(cast(ArrayLike, bound)) == 0:
        return False
    shape = np.shape(cast(ArrayLike, bound))
    if len(shape) > 1:
        return True
    rows = np.shape(Y)
    return shape != (1,) and shape == rows[:1] and rows[1:] in ((), (1,))
