"""The solver that finds its own steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import learn_rows, settle, turn
from deeptobit.kernels._online_batches import learn_batches
from deeptobit.kernels._online_types import (
    Block,
    Iterate,
    RowPlan,
    bounded_entries,
    count_entries,
    first_half,
)
from deeptobit.solvers.online._evidence import Evidence, shrink
from deeptobit.solvers.online._history import BlockReport
from deeptobit.solvers.online._metric import FeatureMetric
from deeptobit.solvers.online._null import NullModel
from deeptobit.solvers.online._penalty import Penalty
from deeptobit.solvers.online._settings import OnlineSettings
from deeptobit.solvers.online._start import fill_empty, mean_curvature, random_start, spectral_start

_ROWS_PER_AVERAGE = 8
_SLOPE, _FORGET = 4.0, 6.0
_MAX_HALVINGS = 4
_RECOVERY = 1.02
_NULL_ROWS = 1024
_TURN, _WANDERS = 1.3, 2.0
_LONG, _FAR, _NOISY = 1.5, 2.0, 1.2  # limits in units of the null model's noise


@dataclass
class AdaptiveLearner:
    """State of a run in standard units; every array is changed in place.

    Parameters
    ----------
    settings : OnlineSettings
    sigma : array of shape (T,), optional
        Fixed noise scales.
    null : NullModel
    metric : FeatureMetric
    now, mean : Iterate
        The iterate and its average.
    moments : array of shape (3, T)
        Running means of curvature, share bounded on both sides, and known share.
    evidence : Evidence
    """

    settings: OnlineSettings
    sigma: FloatArray | None
    null: NullModel
    metric: FeatureMetric
    now: Iterate
    mean: Iterate
    moments: FloatArray
    evidence: Evidence
    start_rows: float
    inverse: FloatArray
    spread: float = 1.0
    n: float = 0.0
    turned_at: float = 0.0
    averaged: int = 0
    pace: float = 1.0
    n_halvings: int = 0
    n_blocks: int = 0

    @classmethod
    def begin(
        cls,
        settings: OnlineSettings,
        sigma: FloatArray | None,
        block: Block,
        start: Iterate | None = None,
    ) -> AdaptiveLearner:
        """From the first rows; the spectral start, if none is given, sees only half of them."""
        noise, rank = settings.noise, settings.rank
        rng = np.random.default_rng(settings.random_state)
        n_features, n_tasks = block.X.shape[1], block.low.shape[1]
        null = NullModel.fit(
            noise, block, free_mean=settings.fit_intercept, n_threads=settings.n_threads
        )
        metric = FeatureMetric.build(block.X, block.weight)
        if start is None:
            now, curvature = spectral_start(noise, first_half(block), null, metric, rank)
        else:
            now, curvature = start.copy(), mean_curvature(noise, first_half(block), start)
        if start is None and settings.start == "random":
            now = random_start(null, n_features, rank, rng)
        metric.rebuild()
        fill_empty(now, metric, rng)
        if sigma is not None:
            now.sigma[...] = sigma
        known = block.weight @ (~np.isnan(block.low)).astype(np.float64)
        rows = max(float(block.weight.sum()), 1.0)
        bounded = bounded_entries(block) / np.maximum(known, 1.0)
        moments = np.stack([curvature, bounded, known / rows])
        zero = np.zeros(n_tasks)
        found = Evidence(
            zero, zero.copy(), now.sigma.copy(), np.zeros((3, n_tasks)), np.zeros((2, n_tasks))
        )
        start_rows = float(max(n_features, 2 * rank, 20))
        return cls(
            settings, sigma, null, metric, now, now.copy(), moments, found, start_rows, np.eye(rank)
        )

    @property
    def model(self) -> Iterate:
        """The iterate that counts."""
        return self.mean if self.settings.averaging else self.now

    def learn(self, block: Block, *, fresh: bool, in_buffer: bool) -> BlockReport:
        """Learn from a block.

        Parameters
        ----------
        block : Block
        fresh : bool
            Whether the model knows nothing of these rows: only then they are evidence.
        in_buffer : bool
            Whether null model and metric have seen the rows.
        """
        self.null.scored = None
        if not in_buffer:
            self._learn_null(block)
            self.metric.add(block.X, block.weight)
        if self.n >= _TURN * self.turned_at or self.n < 64:
            self._turn(float(block.weight.sum()))
        if fresh:
            if in_buffer:
                lengths = (0.0, 0.5, 1.0)
                models = tuple(self._of_length(np.full(len(self.null.mean), k)) for k in lengths)
                self.evidence.add_line(self.settings.noise, block, models, self.settings.n_threads)
            objective, known, exact = self._score(block)
        else:
            objective, (known, exact) = np.nan, count_entries(block)
        level = float(exact @ np.log(self.now.sigma))
        sums = self._guarded_step(block)
        self.n += float(block.weight.sum())
        updates = -(-len(block.X) // self.settings.batch_size)
        size = max(float(np.linalg.norm(self.now.Ut)), 1e-300)
        return BlockReport(
            objective=objective,
            change=float(np.sqrt(sums[1] / updates)) / size,
            loss=float(sums[0]) + level,
            known=known,
            exact=exact,
        )

    def _score(self, block: Block) -> tuple[float, float, FloatArray]:
        """Add a block to the evidence; its mean nll, known entries and observed ones by task."""
        return self.evidence.add(
            self.settings.noise,
            block,
            self.model,
            float(self._forget(self.n)),
            self.moments[1],
            self._limits(),
            self.null.scored,
            learns_sigma=self.sigma is None,
            n_threads=self.settings.n_threads,
        )

    def _guarded_step(self, block: Block) -> FloatArray:
        """Step; if the iterate ran away, go back and halve the steps. Sums of loss and change."""
        before = self.now.copy(), self.mean.copy(), self.moments.copy(), self.averaged
        pace = self.pace
        for _ in range(_MAX_HALVINGS):
            sums = np.zeros(2)
            with np.errstate(over="ignore", invalid="ignore"):  # the guard sees it
                self._step(block, sums)
                sound = bool(np.isfinite(sums).all()) and self._settle()
            if sound:
                self.pace = min(1.0, _RECOVERY * self.pace)
                return sums
            self.now.set_to(before[0])
            self.mean.set_to(before[1])
            self.moments[...] = before[2]
            self.averaged = before[3]
            self.pace *= 0.5
            self.n_halvings += 1
        self.pace = 0.5 * pace  # nothing can be learned from this block
        return np.zeros(2)

    def _learn_null(self, block: Block) -> None:
        """All of the first rows, then one block in four: its error is small by then."""
        if self.n < _NULL_ROWS or self.n_blocks % 4 == 0:
            self.null.update(self.settings.noise, block, n_threads=self.settings.n_threads)
        self.n_blocks += 1

    def result(self) -> Iterate:
        """The model the evidence supports, in standard units."""
        return self._of_length(self.evidence.shrinkage(self.n, self.start_rows))

    def _of_length(self, length: FloatArray) -> Iterate:
        """The averaged model with its linear part shrunk."""
        model = self.model
        found = shrink(model, self.evidence.sigma, self.null, length, self._linear_variance(model))
        if self.sigma is not None:
            found.sigma[...] = self.sigma
        return found

    def _step(self, block: Block, sums: FloatArray) -> None:
        settings, state = self.settings, (self.now, self.mean, self.moments, self.averaged)
        plan = self._plan(block)
        if settings.batch_size == 1:
            self.averaged = learn_rows(settings.noise, block, plan, *state, sums)
        else:
            self.averaged = learn_batches(
                settings.noise, block, plan, *state, sums, settings.n_threads
            )
        if settings.alpha > 0.0:
            step = float(self._gamma(self.n)) * float(block.weight.sum())
            Penalty(settings.alpha).apply(
                self.now, self.metric, self.inverse, self.moments[0], step
            )

    def _plan(self, block: Block) -> RowPlan:
        lowest, highest = self._limits()
        size = self.settings.batch_size
        n = (self.n + np.cumsum(block.weight) - block.weight)[::size]
        return RowPlan(
            self.metric.apply(block.X),
            np.asarray(self._gamma(n)),
            np.asarray(self._forget(n)),
            self.inverse,
            self.spread,
            lowest,
            highest,
            float(self.settings.fit_intercept),
            float(self.sigma is None),
            _ROWS_PER_AVERAGE if size == 1 else size,
        )

    def _gamma(self, n: FloatArray | float) -> FloatArray | float:
        """The step: of the order 1/n₀ at first, falling with the square root of n/n₀."""
        return self.pace * _SLOPE / self.start_rows / np.sqrt(1.0 + n / self.start_rows)

    def _forget(self, n: FloatArray | float) -> FloatArray | float:
        return _FORGET / (n + self.start_rows)

    def _limits(self) -> tuple[FloatArray, FloatArray]:
        if self.sigma is not None:
            return self.sigma, self.sigma
        return 1e-4 * self.null.sigma, _NOISY * self.null.sigma

    def _turn(self, rows: float) -> None:
        """Choose coordinates in which Vx has unit variance, and rebuild the sketch's metric.

        The metric serves until the next turn, and U wanders by about γ a row until then. A
        component that explains nothing so far would make steps of V that are too long as soon as it
        does, so that G is damped by what it may grow to.
        """
        n_tasks, n_features = self.now.Ut.shape[1], self.now.V.shape[1]
        gamma = float(self._gamma(self.n))
        until_next = rows + (_TURN - 1.0) * self.n
        damping = gamma * n_features + n_tasks * until_next * (_WANDERS * gamma) ** 2
        curvature = self.moments[0] * self.moments[2]
        self.inverse, self.spread = turn(self._both(), self.now, self.mean, curvature, damping)
        self.turned_at = self.n

    def _settle(self) -> bool:
        """Keep linear parts and intercepts in their limits; False if the iterate ran away."""
        middle, scale = self.null.mean, self.null.sigma
        far = _FAR * scale
        return settle(self._both(), self.now, self.mean, _LONG * scale, middle - far, middle + far)

    def _both(self) -> FloatArray:
        """Second moments of Vx for the iterate and its average, (2R, 2R)."""
        return self.metric.inner(np.concatenate([self.now.V, self.mean.V]))

    def _linear_variance(self, part: Iterate) -> FloatArray:
        """Variance of U_tᵀVx, (T,)."""
        return np.asarray(np.sum(part.Ut * (self.metric.inner(part.V) @ part.Ut), axis=0))
