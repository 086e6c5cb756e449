"""Squared errors relative to the size of the outcomes, task by task."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.metrics import inputs
from deeptobit.metrics.inputs import Multioutput, TargetsLike, average_rows


def anmse(
    Y: TargetsLike,
    P: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> float | FloatArray:
    r"""Average normalised mean square error, the paper's measure; lower is better.

    .. math:: \frac{1}{T}\sum_t \frac{\sum_i w_i (y_{it}-p_{it})^2}{\sum_i w_i y_{it}^2}

    Predicting 0 scores 1. The sums run over the known entries of a task, so the value depends on
    where the scale has its zero; :func:`centred_anmse` does not.

    Parameters
    ----------
    Y : array or DataFrame of shape (N,) or (N, T), or CensoredTargets
        Outcomes, NaN where missing. Of a CensoredTargets, an entry at a bound or limit counts with
        that value; entries known only as intervals are skipped.
    P : array of the shape of Y
        Predictions.
    sample_weight : array of shape (N,), optional
        Weight 2 counts a row twice.
    multioutput : {"uniform_average", "raw_values"} or array of shape (T,)
        Mean over tasks, all T values, or the mean with these task weights.

    Returns
    -------
    float, or array of shape (T,) for "raw_values"

    Examples
    --------
    >>> Y, P = [[3.0, 10.0], [4.0, np.nan]], [[3.0, 9.0], [3.0, 5.0]]
    >>> round(anmse(Y, P), 4)
    0.025
    >>> anmse(Y, P, multioutput="raw_values")
    array([0.04, 0.01])
    """
    return _relative_error(Y, P, sample_weight, multioutput, centred=False)


def centred_anmse(
    Y: TargetsLike,
    P: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> float | FloatArray:
    r"""Squared error relative to that of the mean, 1 − R²; lower is better.

    .. math::
        \frac{1}{T}\sum_t \frac{\sum_i w_i (y_{it}-p_{it})^2}{\sum_i w_i (y_{it}-\bar y_t)^2},
        \qquad \bar y_t = \frac{\sum_i w_i y_{it}}{\sum_i w_i}

    Predicting the mean of the known entries scores 1. Nothing changes when an outcome and its
    predictions are shifted or rescaled.

    Parameters
    ----------
    Y : array or DataFrame of shape (N,) or (N, T), or CensoredTargets
        Outcomes, NaN where missing. Of a CensoredTargets, an entry at a bound or limit counts with
        that value; entries known only as intervals are skipped.
    P : array of the shape of Y
        Predictions.
    sample_weight : array of shape (N,), optional
        Weight 2 counts a row twice.
    multioutput : {"uniform_average", "raw_values"} or array of shape (T,)
        Mean over tasks, all T values, or the mean with these task weights.

    Returns
    -------
    float, or array of shape (T,) for "raw_values"

    Examples
    --------
    >>> centred_anmse([29.0, 27.0, 25.0, np.nan], [28.0, 27.0, 26.0, 20.0])
    0.25
    """
    return _relative_error(Y, P, sample_weight, multioutput, centred=True)


def _relative_error(
    Y: TargetsLike, P: ArrayLike, sample_weight: Any, multioutput: Multioutput, *, centred: bool
) -> float | FloatArray:
    targets = inputs.read_targets(Y)
    predictions = inputs.read_predictions(P, targets, "P")
    weights = inputs.read_entry_weights(sample_weight, targets.has_value, targets.names)
    y = np.where(weights > 0.0, targets.values, np.nan)
    if centred:
        size = np.nanmax(y, axis=0) - np.nanmin(y, axis=0)  # 0 exactly if constant; ȳ is rounded
        reference = average_rows(y, weights)
    else:
        size = np.nanmax(np.abs(y), axis=0)
        reference = np.zeros_like(size)
    for task in np.flatnonzero(size == 0.0).tolist():
        state = "constant" if centred else "0"
        raise ValueError(
            f"target {targets.names[task]!r} is {state} in every known entry: there is nothing to "
            "divide its error by; leave it out"
        )
    # In units of size the squares of y cannot overflow; those of a bad prediction may.
    with np.errstate(over="ignore"):
        error = average_rows(((y - predictions) / size) ** 2, weights)
    spread = average_rows(((y - reference) / size) ** 2, weights)
    return inputs.combine_tasks(error / spread, multioutput, targets.names)
