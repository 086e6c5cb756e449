"""Standard errors, tests, and effects by the delta method, for models that are at an optimum."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray, listed
from deeptobit.estimators import inputs
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.estimators.inputs import Limits, feature_names
from deeptobit.exceptions import CensoringWarning, warn
from deeptobit.inspection import CovarianceKind, FittedModel, Reference
from deeptobit.likelihood import Predictive

EffectKind = Literal["latent", "mean", "uncensored"]
INTERCEPT, LOG_SIGMA = "(intercept)", "log(sigma)"


class InferenceRegressor(CensoredRegressor):
    """Inference for models whose ``fit`` ends at an optimum.

    It uses the training data, which are kept in memory (``_trained``) but never pickled or saved.
    """

    _trained: FittedModel

    def summary(
        self,
        *,
        cov_type: CovarianceKind = "observed",
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
        small_sample: bool = True,
    ) -> pd.DataFrame:
        r"""Coefficient table: estimate, standard error, z, p and confidence interval.

        Parameters
        ----------
        cov_type : {"observed", "robust", "cluster"}
        groups : array of shape (N,), optional
            Cluster labels of the training rows, for ``"cluster"``.
        confidence : float
        small_sample : bool
            Take p and intervals from the t distribution of linear regression, with variances times
            :math:`n/(n-p)` and n − p degrees of freedom (clusters less one for ``"cluster"``), and
            the interval of log σ from χ². ``False``: from the normal distribution, as R's
            ``survreg`` does. Standard errors are large-sample in either case.

        Returns
        -------
        DataFrame
            One row per (target, term); terms are the features, the intercept and log σ. Standard
            errors are NaN, with a warning, where the data do not determine them.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 1))
        >>> y = np.maximum(X[:, 0] + rng.normal(size=300), 0)
        >>> TobitRegressor().fit(X, y).summary()[["coef", "std_err", "z"]].round(3)
                             coef  std_err       z
        target term
        y      x0           0.983    0.074  13.344
               (intercept)  0.039    0.073   0.527
               log(sigma)  -0.084    0.062  -1.359
        """
        problem = self._training().problem
        terms = [*feature_names(self), INTERCEPT, LOG_SIGMA]
        parts = []
        for task in range(len(self.target_names_)):
            covariance, reference = self._moments(task, cov_type, groups, small_sample)
            estimate = np.r_[self.coef_[task], self.intercept_[task], np.log(self.sigma_[task])]
            variance = covariance.diagonal()
            table = estimate_table(terms, estimate, variance, confidence, reference)
            if small_sample and problem.free_sigma[task]:
                ends = self._training().sigma_interval(task, variance[-1], confidence)
                table.loc[LOG_SIGMA, ["ci_low", "ci_high"]] = np.log(ends)
            estimated = [True] * (len(terms) - 2)
            parts.append(table[[*estimated, problem.fit_intercept, problem.free_sigma[task]]])
        return pd.concat(parts, keys=self.target_names_, names=["target", "term"])

    def conf_int(self, confidence: float = 0.95, **options: Any) -> pd.DataFrame:
        """Confidence intervals of the parameters: ``ci_low`` and ``ci_high`` of :meth:`summary`.

        ``options`` are ``cov_type``, ``groups`` and ``small_sample``, as there.
        """
        return self.summary(confidence=confidence, **options)[["ci_low", "ci_high"]]

    def cov_params(
        self,
        target: str | int = 0,
        *,
        cov_type: CovarianceKind = "observed",
        groups: ArrayLike | None = None,
    ) -> pd.DataFrame:
        """Covariance of the coefficients, intercept and log σ of one target, by name or number.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 1))
        >>> y = np.maximum(X[:, 0] + rng.normal(size=300), 0)
        >>> model = TobitRegressor().fit(X, y)
        >>> np.sqrt(np.diag(model.cov_params("y"))).round(3)
        array([0.074, 0.073, 0.062])
        """
        check_is_fitted(self)
        (task,) = self._read_target(target)
        terms = [*feature_names(self), INTERCEPT, LOG_SIGMA]
        covariance, _ = self._moments(task, cov_type, groups)
        return pd.DataFrame(covariance, index=terms, columns=terms)

    def wald_test(
        self,
        features: Sequence[str] | str | None = None,
        *,
        cov_type: CovarianceKind = "observed",
        groups: ArrayLike | None = None,
        small_sample: bool = True,
    ) -> pd.DataFrame:
        """Test per task that the coefficients of ``features`` (all, by default) are zero.

        Returns
        -------
        DataFrame
            Per target: ``statistic`` βᵀ cov(β)⁻¹ β, ``df``, and ``p_value`` by F, or by χ² if not
            ``small_sample`` (see ``summary``).
        """
        check_is_fitted(self)
        chosen, rows = read_chosen(self, features), []
        for task, beta in enumerate(self.coef_[:, chosen]):
            covariance, reference = self._moments(task, cov_type, groups, small_sample)
            rows.append(wald_row(beta, covariance[np.ix_(chosen, chosen)], reference))
        return pd.DataFrame(rows, index=pd.Index(self.target_names_, name="target"))

    def marginal_effects(
        self,
        X: Any,
        kind: EffectKind = "mean",
        *,
        lower: Limits = None,
        upper: Limits = None,
        cov_type: CovarianceKind = "observed",
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
        small_sample: bool = True,
    ) -> pd.DataFrame:
        r"""Average marginal effects of the features over the rows of X.

        With P the probability of being strictly between the bounds, the effect of feature d is
        :math:`\beta_d` on the latent score, :math:`\beta_d\,\overline{P}` on E[y|x] (McDonald and
        Moffitt 1980), and :math:`\beta_d\,\overline{\partial P/\partial\eta}` on P.

        Parameters
        ----------
        X : array or DataFrame of shape (n, D)
        kind : {"latent", "mean", "uncensored"}
        lower, upper : arrays of shape (n, T), optional
            Bounds per entry.
        cov_type, groups, confidence, small_sample
            As in ``summary``.

        Returns
        -------
        DataFrame
            One row per (target, feature): ``effect`` and the other columns of ``summary``.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 1))
        >>> y = np.maximum(X[:, 0] + rng.normal(size=300), 0)
        >>> TobitRegressor().fit(X, y).marginal_effects(X)[["effect", "std_err"]].round(3)
                        effect  std_err
        target feature
        y      x0        0.489    0.033
        """
        inputs.check_choice("kind", kind, get_args(EffectKind))
        check_is_fitted(self)
        x = self._with_intercept(X)
        factor, by_latent, by_log_sigma = _effect_factor(self._predictive(X, lower, upper), kind)
        parts = []
        for task, beta in enumerate(self.coef_):
            # Effect of d: β_d m with m the average factor; m itself moves with all parameters.
            level = factor[:, task].mean()
            slope = np.r_[by_latent[:, task] @ x / len(x), by_log_sigma[:, task].mean()]
            jacobian = np.outer(beta, slope)
            jacobian[:, : len(beta)] += level * np.eye(len(beta))
            covariance, reference = self._moments(task, cov_type, groups, small_sample)
            variance = np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian)
            effect = beta * level
            table = estimate_table(feature_names(self), effect, variance, confidence, reference)
            parts.append(table.rename(columns={"coef": "effect"}))
        return pd.concat(parts, keys=self.target_names_, names=["target", "feature"])

    def predict_mean_interval(
        self,
        X: Any,
        confidence: float = 0.95,
        *,
        lower: Limits = None,
        upper: Limits = None,
        cov_type: CovarianceKind = "observed",
        groups: ArrayLike | None = None,
        small_sample: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        r"""Confidence interval of E[y|x] (not of y), each end (N, T).

        E[y|x] = g(η, σ) bends near a bound. The interval is built on the latent scale and mapped:
        :math:`g(\hat\eta \pm c\,s/g_\eta,\,\hat\sigma)`, with s the standard error of g by the
        delta method and c the quantile of t (see ``summary`` on ``small_sample``).

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 1))
        >>> y = np.maximum(X[:, 0] - 1 + rng.normal(size=100), 0)
        >>> low, high = TobitRegressor().fit(X, y).predict_mean_interval([[-2.0], [0.0], [2.0]])
        >>> np.column_stack([low, high]).round(3)
        array([[0.   , 0.002],
               [0.02 , 0.119],
               [0.776, 1.682]])
        """
        check_is_fitted(self)
        x = self._with_intercept(X)
        predictive = self._predictive(X, lower, upper)
        by_latent, by_sigma = predictive.mean_slopes()
        # g_σ/g_η is the mean of ε between the bounds; far beyond one of them only that is known.
        between = by_sigma / np.where(by_latent > 0.0, by_latent, np.nan)
        nearest = np.clip(0.0, predictive.a, predictive.b)
        between = np.clip(np.nan_to_num(between, nan=nearest), predictive.a, predictive.b)
        by_log_sigma = predictive.sigma * between
        reach = np.empty_like(by_latent)
        for task in range(reach.shape[1]):
            gradient = np.column_stack([x, by_log_sigma[:, task]])
            covariance, reference = self._moments(task, cov_type, groups, small_sample)
            variance = np.einsum("ij,jk,ik->i", gradient, covariance, gradient)
            reach[:, task] = reference.half_width(confidence) * np.sqrt(variance)
        low, high = (replace(predictive, latent=predictive.latent + by) for by in (-reach, reach))
        return self._drop_task_axis(low.mean(), X), self._drop_task_axis(high.mean(), X)

    def _with_intercept(self, X: Any) -> FloatArray:
        """Features and a column of ones, (n, D + 1)."""
        dense = inputs.dense(self._read_features(X))
        return np.column_stack([dense, np.ones(len(dense))])

    def _moments(
        self, task: int, cov_type: CovarianceKind, groups: Any, small_sample: bool = True
    ) -> tuple[FloatArray, Reference]:
        """Covariance of (β, intercept, log σ), NaN with a warning where it is not determined.

        The distribution that estimates are referred to comes with it.
        """
        inputs.check_choice("cov_type", cov_type, get_args(CovarianceKind))
        trained = self._training()
        covariance = trained.covariance(task, cov_type, groups)
        if np.isnan(covariance).any():
            light = self.alpha == 0.0
            advice = "set alpha > 0, or drop the target" if light else "drop the target"
            warn(
                f"target {self.target_names_[task]!r}: the data do not determine its regression, "
                f"so its standard errors are NaN; {advice}",
                CensoringWarning,
            )
        reference = trained.reference(task, cov_type, groups) if small_sample else Reference()
        return covariance, reference


def read_chosen(model: Any, features: Sequence[str] | str | None) -> list[int]:
    """Numbers of the features of a test, which are all by default."""
    names = feature_names(model)
    chosen = names if features is None else np.atleast_1d(features).tolist()
    unknown = [name for name in chosen if name not in names]
    if unknown:
        raise ValueError(
            f"unknown feature(s) {listed(unknown)}; the features are {listed(names, 20)}"
        )
    return [names.index(name) for name in chosen]


def estimate_table(
    terms: list[str] | pd.MultiIndex,
    estimate: FloatArray,
    variance: FloatArray,
    confidence: float,
    reference: Reference,
) -> pd.DataFrame:
    """Estimates with standard errors, z, two-sided p and confidence interval."""
    reach = reference.half_width(confidence)
    error = np.sqrt(np.where(variance > 0.0, variance, np.nan))  # 0: not estimated, at its floor
    with np.errstate(divide="ignore", invalid="ignore"):
        z = estimate / error
    return pd.DataFrame(
        {
            "coef": estimate,
            "std_err": error,
            "z": z,
            "p_value": reference.two_sided(z),
            "ci_low": estimate - reach * error,
            "ci_high": estimate + reach * error,
        },
        index=terms,
    )


def wald_row(beta: FloatArray, covariance: FloatArray, reference: Reference) -> dict[str, float]:
    """Statistic of β = 0, its degrees of freedom and p; NaN where β is not determined."""
    if not np.isfinite(covariance).all():
        return {"statistic": np.nan, "df": 0, "p_value": np.nan}
    scale = np.sqrt(covariance.diagonal())
    scale = np.where(scale > 0.0, scale, 1.0)  # the test must not depend on the features' units
    beta, correlation = beta / scale, covariance / np.outer(scale, scale)
    df = int(np.linalg.matrix_rank(correlation, hermitian=True))
    statistic = float(beta @ np.linalg.pinv(correlation, hermitian=True) @ beta)
    return {"statistic": statistic, "df": df, "p_value": reference.tail(statistic, df)}


def _effect_factor(
    predictive: Predictive, kind: EffectKind
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What β is multiplied with in the effect on the latent, the mean or P(uncensored).

    A factor m(η, σ) with its derivatives by η and log σ, each (n, T).
    """
    sigma = np.broadcast_to(predictive.sigma, predictive.latent.shape)
    if kind == "latent":
        return np.ones_like(sigma), np.zeros_like(sigma), np.zeros_like(sigma)
    noise, a, b = predictive.noise, predictive.a, predictive.b
    a_end, b_end = np.where(np.isfinite(a), a, 0.0), np.where(np.isfinite(b), b, 0.0)
    at_a, at_b = predictive.density(a), predictive.density(b)
    by_latent = (at_a - at_b) / sigma
    if kind == "mean":
        return predictive.uncensored(), by_latent, a_end * at_a - b_end * at_b
    bend_a, bend_b = noise.score(a_end) * at_a, noise.score(b_end) * at_b
    by_log_sigma = (a_end * bend_a - b_end * bend_b) / sigma - by_latent
    return by_latent, (bend_a - bend_b) / sigma**2, by_log_sigma
