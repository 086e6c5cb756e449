"""The noise of every task and the line below it, as rows ask for that no model had seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.auto.folds import HeldOut
from deeptobit.auto.recalibration import (
    HeldOutScores,
    Line,
    Refit,
    growth_told,
    recalibrate,
    shift_of_level,
)
from deeptobit.layer import CensoringKinds
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    Noise,
    NoiseByTask,
    StudentT,
    SymmetricNoise,
    TwoPiece,
    join_families,
    with_grid,
    with_one_spread,
    with_spread,
)

# How much tasks differ in the skew and the growth of their noise, as all of them together tell.

SKEW_WIDTH = 0.35  # standard deviation of the prior of skews around 0, of few tasks
_GROWTH = 0.1  # the same for growths
_FEW = 2.0  # tasks that these widths count for
_EM_STEPS = 30
_WIDTHS = np.array([0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45])  # the first is as good as none


def width_of_skews(skews: FloatArray, losses: FloatArray) -> float:
    r"""Standard deviation τ of the prior k ~ N(0, τ²) of skews, by EM.

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
    >>> [round(width_of_skews(skews, np.tile(task, (20, 1)).T), 2) for task in (symmetric, skewed)]
    [0.11, 0.68]
    """
    squares = np.square(skews)[:, None]
    width = SKEW_WIDTH
    for _ in range(_EM_STEPS):
        log_weight = -losses - 0.5 * squares / width**2
        weight = np.exp(log_weight - log_weight.max(axis=0))
        expected = (weight * squares).sum(axis=0) / weight.sum(axis=0)
        total = _FEW * SKEW_WIDTH**2 + expected.sum()
        width = float(np.sqrt(total / (_FEW + len(expected))))
    return width


def width_of_growths(growth: FloatArray, variance: FloatArray) -> float:
    r"""Standard deviation τ of the prior g ~ N(0, τ²) of growths that is most likely.

    An estimate of variance v is then N(0, τ² + v); one of infinite variance tells nothing.

    Examples
    --------
    >>> estimates, variance = np.full(30, 0.25), np.full(30, 0.01)
    >>> width_of_growths(estimates, variance), width_of_growths(0.2 * estimates, variance)
    (0.2, 0.06)
    """
    tells = np.isfinite(variance)
    total = np.square(_WIDTHS)[:, None] + variance[tells]
    fits = (np.log(total) + np.square(growth[tells]) / total).sum(axis=1)
    belief = np.maximum(_WIDTHS, _WIDTHS[1])  # which has nothing against no growth at all
    fits += _FEW * (2.0 * np.log(belief) + (_GROWTH / belief) ** 2)
    return float(_WIDTHS[np.argmin(fits)])


def learn_growth(scores: HeldOutScores, noise: Noise, start: Line | None) -> HeldOutScores:
    """The same scores with the prior of growths that all tasks together tell.

    Where they tell that nothing grows, no growth may move.
    """
    likelihood = scores.without_means()
    line = recalibrate(likelihood, noise, start).line
    width = width_of_growths(*growth_told(likelihood, noise, line))
    return scores.without_growth() if width == _WIDTHS[0] else replace(scores, growth_width=width)


TAILS: tuple[SymmetricNoise, ...] = (Gaussian(), Logistic(), StudentT(4.0), StudentT(2.5))
_SKEWS = (-1.05, -0.7, -0.35, 0.35, 0.7, 1.05)
_FEW_STEPS = 4  # Newton steps that tell which family suits
_QUARTILES = np.array([0.25, 0.5, 0.75])


class ErrorModel(NamedTuple):
    """A line, and the noise around it."""

    line: Line
    noise: Noise


def held_out_errors(
    held_out: HeldOut,
    latents: Sequence[FloatArray],
    sigma: FloatArray,
    kinds: CensoringKinds,
    *,
    fit_intercept: bool,
) -> ErrorModel:
    """The error model of scores that every fold holds out.

    Parameters
    ----------
    held_out : HeldOut
    latents : sequence of arrays
        Scores of the rows that each fold holds out.
    sigma : array of shape (T,)
        Where to start.
    kinds : CensoringKinds
        Tasks that say nothing keep their scores and σ.
    fit_intercept : bool
        Whether the level may move.
    """
    rows = np.concatenate([fold.test for fold in held_out.folds])
    scores = HeldOutScores.build(
        np.concatenate(latents),
        held_out.targets[rows],
        held_out.weight[rows],
        sigma,
        ~(kinds.one_sided | kinds.two_sided),
        fit_intercept=fit_intercept,
    )
    return fit_errors(scores, held_out.families)


def fit_errors(scores: HeldOutScores, families: Sequence[Noise]) -> ErrorModel:
    """Slope, level, σ and noise that held-out rows ask for, with E[y|x] right on average.

    Parameters
    ----------
    scores : HeldOutScores
        Tasks that are not free keep their scores and σ, and the first family.
    families : sequence of Noise
        One, or several symmetric ones: every task then has one of its own, skewed if it must, and a
        spread that grows with the score if it does. One whose spread grows has it fitted again.

    Examples
    --------
    >>> from deeptobit.targets import CensoredTargets
    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=(500, 2))
    >>> errors = np.stack([rng.normal(size=500), rng.exponential(size=500)], axis=1)
    >>> targets = CensoredTargets.from_bounds(eta + errors, lower=None)
    >>> scores = HeldOutScores.build(
    ...     eta, targets, np.ones(500), np.ones(2), np.ones(2, bool), fit_intercept=True)
    >>> fit_errors(scores, TAILS).noise.families
    (Gaussian(), TwoPiece(StudentT(df=2.5), skew=1.05))
    """
    if len(families) == 1:
        scores = scores.with_grid_of(families[0])
        noise, start = with_one_spread(families[0]), None
        grows = noise is not families[0]
    else:
        noise, start = _choose(scores, families)
        grows = True
    scores = learn_growth(scores, noise, start) if grows else scores.without_growth()
    line = recalibrate(scores, noise, start).line
    level = line.level + scores.scale * shift_of_level(
        scores.predictive(noise, scores.from_user(line)), scores.y, scores.level_weight
    )
    line = line._replace(level=level)
    return ErrorModel(line, with_grid(with_spread(noise, scores.spread(line)), scores.grid))


def _choose(scores: HeldOutScores, families: Sequence[Noise]) -> tuple[Noise, Line]:
    """The tails of every task, then its skew, then its tails again, by likelihood alone."""
    level_moves, free = scores.movable[:2]
    best = _Best(scores.without_means(), families[0], free)
    for tail in families[1:]:
        best.offer([tail] * len(free))
    # Around a skewed noise the mean is not the score, which a level has to make up for.
    if level_moves.any():
        best.skew()
    found = [_skew(family) for family in best.families]
    if any(found):
        for tail in families:
            best.offer([_skewed(tail, skew) for skew in found])
    return join_families(best.families), best.line


class _Best:
    """The best family of every task so far, with its line."""

    def __init__(self, scores: HeldOutScores, noise: Noise, free: BoolArray) -> None:
        self._scores, self._free = scores, free
        self._skew_width = SKEW_WIDTH
        self.families = [noise] * len(free)
        self.line, self._loss = recalibrate(scores, noise)

    def offer(self, families: list[Noise]) -> None:
        """Take the families of the tasks that they suit better."""
        self._take(families, self._try(families))

    def skew(self) -> None:
        """Take skews under a prior as wide as all tasks together say."""
        offers = [[_skewed(tail, skew) for tail in self.families] for skew in _SKEWS]
        trials = [self._try(families) for families in offers]
        losses = np.stack([self._loss, *(trial.loss for trial in trials)])[:, self._free]
        self._skew_width = width_of_skews(np.array([0.0, *_SKEWS]), losses)
        for families, trial in zip(offers, trials, strict=True):
            self._take(families, trial)

    def _try(self, families: list[Noise]) -> Refit:
        start = carry_quartiles(self.line, self.families, families)
        return recalibrate(self._scores, NoiseByTask(families), start, _FEW_STEPS)

    def _take(self, families: list[Noise], trial: Refit) -> None:
        skews = np.array([_skew(family) for family in families])
        loss = trial.loss + 0.5 * np.square(skews / self._skew_width)
        better = self._free & (loss < self._loss)
        pairs = zip(better.tolist(), families, self.families, strict=True)
        self.families = [new if is_better else old for is_better, new, old in pairs]
        lines = zip(trial.line, self.line, strict=True)
        self.line = Line(*(np.where(better, *both) for both in lines))
        self._loss = np.where(better, loss, self._loss)


def _skewed(tail: Noise, skew: float) -> Noise:
    return TwoPiece(tail, skew) if skew and isinstance(tail, SymmetricNoise) else tail


def _skew(noise: Noise) -> float:
    return noise.skew if isinstance(noise, TwoPiece) else 0.0


def carry_quartiles(line: Line, old: Sequence[Noise], new: Sequence[Noise]) -> Line:
    """The line whose quartiles under new families are those of the line under the old ones.

    Examples
    --------
    >>> line = Line(np.zeros(1), np.ones(1), np.ones(1), np.zeros(1))
    >>> carried = carry_quartiles(line, [Gaussian()], [Logistic()])
    >>> carried.level, carried.sigma.round(3)
    (array([0.]), array([0.614]))
    """
    (old_low, old_middle, old_high), (low, middle, high) = (
        np.stack([noise.ppf(_QUARTILES) for noise in families], axis=1) for families in (old, new)
    )
    sigma = line.sigma * (old_high - old_low) / (high - low)
    return line._replace(level=line.level + line.sigma * old_middle - sigma * middle, sigma=sigma)
