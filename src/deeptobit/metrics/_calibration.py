"""Whether outcomes are at their bound as often as predicted."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.metrics._inputs import read_weights


class BoundCalibration(NamedTuple):
    """Predicted and observed shares at a bound, in bins of the predicted probability.

    Attributes
    ----------
    expected_error : float
        Mean over entries of the distance between the two shares of their bin.
    predicted, observed : arrays of shape (B,)
        Mean predicted probability and share at the bound, of the B bins that are not empty.
    count : array of shape (B,)
        Entries in each bin; their total weight if there are weights.
    """

    expected_error: float
    predicted: FloatArray
    observed: FloatArray
    count: FloatArray  # type: ignore[assignment]  # a tuple has a method of that name


def bound_calibration(
    at_bound: ArrayLike,
    probability: ArrayLike,
    *,
    n_bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> BoundCalibration:
    r"""Expected calibration error of the probability of being at a bound; lower is better.

    .. math:: \sum_b \frac{W_b}{W} \left|\mathrm{observed}_b - \mathrm{predicted}_b\right|

    over bins of equal width on [0, 1], pooled over all entries of all tasks; W_b is the number
    (or weight) of entries in bin b.

    Parameters
    ----------
    at_bound : array of shape (N,) or (N, T)
        Whether each entry is at the bound: booleans, or 0 and 1 with NaN where missing. Of a
        CensoredTargets: ``np.where(targets.missing, np.nan, targets.at_lower)``.
    probability : array of the same shape
        Predicted probability of it, in [0, 1].
    n_bins : int
        Number of bins.
    sample_weight : array of shape (N,), optional
        Weight 2 counts a row twice.

    Returns
    -------
    BoundCalibration
        Named tuple (expected_error, predicted, observed, count); empty bins are left out.

    Examples
    --------
    >>> at_bound = [1, 0, 1, 1, np.nan]
    >>> result = bound_calibration(at_bound, [0.4, 0.3, 0.9, 0.8, 0.5], n_bins=2)
    >>> round(result.expected_error, 4)
    0.15
    >>> result.predicted, result.observed, result.count
    (array([0.35, 0.85]), array([0.5, 1. ]), array([2., 2.]))
    """
    happened = _read_at_bound(at_bound)
    predicted = _read_probability(probability, happened)
    if n_bins != int(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be a positive whole number; got {n_bins}")
    rows = read_weights(sample_weight, len(happened))
    weights = np.broadcast_to(rows.reshape(-1, *[1] * (happened.ndim - 1)), happened.shape)
    known = ~np.isnan(happened) & (weights > 0.0)
    if not known.any():
        raise ValueError("at_bound has no known entry (of positive weight)")
    happened, predicted, weights = happened[known], predicted[known], weights[known]
    bins = np.minimum((predicted * n_bins).astype(np.intp), int(n_bins) - 1)
    totals = np.bincount(bins, weights).astype(np.float64)
    filled = totals > 0.0
    count = totals[filled]
    by_bin = np.bincount(bins, weights * predicted)[filled] / count
    seen = np.bincount(bins, weights * happened)[filled] / count
    error = float(np.average(np.abs(seen - by_bin), weights=count))
    return BoundCalibration(error, by_bin, seen, count)


def _read_at_bound(at_bound: ArrayLike) -> FloatArray:
    happened = np.asarray(at_bound, dtype=np.float64)
    if happened.ndim not in (1, 2):
        raise ValueError(f"at_bound must be 1-d or 2-d; got {happened.ndim} dimensions")
    wrong = ~(np.isnan(happened) | (happened == 0.0) | (happened == 1.0))
    if wrong.any():
        raise ValueError(
            f"at_bound must hold True and False (or 1, 0 and NaN); got {happened[wrong][0]:g}"
        )
    return happened


def _read_probability(probability: ArrayLike, happened: FloatArray) -> FloatArray:
    predicted = np.asarray(probability, dtype=np.float64)
    if predicted.shape != happened.shape:
        raise ValueError(
            f"at_bound has shape {happened.shape} but probability has shape {predicted.shape}"
        )
    wrong = ~((predicted >= 0.0) & (predicted <= 1.0))
    if wrong.any():
        raise ValueError(f"probability must lie between 0 and 1; got {predicted[wrong][0]:g}")
    return predicted
