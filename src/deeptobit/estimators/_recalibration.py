"""Slope, level and noise scale of every task, refitted on rows that no model had seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators._held_out_scores import HeldOutScores, Line
from deeptobit.likelihood import Derivatives, Noise, Predictive

_SLOPE_PRECISION = 60.0  # of the prior c ~ N(1, 1/60): held-out scores are few, and nearly right
_MAX_STEPS = 50
_TOLERANCE = 1e-8  # of a step, in standard units
_ROUNDING = 1e-12  # of the objective, which is a sum over rows
_LARGEST_STEP = 2.0  # in standard deviations of a task
_USUAL = np.array([[0.0], [1.0], [0.0], [0.0]])  # level, slope, log σ and growth without a refit


class Refit(NamedTuple):
    """A line, and what it leaves of the objective, (T,)."""

    line: Line
    loss: FloatArray


def recalibrate(
    scores: HeldOutScores, noise: Noise, start: Line | None = None, max_steps: int = _MAX_STEPS
) -> Refit:
    r"""The line :math:`y^* = a + c\,\eta + \sigma\varepsilon` that held-out scores η ask for.

    In-sample, a flexible layer looks better than it is: slopes of its scores are below 1 on new
    rows, and σ is larger. Minimised is

    .. math::
        \sum_i w_i \left[\mathrm{nll}_i + \frac{(y_i - E[y_i])^2}{2 s^2}\right]
        + \frac{60}{2} (c - 1)^2 + \frac{g^2}{2\tau^2}

    with the mean square s² of the held-out errors as they are. σ grows with the score, by the
    factor :math:`e^g` per standard deviation of the scores (:class:`Spread`). The likelihood alone
    would give up slopes, and with them E[y|x], for a better fit of wild values: heavy tails make it
    robust, which a mean is not. The slope has a prior around 1.

    Parameters
    ----------
    scores : HeldOutScores
    noise : Noise
    start : Line, optional
        By default level 0, slope 1 and the σ that the scores came with.
    max_steps : int
        Newton steps at most; a few of them tell which noise suits.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> from deeptobit.targets import CensoredTargets
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(2000, 1))
    >>> targets = CensoredTargets.from_bounds(0.5 * eta + 1 + 2 * rng.normal(size=eta.shape))
    >>> scores = HeldOutScores.build(
    ...     eta, targets, np.ones(2000), np.ones(1), np.array([True]), fit_intercept=True)
    >>> line = recalibrate(scores.without_growth(), Gaussian()).line
    >>> [part.round(1).tolist() for part in line]
    [[1.0], [0.5], [2.0], [0.0]]
    """
    if start is None:
        point = np.repeat(_USUAL, scores.x.shape[1], axis=1)
    else:
        point = scores.from_user(start)
        point[3] = np.where(scores.movable[3], point[3], 0.0)
    here = _look(scores, noise, point)
    for _ in range(max_steps):
        step = _newton_step(scores, here)
        step *= np.minimum(1.0, _LARGEST_STEP / np.maximum(np.abs(step).max(axis=0), 1e-300))
        here, moved = _descend(scores, noise, here, step)
        if moved < _TOLERANCE:
            break
    return Refit(scores.to_user(here.point), here.loss)


def growth_told(scores: HeldOutScores, noise: Noise, line: Line) -> tuple[FloatArray, FloatArray]:
    """The growth that each task asks for by itself, and its variance: inf where it tells none.

    By Laplace's approximation at the optimum of the likelihood and the priors, without the prior
    of the growth; each (T,).
    """
    here = _look(scores, noise, scores.from_user(line))
    with_prior = 1.0 / _inverse(_held(_curvature(scores, here), scores.movable))[3, 3]
    prior = scores.growth_width**-2
    alone = with_prior - prior
    tells = scores.movable[3] & (alone > 1e-3 * prior)
    alone = np.where(tells, alone, 1.0)
    estimate = np.where(tells, line.growth * with_prior / alone, 0.0)
    return estimate, np.where(tells, 1.0 / alone, np.inf)


class _Place(NamedTuple):
    """The objective of every task at a point (4, T), and what its derivatives are made of."""

    point: FloatArray
    loss: FloatArray
    at: Derivatives
    predictive: Predictive
    residual: FloatArray


def _look(scores: HeldOutScores, noise: Noise, point: FloatArray) -> _Place:
    predictive = scores.predictive(noise, point)
    at = likelihood.evaluate(noise, scores.low, scores.high, predictive.latent, predictive.sigma)
    loss = scores.weight @ at.nll + 0.5 * _precision(scores) @ np.square(point - _USUAL)
    residual = np.zeros_like(scores.x)
    if scores.mean_weight.any():
        residual = np.where(scores.mean_weight > 0.0, scores.y - predictive.mean(), 0.0)
        loss = loss + 0.5 * (scores.mean_weight * residual**2).sum(axis=0)
    return _Place(point, loss, at, predictive, residual)


def _precision(scores: HeldOutScores) -> FloatArray:
    """Of the priors of level, slope, log σ and growth."""
    return np.array([0.0, _SLOPE_PRECISION, 0.0, scores.growth_width**-2])


def _newton_step(scores: HeldOutScores, here: _Place) -> FloatArray:
    """Newton steps of all tasks; directions of negative curvature count with its size, (4, T)."""
    weight, movable = scores.weight[:, None], scores.movable
    by_latent, by_log_sigma = scores.directions
    gradient = np.concatenate(
        [
            (by_latent * (weight * here.at.latent)).sum(axis=1),
            (by_log_sigma * (weight * here.at.log_sigma)).sum(axis=1),
        ]
    )
    gradient += _precision(scores)[:, None] * (here.point - _USUAL)
    hessian = _curvature(scores, here)
    if scores.mean_weight.any():
        mean = _mean_derivatives(scores, here.predictive)
        gradient -= (mean * scores.mean_weight * here.residual).sum(axis=1)
        hessian += _products(mean, scores.mean_weight, mean)
    inverse = _inverse(_held(hessian, movable))
    return np.asarray(-np.einsum("ijt,jt->it", inverse, np.where(movable, gradient, 0.0)))


def _curvature(scores: HeldOutScores, here: _Place) -> FloatArray:
    """Second derivatives of the likelihood and the priors, (4, 4, T)."""
    weight, at = scores.weight[:, None], here.at
    by_latent, by_log_sigma = scores.directions
    hessian = np.empty((4, 4, scores.x.shape[1]))
    hessian[:2, :2] = _products(by_latent, weight * at.latent_latent, by_latent)
    hessian[:2, 2:] = _products(by_latent, weight * at.latent_log_sigma, by_log_sigma)
    hessian[2:, :2] = hessian[:2, 2:].transpose(1, 0, 2)
    hessian[2:, 2:] = _products(by_log_sigma, weight * at.log_sigma_log_sigma, by_log_sigma)
    return hessian + np.diag(_precision(scores))[:, :, None]


def _products(left: FloatArray, weight: FloatArray, right: FloatArray) -> FloatArray:
    """Sums over rows of all pairs of directions."""
    return np.asarray(np.einsum("int,nt,jnt->ijt", left, weight, right, optimize=True))


def _held(hessian: FloatArray, movable: BoolArray) -> FloatArray:
    """The curvature where only some parameters move: the others stand apart."""
    apart = np.eye(len(movable))[:, :, None]
    return np.where(movable[:, None] & movable[None, :], hessian, apart)


def _inverse(hessian: FloatArray) -> FloatArray:
    """Of every task, with the sizes of its eigenvalues, none of them 0, (4, 4, T)."""
    values, axes = np.linalg.eigh(hessian.transpose(2, 0, 1))
    values = np.abs(values)
    values = np.maximum(values, 1e-8 * values.max(axis=1, keepdims=True) + 1e-300)
    return np.asarray(np.einsum("tik,tk,tjk->ijt", axes, 1.0 / values, axes, optimize=True))


def _mean_derivatives(scores: HeldOutScores, predictive: Predictive) -> FloatArray:
    """Of E[y|x] by level, slope, log σ and growth, (4, N, T)."""
    moves_latent, moves_log_sigma = scores.directions
    by_latent, by_sigma = predictive.mean_slopes()
    return np.concatenate([moves_latent * by_latent, moves_log_sigma * predictive.sigma * by_sigma])


def _descend(
    scores: HeldOutScores, noise: Noise, here: _Place, step: FloatArray
) -> tuple[_Place, float]:
    """Halve the steps of the tasks that would rise, and stay where none falls."""
    factor = np.ones(step.shape[1])
    most = here.loss + _ROUNDING * np.abs(here.loss)
    for _ in range(30):
        there = _look(scores, noise, here.point + factor * step)
        rises = ~(there.loss <= most)
        if not rises.any():
            break
        factor = np.where(rises, 0.5 * factor, factor)
    else:
        factor = np.where(rises, 0.0, factor)
        there = _look(scores, noise, here.point + factor * step)
    return there, float(np.abs(factor * step).max())
