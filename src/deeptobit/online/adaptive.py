"""The solver that finds its own steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise
from deeptobit.online.dispatch import evidence, learn_batches, learn_rows, settle, turn
from deeptobit.online.rows import (
    Block,
    Iterate,
    RowPlan,
    bounded_entries,
    count_entries,
    first_half,
)
from deeptobit.online.settings import BlockReport, OnlineSettings
from deeptobit.online.start import (
    FeatureMetric,
    NullModel,
    between,
    fill_empty,
    mean_curvature,
    random_start,
    spectral_start,
)

# Honest evidence: how the averaged model does on rows it has not learned from.

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


# The ridge on U and V, as an implicit step whose fixed point does not depend on coordinates.


@dataclass(frozen=True)
class Penalty:
    r"""α‖UV‖_*, the least value of (α/2)(‖U‖² + ‖V‖²) over all factors of UV.

    The solver turns U → UB⁻¹, V → BV as it likes. In its coordinates the gradients of the
    penalty at balanced factors are :math:`αUM^{-1}` and :math:`αMV`, where
    :math:`M = U^\top U \,\#\, (VV^\top)^{-1}` is a geometric mean of matrices.
    """

    alpha: float

    def apply(
        self,
        now: Iterate,
        metric: FeatureMetric,
        inverse: FloatArray,
        curvature: FloatArray,
        step: float,
    ) -> None:
        """Move V and U against the penalty, preconditioned as the likelihood's steps are."""
        balance = _balance(now.Ut @ now.Ut.T, now.V @ now.V.T)
        pull = step * self.alpha
        values, vectors = eigh(balance, np.linalg.inv(inverse))
        inside = np.linalg.inv(vectors) @ now.V
        if metric.is_full:
            power, axes = np.linalg.eigh(metric.inverse)
            inside = (inside @ axes / (1.0 + pull * np.outer(values, power))) @ axes.T
        else:
            inside = inside / (1.0 + pull * np.outer(values, metric.inverse))
        now.V[...] = vectors @ inside
        values, vectors = np.linalg.eigh(np.linalg.inv(balance))
        rate = pull * np.square(now.sigma) / np.maximum(curvature, 0.02)
        now.Ut[...] = vectors @ (vectors.T @ now.Ut / (1.0 + np.outer(values, rate)))


def _balance(tasks: FloatArray, features: FloatArray) -> FloatArray:
    """M with M (VVᵀ) M = UᵀU, where both are positive definite up to a floor."""
    root, back = _roots(features)
    return np.asarray(back @ _roots(root @ tasks @ root)[0] @ back)


def _roots(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Symmetric square root and its inverse."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    root = np.sqrt(np.maximum(values, 1e-10 * max(float(values[-1]), 1e-10)))
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T


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
