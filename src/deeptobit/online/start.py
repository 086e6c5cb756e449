"""Where a run begins: its settings, and what the first rows give.

That is the preconditioner of the features, the intercept-only model and a spectral start.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotrs

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Gaussian, Noise, has_kernels
from deeptobit.online import reference
from deeptobit.online.reference import LEAST_CURVATURE, Block, Iterate


@dataclass(frozen=True)
class OnlineSettings:
    """Settings of the online solver; the defaults need no tuning.

    Parameters
    ----------
    rank : int
        R.
    batch_size : int
        Rows per update. From 2 on, an update is a few matrix products. Under
        Gaussian noise it is one in any case: its code is compiled, faster, and more accurate.
    alpha : float
        Ridge on U and V beside the mean likelihood of a row, in standard units.
    fit_intercept : bool
    sigma : array of shape (T,), optional
        Fixed noise scales in the user's units; learned if not given.
    standardize : bool
        Scale features to unit variance first; targets always are.
    noise : Noise
    random_state : int, optional
        Seed of the directions of components that the first rows leave empty.
    n_threads : int
        Threads over tasks, beyond 512 of them; the result does not depend on it. Threads share
        what is decoupled by task: null model and validation. The step of a row is not shared: V
        needs all tasks at every row, and starting threads takes as long as a row of 2000 tasks.
    """

    rank: int
    batch_size: int = 1
    alpha: float = 0.0
    fit_intercept: bool = True
    sigma: FloatArray | None = None
    standardize: bool = True
    noise: Noise = field(default_factory=Gaussian)
    random_state: int | None = None
    n_threads: int = 1

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.batch_size < 1 or self.rank < 1 or self.n_threads < 1:
            raise ValueError("rank, batch_size and n_threads must be at least 1")
        if not 0.0 <= self.alpha < np.inf:
            raise ValueError(f"alpha must be finite and not negative; got {self.alpha}")

    @property
    def rows_per_update(self) -> int:
        """The rows that are learned from at once."""
        return 1 if has_kernels(self.noise) else self.batch_size


# Preconditioners: P for the features, G for the sketch.

_ALWAYS_FULL, _MAX_FULL = 64, 600
_REBUILD = 1.5
_RIDGE_FULL, _RIDGE_DIAGONAL, _SMALLEST_RIDGE = 0.02, 0.5, 1e-9


@dataclass
class FeatureMetric:
    r"""P ≈ (E xxᵀ)⁻¹, full or diagonal, from running second moments.

    .. math:: P = S\,(S A S / n + 0.02\,\tfrac{D}{n}\,\tau\, I)^{-1} S, \qquad
        S = \mathrm{diag}(A/n)^{-1/2}

    The ridge τ is chosen on the first rows: near 0 where directions of little variance carry
    signal, 1 otherwise. A diagonal P is taken where features are uncorrelated (a full one has
    nothing to gain there) or too many.

    Parameters
    ----------
    moments : array of shape (D, D) or (D,)
        A = Σ ω xxᵀ, or its diagonal.
    n : float
        Σ ω.
    tau : float
    inverse : array of shape (D, D) or (D,)
        P.
    built_at : float
        n when P was built.
    """

    moments: FloatArray
    n: float
    tau: float
    inverse: FloatArray
    built_at: float

    @classmethod
    def build(cls, X: FloatArray, weight: FloatArray, gram: FloatArray | None) -> FeatureMetric:
        """From the first rows, and what :func:`first_gram` gives of them."""
        n = max(float(weight.sum()), 1.0)
        moments = weight @ np.square(X) if gram is None else np.diagonal(gram).copy()
        if gram is not None and (len(gram) <= _ALWAYS_FULL or is_correlated(gram, n)):
            moments = gram.copy()
        metric = cls(moments, n, 1.0, moments, n)
        metric.rebuild()
        return metric

    @property
    def is_full(self) -> bool:
        """Whether P is a matrix."""
        return self.moments.ndim == 2

    @property
    def unseen(self) -> BoolArray:
        """Features that have not varied yet, (D,)."""
        return np.asarray((np.diagonal(self.moments) if self.is_full else self.moments) == 0.0)

    def add(self, X: FloatArray, weight: FloatArray) -> None:
        """Learn from a block; P follows when n has grown by half."""
        self.moments += _gram(X, weight) if self.is_full else weight @ np.square(X)
        self.n += float(weight.sum())
        if self.n >= _REBUILD * self.built_at:
            self.rebuild()

    def rebuild(self) -> None:
        """P from the present moments."""
        self.built_at = self.n
        n_features = len(self.moments)
        share = n_features / self.n
        diagonal = np.diagonal(self.moments) if self.is_full else self.moments
        scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal / self.n, 1.0))
        if not self.is_full:
            self.inverse = scale**2 / (1.0 + _RIDGE_DIAGONAL * share)
            return
        correlation = self.moments * (scale[:, None] * scale / self.n)
        correlation.flat[:: n_features + 1] += _RIDGE_FULL * share * self.tau + _SMALLEST_RIDGE
        correlation[self.unseen, self.unseen] = 1.0  # as they are expected once they vary
        inverse = np.linalg.inv(correlation)
        self.inverse = 0.5 * (inverse + inverse.T) * (scale[:, None] * scale)

    def apply(self, X: FloatArray) -> FloatArray:
        """XP."""
        return np.asarray(X @ self.inverse if self.is_full else X * self.inverse)

    def inner(self, V: FloatArray) -> FloatArray:
        """V (A/n) Vᵀ, the second moments of Vx, (R, R)."""
        product = V @ self.moments if self.is_full else V * self.moments
        return np.asarray(product @ V.T / self.n)


def first_gram(X: FloatArray, weight: FloatArray) -> FloatArray | None:
    """Σ ω xxᵀ of the first rows, (D, D); None where features are too many."""
    return _gram(X, weight) if X.shape[1] <= _MAX_FULL else None


def _gram(X: FloatArray, weight: FloatArray) -> FloatArray:
    """Σ ω xxᵀ, (D, D)."""
    scaled = X if (weight == 1.0).all() else X * np.sqrt(weight)[:, None]
    return np.asarray(scaled.T @ scaled)


def is_correlated(gram: FloatArray, n: float) -> bool:
    """Whether squared correlations exceed what chance gives, in sum or anywhere."""
    diagonal = np.diagonal(gram)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    square = np.square(gram * (scale[:, None] * scale))
    np.fill_diagonal(square, 0.0)
    pairs = len(gram) * (len(gram) - 1.0)
    excess = float(square.sum()) - pairs / n
    anywhere = float(square.max()) > (0.3 + 4.0 / np.sqrt(n)) ** 2
    return bool(anywhere or excess > 6.0 * np.sqrt(pairs) / n)


def clip(values: FloatArray, lowest: FloatArray | float, highest: FloatArray | float) -> FloatArray:
    """The same as ``np.clip``, which takes three times as long for a hundred numbers."""
    return np.minimum(np.maximum(values, lowest), highest)


# The intercept-only model: one mean and one noise scale per task.

# A weak prior in standard units, μ ~ N(0, 5²) and log σ ~ N(0, 1.5²), counted as this many rows:
# a task of which every entry is censored has no optimum without it.
_PRIOR = np.array([1.0 / 25.0, 1.0 / 2.25])
_PRIOR_ROWS = 0.05
_MAX_ITER = 40
_TOLERANCE = 0.05  # of σ: Newton's steps square, so that the next one would be 0.004
_LOWEST_LOG_SIGMA = -9.2
_FIRST_ROWS = 128


@dataclass
class RunningNull:
    """Intercept-only model (μ, log σ) of each task by Newton's method, updated with each block.

    It is at the optimum of the first rows; a later block moves it by one step.

    Parameters
    ----------
    mean, log_sigma : arrays of shape (T,)
    curvature : array of shape (3, T)
        Second derivatives by (μ, μ), (μ, log σ), (log σ, log σ), summed over all blocks.
    free_mean : bool
    scored : pair of arrays of shape (T,), optional
        nll of the last block before its step, without the log σ of observed entries, and log σ.
    """

    mean: FloatArray
    log_sigma: FloatArray
    curvature: FloatArray
    free_mean: bool
    scored: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def fit(cls, noise: Noise, block: Block, *, free_mean: bool, n_threads: int = 1) -> RunningNull:
        """The optimum on the first rows."""
        n_tasks = block.low.shape[1]
        null = cls(np.zeros(n_tasks), np.zeros(n_tasks), np.zeros((3, n_tasks)), free_mean)
        first = reference.rows_of(block, slice(0, _FIRST_ROWS))
        for rows, tolerance in ((first, 4.0 * _TOLERANCE), (block, _TOLERANCE)):
            for _ in range(_MAX_ITER):
                null.curvature[:] = 0.0
                if np.max(np.abs(null.update(noise, rows, _PRIOR_ROWS, n_threads))) < tolerance:
                    break
        return null

    @property
    def sigma(self) -> FloatArray:
        """σ, (T,)."""
        return np.exp(self.log_sigma)

    def update(
        self, noise: Noise, block: Block, prior_rows: float = 0.0, n_threads: int = 1
    ) -> FloatArray:
        """One Newton step with the gradient of a block and the curvature of all, (2, T)."""
        sigma = self.sigma
        nll, by_eta, by_scale, eta_eta, eta_scale, scale_scale = reference.null_sums(
            noise, block, self.mean, sigma, n_threads
        )
        self.scored = nll, self.log_sigma
        prior, floor = prior_rows * _PRIOR, _PRIOR_ROWS * _PRIOR
        by_mean = by_eta / sigma + prior[0] * self.mean
        by_noise = by_scale + prior[1] * self.log_sigma
        # The nll of an outlier need not be convex; the size of its curvature still limits the step.
        self.curvature[0] += np.abs(eta_eta) / sigma**2
        self.curvature[1] += eta_scale / sigma
        self.curvature[2] += np.maximum(scale_scale, 0.5 * np.abs(by_scale))
        a, c, d = self.curvature[0] + floor[0], self.curvature[1], self.curvature[2] + floor[1]
        if not self.free_mean:
            by_mean, c = np.zeros_like(c), np.zeros_like(c)
        most = 0.9 * np.sqrt(a) * np.sqrt(d)
        c = clip(c, -most, most)
        ratio = c / d  # eliminated one after the other: a determinant may overflow
        by_both = (ratio * by_noise - by_mean) / (a - c * ratio)
        in_mean, in_noise = by_both / sigma, -by_noise / d - ratio * by_both
        step = np.stack([clip(in_mean, -1.0, 1.0), clip(in_noise, -0.5, 0.5)])
        self.mean += sigma * step[0]
        # σ → 0 is real where a task is constant; 1e-4 of its spread, or of its size, is the floor.
        self.log_sigma = clip(self.log_sigma + step[1], _LOWEST_LOG_SIGMA, -_LOWEST_LOG_SIGMA)
        return step


_TAUS = 10.0 ** -np.arange(0.0, 10.0)
_CLEARLY_BETTER = 0.95
_NEGLIGIBLE = 1e-13
_RIDGE_START, _RIDGE_STEP = 0.1, 0.01  # per row and feature
_TURNS = 2  # of the tasks' subspace towards the leading one


def reduced_rank_step(
    noise: Noise,
    block: Block,
    model: Iterate,
    metric: FeatureMetric,
    rank: int,
    gram: FloatArray | None = None,
    *,
    first: bool = False,
) -> tuple[Iterate, FloatArray]:
    r"""One step of all rows of a block at once: regression of working residuals, cut to the rank.

    With scores g and mean curvature w̄ of the model, :math:`E = -g/\sqrt{\bar w}` are residuals and
    :math:`W_0 = V^\top U^\top\sqrt{\bar w}/\sigma` coefficients in units of
    :math:`\sigma/\sqrt{\bar w}`.
    :math:`W = W_0 + (X^\top X + \rho(k + D)\tau I)^{-1}X^\top E`, with ρ = 0.1 for the first step
    and 0.01 later; with Q the leading right singular vectors of XW (later: U, turned towards them
    twice), :math:`U = \sigma Q/\sqrt{\bar w}` and :math:`V = (WQ)^\top`.

    XᵀX may be given as ``gram``. Returns the model after the step, and w̄. The first step is the
    spectral start, from the null model; if the metric is full, it chooses τ by generalised
    cross-validation and keeps it in the metric.
    """
    score, curvature, known = working_scores(noise, block, model)
    fill = np.maximum(known / max(float(block.weight.sum()), 1.0), 0.2)  # missing counts as 0 in E
    unit = model.sigma / np.sqrt(curvature)
    X, E = block.X, score * (-unit / fill)
    if not (block.weight == 1.0).all():
        root = np.sqrt(block.weight)[:, None]
        X, E = root * X, E / np.where(root > 0.0, root, 1.0)
    if first:
        ridge = _RIDGE_START * sum(X.shape)
        W = _tuned_ridge(X, E, ridge, metric) if metric.is_full else _RidgeSolver(X, ridge).apply(E)
        Q = _leading(X @ W, rank)
        V = (W @ Q).T
    else:
        # W, with all tasks, is never formed: a few turns need it times R vectors alone.
        solver = _RidgeSolver(X, _RIDGE_STEP * sum(X.shape) * metric.tau, gram)
        U = (model.Ut / unit).T
        Q, V = U, model.V
        for turn in range(_TURNS + 1):
            if turn:
                along = X.T @ (X @ V.T)
                Q = np.linalg.qr(U @ (model.V @ along) + E.T @ solver.adjoint(along))[0]
            V = (model.V.T @ (U.T @ Q) + solver.apply(E @ Q)).T
    after = Iterate(V, unit * Q.T, model.intercept, model.sigma)
    return after.copy(), curvature  # the copy is in the order that the kernels walk through


def working_scores(
    noise: Noise, block: Block, model: Iterate
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted scores within reach, (n, T); mean curvature and weight of known entries, (T,)."""
    all_tasks = slice(0, len(model.sigma))
    score, sums = reference.evaluate(noise, block, all_tasks, block.X @ model.V.T @ model.Ut, model)
    known = np.maximum(sums[3], 1.0)
    return score, np.maximum(sums[1] / known, LEAST_CURVATURE), known


def fill_empty(start: Iterate, metric: FeatureMetric, rng: np.random.Generator) -> None:
    """Whiten V, and give components without any variance a random direction with U = 0.

    A component with U = V = 0 is a saddle that no gradient leaves.
    """
    there, back = whitening(metric.inner(start.V))
    start.V[...] = there @ start.V
    start.Ut[...] = back @ start.Ut
    variances = np.diagonal(metric.inner(start.V))
    if (variances > 0.25).all():
        return
    # The whitening mixed empty directions with full ones: separate them again.
    values, vectors = np.linalg.eigh(metric.inner(start.V))
    start.V[...] = vectors.T @ start.V
    start.Ut[...] = vectors.T @ start.Ut
    for component in np.flatnonzero(values < 0.25).tolist():
        direction = rng.standard_normal((1, start.V.shape[1]))
        direction[:, metric.unseen] = 0.0
        square = float(metric.inner(direction)[0, 0])
        start.V[component] = direction[0] / np.sqrt(square if square > 0.0 else 1.0)
        start.Ut[component] = 0.0


def whitening(second_moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Symmetric S^{−1/2} and S^{1/2}; directions without variance are left as they are.

    Collinear features have such directions each time, and rounding errors that are enlarged a
    little each time would grow to a factor of 1e19.
    """
    values, vectors = np.linalg.eigh(second_moments)
    some = values > 1e-8 * max(float(values[-1]), 1e-12)
    root = np.sqrt(np.where(some, values, 1.0))
    return (vectors / root) @ vectors.T, (vectors * root) @ vectors.T


class _RidgeSolver:
    """(XᵀX + ρI)⁻¹Xᵀ as a linear map, by the smaller of XᵀX and XXᵀ."""

    def __init__(self, X: FloatArray, ridge: float, gram: FloatArray | None = None) -> None:
        self._X, self._is_wide = X, X.shape[1] > X.shape[0]
        if self._is_wide:
            gram = X @ X.T
        elif gram is None:
            gram = X.T @ X
        inner = gram.copy()
        inner.flat[:: len(inner) + 1] += ridge
        # In the order of LAPACK, which would copy others; a symmetric matrix is its own transpose.
        self._factor, self._failed = dpotrf(inner.T, overwrite_a=True)

    def apply(self, values: FloatArray) -> FloatArray:
        """Coefficients (D, k) of values (n, k)."""
        if self._is_wide:
            return self._X.T @ self._solve(values)
        return self._solve((values.T @ self._X).T)

    def adjoint(self, slopes: FloatArray) -> FloatArray:
        """The transpose: slopes by values (n, k) from those by coefficients (D, k)."""
        if self._is_wide:
            return self._solve(self._X @ slopes)
        return self._X @ self._solve(slopes)

    def _solve(self, right: FloatArray) -> FloatArray:
        if self._failed:  # rounding of dependent features
            return np.zeros_like(right)
        return np.asarray(dpotrs(self._factor, right)[0])


def _tuned_ridge(X: FloatArray, E: FloatArray, ridge: float, metric: FeatureMetric) -> FloatArray:
    """The ridge by generalised cross-validation, no smaller than is clearly better."""
    power, axes = _principal(X)
    along = axes.T @ (X.T @ E)  # X = L diag(√power) axesᵀ; this is √power · Lᵀ E
    energy = np.square(along).sum(axis=1) / power
    total = float(np.square(E).sum())
    kept = power / (power + ridge * _TAUS[:, None])
    residual = total - (1.0 - np.square(1.0 - kept)) @ energy
    freedom = np.maximum(1.0 - (kept.sum(axis=1) + 1.0) / len(X), 1e-3)
    error = residual / freedom**2
    best = 0
    enough = len(X) >= len(metric.moments)  # fewer rows than features fit anything
    for choice in range(1, len(_TAUS) if enough else 1):
        if error[choice] < _CLEARLY_BETTER * error[best]:
            best = choice
    metric.tau = float(_TAUS[best])
    return np.asarray(axes @ (along / (power + ridge * metric.tau)[:, None]))


def _principal(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Squared singular values and right singular vectors of X, without its null space."""
    tall = X.shape[0] >= X.shape[1]
    power, axes = np.linalg.eigh(X.T @ X if tall else X @ X.T)
    kept = power > _NEGLIGIBLE * max(float(power[-1]), 1e-300)
    power, axes = power[kept], axes[:, kept]
    return power, axes if tall else X.T @ (axes / np.sqrt(power))


def _leading(fitted: FloatArray, rank: int) -> FloatArray:
    """Leading right singular vectors, (T, R); orthonormal even where there is no variance."""
    n, n_tasks = fitted.shape
    if n_tasks <= n:
        leading = [n_tasks - rank, n_tasks - 1]
        gram = fitted.T @ fitted
        return np.asarray(eigh(gram, subset_by_index=leading, check_finite=False)[1])
    left = np.zeros((n, rank))  # fewer rows than components: any orthonormal completion
    few = min(n, rank)
    left[:, :few] = eigh(fitted @ fitted.T, subset_by_index=[n - few, n - 1])[1]
    return np.asarray(np.linalg.qr(fitted.T @ left)[0])
