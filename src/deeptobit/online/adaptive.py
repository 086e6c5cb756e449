"""The learner that finds its own steps, and the validation that decides how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from deeptobit.arrays import FloatArray
from deeptobit.online import reference, start
from deeptobit.online.reference import LEAST_CURVATURE, Block, Iterate, RowPlan
from deeptobit.online.start import FeatureMetric, OnlineSettings, RunningNull, clip

_MOST_HALVINGS = 4
_RECOVERY = 1.02  # growth of steps after a block that did not diverge


# Progressive validation: how the averaged model does on rows it has not learned from.

_RECENT_ROWS = 512
# Most nats per row that one task adds to a sum over tasks: a task whose first rows all lie at a
# bound has no scale yet, and its first value would outweigh all other tasks.
_MOST_OF_A_TASK = 1.0
_LARGEST = 1e300  # nats of a row: infinities do not subtract


@dataclass
class Validation:
    r"""Progressive validation by task: each block is scored before it is learned from.

    For the linear part ℓ of the scores, running means of :math:`q_l = g\ell` and
    :math:`q_w = w\ell^2` are kept. Scaling ℓ by κ changes the nll of new rows by
    :math:`(κ-1)q_l + (κ-1)^2 q_w/2`, so that :math:`1 - q_l/q_w` is the best length, known with
    precision n q_w.

    Parameters
    ----------
    slope, curvature : arrays of shape (T,)
        q_l and q_w.
    sigma : array of shape (T,)
        The averaged model's own noise scale.
    nll_by_length : array of shape (3, T)
        Mean nll of a row by the models of length κ = 0, ½ and 1, on the first rows.
    recent_nll : array of shape (2, T)
        Mean nll of a row by the null model and by the averaged one, on recent rows.
    recent_rows, rows : float
        Weight of the recent rows, and of all rows so far.
    observed : float
        Weight of the entries bounded on both sides so far.
    """

    slope: FloatArray
    curvature: FloatArray
    sigma: FloatArray
    nll_by_length: FloatArray
    recent_nll: FloatArray
    recent_rows: float = 0.0
    rows: float = 0.0
    observed: float = 0.0

    @classmethod
    def begin(cls, sigma: FloatArray) -> Validation:
        """Before the first rows."""
        slope, curvature, *nll = np.zeros((7, len(sigma)))
        return cls(slope, curvature, sigma.copy(), np.stack(nll[:3]), np.stack(nll[3:]))

    def score_lengths(self, rows: float, nll: FloatArray) -> None:
        """Take in the nll of a block by models of several lengths, (3, T).

        A quadratic in κ is crude for the first rows.
        """
        share = rows / max(self.rows + rows, 1e-300)
        mean = np.minimum(nll / max(rows, 1e-300), _LARGEST)
        self.nll_by_length += share * (mean - self.nll_by_length)

    def score(
        self,
        rows: float,
        sums: FloatArray,
        forget: float,
        observed_share: FloatArray,
        limits: tuple[FloatArray, FloatArray],
        null_nll: tuple[FloatArray, FloatArray] | None,
    ) -> float:
        """Take in the ``validation_sums`` of a block; returns its mean nll per known entry.

        ``null_nll`` is what the null model has kept of the same block as ``scored``.
        """
        without_scale, _, by_log_sigma, known, bounded, exact, slope, curvature = sums
        nll = without_scale + exact * np.log(self.sigma)
        # The mean of all rows at first, a moving average later.
        share = max(1.0 - (1.0 - min(forget, 0.5)) ** rows, rows / (self.rows + rows))
        if null_nll is not None:  # older rows fade
            self.recent_rows = min(self.recent_rows + rows, _RECENT_ROWS)
            recent = rows / self.recent_rows
            both = np.stack([null_nll[0] + exact * null_nll[1], nll]) / rows
            self.recent_nll += recent * (np.minimum(both, _LARGEST) - self.recent_nll)
        self.slope += share * (slope / rows - self.slope)
        self.curvature += share * (curvature / rows - self.curvature)
        # For observed entries this is a running mean of (y − prediction)².
        ratio = 1.0 - min(forget, 1.0 / rows) * by_log_sigma / np.maximum(observed_share, 0.05)
        self.sigma = clip(self.sigma * np.sqrt(clip(ratio, 0.25, 2.25)), *limits)
        self.rows += rows
        self.observed += float(bounded.sum())
        return float(nll.sum()) / max(float(known.sum()), 1e-300)

    def shrinkage(self, n: float, start_rows: float) -> FloatArray:
        r"""Length κ_t in [0, 1] of the linear part: the task's own, or that of all tasks if less.

        With precision :math:`I = n_\text{eff} q_w` it is
        :math:`(1 - q_l/q_w)\, I/(I + 3)` for a task, and with 10 for 3 for all of them.
        """
        effective = min(self.rows, (n + start_rows) / 6.0)
        precision = effective * self.curvature
        own = _length(self.slope, self.curvature) * precision / (precision + 3.0)
        total = float(precision.sum())
        common = float(_length(_capped_sum(self.slope), self.curvature.sum()))
        common *= total / (total + 10.0) * self.observed / (self.observed + 10.0)
        length = np.minimum(own, common)
        if self.rows < _RECENT_ROWS:
            length = np.minimum(length, _lowest(self.nll_by_length.sum(axis=1)))
            return np.minimum(length, _lowest(self.nll_by_length))
        # With many rows the slope at κ = 1 decides, unless the null model did better lately.
        null, model = self.recent_nll
        return np.where((model > null) | (_capped_sum(model - null) > 0.0), 0.0, length)


def _capped_sum(nats: FloatArray) -> float:
    """The sum over tasks, none of which decides alone."""
    return float(np.clip(nats, -_MOST_OF_A_TASK, _MOST_OF_A_TASK).sum())


def _lowest(values: FloatArray) -> FloatArray:
    """Where in [0, 1] the parabola through values at 0, ½ and 1 is lowest."""
    start, middle, end = values
    bend = start - 2.0 * middle + end
    slope = 4.0 * middle - 3.0 * start - end  # at 0
    convex = bend > 0.0
    inside = np.clip(-slope / np.where(convex, 4.0 * bend, 1.0), 0.0, 1.0)
    return np.where(convex, inside, np.where(end < start, 1.0, 0.0))


def _length(slope: FloatArray | float, curvature: FloatArray | float) -> FloatArray:
    some = np.asarray(curvature) > 0.0
    return np.where(some, np.clip(1.0 - slope / np.where(some, curvature, 1.0), 0.0, 1.0), 0.0)


# The ridge on U and V, as an implicit step whose fixed point does not depend on coordinates.


def penalty_step(
    pull: float, now: Iterate, metric: FeatureMetric, inverse: FloatArray, curvature: FloatArray
) -> None:
    r"""Move V and U against α‖UV‖_*, the least (α/2)(‖U‖² + ‖V‖²) over all factors of UV.

    The solver changes coordinates U → UB⁻¹, V → BV. In any of them the gradients of the penalty
    at balanced factors are :math:`αUM^{-1}` and :math:`αMV`, where
    :math:`M = U^\top U \,\#\, (VV^\top)^{-1}` is a geometric mean of matrices. Steps are
    preconditioned as those of the likelihood are.

    Parameters
    ----------
    pull : float
        α times the step.
    """
    # M with M (VVᵀ) M = UᵀU, where both are positive definite up to a floor.
    root, back = _roots(now.V @ now.V.T)
    balance = back @ _roots(root @ (now.Ut @ now.Ut.T) @ root)[0] @ back
    values, vectors = eigh(balance, np.linalg.inv(inverse))
    inside = np.linalg.inv(vectors) @ now.V
    if metric.is_full:
        power, axes = np.linalg.eigh(metric.inverse)
        inside = (inside @ axes / (1.0 + pull * np.outer(values, power))) @ axes.T
    else:
        inside = inside / (1.0 + pull * np.outer(values, metric.inverse))
    now.V[...] = vectors @ inside
    values, vectors = np.linalg.eigh(np.linalg.inv(balance))
    rate = pull * np.square(now.sigma) / np.maximum(curvature, LEAST_CURVATURE)
    now.Ut[...] = vectors @ (vectors.T @ now.Ut / (1.0 + np.outer(values, rate)))


def _roots(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Symmetric square root and its inverse."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    root = np.sqrt(np.maximum(values, 1e-10 * max(float(values[-1]), 1e-10)))
    return (vectors * root) @ vectors.T, (vectors / root) @ vectors.T


# Coordinates and limits of the iterate and its average: ``both`` are second moments of Vx, with V
# of the iterate above V of its average, (2R, 2R).

_EXPLODED = 1e3  # times the unit variance that Vx has after whitening
_LONG, _FAR = 1.5, 2.0  # limits in units of the null model's noise


def whiten(
    both: FloatArray, now: Iterate, mean: Iterate, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    r"""Change to coordinates in which Vx has unit variance; returns G⁻¹ and ρ of the sketch there.

    A component of the average that has lost its iterate, in scale or in direction, is reset to it.
    :math:`G = \sum_t \bar w_t U_t U_t^\top/\sigma_t^2` plus damping, with the mean curvature w̄ (T,)
    of an entry, known or not. ρ = max(1, tr(G⁻¹ Σ_t U_t U_tᵀ/σ_t²)/R) bounds how far the curvature
    of one row, at most 1 per entry, exceeds the mean.
    """
    rank = len(now.V)
    there, back = start.whitening(both[:rank, :rank])
    for part in (now, mean):
        part.V[...] = there @ part.V
        part.Ut[...] = back @ part.Ut
    mine, cross, other = (
        np.diagonal(there @ block @ there.T)
        for block in (both[:rank, :rank], both[:rank, rank:], both[rank:, rank:])
    )
    # A nearly singular metric rounds below 0.
    mine, other = np.sqrt(np.maximum(mine, 0.0)), np.sqrt(np.maximum(other, 0.0))
    cosine = cross / np.maximum(mine * other, 1e-150)
    lost = (other < 0.1 * mine) | (other > 10.0 * mine) | (cosine < 0.3)
    mean.V[lost], mean.Ut[lost] = now.V[lost], now.Ut[lost]
    scaled = now.Ut / now.sigma
    metric = (scaled * curvature) @ scaled.T
    metric.flat[:: rank + 1] += 1e-4 * float(metric.trace()) / rank + damping
    inverse = np.linalg.inv(metric)
    spread = float(np.vdot(inverse, scaled @ scaled.T)) / rank
    return 0.5 * (inverse + inverse.T), max(1.0, spread)


def restrict(
    both: FloatArray, now: Iterate, mean: Iterate, middle: FloatArray, scale: FloatArray
) -> bool:
    """Limit the variance of linear parts and the range of intercepts; False if diverged.

    An iterate that has diverged is left unchanged. The average is a mean of iterates, so it need
    not be checked. With ``middle`` and ``scale`` (T,) of the null model, U_tᵀVx deviates by at most
    1.5 of its scale, and an intercept is within 2 of it around its mean.
    """
    rank = len(now.V)
    finite = all(np.isfinite(part).all() for part in now)
    if not (finite and np.trace(both[:rank, :rank]) <= _EXPLODED * rank):
        return False
    for part, moments in ((now, both[:rank, :rank]), (mean, both[rank:, rank:])):
        variance = np.sum(part.Ut * (moments @ part.Ut), axis=0)
        part.Ut[...] *= np.minimum(1.0, _LONG * scale / np.sqrt(np.maximum(variance, 1e-300)))
        part.intercept[...] = clip(part.intercept, middle - _FAR * scale, middle + _FAR * scale)
    return True


_ROWS_PER_AVERAGE = 8
_SLOPE, _FORGET = 4.0, 6.0
_NULL_ROWS = 1024
_REWHITEN, _DRIFT = 1.3, 2.0
_NOISY = 1.2  # the largest σ in units of the null model's


@dataclass(kw_only=True)
class AdaptiveLearner:
    """Preconditioned implicit steps, validated on every block; in standard units.

    Parameters
    ----------
    settings : OnlineSettings
        Its fixed noise scales are in standard units, too.
    now, mean : Iterate
        The iterate and its average.
    null : RunningNull
    metric : FeatureMetric
    moments : array of shape (3, T)
        Running means of curvature, share bounded on both sides, and known share.
    validation : Validation
    start_rows : float
        n₀, the number of rows after which steps begin to fall.
    inverse, spread : array of shape (R, R) and float
        G⁻¹ and ρ of :func:`sketch`.
    n : float
        Weight of the rows so far.
    averaged : int
        How often the average has moved.
    pace : float
        Factor on all steps, halved when the iterate diverges.
    n_halvings, n_left_out : int
        How often it was halved, and blocks of which nothing could be learned even so.
    """

    settings: OnlineSettings
    now: Iterate
    mean: Iterate
    null: RunningNull
    metric: FeatureMetric
    moments: FloatArray
    validation: Validation
    start_rows: float
    inverse: FloatArray
    spread: float = 1.0
    n: float = 0.0
    averaged: int = 0
    pace: float = 1.0
    n_halvings: int = 0
    n_left_out: int = 0
    whitened_at: float = 0.0
    n_blocks: int = 0

    @classmethod
    def begin(
        cls,
        settings: OnlineSettings,
        block: Block,
        gram: FloatArray | None,
        given: Iterate | None = None,
    ) -> AdaptiveLearner:
        """From the first rows; the spectral start, if none is given, sees half of them."""
        noise, rank = settings.noise, settings.rank
        rng = np.random.default_rng(settings.random_state)
        null = RunningNull.fit(
            noise, block, free_mean=settings.fit_intercept, n_threads=settings.n_threads
        )
        metric = FeatureMetric.build(block.X, block.weight, gram)
        half = reference.rows_of(block, slice(0, max(1, len(block.X) // 2)))
        if given is None:
            nothing = np.zeros((rank, block.X.shape[1])), np.zeros((rank, block.low.shape[1]))
            at_null = Iterate(*nothing, null.mean, null.sigma)
            now, curvature = start.reduced_rank_step(noise, half, at_null, metric, rank, first=True)
        else:
            now, (_, curvature, _) = given.copy(), start.working_scores(noise, half, given)
        metric.rebuild()
        start.fill_empty(now, metric, rng)
        if settings.sigma is not None:
            now.sigma[...] = settings.sigma
        known, bounded, _ = reference.count_entries(block)
        rows = max(float(block.weight.sum()), 1.0)
        return cls(
            settings=settings,
            now=now,
            mean=now.copy(),
            null=null,
            metric=metric,
            moments=np.stack([curvature, bounded / np.maximum(known, 1.0), known / rows]),
            validation=Validation.begin(now.sigma),
            start_rows=float(max(block.X.shape[1], 2 * rank, 20)),
            inverse=np.eye(rank),
        )

    def learn(
        self, block: Block, log_scale: FloatArray, *, fresh: bool, in_buffer: bool
    ) -> tuple[float, float, float]:
        """Learn from a block.

        Parameters
        ----------
        block : Block
        log_scale : array of shape (T,)
            Logarithms of the units, which the density of an observed entry has in the user's.
        fresh : bool
            Whether the model has not seen these rows: only then they validate it.
        in_buffer : bool
            Whether null model and metric have seen the rows.

        Returns
        -------
        objective : float
            Mean nll per known entry by the averaged model before the block; NaN if it knew it.
        loss : float
            Weighted nll of the rows, each by the iterate before it was learned.
        change : float
            Root mean square of ‖U_i − U_{i−1}‖/‖U‖ over the updates.
        """
        noise, n_threads = self.settings.noise, self.settings.n_threads
        validation, rows = self.validation, float(block.weight.sum())
        self.null.scored = None
        if not in_buffer:
            # Each of the first blocks, then one in four: the error of the null model is small.
            if self.n < _NULL_ROWS or self.n_blocks % 4 == 0:
                self.null.update(noise, block, n_threads=n_threads)
            self.n_blocks += 1
            self.metric.add(block.X, block.weight)
        if self.n >= _REWHITEN * self.whitened_at or self.n < 64:
            self._whiten(rows)
        if fresh and in_buffer:
            models = [self._of_length(np.full(len(self.null.mean), k)) for k in (0.0, 0.5, 1.0)]
            sums = [reference.validation_sums(noise, block, one, n_threads) for one in models]
            pairs = zip(sums, models, strict=True)
            nll = [part[0] + part[5] * np.log(one.sigma) for part, one in pairs]
            validation.score_lengths(rows, np.stack(nll))
        if fresh:
            model = self.mean._replace(sigma=validation.sigma)
            found = reference.validation_sums(noise, block, model, n_threads)
            state = float(self._forget(self.n)), self.moments[1], self._limits(), self.null.scored
            objective, known, exact = validation.score(rows, found, *state), found[3], found[5]
        else:
            objective, (known, _, exact) = np.nan, reference.count_entries(block)
        objective += float(exact @ log_scale) / max(float(known.sum()), 1e-300)
        left_out = float(exact @ (np.log(self.now.sigma) + log_scale))
        loss, change = self._guarded_step(block)
        return objective, loss + left_out, change

    def refit(self, block: Block, gram: FloatArray | None) -> None:
        """One reduced-rank step on all of the first rows, once each of them has been learned.

        A few hundred rows know more than one pass over them finds. Validation keeps what it found
        while rows were new, and shrinks the result accordingly. A ridge that was asked for is in
        the other steps alone, and this one is then left out.
        """
        if self.settings.alpha > 0.0:
            return
        before = self.now, self.mean
        noise, rank = self.settings.noise, self.settings.rank
        now, _ = start.reduced_rank_step(noise, block, self.mean, self.metric, rank, gram)
        start.fill_empty(now, self.metric, np.random.default_rng(self.settings.random_state))
        self.now, self.mean = now, now.copy()
        if self._is_sound():
            self.whitened_at = 0.0
        else:
            self.now, self.mean = before

    def result(self) -> Iterate:
        """The averaged model, shrunk towards the null model as far as validation suggests."""
        return self._of_length(self.validation.shrinkage(self.n, self.start_rows))

    def _of_length(self, length: FloatArray) -> Iterate:
        """The model between the null model (κ = 0) and the averaged one (κ = 1).

        The noise takes over the variance v that the linear part gives up:
        σ² = s₀² − κ(s₀² + v − σ̄²) + κ²v, between σ̄² and s₀².
        """
        model, null = self.mean, self.null
        intercept = null.mean + length * (model.intercept - null.mean)
        if self.settings.sigma is not None:
            return Iterate(model.V, model.Ut * length, intercept, self.settings.sigma)
        variance = np.sum(model.Ut * (self.metric.inner(model.V) @ model.Ut), axis=0)
        base, mine = np.square(null.sigma), np.square(self.validation.sigma)
        mixed = base - length * (base + variance - mine) + length**2 * variance
        mixed = np.clip(mixed, np.minimum(mine, base), np.maximum(mine, base))
        return Iterate(model.V, model.Ut * length, intercept, np.sqrt(mixed))

    def _guarded_step(self, block: Block) -> tuple[float, float]:
        """Step; if the iterate diverges, go back and halve the step. The loss, and U's change."""
        before = self.now.copy(), self.mean.copy(), self.moments.copy()
        pace, size = self.pace, self.settings.rows_per_update
        n_updates = -(-len(block.X) // size)
        for _ in range(_MOST_HALVINGS):
            with np.errstate(over="ignore", invalid="ignore"):
                loss, squares = self._step(block)
                sound = np.isfinite(loss + squares) and self._is_sound()
            if sound:
                self.pace = min(1.0, _RECOVERY * self.pace)
                self.averaged += len(block.X) // _ROWS_PER_AVERAGE if size == 1 else n_updates
                break
            self.now, self.mean = before[0].copy(), before[1].copy()
            self.moments = before[2].copy()
            self.pace *= 0.5
            self.n_halvings += 1
        else:  # nothing can be learned from this block
            self.pace, loss, squares = 0.5 * pace, 0.0, 0.0
            self.n_left_out += 1
        self.n += float(block.weight.sum())
        length = max(float(np.linalg.norm(self.now.Ut)), 1e-300)
        return loss, float(np.sqrt(squares / n_updates)) / length

    def _step(self, block: Block) -> tuple[float, float]:
        """Move the iterate; the loss, and the squared lengths of the steps of U."""
        settings, state = self.settings, (self.now, self.mean, self.moments)
        by_rows = settings.rows_per_update == 1
        learn = reference.learn_rows if by_rows else reference.learn_batches
        sums = learn(settings.noise, block, self._plan(block), *state)
        if settings.alpha > 0.0:
            pull = float(self._gamma(self.n)) * float(block.weight.sum()) * settings.alpha
            penalty_step(pull, self.now, self.metric, self.inverse, self.moments[0])
        return sums

    def _is_sound(self) -> bool:
        """Keep linear parts and intercepts in their limits; False if the iterate diverged."""
        null = self.null.mean, self.null.sigma
        return restrict(self._second_moments(), self.now, self.mean, *null)

    def _plan(self, block: Block) -> RowPlan:
        size, learns_intercept = self.settings.rows_per_update, float(self.settings.fit_intercept)
        n = (self.n + np.cumsum(block.weight) - block.weight)[::size]
        steps = self.metric.apply(block.X), self._gamma(n), self._forget(n)
        sketch, limits = (self.inverse, self.spread), self._limits()
        every = _ROWS_PER_AVERAGE if size == 1 else size
        return RowPlan(*steps, *sketch, *limits, learns_intercept, every, self.averaged)

    def _gamma(self, n: FloatArray | float) -> FloatArray:
        """The step: of the order 1/n₀ at first, falling with the square root of n/n₀."""
        return np.asarray(self.pace * _SLOPE / self.start_rows / np.sqrt(1.0 + n / self.start_rows))

    def _forget(self, n: FloatArray | float) -> FloatArray:
        """Share of a row in running means."""
        return np.asarray(_FORGET / (n + self.start_rows))

    def _limits(self) -> tuple[FloatArray, FloatArray]:
        """Limits of σ."""
        fixed = self.settings.sigma
        if fixed is not None:
            return fixed, fixed
        return 1e-4 * self.null.sigma, _NOISY * self.null.sigma

    def _whiten(self, rows: float) -> None:
        """Change to coordinates in which Vx has unit variance, and rebuild the sketch's metric.

        U drifts by about γ a row until this is done again. A component that explains nothing so
        far would make steps of V that are too long as soon as it does, so that G is damped by the
        size to which it may grow.
        """
        n_tasks, n_features = self.now.Ut.shape[1], self.now.V.shape[1]
        gamma = float(self._gamma(self.n))
        until_next = rows + (_REWHITEN - 1.0) * self.n
        damping = gamma * n_features + n_tasks * until_next * (_DRIFT * gamma) ** 2
        curvature = self.moments[0] * self.moments[2]
        both = self._second_moments()
        self.inverse, self.spread = whiten(both, self.now, self.mean, curvature, damping)
        self.whitened_at = self.n

    def _second_moments(self) -> FloatArray:
        """Second moments of Vx for the iterate and its average, (2R, 2R)."""
        return self.metric.inner(np.concatenate([self.now.V, self.mean.V]))
