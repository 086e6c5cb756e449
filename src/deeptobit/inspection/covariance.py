"""Covariance of a fitted model's parameters, in the user's units, and what to refer it to."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import chi2, f, t

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray, read_groups
from deeptobit.layer import CensoringKinds, Layer, OlsenProblem, SubspaceEvaluation, SubspaceProblem
from deeptobit.layer.features import coefficients_to_user
from deeptobit.layer.tobit import fit_tobit
from deeptobit.targets import CensoredTargets

CovarianceKind = Literal["observed", "robust", "cluster"]
TrainingRows = tuple[Any, CensoredTargets, FloatArray]  # features, outcomes, weights
_VANISHED = 1e-5  # of the strongest component


@dataclass(frozen=True)
class Reference:
    r"""The distribution to which estimates are referred: t and F in place of normal and χ².

    In linear regression, which has n entries and p coefficients, the maximum likelihood variance is
    too small by :math:`(n-p)/n`, and its own error makes the normal a t with n − p degrees of
    freedom. Both are exact there. The default is the large-sample reference.

    Parameters
    ----------
    factor : float
        What variances are multiplied with.
    df : float
        Degrees of freedom.

    Examples
    --------
    >>> Reference().half_width(0.95), Reference(30 / 26, 26).half_width(0.95)
    (1.959..., 2.207...)
    >>> round(Reference(30 / 26, 26).tail(4.0, 1), 3)
    0.074
    """

    factor: float = 1.0
    df: float = np.inf

    def half_width(self, confidence: float) -> float:
        """Half-width of a central interval in large-sample standard errors."""
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must lie between 0 and 1; got {confidence}")
        return float(np.sqrt(self.factor) * t.ppf(0.5 + 0.5 * confidence, self.df))

    def two_sided(self, z: FloatArray) -> FloatArray:
        """Two-sided p of estimates divided by their large-sample standard errors."""
        return np.asarray(2.0 * t.sf(np.abs(z) / np.sqrt(self.factor), self.df))

    def tail(self, statistic: float, q: int) -> float:
        """Probability of a Wald statistic with q degrees of freedom, or a larger one."""
        if np.isinf(self.df):
            return float(chi2.sf(statistic, q))
        return float(f.sf(statistic / self.factor / max(q, 1), q, self.df))


@dataclass(frozen=True)
class FittedModel(ABC):
    """A model at its optimum, with the data it was fitted to, as inference needs them."""

    problem: OlsenProblem | SubspaceProblem
    total_weight: float
    kinds: CensoringKinds

    def covariance(
        self, task: int, kind: CovarianceKind = "observed", groups: ArrayLike | None = None
    ) -> FloatArray:
        r"""Covariance of (β, intercept, log σ) of one task, (D + 2, D + 2); NaN if undetermined.

        ``"observed"`` inverts the observed information A. ``"robust"`` is the sandwich
        :math:`A^{-1}\sum_i s_i s_i^\top A^{-1}` of row scores, ``"cluster"`` the same with scores
        summed within groups first: they hold where outcomes of one row, or of one group, are
        correlated beyond what the features explain. All are for large samples; see
        :meth:`reference`.
        """
        jacobian = self._jacobian(task)
        inverse = None if self.kinds.one_sided[task] else self._inverse_information(task)
        if inverse is None:
            return np.full((len(jacobian), len(jacobian)), np.nan)
        if kind == "observed":
            return np.asarray(jacobian @ inverse @ jacobian.T / self.total_weight)
        scores = self._row_scores(task)
        totals = scores if kind == "robust" else _sum_by_group(scores, groups)
        influence = jacobian @ inverse @ totals.T
        return np.asarray(influence @ influence.T)

    @abstractmethod
    def _jacobian(self, task: int) -> FloatArray:
        """Derivative of (β, intercept, log σ) by the parameters of the model, (D + 2, P)."""

    @abstractmethod
    def _inverse_information(self, task: int) -> FloatArray | None:
        """Inverse Hessian by the parameters, (P, P), 0 where they are fixed; None if undefined."""

    @abstractmethod
    def _row_scores(self, task: int) -> FloatArray:
        """Gradient of every row's likelihood by the parameters, for weights of sum 1, (N, P)."""

    @abstractmethod
    def _n_coefficients(self, task: int) -> float:
        """Effective number of coefficients of a task, its intercept included."""

    @abstractmethod
    def _information_on_scores(self, task: int) -> float:
        """Curvature by the latent score in units of σ, summed over the rows."""

    @abstractmethod
    def _sigma(self, task: int) -> float:
        """Noise scale in the user's units."""

    def _to_user(self, scale: float) -> FloatArray:
        """Linear map of (coefficients, intercept, log σ) to the user's units, (D + 2, r + 2)."""
        features = self.problem.features
        r, design = features.rank, features.design
        to_user = np.zeros((len(design.scale) + 2, r + 2))
        to_user[:-2, :-2] = scale * features.coefficients(np.eye(r)) / design.scale[:, None]
        to_user[-2] = -design.mean @ to_user[:-2]
        to_user[-2, -2], to_user[-1, -1] = scale, 1.0
        return to_user

    def n_entries(self) -> FloatArray:
        """Total weight of known entries per task, (T,)."""
        return self.total_weight * (self.problem.weight @ ~self.problem.targets.missing)

    def reference(
        self, task: int, kind: CovarianceKind = "observed", groups: ArrayLike | None = None
    ) -> Reference:
        r"""The small-sample reference of one task's estimates.

        Factor :math:`n/(n-p)` and n − p degrees of freedom; for G clusters
        :math:`\frac{G}{G-1}\frac{n-1}{n-p}` and G − 1. With a ridge p is the effective number of
        coefficients. A σ that is given leaves nothing to correct.
        """
        if not self.problem.free_sigma[task]:
            return Reference()
        n = float(self.n_entries()[task])
        left = max(n - self._n_coefficients(task), 1.0)
        if kind != "cluster":
            return Reference(n / left, left)
        n_groups = max(len(np.unique(np.asarray(groups))), 2)
        return Reference(n_groups / (n_groups - 1.0) * (n - 1.0) / left, n_groups - 1.0)

    def sigma_interval(self, task: int, variance: float, confidence: float) -> FloatArray:
        r"""Small-sample confidence interval of σ, (2,), given the variance of log σ.

        Coefficients take a share :math:`p/n_\beta` of the residual variance, where
        :math:`n_\beta` counts every entry by its information on the latent score, 1 if it is
        observed. The interval is :math:`\tilde\sigma\sqrt{\nu/\chi^2_\nu}` with
        :math:`\tilde\sigma^2 = \hat\sigma^2/(1-p/n_\beta)` and
        :math:`\nu = (1-p/n_\beta)/(2\operatorname{var}\log\hat\sigma)`: the exact one in linear
        regression.
        """
        if not variance > 0.0:
            return np.full(2, np.nan)
        quantiles = self.problem.noise.ppf(np.linspace(0.0005, 0.9995, 1000))
        of_observed = np.mean(self.problem.noise.score_slope(quantiles))
        n_beta = float(self._information_on_scores(task) / of_observed)
        p = self._n_coefficients(task)
        left = 1.0 - p / max(n_beta, p + 1.0)
        df = left / (2.0 * variance)
        ends = chi2.ppf([0.5 + 0.5 * confidence, 0.5 - 0.5 * confidence], df)
        return np.asarray(self._sigma(task) * np.sqrt(df / ends / left))


@dataclass(frozen=True)
class FittedTobit(FittedModel):
    r"""The Tobit model of every task at its optimum.

    Covariances are computed in the coordinates (δ, ε, τ) of :class:`OlsenProblem`, which are well
    scaled, and carried to (β, intercept, log σ) by the delta method. At the optimum this equals the
    inverse Hessian by (β, intercept, log σ).

    Parameters
    ----------
    problem : OlsenProblem
    total_weight : float
    kinds : CensoringKinds
    point : array of shape (r + 2, T)
    value : array of shape (T,)
        Objective at the point.
    """

    problem: OlsenProblem
    point: FloatArray
    value: FloatArray
    _known: dict[int, FloatArray] = field(default_factory=dict, repr=False, compare=False)

    def in_user_units(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients (T, D), intercepts (T,) and noise scales (T,)."""
        units, sigma = (self.problem.features.design, self.problem.scaling), 1.0 / self.point[-1]
        W = (self.problem.features.coefficients(self.point[:-2]) * sigma).T
        return coefficients_to_user(*units, W, self.point[-2] * sigma, sigma)

    def log_likelihood(self) -> FloatArray:
        """Σ_i w_i log p(y_it | x_i) with the weights as given, (T,)."""
        ridge = 0.5 * (self.problem.features.ridge[:, None] * self.point[:-2] ** 2).sum(axis=0)
        # A density per standard unit becomes one per unit of y; masses of intervals stay.
        exact = self.problem.weight @ self.problem.targets.observed
        per_row = self.value - ridge + exact * np.log(self.problem.scaling.scale)
        return np.asarray(-self.total_weight * per_row)

    def n_parameters(self) -> FloatArray:
        """Free parameters per task, (T,)."""
        n_coef = self.problem.features.rank + self.problem.fit_intercept
        return np.asarray(n_coef + self.problem.free_sigma.astype(np.float64))

    def without_features(self, *, tol: float, max_iter: int) -> "FittedTobit":
        """The intercept-only model on the same data."""
        given = None if self.problem.free_sigma.all() else self.point[-1]
        empty, total = self.problem.without_features(), self.total_weight
        found = fit_tobit(empty, given, total_weight=total, tol=tol, max_iter=max_iter)
        problem, result, kinds = found
        return FittedTobit(problem, total, kinds, result.point, result.value)

    def likelihood_ratio_tail(self, task: int, statistic: float, q: int) -> float:
        r"""Tail probability of a likelihood ratio statistic L with q degrees of freedom.

        :math:`(e^{L/n}-1)(n-p)/q` is referred to F with q and n − p degrees of freedom, which is
        exact in linear regression.
        """
        reference, n = self.reference(task), float(self.n_entries()[task])
        if np.isinf(reference.df):
            return reference.tail(statistic, q)
        return reference.tail(n * np.expm1(statistic / n), q)

    def _n_coefficients(self, task: int) -> float:
        """Number of coefficients; with a ridge, tr(H₀H⁻¹) of Hessians without and with it."""
        n_free = self.problem.features.rank + float(self.problem.fit_intercept)
        ridge = self.problem.features.ridge
        if not ridge.any():
            return n_free
        information = self._information(task)[:-1, :-1]
        return n_free - float(ridge @ np.linalg.pinv(information, hermitian=True).diagonal()[:-1])

    def _information_on_scores(self, task: int) -> float:
        return self.total_weight * float(self._information(task)[-2, -2])

    def _sigma(self, task: int) -> float:
        return float(self.problem.scaling.scale[task] / self.point[-1, task])

    def _jacobian(self, task: int) -> FloatArray:
        jacobian = self._to_user(self._sigma(task))
        jacobian[-1, -1] = -1.0  # τ is the change of log θ = −log σ
        return jacobian

    def _inverse_information(self, task: int) -> FloatArray | None:
        free = np.ones(len(self.point), dtype=np.bool_)
        free[-2] = self.problem.fit_intercept
        free[-1] = self.problem.free_sigma[task]
        free[-1] &= self.point[-1, task] < self.problem.max_theta
        return _inverse(self._information(task), free)

    def _row_scores(self, task: int) -> FloatArray:
        return self._information_and_scores(task)[1]

    def _information(self, task: int) -> FloatArray:
        """The Hessian of :meth:`_information_and_scores`, computed once."""
        if task not in self._known:
            self._known[task] = self._information_and_scores(task)[0]
        return self._known[task]

    def _information_and_scores(self, task: int) -> tuple[FloatArray, FloatArray]:
        """Hessian (r + 2, r + 2) and row scores (N, r + 2) by (δ, ε, τ), for weights of sum 1."""
        problem, features = self.problem, self.problem.features
        z, sigma = self.point[:-2, task], 1.0 / self.point[-1, task]
        location, scale = problem.scaling.location[task], problem.scaling.scale[task]
        hessian = np.zeros((len(self.point), len(self.point)))
        hessian[:-2, :-2] = np.diag(features.ridge)
        hessian[:-2, -1] = hessian[-1, :-2] = features.ridge * z
        hessian[-1, -1] = features.ridge @ z**2
        scores = np.empty((features.n_samples, len(self.point)))
        for rows, block in features.blocks():
            x = np.column_stack([block.dense(), np.ones(rows.stop - rows.start)])
            latent = x @ (sigma * self.point[:-1, task])
            low = (problem.targets.low[rows, task] - location) / scale
            high = (problem.targets.high[rows, task] - location) / scale
            weight = problem.weight[rows]
            scales = np.full_like(latent, sigma)
            at = likelihood.evaluate(problem.noise, low, high, latent, scales)
            # At a fixed line the latent stays, and log σ falls by τ.
            hessian[:-1, :-1] += x.T @ (x * (weight * sigma**2 * at.latent_latent)[:, None])
            hessian[:-1, -1] -= x.T @ (weight * sigma * (at.latent + at.latent_log_sigma))
            hessian[-1, -1] += weight @ (at.log_sigma + at.log_sigma_log_sigma)
            scores[rows, :-1] = x * (weight * sigma * at.latent)[:, None]
            scores[rows, -1] = -weight * at.log_sigma
        hessian[-1, :-1] = hessian[:-1, -1]
        return hessian, scores


@dataclass(frozen=True)
class FittedLayer(FittedModel):
    r"""A low-rank layer W = UV at its optimum.

    U and V are determined up to UA, A⁻¹V, which leave W as it is. The Hessian of the penalised
    objective by (U, V, b, log σ) is therefore inverted on the complement of the R² directions
    dU = UA, dV = −AV, the tangent space of the matrices of rank R, and carried to W, where no
    rotation is left. The ridge counts as information, as in :class:`FittedTobit`: with a strong one
    intervals describe the shrunken coefficients.

    Parameters
    ----------
    problem : SubspaceProblem
    total_weight : float
    kinds : CensoringKinds
    layer : Layer
        Without components that are zero.
    rows : tuple
        Features, outcomes and weights as given, for fits to resampled rows.
    """

    problem: SubspaceProblem
    layer: Layer
    rows: TrainingRows

    @classmethod
    def at(
        cls, problem: SubspaceProblem, kinds: CensoringKinds, layer: Layer, rows: TrainingRows
    ) -> Self:
        """A layer at its optimum; components that have vanished are left out."""
        layer = problem.balance(layer)
        strength = np.linalg.norm(layer.U, axis=0)
        used = strength > _VANISHED * max(strength.max(initial=0.0), 1e-3)
        layer = layer._replace(U=layer.U[:, used], Z=layer.Z[:, used])
        problem = replace(problem, rank=int(used.sum()))
        return cls(problem, problem.total_weight, kinds, layer, rows)

    @cached_property
    def _evaluation(self) -> SubspaceEvaluation:
        return self.problem.evaluate(self.problem.pack(self.layer))

    @cached_property
    def _inverse(self) -> FloatArray | None:
        """Inverse Hessian on the tangent space, (P, P); None if it is not positive definite."""
        at = self._evaluation
        units = np.eye(len(at.free))[:, :, None]
        hessian = np.column_stack([at.hessian_product(unit) for unit in units])
        along = np.linalg.qr(self._idle_directions() * at.free)[0]
        idle = along @ along.T
        across = np.eye(len(along)) - idle
        inner = across @ hessian @ across
        inverse = _inverse(0.5 * (inner + inner.T) + idle, at.free[:, 0] > 0.0)
        return None if inverse is None else inverse - idle

    def _idle_directions(self) -> FloatArray:
        """Changes of (U, Z, b, log σ) that leave UV as it is, (P, R²)."""
        U, Z, b, log_sigma = self.layer
        rank, idle = U.shape[1], []
        for unit in np.eye(rank * rank).reshape(rank * rank, rank, rank):
            move = Layer(U @ unit, -Z @ unit.T, np.zeros_like(b), np.zeros_like(log_sigma))
            idle.append(self.problem.pack(move)[:, 0])
        return np.array(idle).reshape(rank * rank, self.problem.pack(self.layer).size).T

    def _jacobian(self, task: int) -> FloatArray:
        return self._to_user(self.problem.scaling.scale[task]) @ self._by_parameters(task)

    def _inverse_information(self, task: int) -> FloatArray | None:
        return self._inverse

    def _row_scores(self, task: int) -> FloatArray:
        return self._scores

    def _by_parameters(self, task: int) -> FloatArray:
        """Derivative of a task's (coefficients of Z's basis, b, log σ) by all, (r + 2, P)."""
        U, Z = self.layer.U, self.layer.Z
        r, rank = Z.shape
        by_U, by_Z = np.zeros((r + 2, *U.shape)), np.zeros((r + 2, r, rank))
        by_U[:r, task] = Z
        by_Z[np.arange(r), np.arange(r)] = U[task]
        others = np.zeros((r + 2, 2, len(U)))
        others[r, 0, task] = others[r + 1, 1, task] = 1.0
        return np.concatenate([part.reshape(r + 2, -1) for part in (by_U, by_Z, others)], axis=1)

    def _n_coefficients(self, task: int) -> float:
        """Trace of the likelihood's information on the scores times their covariance."""
        if self._inverse is None:
            return float(self.problem.features.rank + 1)
        jacobian = self._by_parameters(task)[:-1]
        covariance, total = jacobian @ self._inverse @ jacobian.T, 0.0
        for rows, block in self.problem.features.blocks():
            x = np.column_stack([block.dense(), np.ones(rows.stop - rows.start)])
            leverage = np.einsum("ij,jk,ik->i", x, covariance, x)
            total += float(self._evaluation.curvature[rows, task] @ leverage)
        return total

    def _information_on_scores(self, task: int) -> float:
        curvature = float(self._evaluation.curvature[:, task].sum(dtype=np.float64))
        return self.total_weight * curvature * float(np.exp(2.0 * self.layer.log_sigma[task]))

    def _sigma(self, task: int) -> float:
        return float(self.problem.scaling.scale[task] * np.exp(self.layer.log_sigma[task]))

    @cached_property
    def _scores(self) -> FloatArray:
        """Gradient of every row's likelihood by (U, Z, b, log σ), for weights of sum 1, (N, P)."""
        problem, layer, parts = self.problem, self.layer, []
        for rows, block in problem.features.blocks():
            h, x = block @ layer.Z, block.dense()
            known = problem.targets[rows]
            low, high = (problem.scaling.apply(ends) for ends in (known.low, known.high))
            sigma, latent = np.exp(layer.log_sigma), h @ layer.U.T + layer.intercept
            at = likelihood.evaluate(problem.noise, low, high, latent, sigma)
            weight = problem.weight[rows][:, None]
            G = at.latent * weight
            by_U, by_Z = G[:, :, None] * h[:, None, :], x[:, :, None] * (G @ layer.U)[:, None, :]
            flat = [part.reshape(len(G), -1) for part in (by_U, by_Z)]
            parts.append(np.column_stack([*flat, G, at.log_sigma * weight]))
        return np.concatenate(parts)

    def rank_tail(self, n_draws: int, random: np.random.RandomState) -> tuple[float, float]:
        r"""Statistic and p of the hypothesis that no component is missing.

        The likelihood's gradient by W, in units of its standard deviation under the hypothesis and
        outside of the spaces of U and V, is then a matrix of independent standard normal entries,
        (r − R, T − R). The statistic is its largest squared singular value, which is, to first
        order, twice the log likelihood that the next component would gain; p comes from
        ``n_draws`` such matrices.
        """
        at, problem = self._evaluation, self.problem
        spread = np.sqrt(np.maximum(at.curvature.sum(axis=0, dtype=np.float64), 1e-30))
        gradient = at.by_coefficients() / spread * np.sqrt(self.total_weight)
        left = np.linalg.qr(self.layer.Z)[0]
        right = np.linalg.qr(self.layer.U * spread[:, None])[0]
        gradient -= left @ (left.T @ gradient)
        gradient -= gradient @ right @ right.T
        statistic = float(np.linalg.norm(gradient, 2) ** 2)
        shape = problem.features.rank - left.shape[1], problem.n_tasks - right.shape[1]
        if min(shape) <= 0:
            return 0.0, 1.0
        draws = [np.linalg.norm(random.normal(size=shape), 2) ** 2 for _ in range(n_draws)]
        return statistic, (1.0 + float(np.sum(np.array(draws) >= statistic))) / (n_draws + 1.0)


def _inverse(matrix: FloatArray, free: BoolArray) -> FloatArray | None:
    """Inverse by the free parameters, 0 by others; None if it is not positive definite."""
    inverse, some = np.zeros_like(matrix), np.ix_(free, free)
    try:
        inverse[some] = cho_solve(cho_factor(matrix[some]), np.eye(int(free.sum())))
    except np.linalg.LinAlgError:
        return None
    return inverse


def _sum_by_group(scores: FloatArray, groups: ArrayLike | None) -> FloatArray:
    if groups is None:
        raise ValueError("cov_type='cluster' needs groups: one label per training row")
    member = read_groups(groups, len(scores))
    return pd.DataFrame(scores).groupby(member, sort=False).sum().to_numpy()
