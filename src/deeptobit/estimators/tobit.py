"""Tobit regression for many outcomes at once, by exact maximum likelihood, and its inference."""

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Literal, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from deeptobit import layer
from deeptobit.arrays import FloatArray
from deeptobit.estimators import diagnosis, inputs
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.estimators.inputs import Limits, feature_names
from deeptobit.estimators.prediction import all_or_nothing
from deeptobit.exceptions import CensoringWarning, warn
from deeptobit.inspection import CovarianceKind, FittedTobit, Reference
from deeptobit.likelihood import Noise, Predictive, one_family
from deeptobit.targets import BoundsLike, CensoredTargets

EffectKind = Literal["latent", "mean", "uncensored"]
INTERCEPT, LOG_SIGMA = "(intercept)", "log(sigma)"
# A task is checked for separation if its curvature is small or it took many steps.
_LITTLE_CURVATURE, _MANY_STEPS = 1e-2, 12


class TobitRegressor(CensoredRegressor):
    r"""Tobit regression :math:`y_t = \mathrm{clip}(x^\top\beta_t + b_t + \sigma_t\varepsilon)`.

    Minimises for every task, over β, b and σ,

    .. math::
        \frac{1}{\sum_i w_i}\sum_i w_i\,\mathrm{nll}(y_{it};\, x_i^\top\beta_t + b_t, \sigma_t)
        + \frac{\alpha}{2}\left\|\frac{\beta_t}{\sigma_t}\right\|^2 ,

    with the penalty on standardised features. In Olsen's coordinates (β/σ, 1/σ) this is convex for
    Gaussian and logistic noise; all tasks are solved together by Newton's method, to the optimum.

    Parameters
    ----------
    lower, upper : number, one per task, dict or Series by target name, or None
        Bounds at which outcomes are censored; ``None`` is an open side. In ``fit`` and in the
        ``predict`` methods arrays of shape (N, T) may replace them row by row. A
        :class:`CensoredTargets` passed as Y brings its own.
    outside : {"raise", "clip"}
        A value of Y beyond its bound is an error, or is treated as censored there.
    noise : {"gaussian", "logistic", "student_t"} or Noise
        The distribution of ε: by name, with 4 degrees of freedom for t, or an object with the
        methods of :class:`~deeptobit.likelihood.Noise`.
    alpha : float
        Strength of the ridge on β/σ; 0 is plain maximum likelihood.
    sigma : "mle", number, one per task, or dict or Series by target name
        Estimate the noise scale per task, or hold it at a given value.
    fit_intercept : bool
        Whether there is a b; otherwise it is 0.
    standardize : bool
        Whether the penalty acts on features divided by their standard deviation.
    prediction : {"mean", "clip", "latent"}
        What ``predict`` returns unless told otherwise.
    max_iter : int
        Newton steps at most.
    tol : float
        Norm of the gradient, per row and in standard units, at which a task has converged.
    verbose : int
        1 shows on stderr what is being done and what is left, on one line that moves.

    Attributes
    ----------
    coef_ : array of shape (T, D)
        β: change of the score before censoring, per unit of a feature.
    intercept_ : array of shape (T,)
        b: the score before censoring where all features are 0.
    sigma_ : array of shape (T,)
        Noise scale: the standard deviation for Gaussian noise. Never below 1e-6 of the task's own
        standard deviation, which is where a task that is fitted exactly ends.
    log_likelihood_ : array of shape (T,)
        At the optimum, without the penalty; weights count as rows.
    lower_, upper_ : arrays of shape (T,)
        Bounds of the tasks; infinite where a side is open.
    n_iter_ : int
        Newton steps of the task that took most.
    history_ : dict
        Per task: Newton steps, final gradient norm, whether it converged.
    feature_scale_ : array of shape (D,)
        Standard deviations of the features.
    n_features_in_, feature_names_in_, target_names_

    Notes
    -----
    Inference (``summary``, ``wald_test``, …) looks back at the training data, which the estimator
    keeps in memory but never pickles or saves. It takes ``cov_type``: ``"observed"`` (inverse
    observed information), ``"robust"`` (the sandwich, when the noise may be misspecified) or
    ``"cluster"`` with ``groups``, one label per training row (repeated visits of one person).

    References
    ----------
    Tobin (1958), Econometrica 26, 24–36. Olsen (1978), Econometrica 46, 1211–1215.

    Examples
    --------
    >>> import numpy as np
    >>> from deeptobit import TobitRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.clip(X @ [2.0, -1.0] + 1.0 + rng.normal(size=500), 0, 4)
    >>> model = TobitRegressor(lower=0, upper=4).fit(X, y)
    >>> model.coef_.round(2), model.intercept_.round(2), model.sigma_.round(2)
    (array([[ 2.08, -1.07]]), array([1.03]), array([1.04]))
    >>> model.predict([[2.0, 0.0]]).round(2), model.predict([[2.0, 0.0]], kind="latent").round(2)
    (array([3.93]), array([5.19]))
    """

    def __init__(
        self,
        *,
        lower: BoundsLike = 0.0,
        upper: BoundsLike = None,
        outside: Literal["raise", "clip"] = "raise",
        noise: str | Noise = "gaussian",
        alpha: float = 0.0,
        sigma: Any = "mle",
        fit_intercept: bool = True,
        standardize: bool = True,
        prediction: inputs.PredictionKind = "mean",
        max_iter: int = 100,
        tol: float = 1e-8,
        verbose: int = 0,
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.outside = outside
        self.noise = noise
        self.alpha = alpha
        self.sigma = sigma
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.prediction = prediction
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: Limits = None,
        upper: Limits = None,
    ) -> Self:
        """Fit all tasks.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing (lower case because scikit-learn passes it by name).
        sample_weight : array of shape (N,), optional
            Weight 2 counts a row twice.
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry, such as detection limits that differ from row to row.
        """
        started = perf_counter()
        inputs.check_settings(self.get_params(deep=False))
        matrix, targets, weight = self._read_rows(X, y, sample_weight, lower, upper)
        self.feature_scale_ = inputs.feature_scale(matrix, weight)
        needed = 0 if self.alpha > 0.0 else self.n_features_in_
        diagnosis.check_determined(targets, weight, needed)
        diagnosis.check_sigma(inputs.read_sigma(self.sigma, targets.names), targets, weight)
        undetermined = diagnosis.warn_of_constant_where_known(
            matrix, targets, weight, feature_names(self), self.alpha
        )
        problem, fixed_theta = self._pose(matrix, targets, weight)
        diagnosis.warn_of_collinearity(problem.features, feature_names(self), self.alpha)
        total = float(weight.sum())
        settings: Any = {"total_weight": total, "tol": self.tol, "max_iter": self.max_iter}
        problem, result, kinds = layer.fit_tobit(
            problem, fixed_theta, **settings, watch=self._show_progress
        )
        point = diagnosis.take_minimum_norm(problem, result.point, undetermined)
        self._trained = FittedTobit(problem, point, result.value, total, kinds)
        self._store_targets(problem.targets)
        self.coef_, self.intercept_, self.sigma_ = self._trained.in_user_units()
        self.log_likelihood_ = self._trained.log_likelihood()
        self.n_iter_ = max(int(result.n_iter.max()), 1)
        taken = perf_counter() - started
        self._show_progress(f"{self.n_iter_} Newton steps in {taken:.1f} s", last=True)
        self.history_ = {
            "n_iter": result.n_iter,
            "gradient_norm": result.gradient_norm,
            "converged": result.converged,
        }
        diagnosis.warn_of_censoring(kinds, targets, given_sigma=fixed_theta is not None)
        suspects = (result.least_curvature < _LITTLE_CURVATURE) | (result.n_iter > _MANY_STEPS)
        suspects &= ~kinds.one_sided & (self.alpha == 0.0)
        separated = diagnosis.warn_of_separation(problem, suspects, feature_names(self))
        diagnosis.warn_of_convergence(~result.converged & ~separated, targets, self.max_iter)
        return self

    def _pose(
        self, matrix: Any, targets: CensoredTargets, weight: FloatArray
    ) -> tuple[layer.OlsenProblem, FloatArray | None]:
        """The problem in standard units, and 1/σ where σ is given."""
        share, center = weight / weight.sum(), self.fit_intercept
        # Without a penalty the unit of a feature changes nothing but the rounding.
        standardize = self.standardize or self.alpha == 0.0
        design = layer.Design.build(matrix, share, center=center, standardize=standardize)
        scaling = layer.TargetScaling.build(targets, share, center=center)
        given = inputs.read_sigma(self.sigma, targets.names)
        problem = layer.OlsenProblem(
            features=layer.BasisFeatures.whitened(design, self.alpha),
            targets=targets,
            scaling=scaling,
            noise=one_family(self.noise),
            fit_intercept=self.fit_intercept,
            free_sigma=np.full(len(targets.names), given is None),
            max_theta=1.0 / layer.SIGMA_FLOOR if given is None else np.inf,
        )
        return problem, None if given is None else scaling.scale / given

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the training data: a model that is passed on must not carry them along."""
        state = dict(super().__getstate__())
        state.pop("_trained", None)
        return state

    # Standard errors, tests, model comparison, and marginal effects by the delta method.

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
            Cluster labels of the training rows.
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
            covariance = self._covariance(task, cov_type, groups)
            estimate = np.r_[self.coef_[task], self.intercept_[task], np.log(self.sigma_[task])]
            variance = covariance.diagonal()
            reference = self._reference(task, cov_type, groups, small_sample)
            table = estimate_table(terms, estimate, variance, confidence, reference)
            if small_sample and problem.free_sigma[task]:
                ends = self._training().sigma_interval(task, variance[-1], confidence)
                table.loc[LOG_SIGMA, ["ci_low", "ci_high"]] = np.log(ends)
            estimated = [True] * (len(terms) - 2)
            parts.append(table[[*estimated, problem.fit_intercept, problem.free_sigma[task]]])
        return pd.concat(parts, keys=self.target_names_, names=["target", "term"])

    def print_summary(
        self,
        *,
        cov_type: CovarianceKind = "observed",
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
        small_sample: bool = True,
        digits: int = 4,
    ) -> None:
        """Print the summary, target by target, with counts and fit statistics."""
        table = self.summary(
            cov_type=cov_type, groups=groups, confidence=confidence, small_sample=small_sample
        )
        trained = self._training()
        shares = trained.problem.targets.describe()
        aic, bic = self.aic(), self.bic()
        for task, name in enumerate(self.target_names_):
            row = shares.loc[name] if shares.index.is_unique else shares.iloc[task]
            print(
                f"{name}: {row['entries']:.0f} entries, {row['at_lower']:.1%} at the lower bound, "
                f"{row['at_upper']:.1%} at the upper, {row['missing']:.0f} missing"
            )
            print(
                f"log likelihood {self.log_likelihood_[task]:.2f}, AIC {aic[task]:.2f}, "
                f"BIC {bic[task]:.2f}, sigma {self.sigma_[task]:.{digits}g}; "
                f"standard errors: {cov_type}"
            )
            print(table.loc[name].to_string(float_format=f"{{:.{digits}g}}".format), end="\n\n")

    def aic(self) -> FloatArray:
        """Akaike's criterion per task, 2k − 2 log L, (T,); meaningful for alpha = 0."""
        return np.asarray(2.0 * self._training().n_parameters() - 2.0 * self.log_likelihood_)

    def bic(self) -> FloatArray:
        """Schwarz's criterion per task, k log n − 2 log L with n the known entries, (T,)."""
        trained = self._training()
        penalty = trained.n_parameters() * np.log(trained.n_entries())
        return np.asarray(penalty - 2.0 * self.log_likelihood_)

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
        names = feature_names(self)
        features = [features] if isinstance(features, str) else features
        features = names if features is None else features
        unknown = [name for name in features if name not in names]
        if unknown:
            raise ValueError(
                f"unknown feature(s) {', '.join(map(repr, unknown))}; the features are "
                f"{', '.join(map(repr, names))}"
            )
        chosen, rows = [names.index(name) for name in features], []
        for task, beta in enumerate(self.coef_[:, chosen]):
            covariance = self._covariance(task, cov_type, groups)
            reference = self._reference(task, cov_type, groups, small_sample)
            rows.append(_wald(beta, covariance[np.ix_(chosen, chosen)], reference))
        index = pd.Index(self.target_names_, name="target")
        return pd.DataFrame(rows, columns=["statistic", "df", "p_value"], index=index)

    def likelihood_ratio_test(
        self, restricted: Any = None, *, small_sample: bool = True
    ) -> pd.DataFrame:
        r"""Compare with a nested model fitted to the same data (intercept only, by default).

        Parameters
        ----------
        restricted : fitted TobitRegressor, optional
            A model whose features are a subset of this one's.
        small_sample : bool
            Refer :math:`(e^{L/n} - 1)(n-p)/q` to F with q and n − p degrees of freedom, which is
            exact in linear regression; L is the statistic, q its degrees of freedom. ``False``:
            refer L to χ².

        Returns
        -------
        DataFrame
            Per target: ``statistic`` (twice the difference of log likelihoods), ``df``, ``p_value``
            and the log likelihood of the restricted model.
        """
        trained = self._training()
        if not isinstance(restricted, TobitRegressor | None):
            raise ValueError(f"restricted must be a fitted TobitRegressor; got {restricted!r}")
        if self.alpha != 0.0 or (restricted is not None and restricted.alpha != 0.0):
            raise ValueError("a likelihood-ratio test needs unpenalised models (alpha = 0)")
        if restricted is None:
            other, extra = trained.without_features(tol=self.tol, max_iter=self.max_iter), set()
        else:
            other = restricted._training()
            extra = {*feature_names(restricted)} - {*feature_names(self)}
        _check_nested(trained, other)
        if extra:
            raise ValueError(
                f"the models are not nested: {', '.join(map(repr, sorted(extra)))} is not among "
                "this model's features"
            )
        null = other.log_likelihood()
        statistic = 2.0 * (self.log_likelihood_ - null)
        df = (trained.n_parameters() - other.n_parameters()).astype(int)
        tail = (
            trained.likelihood_ratio_tail if small_sample else lambda _, *at: Reference().tail(*at)
        )
        table = {
            "statistic": statistic,
            "df": df,
            "p_value": [
                tail(task, max(value, 0.0), max(q, 1))
                for task, (value, q) in enumerate(zip(statistic, df, strict=True))
            ],
            "restricted_log_likelihood": null,
        }
        return pd.DataFrame(table, index=pd.Index(self.target_names_, name="target"))

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
            covariance = self._covariance(task, cov_type, groups)
            variance = np.einsum("ij,jk,ik->i", jacobian, covariance, jacobian)
            reference = self._reference(task, cov_type, groups, small_sample)
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
            covariance = self._covariance(task, cov_type, groups)
            variance = np.einsum("ij,jk,ik->i", gradient, covariance, gradient)
            reference = self._reference(task, cov_type, groups, small_sample)
            reach[:, task] = reference.half_width(confidence) * np.sqrt(variance)
        low, high = (replace(predictive, latent=predictive.latent + by) for by in (-reach, reach))
        return self._drop_task_axis(low.mean(), X), self._drop_task_axis(high.mean(), X)

    def _with_intercept(self, X: Any) -> FloatArray:
        """Features and a column of ones, (n, D + 1)."""
        matrix = self._read_features(X)
        dense = matrix.toarray() if inputs.is_sparse(matrix) else matrix
        return np.column_stack([dense, np.ones(len(dense))])

    def _training(self) -> FittedTobit:
        check_is_fitted(self)
        if not hasattr(self, "_trained"):
            raise ValueError(
                "inference looks back at the training data, which are never stored with a saved "
                "model; fit again, or keep summary() beside the model"
            )
        return self._trained

    def _covariance(
        self, task: int, cov_type: CovarianceKind, groups: ArrayLike | None
    ) -> FloatArray:
        """Covariance of (β, intercept, log σ), NaN with a warning where it is not determined."""
        inputs.check_choice("cov_type", cov_type, get_args(CovarianceKind))
        covariance = self._training().covariance(task, cov_type, groups)
        if np.isnan(covariance).any():
            warn(
                f"target {self.target_names_[task]!r}: the data do not determine its regression, "
                "so its standard errors are NaN; set alpha > 0, or drop the target",
                CensoringWarning,
            )
        return covariance

    def _reference(
        self, task: int, cov_type: CovarianceKind, groups: ArrayLike | None, small_sample: bool
    ) -> Reference:
        return self._training().reference(task, cov_type, groups) if small_sample else Reference()


def estimate_table(
    terms: list[str],
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


def _wald(
    beta: FloatArray, covariance: FloatArray, reference: Reference
) -> tuple[float, int, float]:
    """Statistic of β = 0, its degrees of freedom and p; NaN where β is not determined."""
    if not np.isfinite(covariance).all():
        return np.nan, 0, np.nan
    scale = np.sqrt(covariance.diagonal())
    scale = np.where(scale > 0.0, scale, 1.0)  # the test must not depend on the features' units
    beta, correlation = beta / scale, covariance / np.outer(scale, scale)
    df = int(np.linalg.matrix_rank(correlation, hermitian=True))
    statistic = float(beta @ np.linalg.pinv(correlation, hermitian=True) @ beta)
    return statistic, df, reference.tail(statistic, df)


def _check_nested(full: FittedTobit, restricted: FittedTobit) -> None:
    ours, theirs = full.problem.targets, restricted.problem.targets
    same = ours.shape == theirs.shape and np.array_equal(ours.low, theirs.low, equal_nan=True)
    if not (same and np.array_equal(ours.high, theirs.high, equal_nan=True)):
        raise ValueError("both models must be fitted to the same outcomes")
    if not np.array_equal(full.problem.weight, restricted.problem.weight):
        raise ValueError("both models must be fitted with the same sample weights")
    if full.problem.noise != restricted.problem.noise:
        raise ValueError("both models must assume the same noise")
    if (full.n_parameters() < restricted.n_parameters()).any():
        raise ValueError("the restricted model has more parameters than this one; swap them")


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
    at_a = np.where(np.isfinite(a), np.exp(noise.log_pdf(a_end)), 0.0)
    at_b = np.where(np.isfinite(b), np.exp(noise.log_pdf(b_end)), 0.0)
    by_latent = (at_a - at_b) / sigma
    if kind == "mean":
        return predictive.uncensored(), by_latent, a_end * at_a - b_end * at_b
    bend_a, bend_b = noise.score(a_end) * at_a, noise.score(b_end) * at_b
    by_log_sigma = (a_end * bend_a - b_end * bend_b) / sigma - by_latent
    return by_latent, (bend_a - bend_b) / sigma**2, by_log_sigma
