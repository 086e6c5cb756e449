"""The solver with given steps: the paper's Algorithms 1 and 2, and small variations of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise
from deeptobit.online.dispatch import entries, plain_rows
from deeptobit.online.rows import (
    Block,
    Iterate,
    PlainPlan,
    bounded_entries,
    count_entries,
    first_half,
    rows_of,
)
from deeptobit.online.settings import BlockReport, OnlineSettings
from deeptobit.online.start import FeatureMetric, NullModel, spectral_start

# Problem P:V of one row, solved exactly.

_MAX_ITER, _TOLERANCE = 50, 1e-10


def exact_sketch(noise: Noise, row: Block, now: Iterate, alpha: float) -> FloatArray:
    r"""The V that minimises :math:`\omega\sum_t nll_t(U_t^\top Vx + b_t) + (\alpha/2)\|V\|_F^2`.

    The likelihood sees V only through h = Vx, and of all V with Vx = h the smallest is
    :math:`hx^\top/\|x\|^2`. So the problem is one in R unknowns,

    .. math:: \min_h\; \omega\textstyle\sum_t nll_t(U_t^\top h + b_t)
        + \frac{\alpha}{2\|x\|^2}\|h\|^2,

    convex, and solved by Newton's method. The solution has rank one and does not depend on the
    V before it: what is carried from row to row is U alone.

    Parameters
    ----------
    noise : Noise
    row : Block
        One row.
    now : Iterate
        Its U, intercept and sigma are used.
    alpha : float
        Positive.

    Returns
    -------
    array of shape (R, D)
    """
    x = row.X[0]
    square = float(x @ x)
    if square == 0.0:
        return np.zeros_like(now.V)
    ridge, share = alpha / square, float(row.weight[0])
    scaled = now.Ut / now.sigma

    def value(h: FloatArray) -> tuple[float, FloatArray]:
        entry = entries(noise, row, (h @ now.Ut + now.intercept)[None], now.sigma)[0]
        return share * float(entry[0].sum()) + 0.5 * ridge * float(h @ h), entry

    h = np.zeros(len(now.V))
    here, entry = value(h)
    for _ in range(_MAX_ITER):
        gradient = share * (scaled @ entry[1]) + ridge * h
        hessian = share * (scaled * entry[2]) @ scaled.T
        hessian.flat[:: len(h) + 1] += ridge
        step = np.linalg.solve(hessian, gradient)
        decrease = float(gradient @ step)
        if decrease <= _TOLERANCE**2 * (1.0 + abs(here)):
            break
        length = 1.0
        there, entry_there = value(h - step)
        while not there <= here - 1e-4 * length * decrease and length > 1e-8:
            length *= 0.5
            there, entry_there = value(h - length * step)
        h, here, entry = h - length * step, there, entry_there
    return np.outer(h, x) / square


_UPDATES_PER_AVERAGE = 8
_FORGET = 6.0
_EXPLODED = 10.0  # growth of ‖U‖ + ‖V‖ within one block
_MAX_HALVINGS = 8
_RECOVERY = 1.02


@dataclass
class PlainLearner:
    """Gradient steps of a given size on V, then on U; no preconditioner and no shrinkage.

    Parameters
    ----------
    settings : OnlineSettings
    learns_sigma : bool
    now, mean : Iterate
        The iterate and its average.
    observed_share : array of shape (T,)
    """

    settings: OnlineSettings
    learns_sigma: bool
    now: Iterate
    mean: Iterate
    observed_share: FloatArray
    n: float = 0.0
    n_updates: int = 0
    averaged: int = 0
    pace: float = 1.0
    n_halvings: int = 0

    @classmethod
    def random(cls, settings: OnlineSettings, sigma: FloatArray, n_features: int) -> PlainLearner:
        """Gaussian U, and Gaussian V of about unit rows, before any row was seen."""
        rng = np.random.default_rng(settings.random_state)
        n_tasks = len(sigma)
        V = rng.standard_normal((settings.rank, n_features)) / np.sqrt(n_features)
        Ut = rng.standard_normal((settings.rank, n_tasks))
        now = Iterate(V, Ut, np.zeros(n_tasks), np.array(sigma))
        return cls(settings, False, now, now.copy(), np.ones(n_tasks))

    @classmethod
    def begin(
        cls,
        settings: OnlineSettings,
        sigma: FloatArray | None,
        block: Block,
        start: Iterate | None = None,
    ) -> PlainLearner:
        """From the first rows: null model, and the given start or the spectral one if wanted."""
        null = NullModel.fit(settings.noise, block, free_mean=settings.fit_intercept)
        learner = cls.random(settings, null.sigma, block.X.shape[1])
        if start is None and settings.start == "data":
            metric = FeatureMetric.build(block.X, block.weight)
            now, _ = spectral_start(settings.noise, first_half(block), null, metric, settings.rank)
            learner.now.set_to(now)
        learner.now.intercept[...] = null.mean
        if start is not None:
            learner.now.set_to(start)
        if sigma is not None:
            learner.now.sigma[...] = sigma
        learner.learns_sigma = sigma is None
        known = block.weight @ (~np.isnan(block.low)).astype(np.float64)
        learner.observed_share = bounded_entries(block) / np.maximum(known, 1.0)
        learner.mean.set_to(learner.now)
        return learner

    def learn(self, block: Block, *, fresh: bool, in_buffer: bool) -> BlockReport:
        """Learn from a block; if the iterate ran away, go back to its start and halve the steps."""
        before = self.now.copy(), self.mean.copy(), self.n_updates, self.averaged
        pace = self.pace
        sums = np.zeros(2)
        size = _size(self.now)
        for _ in range(_MAX_HALVINGS):
            with np.errstate(over="ignore", invalid="ignore"):  # the guard sees it
                self._step(block, sums)
                sound = self.now.is_finite() and _size(self.now) <= _EXPLODED * max(size, 1.0)
            if sound and bool(np.isfinite(sums).all()):
                self.pace = min(1.0, _RECOVERY * self.pace)
                break
            self.now.set_to(before[0])
            self.mean.set_to(before[1])
            self.n_updates, self.averaged = before[2:]
            sums[:] = 0.0
            self.pace *= 0.5
            self.n_halvings += 1
        else:  # nothing can be learned from this block
            self.pace = 0.5 * pace
        self.n += float(block.weight.sum())
        updates = -(-len(block.X) // self.settings.batch_size)
        known, exact = count_entries(block)
        return BlockReport(
            objective=float(sums[0]) / max(known, 1e-300),
            change=float(np.sqrt(sums[1] / updates))
            / max(float(np.linalg.norm(self.now.Ut)), 1e-300),
            loss=float(sums[0]),
            known=known,
            exact=exact,
        )

    def result(self) -> Iterate:
        """The average, or the last iterate."""
        return self.mean if self.settings.averaging else self.now

    def _step(self, block: Block, sums: FloatArray) -> None:
        settings = self.settings
        rows_per_part = settings.batch_size
        if rows_per_part == 1:
            rows_per_part = _UPDATES_PER_AVERAGE if settings.averaging else len(block.X)
        n = self.n
        for first in range(0, len(block.X), rows_per_part):
            part = rows_of(block, slice(first, first + rows_per_part))
            plan = self._plan(part, n)
            if settings.exact_sketch:
                self._exact_rows(part, plan, sums)
            elif settings.batch_size > 1:
                self._batch(part, plan, sums)
            else:
                plain_rows(settings.noise, part, plan, self.now, self.observed_share, sums)
            n += float(part.weight.sum())
            self.averaged += 1
            for middle, last in zip(self.mean, self.now, strict=True):
                middle += 4.0 / (self.averaged + 3.0) * (last - middle)

    def _plan(self, part: Block, n: float) -> PlainPlan:
        """Steps of the next updates: one per row, or one for the whole part."""
        size = self.settings.step_size
        count = 1 if self.settings.batch_size > 1 else len(part.X)
        given = [size(self.n_updates + i) if callable(size) else float(size) for i in range(count)]
        self.n_updates += count
        forget = _FORGET / (n + np.arange(1.0, len(part.X) + 1.0) + 20.0)
        return PlainPlan(
            self.pace * np.array(given),
            forget,
            self.settings.alpha,
            float(self.settings.fit_intercept),
            float(self.learns_sigma),
        )

    def _exact_rows(self, part: Block, plan: PlainPlan, sums: FloatArray) -> None:
        """P:V solved for each row, and a step of U as always."""
        for index in range(len(part.X)):
            row = rows_of(part, slice(index, index + 1))
            self.now.V[...] = exact_sketch(self.settings.noise, row, self.now, self.settings.alpha)
            self._refine(row, plan, float(plan.step[index]), sums, 1.0)

    def _batch(self, part: Block, plan: PlainPlan, sums: FloatArray) -> None:
        """The mean gradient of a batch, for V and then for U."""
        now, step = self.now, float(plan.step[0])
        share = 1.0 / max(float(part.weight.sum()), 1e-300)
        entry = entries(self.settings.noise, part, self._latent(part), now.sigma)
        score = (part.weight * share)[:, None] * entry[:, 1] / now.sigma
        now.V[...] -= step * (now.Ut @ score.T @ part.X + plan.alpha * now.V)
        self._refine(part, plan, step, sums, share)

    def _refine(
        self, part: Block, plan: PlainPlan, step: float, sums: FloatArray, share: float
    ) -> None:
        now = self.now
        entry = entries(self.settings.noise, part, self._latent(part), now.sigma)
        exact = part.weight @ (part.low == part.high)
        sums[0] += float((part.weight @ entry[:, 0]).sum()) + float(exact @ np.log(now.sigma))
        score = (part.weight * share)[:, None] * entry[:, 1] / now.sigma
        move = step * ((part.X @ now.V.T).T @ score + plan.alpha * now.Ut)
        now.Ut[...] -= move
        now.intercept[...] -= plan.learns_intercept * step * score.sum(axis=0)
        sums[1] += float(np.square(move).sum())
        fade = np.minimum(part.weight * plan.forget[: len(part.X)], 0.5)
        change = -0.5 * (fade @ entry[:, 3]) / np.maximum(self.observed_share, 0.05)
        now.sigma[...] *= 1.0 + plan.learns_sigma * np.clip(change, -0.2, 0.2)

    def _latent(self, part: Block) -> FloatArray:
        return np.asarray((part.X @ self.now.V.T) @ self.now.Ut + self.now.intercept)


def _size(iterate: Iterate) -> float:
    return float(np.linalg.norm(iterate.V) + np.linalg.norm(iterate.Ut))
