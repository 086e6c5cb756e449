"""The probability integral transform: where outcomes fall in their predictive distributions."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise, resolve_noise
from deeptobit.metrics._entries import recorded
from deeptobit.metrics._inputs import TargetsLike, read_predictions, read_sigma, read_targets
from deeptobit.targets import BoundsLike, CensoredTargets

RandomStateLike: TypeAlias = int | np.random.Generator | np.random.RandomState | None


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
    r"""Randomised probability integral transform: uniform on [0, 1] if the model is true.

    .. math:: u \sim \mathrm{Uniform}\left[P(Y < y),\; P(Y \le y)\right]

    for y = clip(η + σε, lower, upper). The two ends differ only at a bound, where the mass beyond
    it is spread evenly. A histogram that is U-shaped says σ is too small, a hump that it is too
    large, a slope that the predictions are biased.

    Scores recorded on a grid, such as whole points of the MMSE, have mass at every value: with
    ``step`` h the ends are P(Y < y − h/2) and P(Y ≤ y + h/2), which at a bound include all that
    lies beyond it.

    Parameters
    ----------
    Y : array or DataFrame of shape (N,) or (N, T), or CensoredTargets
        Outcomes, NaN where missing. An entry of a CensoredTargets that is censored at a limit of
        its own is spread over all that lies beyond the limit.
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
    targets = read_targets(Y, lower, upper)
    eta = read_predictions(latent, targets, "latent")
    scale = read_sigma(sigma, targets)
    steps = _read_step(step, targets)
    entries = recorded(targets)
    predictive = entries.predictive(resolve_noise(noise), eta, scale)
    half = np.where(entries.on_scale, 0.5 * steps[entries.known], 0.0)
    below, _ = predictive.cdf(entries.y - half)
    _, up_to = predictive.cdf(entries.y + half)
    known_draws = _uniform(random_state, targets.shape)[entries.known]
    transformed = np.full(targets.shape, np.nan)
    transformed[entries.known] = below + known_draws * (up_to - below)
    return transformed[:, 0] if targets.one_dimensional else transformed


def _read_step(step: ArrayLike | None, targets: CensoredTargets) -> FloatArray:
    """Rounding steps, broadcast to (N, T)."""
    steps = np.asarray(0.0 if step is None else step, dtype=np.float64)
    if steps.shape not in ((), targets.shape[1:]):
        raise ValueError(
            f"step must be a number or one per target ({targets.shape[1]}); got shape {steps.shape}"
        )
    steps = np.broadcast_to(steps, targets.shape[1:])
    for task in np.flatnonzero(~((steps >= 0.0) & np.isfinite(steps))).tolist():
        raise ValueError(
            f"step must be finite and not negative; got {steps[task]:g} for target "
            f"{targets.names[task]!r}"
        )
    return np.broadcast_to(steps, targets.shape)


def _uniform(random_state: RandomStateLike, shape: tuple[int, ...]) -> FloatArray:
    if isinstance(random_state, (np.random.Generator, np.random.RandomState)):
        return random_state.uniform(size=shape)
    return np.random.default_rng(random_state).uniform(size=shape)
