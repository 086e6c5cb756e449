"""What a unit of a feature does: to the latent score, to E[y|x], to P(uncensored)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray
from deeptobit.estimators._base import CensoredRegressor
from deeptobit.estimators._inference import (
    InferenceMixin,
    estimate_table,
    normal_reach,
)
from deeptobit.estimators._inputs import feature_names
from deeptobit.estimators._trained import CovarianceKind
from deeptobit.likelihood import Predictive

if TYPE_CHECKING:
    import pandas as pd

EffectKind = Literal["latent", "mean", "uncensored"]


class EffectsMixin(InferenceMixin, CensoredRegressor):
    """Marginal effects and confidence intervals of the mean, by the delta method."""

    def marginal_effects(
        self,
        X: Any,
        kind: EffectKind = "mean",
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        cov_type: CovarianceKind = "observed",
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
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
        cov_type, groups, confidence
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
        import pandas as pd

        if kind not in ("latent", "mean", "uncensored"):
            raise ValueError(f"kind must be 'latent', 'mean' or 'uncensored'; got {kind!r}")
        check_is_fitted(self)
        x = self._with_intercept(X)
        factor = _effect_factor(self._predictive(X, lower, upper), kind)
        parts = []
        for task, name in enumerate(self.target_names_):
            beta = self.coef_[task]
            # Effect of d: β_d m with m the average factor; m itself moves with all parameters.
            level = factor.value[:, task].mean()
            slope = np.r_[
                factor.by_latent[:, task] @ x / len(x), factor.by_log_sigma[:, task].mean()
            ]
            jacobian = np.outer(beta, slope)
            jacobian[:, : len(beta)] += level * np.eye(len(beta))
            covariance = self._covariance(task, cov_type, groups)
            variance = np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian)
            table = estimate_table(beta * level, variance, confidence)
            table.index = pd.MultiIndex.from_product(
                [[name], feature_names(self)], names=["target", "feature"]
            )
            parts.append(table.rename(columns={"coef": "effect"}))
        return pd.concat(parts)

    def predict_mean_interval(
        self,
        X: Any,
        confidence: float = 0.95,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        cov_type: CovarianceKind = "observed",
        groups: ArrayLike | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Confidence interval of E[y|x] (not of y), by the delta method, each end (N, T)."""
        check_is_fitted(self)
        x = self._with_intercept(X)
        predictive = self._predictive(X, lower, upper)
        mean = predictive.mean()
        by_latent, by_sigma = predictive.mean_slopes()
        by_log_sigma = predictive.sigma * by_sigma
        error = np.empty_like(mean)
        for task in range(mean.shape[1]):
            gradient = np.column_stack([by_latent[:, [task]] * x, by_log_sigma[:, task]])
            covariance = self._covariance(task, cov_type, groups)
            error[:, task] = np.sqrt(np.einsum("ij,jk,ik->i", gradient, covariance, gradient))
        reach = normal_reach(confidence) * error
        low = np.clip(mean - reach, predictive.lower, predictive.upper)
        high = np.clip(mean + reach, predictive.lower, predictive.upper)
        return self._drop_task_axis(low, X), self._drop_task_axis(high, X)

    def _with_intercept(self, X: Any) -> FloatArray:
        """Features and a column of ones, (n, D + 1)."""
        matrix = self._read_features(X)
        sparse = bool(issparse(matrix))
        dense = matrix.toarray() if sparse else matrix
        return np.column_stack([dense, np.ones(len(dense))])


class _Factor(NamedTuple):
    """A factor m(η, σ) with its derivatives by η and log σ, each (n, T)."""

    value: FloatArray
    by_latent: FloatArray
    by_log_sigma: FloatArray


def _effect_factor(predictive: Predictive, kind: EffectKind) -> _Factor:
    """What β is multiplied with in the effect on the latent, the mean or P(uncensored)."""
    sigma = np.broadcast_to(predictive.sigma, predictive.latent.shape)
    if kind == "latent":
        return _Factor(np.ones_like(sigma), np.zeros_like(sigma), np.zeros_like(sigma))
    noise, a, b = predictive.noise, predictive.a, predictive.b
    a_end, b_end = np.where(np.isfinite(a), a, 0.0), np.where(np.isfinite(b), b, 0.0)
    at_a = np.where(np.isfinite(a), np.exp(noise.log_pdf(a_end)), 0.0)
    at_b = np.where(np.isfinite(b), np.exp(noise.log_pdf(b_end)), 0.0)
    by_latent = (at_a - at_b) / sigma
    if kind == "mean":
        return _Factor(predictive.uncensored(), by_latent, a_end * at_a - b_end * at_b)
    bend_a, bend_b = noise.score(a_end) * at_a, noise.score(b_end) * at_b
    return _Factor(
        by_latent,
        (bend_a - bend_b) / sigma**2,
        (a_end * bend_a - b_end * bend_b) / sigma - by_latent,
    )
