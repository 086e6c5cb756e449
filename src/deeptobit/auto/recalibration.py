"""Recalibration: intercept, slope and noise scale of every task, estimated on held-out rows."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.auto.folds import HeldOutFolds
from deeptobit.layer import CensoringKinds, Objective, minimize_each, positive_inverse
from deeptobit.likelihood import Noise, Predictive, ScoreGrid, Spread
from deeptobit.targets import CensoredTargets, find_step

_GROWTH_SD = 0.1  # of the prior of growths around 0, before it is estimated from all tasks
_NO_WIDTH = 0.02  # of scores, in units of σ: too little variation for σ to change with them
_FINEST_STEP = 0.02  # between whole outcomes, in units of σ: finer ones make no difference
_COARSEST_STEP = 3.0  # a five-point scale has steps of 1 to 2 σ
_SLOPE_PRECISION = 60.0  # of the prior c ~ N(1, 1/60): held-out scores are few, and nearly right
_MAX_STEPS = 50
_TOLERANCE = 1e-5
_BEYOND = 30.0  # times the size of nine in ten scores: what one value of a feature far out does
_LARGEST_STEP = 2.0  # in standard deviations of a task
_IDENTITY = np.array([[0.0], [1.0], [0.0], [0.0]])  # intercept, slope, log σ, growth: no change
_LEVEL = np.array([0, 2])  # intercept and log σ, which set the mean of the predictions
_MEAN_STEPS = 20
_MEAN_TOLERANCE = 1e-12  # of a step, in noise scales


class Recalibration(NamedTuple):
    """y* = intercept + slope · latent + σε, and the growth of σ with the score, each (T,)."""

    intercept: FloatArray
    slope: FloatArray
    sigma: FloatArray
    growth: FloatArray

    def apply(self, coef: FloatArray, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coefficients (T, ·) and intercepts (T,) of the recalibrated layer."""
        return self.slope[:, None] * coef, self.intercept + self.slope * intercept


@dataclass(frozen=True)
class HeldOutScores:
    """Latent scores of held-out rows with their outcomes, centred and scaled task by task.

    Parameters
    ----------
    x : array of shape (N, T)
        The latent scores.
    low, high : arrays of shape (N, T)
        Ends of the outcomes' intervals.
    y, lower, upper : arrays of shape (N, T) or (T,)
        Recorded values and bounds.
    weight : array of shape (N,)
    mean_weight : array of shape (N, T)
        Weight of the squared error of an entry, 0 where it has no value.
    centre, scale : arrays of shape (T,)
        Subtracted from scores and outcomes, and divided by.
    middle, width : arrays of shape (T,)
        Mean and standard deviation of ``x``.
    free : bool array of shape (4, T)
        Which of intercept, slope, log σ and growth are estimated.
    grid : ScoreGrid, optional
        The values that outcomes can have, in the user's units.
    growth_sd : float
        Standard deviation of the prior of growths around 0.
    """

    x: FloatArray
    low: FloatArray
    high: FloatArray
    y: FloatArray
    lower: FloatArray
    upper: FloatArray
    weight: FloatArray
    mean_weight: FloatArray
    centre: FloatArray
    scale: FloatArray
    middle: FloatArray
    width: FloatArray
    free: BoolArray
    grid: ScoreGrid | None = None
    growth_sd: float = _GROWTH_SD

    @classmethod
    def build(
        cls,
        latent: FloatArray,
        targets: CensoredTargets,
        weight: FloatArray,
        sigma: FloatArray,
        free: BoolArray,
        *,
        fit_intercept: bool,
    ) -> Self:
        """From latent scores and outcomes in the user's units.

        A score beyond all others tells of a feature that the other folds hardly know, and nothing
        of errors: its outcome counts as missing.

        Parameters
        ----------
        latent : array of shape (N, T)
        targets, weight
            The outcomes of these rows and their weights.
        sigma : array of shape (T,)
            Start values.
        free : bool array of shape (T,)
            Tasks to recalibrate; the others keep their scores and σ.
        fit_intercept : bool
            Whether the intercept is estimated.
        """
        middle = np.median(latent, axis=0)
        away = np.abs(latent - middle)
        beyond = away > _BEYOND * np.maximum(np.quantile(away, 0.9, axis=0), sigma)
        latent = np.where(beyond, middle, latent)
        low, high = (np.where(beyond, np.nan, ends) for ends in (targets.low, targets.high))
        centre = weight @ latent / weight.sum() if fit_intercept else np.zeros(latent.shape[1])

        def standard(values: FloatArray) -> FloatArray:
            return np.asarray((values - centre) / sigma)

        x, y = standard(latent), standard(targets.values)
        lower, upper = standard(targets.lower_bounds), standard(targets.upper_bounds)
        share = np.where(targets.has_value & free & ~beyond, weight[:, None], 0.0)
        mean = Predictive(likelihood.Gaussian(), x, np.ones_like(sigma), lower, upper).mean()
        total = share.sum(axis=0)
        squares = (share * np.where(share > 0.0, y - mean, 0.0) ** 2).sum(axis=0)
        per_square = np.where(squares > 0.0, total / np.where(squares > 0.0, squares, 1.0), 0.0)
        middle = weight @ x / weight.sum()
        width = np.sqrt(weight @ np.square(x - middle) / weight.sum())
        varies = width > _NO_WIDTH
        return cls(
            x=x,
            low=standard(low),
            high=standard(high),
            y=y,
            lower=lower,
            upper=upper,
            weight=weight,
            mean_weight=share * per_square,
            centre=centre,
            scale=sigma,
            middle=middle,
            width=np.where(varies, width, 1.0),
            free=np.stack([free & fit_intercept, free, free, free & varies]),
            grid=_find_grid(targets, weight, sigma, free),
        )

    @classmethod
    def of_folds(
        cls,
        held_out: HeldOutFolds,
        latents: Sequence[FloatArray],
        sigma: FloatArray,
        kinds: CensoringKinds,
        *,
        fit_intercept: bool,
    ) -> Self:
        """The latent scores of the rows that each fold holds out, one after the other.

        Tasks of which every entry is censored keep their scores and σ.
        """
        rows = np.concatenate([fold.test for fold in held_out.folds])
        data = np.concatenate(latents), held_out.targets[rows], held_out.weight[rows]
        free = ~(kinds.one_sided | kinds.two_sided)
        return cls.build(*data, sigma, free, fit_intercept=fit_intercept)

    @cached_property
    def directions(self) -> FloatArray:
        """Derivatives of scores and log σ by their level and by slope and growth, (2, 2, N, T)."""
        one = np.ones_like(self.x)
        bent = likelihood.bend((self.x - self.middle) / self.width)
        return np.array([[one, self.x], [one, bent]])

    @cached_property
    def standard_grid(self) -> ScoreGrid | None:
        """The grid, centred and divided as outcomes are."""
        if self.grid is None:
            return None
        return ScoreGrid(self.grid.step / self.scale, (self.grid.origin - self.centre) / self.scale)

    def predictive(self, noise: Noise, point: FloatArray) -> Predictive:
        """Predictive distributions at (intercept, slope, log σ, growth), (N, T)."""
        intercept, slope, log_sigma, growth = point
        sigma = np.exp(log_sigma)
        if growth.any():
            sigma = sigma * np.exp(growth * self.directions[1, 1])
        latent = intercept + slope * self.x
        noise = likelihood.with_grid(noise, self.standard_grid)
        return Predictive(noise, latent, sigma, self.lower, self.upper)

    def without_means(self) -> Self:
        """The same without squared errors: the likelihood alone."""
        return replace(self, mean_weight=np.zeros_like(self.mean_weight))

    def without_growth(self, tasks: BoolArray | None = None) -> Self:
        """The same with one σ at all scores, in some tasks or in all."""
        free = self.free.copy()
        free[3] = False if tasks is None else free[3] & ~tasks
        return replace(self, free=free)

    def of_rows(self, rows: BoolArray) -> Self:
        """Some of the rows, centred and scaled as all of them are."""
        names = ("x", "low", "high", "y", "weight", "mean_weight")
        parts: Any = {name: getattr(self, name)[rows] for name in names}
        for name in ("lower", "upper"):
            bounds = getattr(self, name)
            parts[name] = bounds[rows] if bounds.ndim == 2 else bounds
        return replace(self, **parts)

    def of_tasks(self, tasks: BoolArray) -> Self:
        """Some of the tasks."""
        names = {field.name for field in fields(self)} - {"weight", "grid", "growth_sd"}
        parts: Any = {name: getattr(self, name)[..., tasks] for name in names}
        grid = None if self.grid is None else self.grid.of(np.flatnonzero(tasks))
        return replace(self, **parts, grid=grid)

    def to_user(self, point: FloatArray) -> Recalibration:
        """(intercept, slope, log σ, growth) in the user's units."""
        intercept, slope, log_sigma, growth = point
        intercept = self.centre * (1.0 - slope) + self.scale * intercept
        return Recalibration(intercept, slope, self.scale * np.exp(log_sigma), growth)

    def from_user(self, found: Recalibration) -> FloatArray:
        """(intercept, slope, log σ, growth) in standard units, (4, T)."""
        intercept = (found.intercept - self.centre * (1.0 - found.slope)) / self.scale
        return np.stack([intercept, found.slope, np.log(found.sigma / self.scale), found.growth])

    def spread(self, found: Recalibration) -> Spread:
        """How σ changes with the recalibrated scores, in the user's units."""
        width = found.slope * self.scale * self.width
        varies = width != 0.0
        return Spread(
            np.where(varies, found.growth, 0.0),
            found.intercept + found.slope * (self.centre + self.scale * self.middle),
            np.where(varies, width, 1.0),
        )


def _find_grid(
    targets: CensoredTargets, weight: FloatArray, sigma: FloatArray, free: BoolArray
) -> ScoreGrid | None:
    """Values of the tasks whose steps are neither lost in the noise nor far wider than it."""
    values = targets.values[weight > 0.0]
    lower = np.atleast_2d(targets.lower_bounds).min(axis=0)
    upper = np.atleast_2d(targets.upper_bounds).max(axis=0)
    step, origin = np.zeros((2, len(free)))
    for task in np.flatnonzero(free):
        found = find_step(values[:, task], lower[task], upper[task])
        if _FINEST_STEP <= found / sigma[task] <= _COARSEST_STEP:
            ends = [lower[task], upper[task], np.nanmin(values[:, task]) % found]
            step[task], origin[task] = found, next(end for end in ends if np.isfinite(end))
    return ScoreGrid(step, origin) if step.any() else None


def recalibrate(
    scores: HeldOutScores, noise: Noise, start: Recalibration | None = None, tol: float = _TOLERANCE
) -> tuple[Recalibration, FloatArray]:
    r"""Fit :math:`y^* = a + c\,\eta + \sigma\varepsilon` to held-out scores η, by Newton steps.

    In-sample, a flexible layer looks better than it is: slopes of its scores are below 1 on new
    rows, and σ is larger. Minimised is

    .. math::
        \sum_i w_i \left[\mathrm{nll}_i + \frac{(y_i - E[y_i])^2}{2 s^2}\right]
        + \frac{60}{2} (c - 1)^2 + \frac{g^2}{2\tau^2}

    with the mean square s² of the held-out errors before recalibration. σ grows with the score, by
    the factor :math:`e^g` per standard deviation of the scores (:class:`Spread`). The squared
    errors keep E[y|x] right: heavy tails make the likelihood robust, which a mean is not. The slope
    has a prior around 1.

    Parameters
    ----------
    scores : HeldOutScores
    noise : Noise
    start : Recalibration, optional
        By default no change: intercept 0, slope 1 and the σ of the scores.
    tol : float
        Size of the last Newton step in standard units; the error after it is about its square.

    Returns
    -------
    Recalibration
    array of shape (T,)
        The objective.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> from deeptobit.targets import CensoredTargets
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(2000, 1))
    >>> targets = CensoredTargets.from_bounds(0.5 * eta + 1 + 2 * rng.normal(size=eta.shape))
    >>> scores = HeldOutScores.build(
    ...     eta, targets, np.ones(2000), np.ones(1), np.array([True]), fit_intercept=True)
    >>> found, _ = recalibrate(scores.without_growth(), Gaussian())
    >>> [part.round(1).tolist() for part in found]
    [[1.0], [0.5], [2.0], [0.0]]
    """
    if start is None:
        point = np.repeat(_IDENTITY, scores.x.shape[1], axis=1)
    else:
        point = scores.from_user(start)
        point[3] = np.where(scores.free[3], point[3], 0.0)

    def objective(point: FloatArray) -> Objective:
        here = _evaluate(scores, noise, point)
        return here.loss, lambda: _derivatives(scores, here)

    point, loss = minimize_each(
        objective, point, longest=_LARGEST_STEP, max_steps=_MAX_STEPS, tol=tol
    )
    return scores.to_user(point), loss


def estimate_growth(
    scores: HeldOutScores, noise: Noise, found: Recalibration
) -> tuple[FloatArray, FloatArray]:
    """Growth of each task without its prior, and its variance (inf if not identified), (T,) each.

    By Laplace's approximation at the optimum that the prior is part of.
    """
    here = _evaluate(scores, noise, scores.from_user(found))
    with_prior = 1.0 / positive_inverse(_of_free(scores, _likelihood_hessian(scores, here)))[3, 3]
    prior = scores.growth_sd**-2
    alone = with_prior - prior
    identified = scores.free[3] & (alone > 1e-3 * prior)
    alone = np.where(identified, alone, 1.0)
    estimate = np.where(identified, found.growth * with_prior / alone, 0.0)
    return estimate, np.where(identified, 1.0 / alone, np.inf)


def losses(scores: HeldOutScores, noise: Noise, found: Recalibration) -> FloatArray:
    """Sums over rows of negative log likelihood and squared error, (2, T)."""
    here = _evaluate(scores, noise, scores.from_user(found))
    squares = np.where(scores.mean_weight > 0.0, np.square(here.residual), 0.0)
    return np.stack([scores.weight @ here.at.nll, scores.weight @ squares])


def unbias_mean(scores: HeldOutScores, noise: Noise, found: Recalibration) -> Recalibration:
    r"""Move intercepts and σ so that E[y|x] is right on average.

    Where the noise is not of the assumed family, the likelihood gets the mean wrong. The mean
    residual r of the held-out rows is removed up to its standard error, :math:`r(1 - se^2/r^2)_+`.
    Of all moves the one that costs least likelihood is made, along :math:`H^{-1}m` with the
    derivatives m of the mean and the curvature H of the likelihood: an intercept where noise is
    symmetric. The mean of a long tail depends on σ, and many outcomes near the other end leave no
    room to move.
    """
    known = (scores.mean_weight > 0.0) & scores.free[0]
    share = np.where(known, scores.weight[:, None], 0.0)
    here = _evaluate(scores, noise, scores.from_user(found))
    n_entries = share.sum(axis=0)
    unit = share / np.where(n_entries > 0.0, n_entries, 1.0)
    mean = here.predictive.mean()
    sigma = np.broadcast_to(here.predictive.sigma, unit.shape).mean(axis=0)
    residual = np.where(known, scores.y - mean, 0.0) / sigma  # whose squares do not overflow
    bias, certain = _certain_mean(residual, unit, n_entries)
    wanted = (unit * mean).sum(axis=0) + certain * bias * sigma
    curvature = _of_free(scores, _likelihood_hessian(scores, here))[np.ix_(_LEVEL, _LEVEL)]
    slopes = np.where(scores.free[_LEVEL], _level_slopes(here.predictive, unit), 0.0)
    along = np.einsum("ijt,jt->it", positive_inverse(curvature), slopes)
    movable = (certain > 0.0) & (along[0] != 0.0)
    return scores.to_user(_move(scores, noise, here.point, along, unit, wanted, movable))


def keep_level(
    scores: HeldOutScores, noise: Noise, found: Recalibration, latent: FloatArray
) -> Recalibration:
    """Move the intercepts so that other scores of the same rows give the same mean of E[y|x].

    Folds with few outcomes off a bound differ from one another and from the layer of all rows.
    The mean difference is removed up to its standard error, as one row far out is no level.

    Parameters
    ----------
    latent : array of shape (N, T)
        Scores of the layer of all rows, in the user's units.
    """
    point, total = scores.from_user(found), scores.weight.sum()
    unit = (scores.weight / total)[:, None]
    refitted = replace(scores, x=(latent - scores.centre) / scores.scale)
    mean = refitted.predictive(noise, point).mean()
    folds = scores.predictive(noise, point).mean()
    difference, certain = _certain_mean(folds - mean, unit, total)
    wanted = (unit * mean).sum(axis=0) + certain * difference
    along = np.outer([1.0, 0.0], np.ones_like(wanted))
    return scores.to_user(_move(refitted, noise, point, along, unit, wanted, scores.free[0]))


def _certain_mean(
    values: FloatArray, unit: FloatArray, n_entries: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means of the columns, and which share of them is beyond chance, (1 - (se / mean)²)₊."""
    mean = (unit * values).sum(axis=0)
    squared_error = (unit * np.square(values - mean)).sum(axis=0) / np.maximum(n_entries, 1.0)
    return mean, np.maximum(1.0 - squared_error / np.maximum(mean**2, 1e-300), 0.0)


def _level_slopes(predictive: Predictive, unit: FloatArray) -> FloatArray:
    """Derivatives of the mean of E[y|x] by intercept and log σ, (2, T)."""
    by_latent, by_sigma = predictive.mean_slopes()
    slopes = unit * np.stack([by_latent, predictive.sigma * by_sigma])
    return np.asarray(slopes.sum(axis=1))


def _move(
    scores: HeldOutScores,
    noise: Noise,
    point: FloatArray,
    along: FloatArray,
    unit: FloatArray,
    wanted: FloatArray,
    movable: BoolArray,
) -> FloatArray:
    """The point at which the mean of E[y|x] is as wanted, from another by steps along (2, T)."""
    point = point.copy()
    size = np.maximum(np.abs(along[0]) * np.exp(-point[2]), np.abs(along[1]))
    along = along / np.where(size > 0.0, size, 1.0)  # in units of σ
    for _ in range(_MEAN_STEPS if movable.any() else 0):
        moved = scores.predictive(noise, point)
        slope = np.maximum(
            (along * _level_slopes(moved, unit)).sum(axis=0), 1e-3 * np.exp(point[2])
        )
        step = (wanted - (unit * moved.mean()).sum(axis=0)) / slope
        step = np.where(movable, np.clip(step, -0.5, 0.5), 0.0)
        point[_LEVEL] += step * along
        if (np.abs(step) <= _MEAN_TOLERANCE).all():
            break
    return point


class _Evaluation(NamedTuple):
    """The objective of every task at a point (4, T), and what its derivatives are made of."""

    point: FloatArray
    loss: FloatArray
    at: likelihood.Derivatives
    predictive: Predictive
    residual: FloatArray


def _evaluate(scores: HeldOutScores, noise: Noise, point: FloatArray) -> _Evaluation:
    predictive = scores.predictive(noise, point)
    at = likelihood.evaluate(noise, scores.low, scores.high, predictive.latent, predictive.sigma)
    loss = scores.weight @ at.nll + 0.5 * _prior_precision(scores) @ np.square(point - _IDENTITY)
    residual = np.zeros_like(scores.x)
    if scores.mean_weight.any():
        residual = np.where(scores.mean_weight > 0.0, scores.y - predictive.mean(), 0.0)
        loss = loss + 0.5 * (scores.mean_weight * residual**2).sum(axis=0)
    return _Evaluation(point, loss, at, predictive, residual)


def _prior_precision(scores: HeldOutScores) -> FloatArray:
    """Of intercept, slope, log σ and growth, (4,)."""
    return np.array([0.0, _SLOPE_PRECISION, 0.0, scores.growth_sd**-2])


def _derivatives(scores: HeldOutScores, here: _Evaluation) -> tuple[FloatArray, FloatArray]:
    """Gradient (4, T) and Hessian (4, 4, T) by the free parameters."""
    slopes = scores.weight[:, None] * np.stack([here.at.latent, here.at.log_sigma])
    gradient = np.einsum("aint,ant->ait", scores.directions, slopes).reshape(here.point.shape)
    gradient += _prior_precision(scores)[:, None] * (here.point - _IDENTITY)
    hessian = _likelihood_hessian(scores, here)
    if scores.mean_weight.any():
        by_latent, by_sigma = here.predictive.mean_slopes()
        slopes = np.stack([by_latent, here.predictive.sigma * by_sigma])
        mean = (scores.directions * slopes[:, None]).reshape(4, *scores.x.shape)
        gradient -= (mean * scores.mean_weight * here.residual).sum(axis=1)
        hessian += np.einsum("int,nt,jnt->ijt", mean, scores.mean_weight, mean)
    return np.where(scores.free, gradient, 0.0), _of_free(scores, hessian)


def _likelihood_hessian(scores: HeldOutScores, here: _Evaluation) -> FloatArray:
    """Second derivatives of the negative log likelihood and of the priors, (4, 4, T)."""
    at, by = here.at, scores.directions
    of_both = at.latent_log_sigma
    second = np.array([[at.latent_latent, of_both], [of_both, at.log_sigma_log_sigma]])
    second *= scores.weight[:, None]
    hessian = np.einsum("aint,abnt,bjnt->aibjt", by, second, by).reshape(4, 4, -1)
    return np.asarray(hessian + np.diag(_prior_precision(scores))[:, :, None])


def _of_free(scores: HeldOutScores, hessian: FloatArray) -> FloatArray:
    """The Hessian of the free parameters, the identity for the others, (4, 4, T)."""
    both_free = scores.free[:, None] & scores.free[None, :]
    return np.where(both_free, hessian, np.eye(4)[:, :, None])
