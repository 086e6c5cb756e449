"""The error model: recalibration and noise family of every task, estimated on held-out rows."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.auto import recalibration
from deeptobit.auto.recalibration import HeldOutScores, Recalibration, recalibrate
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT, SymmetricNoise, TwoPiece

TAILS: tuple[SymmetricNoise, ...] = (Gaussian(), Logistic(), StudentT(4.0), StudentT(2.5))
_SKEWS = (0.35, 0.7, 1.05)  # in both directions
_FAR_LESS_LIKELY = 3.0  # difference of negative log likelihoods
_ROUGHLY = 0.01  # tolerance to compare families
_QUARTILES = np.array([0.25, 0.5, 0.75])
_SKEW_SD = 0.35  # of the prior of skews around 0, before it is estimated from all tasks
_GROWTH_SD = 0.1  # the same for growths
_PRIOR_TASKS = 2.0  # how many tasks these two count for
_EM_STEPS = 30
_NARROWEST = 0.05  # σ over that of Gaussian noise
_HARMLESS_GROWTH = 0.15  # too little to be checked
_MOST_GROWTH = 1.5  # of log σ, per standard deviation of the scores
_TOLERATED = np.array([[1.0], [1.05]])  # e^nll and squared error over those of Gaussian noise
_GROWTH_SDS = np.array([0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45])  # the first means no growth


class ErrorModel(NamedTuple):
    """How predictions of new rows err."""

    recalibration: Recalibration
    noise: Noise


def fit_error_model(
    scores: HeldOutScores, families: Sequence[Noise], refitted: FloatArray | None = None
) -> ErrorModel:
    """Recalibration and noise under which held-out rows are most likely, with unbiased means.

    Parameters
    ----------
    scores : HeldOutScores
        Tasks that are not free keep their scores and σ, and the first family.
    families : sequence of Noise
        Several symmetric ones: every task takes the best of them, skewed if that is more likely,
        with a spread that grows with the score if it does. A single one is kept; if it has a
        spread that grows, the growth is estimated again.
    refitted : array of shape (N, T), optional
        Latent scores of the same rows by the layer of all rows, which is to keep the mean
        predictions of the folds' layers.

    Examples
    --------
    >>> from deeptobit.targets import CensoredTargets
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(500, 2))
    >>> errors = np.stack([rng.normal(size=500), rng.exponential(size=500)], axis=1)
    >>> targets = CensoredTargets.from_bounds(eta + errors, lower=None)
    >>> scores = HeldOutScores.build(
    ...     eta, targets, np.ones(500), np.ones(2), np.ones(2, bool), fit_intercept=True)
    >>> fit_error_model(scores, TAILS).noise.families
    (Gaussian(), TwoPiece(StudentT(df=2.5), skew=1.05))
    """
    if len(families) == 1:
        scores = replace(scores, grid=likelihood.grid_of(families[0]))
        noise, start = likelihood.with_one_spread(families[0]), None
        grows = noise is not families[0]
    else:
        noise, start = _select_families(scores, families)
        grows = True
    if grows:  # the prior of growths is estimated from all tasks
        alone = scores.without_means()
        start, _ = recalibrate(alone, noise, start)
        sd = growth_prior_sd(*recalibration.estimate_growth(alone, noise, start))
        scores = replace(scores, growth_sd=sd)
        grows = sd > _GROWTH_SDS[0]
    scores = scores if grows else scores.without_growth()
    found, _ = recalibrate(scores, noise, start)
    if len(families) > 1:
        scores, noise, found = _fall_back(scores, noise, found, families[0])
    found = recalibration.unbias_mean(scores, noise, found)
    if refitted is not None:
        found = recalibration.keep_level(scores, noise, found, refitted)
    noise = likelihood.with_spread(noise, scores.spread(found))
    return ErrorModel(found, likelihood.with_grid(noise, scores.grid))


def _fall_back(
    scores: HeldOutScores, noise: Noise, found: Recalibration, plain: Noise
) -> tuple[HeldOutScores, Noise, Recalibration]:
    """Replace the noise of tasks by a plain family with one σ where that predicts better.

    Both are fitted to every other row and judged on the rest, by likelihood and by squared error.
    A noise far narrower than the plain one, or one whose σ changes by a large factor, is refused
    as well: a few equal outcomes can make it as likely as one wants.
    """
    families = [likelihood.of_task(noise, task) for task in range(scores.x.shape[1])]
    differs = np.array([family != plain for family in families])
    suspect = scores.free[1] & (differs | (np.abs(found.growth) > _HARMLESS_GROWTH))
    if not suspect.any():
        return scores, noise, found
    some, theirs = scores.of_tasks(suspect), Recalibration(*np.array(found)[:, suspect])
    one_sigma = some.without_growth()
    plainly, _ = recalibrate(one_sigma, plain)
    degenerate = (theirs.sigma < _NARROWEST * plainly.sigma) | (abs(theirs.growth) > _MOST_GROWTH)
    limits = _TOLERATED * _held_out_losses(one_sigma, plain, plainly)
    suspects = likelihood.join_families(list(compress(families, suspect)))
    within = (_held_out_losses(some, suspects, theirs) <= limits).all(axis=0)
    worse = suspect.copy()
    worse[suspect] = degenerate | ~within
    if not worse.any():
        return scores, noise, found
    pairs = zip(worse.tolist(), families, strict=True)
    noise = likelihood.join_families([plain if is_worse else family for is_worse, family in pairs])
    start = np.array(found)
    start[:, worse] = np.array(plainly)[:, worse[suspect]]
    scores = scores.without_growth(worse)
    return scores, noise, recalibrate(scores, noise, Recalibration(*start))[0]


def _held_out_losses(scores: HeldOutScores, noise: Noise, found: Recalibration) -> FloatArray:
    """Likelihood as exp(mean nll) and mean squared error of every task, (2, T), across halves."""
    halves = np.arange(len(scores.x)) % 2 == np.array([[0], [1]])
    total = np.zeros((2, scores.x.shape[1]))
    for half in halves:
        fitted, _ = recalibrate(scores.of_rows(half), noise, found, _ROUGHLY)
        total += recalibration.losses(scores.of_rows(~half), noise, fitted)
    nll, squares = total / scores.weight.sum()
    return np.stack([np.exp(np.clip(nll, -300.0, 300.0)), squares])


class _Choice(NamedTuple):
    """A family for every task, its recalibration, and the loss of each task under it."""

    families: list[Noise]
    found: Recalibration
    loss: FloatArray

    def instead(self, scores: HeldOutScores, families: list[Noise], tasks: BoolArray) -> "_Choice":
        """Other families for some tasks, from the same quartiles; the loss of others is inf."""
        found = np.array(match_quartiles(self.found, self.families, families))
        loss = np.full(len(tasks), np.inf)
        if tasks.any():
            start, noise = Recalibration(*found[:, tasks]), list(compress(families, tasks))
            found[:, tasks], loss[tasks] = recalibrate(
                scores.of_tasks(tasks), likelihood.join_families(noise), start, _ROUGHLY
            )
        return _Choice(families, Recalibration(*found), loss)

    def or_better(self, other: "_Choice", free: BoolArray, skew_sd: float) -> "_Choice":
        """The families of the other in free tasks that are more likely under them."""
        penalty = 0.5 * np.square([_skew(family) / skew_sd for family in other.families])
        better = free & (other.loss + penalty < self.loss)
        triples = zip(better.tolist(), other.families, self.families, strict=True)
        return _Choice(
            [new if is_better else old for is_better, new, old in triples],
            Recalibration(*np.where(better, other.found, self.found)),
            np.where(better, other.loss + penalty, self.loss),
        )


def _select_families(
    scores: HeldOutScores, families: Sequence[Noise]
) -> tuple[Noise, Recalibration]:
    """The tails of every task, then its skew, then its tails again, by likelihood alone.

    Skews have a prior that is estimated from all tasks. Where tails or a skew make a task far less
    likely, heavier tails and larger skews are not tried.
    """
    scores, free = scores.without_means(), scores.free[1]
    first = [families[0]] * len(free)
    best, skew_sd = _Choice(first, *recalibrate(scores, families[0])), _SKEW_SD
    tasks = np.ones_like(free)
    for tail in families[1:]:
        trial = best.instead(scores, [tail] * len(free), tasks)
        best = best.or_better(trial, free, skew_sd)
        tasks = trial.loss < best.loss + _FAR_LESS_LIKELY
    # The mean of a skewed noise is not 0, which an intercept has to make up for.
    if scores.free[0].any():
        trials, skews = [], [0.0]
        for sign in (1.0, -1.0):
            tasks = np.ones_like(free)
            for skew in _SKEWS:
                skewed = [_skewed(tail, sign * skew) for tail in best.families]
                trials.append(best.instead(scores, skewed, tasks))
                skews.append(sign * skew)
                tasks = trials[-1].loss < best.loss + _FAR_LESS_LIKELY
        losses = np.stack([best.loss, *(trial.loss for trial in trials)])[:, free]
        skew_sd = skew_prior_sd(np.array(skews), losses)
        for trial in trials:
            best = best.or_better(trial, free, skew_sd)
    taken = np.array([_skew(family) for family in best.families])
    for tail in families if taken.any() else ():
        trial = best.instead(scores, [_skewed(tail, skew) for skew in taken.tolist()], taken != 0.0)
        best = best.or_better(trial, free, skew_sd)
    return likelihood.join_families(best.families), best.found


def _skewed(tail: Noise, skew: float) -> Noise:
    return TwoPiece(tail, skew) if skew and isinstance(tail, SymmetricNoise) else tail


def _skew(noise: Noise) -> float:
    return noise.skew if isinstance(noise, TwoPiece) else 0.0


def match_quartiles(
    found: Recalibration, old: Sequence[Noise], new: Sequence[Noise]
) -> Recalibration:
    """The recalibration that has the same quartiles under new families as under the old ones.

    Examples
    --------
    >>> found = Recalibration(np.zeros(1), np.ones(1), np.ones(1), np.zeros(1))
    >>> moved = match_quartiles(found, [Gaussian()], [Logistic()])
    >>> moved.intercept, moved.sigma.round(3)
    (array([0.]), array([0.614]))
    """
    (old_low, old_middle, old_high), (low, middle, high) = (
        np.stack([noise.ppf(_QUARTILES) for noise in families], axis=1) for families in (old, new)
    )
    sigma = found.sigma * (old_high - old_low) / (high - low)
    intercept = found.intercept + found.sigma * old_middle - sigma * middle
    return found._replace(intercept=intercept, sigma=sigma)


def skew_prior_sd(skews: FloatArray, losses: FloatArray) -> float:
    r"""Standard deviation τ of the prior k ~ N(0, τ²) of skews, by EM over all tasks.

    Where every task is skewed, as counts are, a skew needs less evidence than where few are.

    Parameters
    ----------
    skews : array of shape (K,)
    losses : array of shape (K, T)
        Negative log likelihood of every task under every skew.

    Examples
    --------
    >>> skews = np.array([0.0, -0.7, 0.7])
    >>> symmetric, skewed = np.array([0.0, 9.0, 9.0]), np.array([9.0, 9.0, 0.0])
    >>> [round(skew_prior_sd(skews, np.tile(task, (20, 1)).T), 2) for task in (symmetric, skewed)]
    [0.11, 0.68]
    """
    squares = np.square(skews)[:, None]
    sd = _SKEW_SD
    for _ in range(_EM_STEPS):
        log_weight = -losses - 0.5 * squares / sd**2
        weight = np.exp(log_weight - log_weight.max(axis=0))
        expected = (weight * squares).sum(axis=0) / weight.sum(axis=0)
        total = _PRIOR_TASKS * _SKEW_SD**2 + expected.sum()
        sd = float(np.sqrt(total / (_PRIOR_TASKS + len(expected))))
    return sd


def growth_prior_sd(growth: FloatArray, variance: FloatArray) -> float:
    r"""Standard deviation τ of the prior g ~ N(0, τ²) of growths, by maximum likelihood.

    An estimate of variance v is then N(0, τ² + v); one of infinite variance is left out.

    Examples
    --------
    >>> estimates, variance = np.full(30, 0.25), np.full(30, 0.01)
    >>> growth_prior_sd(estimates, variance), growth_prior_sd(0.2 * estimates, variance)
    (0.2, 0.06)
    """
    known = np.isfinite(variance)
    total = np.square(_GROWTH_SDS)[:, None] + variance[known]
    fits = (np.log(total) + np.square(growth[known]) / total).sum(axis=1)
    belief = np.maximum(_GROWTH_SDS, _GROWTH_SDS[1])  # no growth is as credible as the least
    fits += _PRIOR_TASKS * (2.0 * np.log(belief) + (_GROWTH_SD / belief) ** 2)
    return float(_GROWTH_SDS[np.argmin(fits)])
