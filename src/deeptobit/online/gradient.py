"""The learner with given steps: the paper's Algorithms 1 and 2, and variations of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise
from deeptobit.online import reference
from deeptobit.online.adaptive import BlockReport, Learner
from deeptobit.online.reference import Block, GradientPlan, Iterate, entries, rows_of
from deeptobit.online.start import FeatureMetric, OnlineSettings, RunningNull, spectral_start

# Problem (P:V) of one row, solved exactly, as Algorithm 1 has it.

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


@dataclass(kw_only=True)
class GradientLearner(Learner):
    """Gradient steps of a given size on V, then on U; no preconditioner and no shrinkage.

    Parameters
    ----------
    settings, now, mean
        As in :class:`Learner`.
    learns_sigma : bool
    observed_share : array of shape (T,)
    n_updates : int
        Steps so far, as a schedule counts them.
    """

    learns_sigma: bool
    observed_share: FloatArray
    n_updates: int = 0

    @classmethod
    def random(
        cls, settings: OnlineSettings, sigma: FloatArray, n_features: int
    ) -> GradientLearner:
        """Gaussian U, and Gaussian V of about unit rows, before any row was seen."""
        rng = np.random.default_rng(settings.random_state)
        n_tasks = len(sigma)
        V = rng.standard_normal((settings.rank, n_features)) / np.sqrt(n_features)
        Ut = rng.standard_normal((settings.rank, n_tasks))
        now = Iterate(V, Ut, np.zeros(n_tasks), np.array(sigma))
        return cls(
            settings=settings,
            now=now,
            mean=now.copy(),
            learns_sigma=False,
            observed_share=np.ones(n_tasks),
        )

    @classmethod
    def begin(
        cls,
        settings: OnlineSettings,
        sigma: FloatArray | None,
        block: Block,
        start: Iterate | None = None,
    ) -> GradientLearner:
        """From the first rows: null model, and the given start or the spectral one if wanted."""
        null = RunningNull.fit(settings.noise, block, free_mean=settings.fit_intercept)
        learner = cls.random(settings, null.sigma, block.X.shape[1])
        if start is None and settings.start == "data":
            metric = FeatureMetric.build(block.X, block.weight)
            half = reference.first_half(block)
            now, _ = spectral_start(settings.noise, half, null, metric, settings.rank)
            learner.now.set_to(now)
        learner.now.intercept[...] = null.mean
        if start is not None:
            learner.now.set_to(start)
        if sigma is not None:
            learner.now.sigma[...] = sigma
        learner.learns_sigma = sigma is None
        known, bounded, _ = reference.count_entries(block)
        learner.observed_share = bounded / np.maximum(known, 1.0)
        learner.mean.set_to(learner.now)
        return learner

    def learn(self, block: Block, *, fresh: bool, in_buffer: bool) -> BlockReport:
        """Learn from a block; all blocks are treated alike."""
        loss, change = self._guarded_step(block, ("n_updates",), most_halvings=8)
        by_task, _, exact = reference.count_entries(block)
        known = float(by_task.sum())
        return BlockReport(loss / max(known, 1e-300), change, loss, known, exact)

    def result(self) -> Iterate:
        """The average, or the last iterate."""
        return self.mean if self.settings.averaging else self.now

    def _is_sound(self, before: Iterate) -> bool:
        return self.now.is_finite() and _size(self.now) <= _EXPLODED * max(_size(before), 1.0)

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
                shares = self.observed_share
                reference.gradient_rows(settings.noise, part, plan, self.now, shares, sums)
            n += float(part.weight.sum())
            self.averaged += 1
            reference.move_towards(self.mean, self.now, self.averaged)

    def _plan(self, part: Block, n: float) -> GradientPlan:
        """Steps of the next updates: one per row, or one for the whole part."""
        size = self.settings.step_size
        count = 1 if self.settings.batch_size > 1 else len(part.X)
        given = [size(self.n_updates + i) if callable(size) else float(size) for i in range(count)]
        self.n_updates += count
        return GradientPlan(
            self.pace * np.array(given),
            _FORGET / (n + np.arange(1.0, len(part.X) + 1.0) + 20.0),
            self.settings.alpha,
            float(self.settings.fit_intercept),
            float(self.learns_sigma),
        )

    def _exact_rows(self, part: Block, plan: GradientPlan, sums: FloatArray) -> None:
        """Solve (P:V) for each row, then step on U."""
        for index in range(len(part.X)):
            row = rows_of(part, slice(index, index + 1))
            self.now.V[...] = exact_sketch(self.settings.noise, row, self.now, self.settings.alpha)
            self._refine(row, plan, float(plan.step[index]), sums, 1.0)

    def _batch(self, part: Block, plan: GradientPlan, sums: FloatArray) -> None:
        """The mean gradient of a batch, for V and then for U."""
        now, step = self.now, float(plan.step[0])
        share = 1.0 / max(float(part.weight.sum()), 1e-300)
        entry = entries(self.settings.noise, part, self._latent(part), now.sigma)
        score = (part.weight * share)[:, None] * entry[:, 1] / now.sigma
        now.V[...] -= step * (now.Ut @ score.T @ part.X + plan.alpha * now.V)
        self._refine(part, plan, step, sums, share)

    def _refine(
        self, part: Block, plan: GradientPlan, step: float, sums: FloatArray, share: float
    ) -> None:
        now = self.now
        entry = entries(self.settings.noise, part, self._latent(part), now.sigma)
        exact = reference.count_entries(part)[2]
        sums[0] += float((part.weight @ entry[:, 0]).sum()) + float(exact @ np.log(now.sigma))
        score = (part.weight * share)[:, None] * entry[:, 1] / now.sigma
        move = step * ((part.X @ now.V.T).T @ score + plan.alpha * now.Ut)
        now.Ut[...] -= move
        now.intercept[...] -= plan.learns_intercept * step * score.sum(axis=0)
        sums[1] += float(np.square(move).sum())
        if self.learns_sigma:
            fade = np.minimum(part.weight * plan.forget[: len(part.X)], 0.5)
            now.sigma[...] *= reference.sigma_factor(1.0, fade @ entry[:, 3], self.observed_share)

    def _latent(self, part: Block) -> FloatArray:
        return np.asarray((part.X @ self.now.V.T) @ self.now.Ut + self.now.intercept)


def _size(iterate: Iterate) -> float:
    return float(np.linalg.norm(iterate.V) + np.linalg.norm(iterate.Ut))
