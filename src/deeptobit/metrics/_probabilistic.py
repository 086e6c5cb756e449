"""Proper scores of a censored predictive distribution; lower is better."""

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise, Predictive, at_entries, resolve_noise
from deeptobit.metrics._averaging import Multioutput, average_rows, combine_tasks, weigh_known
from deeptobit.metrics._entries import recorded
from deeptobit.metrics._inputs import (
    TargetsLike,
    read_predictions,
    read_sigma,
    read_targets,
    read_weights,
)
from deeptobit.targets import BoundsLike


def censored_log_score(
    Y: TargetsLike,
    latent: ArrayLike,
    sigma: ArrayLike,
    *,
    lower: BoundsLike = None,
    upper: BoundsLike = None,
    noise: str | Noise = "gaussian",
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> float | FloatArray:
    r"""Mean negative log likelihood of the outcomes; lower is better.

    .. math::
        -\log f\left(\frac{y-\eta}{\sigma}\right) + \log\sigma \text{ (observed)},\qquad
        -\log\left[F\left(\frac{high-\eta}{\sigma}\right)
                   - F\left(\frac{low-\eta}{\sigma}\right)\right] \text{ (censored)}

    per known entry: a density where y is observed, the mass at or beyond the bound where it is
    censored, the mass of the interval where only that is known. Densities have a unit: the score
    of a task measured in other units differs by a constant, and may be negative. Where the noise
    knows the scores that there are, the density of a score is its probability over the step.

    Parameters
    ----------
    Y : array or DataFrame of shape (N,) or (N, T), or CensoredTargets
        Outcomes, NaN where missing. A value beyond its bound is an error; pass
        ``CensoredTargets.from_bounds(..., outside="clip")`` to treat it as censored.
    latent : array of the shape of Y
        Predicted scores η before censoring.
    sigma : number, or array of shape (T,) or (N, T)
        Noise scales.
    lower, upper : number, one per task, dict by target name, array of the shape of Y, or None
        Bounds; a CensoredTargets brings its own.
    noise : {"gaussian", "logistic", "student_t"} or Noise
        The family of f and F.
    sample_weight : array of shape (N,), optional
        Weight 2 counts a row twice.
    multioutput : {"uniform_average", "raw_values"} or array of shape (T,)
        Mean over tasks, all T values, or the mean with these task weights.

    Returns
    -------
    float, or array of shape (T,) for "raw_values"

    Examples
    --------
    >>> round(censored_log_score([27.0, 30.0, np.nan], [28.0, 31.0, 20.0], 2.0, upper=30), 4)
    1.053
    """
    targets = read_targets(Y, lower, upper)
    eta = read_predictions(latent, targets, "latent")
    scale = read_sigma(sigma, targets)
    known = ~targets.missing
    rows = read_weights(sample_weight, len(targets))
    weights = weigh_known(known, rows, targets.names)
    family = at_entries(resolve_noise(noise), known)
    lower_at, upper_at = (
        np.broadcast_to(bounds, targets.shape)[known]
        for bounds in (targets.lower_bounds, targets.upper_bounds)
    )
    predictive = Predictive(family, eta[known], scale[known], lower_at, upper_at)
    losses = np.full(targets.shape, np.nan)
    losses[known] = -predictive.log_density(targets.low[known], targets.high[known])
    return combine_tasks(average_rows(losses, weights), multioutput, targets.names)


def crps(
    Y: TargetsLike,
    latent: ArrayLike,
    sigma: ArrayLike,
    *,
    lower: BoundsLike = None,
    upper: BoundsLike = None,
    noise: str | Noise = "gaussian",
    sample_weight: ArrayLike | None = None,
    multioutput: Multioutput = "uniform_average",
) -> float | FloatArray:
    r"""Continuous ranked probability score of the censored distribution; lower is better.

    .. math:: \int_{lower}^{upper} \left(F_Y(x) - 1[x \ge y]\right)^2 dx

    per known entry, with F_Y the distribution function of y = clip(η + σε, lower, upper), whose
    mass at the bounds is the mass beyond them, or that of y on the scores that the noise knows of.
    It has the units of y, and is the absolute error of a forecast without spread.

    Parameters
    ----------
    Y : array or DataFrame of shape (N,) or (N, T), or CensoredTargets
        Outcomes, NaN where missing. Entries of a CensoredTargets known only as intervals are
        skipped; an entry censored at a limit of its own is scored as if that were its bound.
    latent : array of the shape of Y
        Predicted scores η before censoring.
    sigma : number, or array of shape (T,) or (N, T)
        Noise scales.
    lower, upper : number, one per task, dict by target name, array of the shape of Y, or None
        Bounds; a CensoredTargets brings its own.
    noise : {"gaussian", "logistic", "student_t"} or Noise
        The family of ε.
    sample_weight : array of shape (N,), optional
        Weight 2 counts a row twice.
    multioutput : {"uniform_average", "raw_values"} or array of shape (T,)
        Mean over tasks, all T values, or the mean with these task weights.

    Returns
    -------
    float, or array of shape (T,) for "raw_values"

    Examples
    --------
    >>> round(crps([27.0, 30.0, np.nan], [28.0, 31.0, 20.0], 2.0, upper=30), 4)
    0.3586
    """
    targets = read_targets(Y, lower, upper)
    eta = read_predictions(latent, targets, "latent")
    scale = read_sigma(sigma, targets)
    entries = recorded(targets)
    rows = read_weights(sample_weight, len(targets))
    weights = weigh_known(entries.known, rows, targets.names)
    losses = np.full(targets.shape, np.nan)
    losses[entries.known] = entries.predictive(resolve_noise(noise), eta, scale).crps(entries.y)
    return combine_tasks(average_rows(losses, weights), multioutput, targets.names)
