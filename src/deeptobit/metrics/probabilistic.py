"""Scores and calibration of censored predictive distributions."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray, RandomStateLike, check_count
from deeptobit.likelihood import Noise, Predictive, resolve_noise
from deeptobit.metrics import inputs
from deeptobit.metrics.inputs import Multioutput, TargetsLike
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
    of a task in other units differs by a constant, and may be negative. On a grid of scores, the
    density of a score is its probability divided by the step.

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
    targets, eta, scale = inputs.read_forecast(Y, latent, sigma, lower, upper)
    known = ~targets.missing
    weights = inputs.read_entry_weights(sample_weight, known, targets.names)
    bounds = targets.lower_bounds, targets.upper_bounds
    low, high = (
        np.where(known, ends, np.clip(eta, *bounds)) for ends in (targets.low, targets.high)
    )
    losses = -Predictive(resolve_noise(noise), eta, scale, *bounds).log_density(low, high)
    return inputs.combine_tasks(inputs.average_rows(losses, weights), multioutput, targets.names)


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
    mass at the bounds is the mass beyond them; on a grid of scores, that of y on the grid. It has
    the units of y, and is the absolute error of a forecast without spread.

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
    targets, eta, scale = inputs.read_forecast(Y, latent, sigma, lower, upper)
    y, *bounds = inputs.recorded(targets, eta)
    weights = inputs.read_entry_weights(sample_weight, targets.has_value, targets.names)
    losses = Predictive(resolve_noise(noise), eta, scale, *bounds).crps(y)
    return inputs.combine_tasks(inputs.average_rows(losses, weights), multioutput, targets.names)


# The probability integral transform.


def pit(
    Y: TargetsLike,
    latent: ArrayLike,
    sigma: ArrayLike,
    *,
    lower: BoundsLike = None,
    upper: BoundsLike = None,
    noise: str | Noise = "gaussian",
    random_state: RandomStateLike = None,
    step: ArrayLike | None = None,
) -> FloatArray:
    r"""Randomised probability integral transform: uniform on [0, 1] if the model is right.

    .. math:: u \sim \mathrm{Uniform}\left[P(Y < y),\; P(Y \le y)\right]

    for y = clip(η + σε, lower, upper). The two ends differ only at a bound, where the mass beyond
    it is spread evenly. A U-shaped histogram means that σ is too small, a hump that it is too
    large, a slope that the predictions are biased.

    Scores on a grid, such as whole points of the MMSE, have mass at every value: with ``step`` h
    the ends are P(Y < y − h/2) and P(Y ≤ y + h/2), which at a bound include the mass beyond it.

    Parameters
    ----------
    Y : array or DataFrame of shape (N,) or (N, T), or CensoredTargets
        Outcomes, NaN where missing. An entry of a CensoredTargets that is censored at a limit of
        its own is spread over the mass beyond the limit.
    latent : array of the shape of Y
        Predicted scores η before censoring.
    sigma : number, or array of shape (T,) or (N, T)
        Noise scales.
    lower, upper : number, one per task, dict by target name, array of the shape of Y, or None
        Bounds; a CensoredTargets brings its own. With ``step`` they should lie on the grid.
    noise : {"gaussian", "logistic", "student_t"} or Noise
        The family of ε.
    random_state : int, Generator, RandomState or None
        Source of the uniform draws. One is drawn for every entry, missing or not.
    step : number or array of shape (T,), optional
        Distance between neighbouring scores; 0 or None where y is continuous.

    Returns
    -------
    array of the shape of Y
        NaN where an entry is missing, or known only as an interval.

    Examples
    --------
    >>> Y, latent = [27.0, 30.0, np.nan], [28.0, 31.0, 20.0]
    >>> pit(Y, latent, 2.0, upper=30, random_state=0).round(4)
    array([0.3085, 0.4951,    nan])
    >>> pit(Y, latent, 2.0, upper=30, random_state=0, step=1).round(4)
    array([0.3379, 0.4353,    nan])
    """
    targets, eta, scale = inputs.read_forecast(Y, latent, sigma, lower, upper)
    steps = inputs.read_scale(0.0 if step is None else step, targets, "step", may_be_zero=True)
    y, lower, upper = inputs.recorded(targets, eta)
    predictive = Predictive(resolve_noise(noise), eta, scale, lower, upper)
    # A limit of an entry's own is not rounded.
    on_scale = (lower == targets.lower_bounds) & (upper == targets.upper_bounds)
    half = np.where(on_scale, 0.5 * steps, 0.0)
    below, _ = predictive.cdf(y - half)
    _, up_to = predictive.cdf(y + half)
    if not isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        random_state = np.random.default_rng(random_state)
    draws = random_state.uniform(size=targets.shape)
    transformed = np.where(targets.has_value, below + draws * (up_to - below), np.nan)
    return transformed[:, 0] if targets.one_dimensional else transformed


# Calibration of the probability of being at a bound.


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
    happened = np.atleast_1d(np.asarray(at_bound, dtype=np.float64))
    predicted = np.atleast_1d(np.asarray(probability, dtype=np.float64))
    wrong = ~(np.isnan(happened) | (happened == 0.0) | (happened == 1.0))
    if wrong.any():
        found = f"{happened[wrong][0]:g}"
        raise ValueError(f"at_bound must hold True and False (or 1, 0 and NaN); got {found}")
    if predicted.shape != happened.shape:
        shapes = f"at_bound has shape {happened.shape} but probability has shape {predicted.shape}"
        raise ValueError(shapes)
    wrong = ~((predicted >= 0.0) & (predicted <= 1.0))
    if wrong.any():
        raise ValueError(f"probability must lie between 0 and 1; got {predicted[wrong][0]:g}")
    check_count("n_bins", n_bins)
    rows = inputs.read_weights(sample_weight, len(happened))
    weights = np.broadcast_to(rows, happened.T.shape).T
    known = ~np.isnan(happened) & (weights > 0.0)
    if not known.any():
        raise ValueError("at_bound has no known entry (of positive weight)")
    happened, predicted, weights = happened[known], predicted[known], weights[known]
    bins = np.minimum((predicted * n_bins).astype(np.intp), n_bins - 1)
    _, bins = np.unique(bins, return_inverse=True)  # empty bins are left out
    count = np.bincount(bins, weights).astype(np.float64)
    shares = (np.bincount(bins, weights * values) / count for values in (predicted, happened))
    by_bin, seen = shares
    error = float(np.average(np.abs(seen - by_bin), weights=count))
    return BoundCalibration(error, by_bin, seen, count)


# Scorers for scikit-learn's ``scoring=``: whole predictive distributions, higher is better.


def log_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Mean log density per entry, as ``score_log``, of an estimator or a pipeline that ends in one.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from deeptobit import TobitRegressor, datasets
    >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 1, random_state=0)
    >>> model = make_pipeline(StandardScaler(), TobitRegressor())
    >>> cross_val_score(model, X, Y, cv=2, scoring=log_scorer).round(2)
    array([-1.58, -1.63])
    """
    model, X = _last_step(estimator, X)
    return float(model.score_log(X, y))


def crps_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Minus the continuous ranked probability score, averaged over targets.

    Examples
    --------
    >>> from deeptobit import TobitRegressor, datasets
    >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 1, random_state=0)
    >>> round(crps_scorer(TobitRegressor().fit(X, Y), X, Y), 2)
    -0.83
    """
    model, X = _last_step(estimator, X)
    targets, found = model._compared(X, y)
    return -float(crps(targets, found.latent, found.sigma, noise=found.noise))


def _last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The model of a pipeline, and the features that it sees."""
    if hasattr(estimator, "steps"):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X
