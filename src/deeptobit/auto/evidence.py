"""An empirical-Bayes layer: its data, the posterior of its coefficients, and the E-step."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.sparse import issparse

from deeptobit import layer, likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer import CensoringKinds, Design, TargetScaling
from deeptobit.layer.features import eigenpairs, wide_spectrum
from deeptobit.targets import CensoredTargets

_MAX_DENSE = 2e8  # entries of X that may be stored densely


@dataclass(frozen=True)
class EvidenceProblem:
    r"""Features, intervals and the intercept-only model from which the EM starts.

    Parameters
    ----------
    matrix : array of shape (N, D)
        Standardised features, dense.
    weight : array of shape (N,)
        Row weights as given: a weight of 2 is a row twice.
    low, high : arrays of shape (N, T)
        Ends of the intervals in standard units, NaN where missing. Tasks of which all entries are
        censored on the same side have no maximum and count as missing.
    intercept, sigma : arrays of shape (T,)
        Of the intercept-only model.
    free_sigma : bool array of shape (T,)
        Tasks whose σ is identified; the others keep theirs.
    fit_intercept : bool
    kinds : CensoringKinds
        Tasks of which all entries are censored.
    design, scaling
        How the features (without their matrix) and the outcomes were standardised.
    """

    matrix: FloatArray
    weight: FloatArray
    low: FloatArray
    high: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    free_sigma: BoolArray
    fit_intercept: bool
    kinds: CensoringKinds
    design: Design
    scaling: TargetScaling

    @classmethod
    def build(
        cls,
        X: Any,
        targets: CensoredTargets,
        weight: FloatArray,
        *,
        fit_intercept: bool = True,
        standardize: bool = True,
        overwrite: bool = False,
    ) -> Self:
        """Standardise, fit the intercept-only model, set tasks without a maximum to missing.

        ``overwrite`` saves memory where X is a copy already.

        Examples
        --------
        >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [2.0]], lower=0)
        >>> EvidenceProblem.build(np.array([[1.0], [2.0], [4.0]]), targets, np.ones(3)).gram
        array([[3.]])
        """
        share = weight / weight.sum()
        units = {"center": fit_intercept, "standardize": standardize}
        design = Design.build(_dense(X), share, overwrite=overwrite, **units)
        scaling = TargetScaling.build(targets, share, center=fit_intercept)
        data = layer.BasisFeatures.none(design), targets, scaling, likelihood.Gaussian()
        free = np.ones(targets.shape[1], dtype=np.bool_)
        null = layer.OlsenProblem(*data, fit_intercept, free)
        null, intercept, sigma, kinds = layer.fit_constants(null, None, float(weight.sum()))
        return cls(
            matrix=design.matrix,
            weight=weight,
            low=scaling.apply(null.targets.low),
            high=scaling.apply(null.targets.high),
            intercept=intercept,
            sigma=sigma,
            free_sigma=null.free_sigma,
            fit_intercept=fit_intercept,
            kinds=kinds,
            design=design.without_matrix(),
            scaling=scaling,
        )

    @cached_property
    def total_weight(self) -> float:
        """The number of rows n, counted with their weights."""
        return float(self.weight.sum())

    @cached_property
    def missing(self) -> BoolArray:
        """Missing entries, (N, T)."""
        return np.isnan(self.low)

    @cached_property
    def known_weight(self) -> FloatArray:
        """Weight of the known entries of every task, (T,)."""
        return np.asarray(self.weight @ ~self.missing)

    @cached_property
    def weighted_matrix(self) -> FloatArray:
        """Rows times their weight, (N, D); the matrix itself if all weights are 1."""
        if (self.weight == 1.0).all():
            return self.matrix
        return np.asarray(self.weight[:, None] * self.matrix)

    @cached_property
    def gram(self) -> FloatArray:
        """Σ_i w_i x_i x_iᵀ, (D, D)."""
        return np.asarray(self.matrix.T @ self.weighted_matrix)


def _dense(X: Any) -> Any:
    """X as a dense array, if it is small enough."""
    n_samples, n_features = X.shape
    if not issparse(X):
        return X
    if n_samples * n_features > _MAX_DENSE:
        raise ValueError(
            f"X is sparse, and {n_samples} x {n_features} is too large to learn a variance for "
            "every feature; use SubspaceNetworkCV instead"
        )
    return X.toarray()  # type: ignore[attr-defined]


# The features in the metric of their prior variances, diagonalised on the smaller side.

_NOT_DETERMINED = 1e-6  # share of a coefficient below which the data say nothing about it
_LEAST_RELEVANCE = 1e-3
_LEAST_VARIANCE = 1e-12  # of a feature, from which its effects can come back


@dataclass(frozen=True)
class Spectrum:
    r"""Eigenpairs of :math:`\Omega^{1/2} X^\top W X\, \Omega^{1/2}`, Ω = diag ω.

    Parameters
    ----------
    feature_variance : array of shape (D,)
        ω, the prior variance of every feature's coefficients.
    values : array of shape (r,)
        Non-zero eigenvalues.
    directions : array of shape (D, r)
    """

    feature_variance: FloatArray
    values: FloatArray
    directions: FloatArray

    @classmethod
    def build(cls, problem: EvidenceProblem, feature_variance: FloatArray) -> Self:
        """Diagonalise D × D, or N × N if there are more features than rows.

        Examples
        --------
        >>> from deeptobit import CensoredTargets
        >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [2.0]], lower=0)
        >>> problem = EvidenceProblem.build(np.array([[1.0], [2.0], [4.0]]), targets, np.ones(3))
        >>> Spectrum.build(problem, np.array([2.0])).values
        array([6.])
        """
        feature_variance = np.maximum(feature_variance, _LEAST_VARIANCE)
        root = np.sqrt(feature_variance)
        if problem.matrix.shape[1] <= problem.matrix.shape[0]:
            return cls(feature_variance, *eigenpairs(problem.gram * np.outer(root, root)))
        rows = np.sqrt(problem.weight)[:, None] * problem.matrix * root
        return cls(feature_variance, *wide_spectrum(rows))

    def scaled(self, factor: float) -> Self:
        """The same directions with all prior variances multiplied by a factor."""
        return type(self)(self.feature_variance * factor, self.values * factor, self.directions)

    def without_directions(self) -> Self:
        """The variances alone, from which a spectrum can be built again."""
        return type(self)(self.feature_variance, self.values[:0], self.directions[:, :0])


@dataclass(frozen=True)
class Posterior:
    r"""Posterior of Δ (D, T) under rows z = xΔ + e, e ~ N(0, R), and Δ ~ MN(0, diag ω, K).

    With :math:`R = LL^\top` and :math:`L^{-1} K L^{-\top} = Q \Lambda Q^\top` the axes
    :math:`F = L^{-\top} Q` of the tasks make both matrices diagonal. Along axis q the coefficients
    are a ridge regression with prior variances λ_q ω, and all axes share one spectrum.

    Parameters
    ----------
    spectrum : Spectrum
        Of r directions.
    to_tasks : array of shape (T, T)
        :math:`F^{-1}`: rows are axes.
    task_variance : array of shape (T,)
        λ.
    white : array of shape (D, T)
        Posterior mean divided by √ω, along the axes.
    gain : array of shape (r, T)
        λs/(λs + 1), the share of each direction that the data determine.
    """

    spectrum: Spectrum
    to_tasks: FloatArray
    task_variance: FloatArray
    white: FloatArray
    gain: FloatArray

    @classmethod
    def infer(
        cls, spectrum: Spectrum, moments: FloatArray, covariance: FloatArray, noise: FloatArray
    ) -> Self:
        """Condition on the moments XᵀWZ (D, T) of the features with the latents.

        ``covariance`` is K, ``noise`` is R, (T, T) each.

        Examples
        --------
        One feature with Gram 3 and prior variance 1: the ridge estimate is XᵀZ/(3 + 1).

        >>> spectrum = Spectrum(np.ones(1), np.array([3.0]), np.ones((1, 1)))
        >>> Posterior.infer(spectrum, np.array([[2.0]]), np.eye(1), np.eye(1)).mean
        array([[0.5]])
        """
        root = np.linalg.cholesky(noise)
        # The shrunk correlation is far from singular: its inverse serves both, and is cheaper.
        whitener, _ = dtrtri(root, lower=1)
        whitened = whitener @ covariance @ whitener.T
        task_variance, axes = np.linalg.eigh(0.5 * (whitened + whitened.T))
        task_variance = np.maximum(task_variance, np.finfo(np.float64).eps)
        along = moments @ (whitener.T @ axes)
        feature_root = np.sqrt(spectrum.feature_variance)[:, None]
        signal = spectrum.values[:, None] * task_variance
        shrunk = spectrum.directions.T @ (feature_root * along) * (task_variance / (signal + 1.0))
        white, gain = spectrum.directions @ shrunk, signal / (signal + 1.0)
        return cls(spectrum, axes.T @ root.T, task_variance, white, gain)

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of Δ, (D, T)."""
        root = np.sqrt(self.spectrum.feature_variance)[:, None]
        return np.asarray((root * self.white) @ self.to_tasks)

    @property
    def freedom(self) -> FloatArray:
        """Σ_i w_i Var(x_iᵀΔ_t), the degrees of freedom of each task, (T,)."""
        return np.asarray(self.gain.sum(axis=0) @ np.square(self.to_tasks))

    def growth(self) -> FloatArray:
        """The EM update of ω over ω: mean over axes of E[Δ²]/(λω), (D,)."""
        undetermined = 1.0 - np.square(self.spectrum.directions) @ self.gain
        undetermined = np.maximum(undetermined, np.finfo(np.float64).eps)  # it may round below 0
        return np.asarray((np.square(self.white) / self.task_variance + undetermined).mean(axis=1))

    def relevance(self) -> FloatArray:
        """MacKay's update of ω over ω: E[Δ]²/(λω) over the share that the data determine, (D,).

        It has the fixed points of :meth:`growth`. Features that do not matter lose their variance
        in a few steps, where EM takes hundreds. No step takes more than 99.9 % of it.
        """
        determined = (np.square(self.spectrum.directions) @ self.gain).mean(axis=1)
        squares = (np.square(self.white) / self.task_variance).mean(axis=1)
        ratio = squares / np.maximum(determined, _NOT_DETERMINED)
        return np.asarray(np.maximum(ratio, _LEAST_RELEVANCE))

    def task_covariance(self) -> FloatArray:
        """The EM update of K with trace T: mean over features of E[ΔΔᵀ]/ω, (T, T)."""
        n_features, n_tasks = self.white.shape
        undetermined = n_features - np.square(self.spectrum.directions).sum(axis=0) @ self.gain
        total = self.white.T @ self.white + np.diag(self.task_variance * undetermined)
        moments = self.to_tasks.T @ total @ self.to_tasks
        return np.asarray(moments * (n_tasks / np.trace(moments)))


class Latents(NamedTuple):
    """Moments of the noise e = y*/σ − η given the intervals, each (N, T)."""

    fitted: FloatArray
    residual: FloatArray
    variance: FloatArray


def impute(
    problem: EvidenceProblem, coef: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> Latents:
    r"""The E-step: moments of the noise given the intervals, in units of σ.

    An observed entry has variance 0, a missing one mean 0 and variance 1.

    Parameters
    ----------
    coef : array of shape (D, T)
        Δ = W/σ (Olsen's scale).
    intercept, sigma : arrays of shape (T,)
    """
    from deeptobit.auto.kernels import fill_moments

    fitted = problem.matrix @ coef
    fitted += intercept
    moments = np.empty((2, *fitted.shape))
    fill_moments((problem.low, problem.high), fitted, sigma, moments)
    return Latents(fitted, *moments)


def noise_correlation(latents: Latents, weight: FloatArray) -> FloatArray:
    r"""Correlation R of the noise between tasks, shrunk by T rows of independent noise, (T, T).

    Outcomes of one person err together, which must not be taken for a shared effect of the
    features. With n the sum of the weights w, and moments e, v of the noise,

    .. math:: R_{st} = \frac{n}{n + T} \frac{\sum_i w_i e_{is} e_{it}}{
        \sqrt{\sum_i w_i (e_{is}^2 + v_{is})} \sqrt{\sum_i w_i (e_{it}^2 + v_{it})}},
        \qquad s \ne t.

    A missing entry adds variance v = 1 and, as e = 0, no product: R shrinks towards independence
    with the share of missing entries, about as the share of rows that know both outcomes does.
    """
    n_tasks = latents.residual.shape[1]
    total = latents.residual.T @ (weight[:, None] * latents.residual)
    scale = np.sqrt(np.diag(total) + weight @ latents.variance)
    scale = np.where(scale > 0.0, scale, 1.0)
    rows = float(weight.sum())
    correlation = total / np.outer(scale, scale) * (rows / (rows + n_tasks))
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)
