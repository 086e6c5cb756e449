"""Honest evidence: how the averaged model does on rows it has not learned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import evidence
from deeptobit.kernels._online_types import Block, Iterate, bounded_entries
from deeptobit.likelihood import Noise
from deeptobit.solvers.online._between import between
from deeptobit.solvers.online._null import NullModel

_FEW_ROWS = 512
# Nats per row that one task may weigh in what all tasks decide: one whose first rows all lie at
# a bound has no units, and its first value would outvote all others.
_VOTE = 1.0
_MOST = 1e300  # nats of a row: infinities do not subtract


@dataclass
class Evidence:
    r"""Running means of :math:`q_l = g\ell` and :math:`q_w = w\ell^2` by task, ℓ the linear part.

    Scaling ℓ by κ changes the nll of new rows by :math:`(κ-1)q_l + (κ-1)^2 q_w/2`, so that
    :math:`1 - q_l/q_w` is the best length, and n q_w the certainty with which it is known.

    Parameters
    ----------
    pull, curvature : arrays of shape (T,)
        q_l and q_w.
    sigma : array of shape (T,)
        The averaged model's own noise scale.
    line : array of shape (3, T)
        Mean nll of a row by the models of length κ = 0, ½ and 1, on the first rows.
    race : array of shape (2, T)
        Mean nll of a row by the null model and by the averaged one, on the last rows.
    rows : float
        Weight of the rows so far.
    observed : float
        Weight of the entries bounded on both sides so far.
    """

    pull: FloatArray
    curvature: FloatArray
    sigma: FloatArray
    line: FloatArray
    race: FloatArray
    race_rows: float = 0.0
    rows: float = 0.0
    observed: float = 0.0

    def add_line(
        self, noise: Noise, block: Block, models: tuple[Iterate, ...], n_threads: int = 1
    ) -> None:
        """Score models of several lengths: with few rows a quadratic in κ is too crude a guess."""
        rows = float(block.weight.sum())
        share = rows / max(self.rows + rows, 1e-300)
        for index, model in enumerate(models):
            sums = evidence(noise, block, model, model.sigma, n_threads)
            nll = (sums[0] + sums[5] * np.log(model.sigma)) / max(rows, 1e-300)
            self.line[index] += share * (np.minimum(nll, _MOST) - self.line[index])

    def add(
        self,
        noise: Noise,
        block: Block,
        model: Iterate,
        forget: float,
        observed_share: FloatArray,
        limits: tuple[FloatArray, FloatArray],
        rival: tuple[FloatArray, FloatArray] | None,
        *,
        learns_sigma: bool,
        n_threads: int = 1,
    ) -> tuple[float, float, FloatArray]:
        """Score a block before anything is learned from it.

        Returns the mean nll per known entry, the weight of the known entries, and that of the
        observed ones of each task.
        """
        sums = evidence(noise, block, model, self.sigma, n_threads)
        rows = float(block.weight.sum())
        known = float(sums[4].sum())
        if rows == 0.0:
            return 0.0, 0.0, sums[5]
        nll = sums[0] + sums[5] * np.log(self.sigma)
        # A plain mean at first, a moving one later.
        share = max(1.0 - (1.0 - min(forget, 0.5)) ** rows, rows / (self.rows + rows))
        share = share if self.rows else 1.0
        if rival is not None:
            self._run_race(nll, sums[5], rows, rival)
        self.pull += share * (sums[1] / rows - self.pull)
        self.curvature += share * (sums[2] / rows - self.curvature)
        if learns_sigma:
            # Of observed entries 1 − pull is r²: this is a running mean of (y − prediction)².
            recent = min(forget, 1.0 / rows)
            ratio = 1.0 - recent * sums[3] / np.maximum(observed_share, 0.05)
            lowest, highest = limits
            self.sigma = between(lowest, self.sigma * np.sqrt(between(0.25, ratio, 2.25)), highest)
        self.rows += rows
        self.observed += float((bounded_entries(block) if block.closed else sums[5]).sum())
        return float(nll.sum()) / max(known, 1e-300), known, sums[5]

    def _run_race(
        self,
        nll: FloatArray,
        exact: FloatArray,
        rows: float,
        rival: tuple[FloatArray, FloatArray],
    ) -> None:
        self.race_rows = min(self.race_rows + rows, _FEW_ROWS)  # older rows fade
        theirs, log_sigma = rival
        share = rows / self.race_rows
        self.race *= 1.0 - share
        self.race[0] += share * np.minimum((theirs + exact * log_sigma) / rows, _MOST)
        self.race[1] += share * np.minimum(nll / rows, _MOST)

    def shrinkage(self, n: float, start_rows: float) -> FloatArray:
        r"""Length κ_t in [0, 1] that the evidence supports: the task's own, or all tasks' if less.

        With certainty :math:`I = n_\text{eff} q_w` it is
        :math:`(1 - q_l/q_w)\, I/(I + 3)` for a task, and with 10 for 3 for all of them.
        """
        effective = min(self.rows, (n + start_rows) / 6.0)
        certainty = effective * self.curvature
        own = _length(self.pull, self.curvature) * certainty / (certainty + 3.0)
        total = float(certainty.sum())
        common = float(_length(_votes(self.pull), self.curvature.sum()))
        common *= total / (total + 10.0) * self.observed / (self.observed + 10.0)
        length = np.minimum(own, common)
        if self.rows < _FEW_ROWS:
            length = np.minimum(length, _lowest(self.line.sum(axis=1)))
            return np.minimum(length, _lowest(self.line))
        # With many rows the slope at κ = 1 is the better guide, unless the null model just wins.
        null, model = self.race
        return np.where((model > null) | (_votes(model - null) > 0.0), 0.0, length)


def _votes(nats: FloatArray) -> float:
    """The sum over tasks, none of which decides alone."""
    return float(between(-_VOTE, nats, _VOTE).sum())


def _lowest(line: FloatArray) -> FloatArray:
    """Where in [0, 1] the parabola through values at 0, ½ and 1 is lowest."""
    bend = line[0] - 2.0 * line[1] + line[2]
    slope = 4.0 * line[1] - 3.0 * line[0] - line[2]  # at 0
    convex = bend > 0.0
    inside = np.clip(-slope / np.where(convex, 4.0 * bend, 1.0), 0.0, 1.0)
    return np.where(convex, inside, np.where(line[2] < line[0], 1.0, 0.0))


def _length(pull: FloatArray | float, curvature: FloatArray | float) -> FloatArray:
    some = np.asarray(curvature) > 0.0
    return np.where(some, np.clip(1.0 - pull / np.where(some, curvature, 1.0), 0.0, 1.0), 0.0)


def shrink(
    model: Iterate, sigma: FloatArray, null: NullModel, length: FloatArray, variance: FloatArray
) -> Iterate:
    """The model between the null model (κ = 0) and itself (κ = 1).

    The noise takes over the variance that the linear part gives up:
    σ² = s₀² − κ(s₀² + v − σ̄²) + κ²v, between σ̄² and s₀².
    """
    base = np.square(null.sigma)
    mine = np.square(sigma)
    mixed = base - length * (base + variance - mine) + length**2 * variance
    mixed = between(np.minimum(mine, base), mixed, np.maximum(mine, base))
    return Iterate(
        model.V,
        model.Ut * length,
        null.mean + length * (model.intercept - null.mean),
        np.sqrt(mixed),
    )
