"""Tobit regression for many outcomes at once, by exact maximum likelihood."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from deeptobit import layer
from deeptobit.arrays import FloatArray
from deeptobit.estimators import diagnosis, inputs
from deeptobit.estimators.inference import InferenceMixin
from deeptobit.inspection import FittedTobit
from deeptobit.likelihood import Noise, one_family
from deeptobit.targets import BoundsLike, CensoredTargets

# A task is checked for separation if its curvature is small or it took many steps.
_LITTLE_CURVATURE, _MANY_STEPS = 1e-2, 12


class TobitRegressor(InferenceMixin):
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
    keeps in memory but never pickles or saves.

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

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: inputs.Limits = None,
        upper: inputs.Limits = None,
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
        inputs.check_settings(self.get_params(deep=False))
        matrix, targets, weight = self._read_rows(X, y, sample_weight, lower, upper)
        self.feature_scale_ = inputs.feature_scale(matrix, weight)
        diagnosis.check_determined(targets, weight, self.n_features_in_, self.alpha)
        diagnosis.check_sigma(inputs.read_sigma(self.sigma, targets.names), targets, weight)
        undetermined = diagnosis.warn_of_constant_where_known(
            matrix, targets, weight, inputs.feature_names(self), self.alpha
        )
        problem, fixed_theta = self._pose(matrix, targets, weight)
        diagnosis.warn_of_collinearity(problem.features, inputs.feature_names(self), self.alpha)
        problem, result, kinds = layer.fit_tobit(
            problem,
            fixed_theta,
            total_weight=float(weight.sum()),
            tol=self.tol,
            max_iter=self.max_iter,
        )
        point = diagnosis.take_minimum_norm(problem, result.point, undetermined)
        self._trained = FittedTobit(problem, point, result.value, float(weight.sum()), kinds)
        self._store_targets(problem.targets)
        self.coef_, self.intercept_, self.sigma_ = self._trained.in_user_units()
        self.log_likelihood_ = self._trained.log_likelihood()
        self.n_iter_ = max(int(result.n_iter.max()), 1)
        self.history_ = {
            "n_iter": result.n_iter,
            "gradient_norm": result.gradient_norm,
            "converged": result.converged,
        }
        diagnosis.warn_of_censoring(kinds, targets, given_sigma=fixed_theta is not None)
        suspects = (result.least_curvature < _LITTLE_CURVATURE) | (result.n_iter > _MANY_STEPS)
        suspects &= ~kinds.one_sided & (self.alpha == 0.0)
        separated = diagnosis.warn_of_separation(problem, suspects, inputs.feature_names(self))
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
