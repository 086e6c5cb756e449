"""Tobit regression for many outcomes at once, by exact maximum likelihood."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators._base import PredictionKind
from deeptobit.estimators._diagnosis import check_determined, warn_of_collinearity
from deeptobit.estimators._effects import EffectsMixin
from deeptobit.estimators._inputs import (
    check_lengths,
    feature_names,
    read_features,
    read_targets,
    read_weights,
)
from deeptobit.estimators._separation import warn_of_separation
from deeptobit.estimators._trained import TrainedTobit
from deeptobit.exceptions import CensoringWarning
from deeptobit.likelihood import Noise, resolve_noise
from deeptobit.objective import Design, OlsenProblem, RoundFeatures, TargetScaling
from deeptobit.solvers import SIGMA_FLOOR, CensoringKinds, fit_tobit
from deeptobit.targets import BoundsLike, CensoredTargets


class TobitRegressor(EffectsMixin):
    r"""Tobit regression :math:`y_t = \mathrm{clip}(x^\top\beta_t + b_t + \sigma_t\varepsilon)`.

    Minimises for every task, over β, b and σ,

    .. math::
        \frac{1}{\sum_i w_i}\sum_i w_i\,\mathrm{nll}(y_{it};\, x_i^\top\beta_t + b_t, \sigma_t)
        + \frac{\alpha}{2}\left\|\frac{\beta_t}{\sigma_t}\right\|^2 ,

    with the penalty on standardised features. In Olsen's coordinates (β/σ, 1/σ) this is convex for
    Gaussian and logistic noise; all tasks are solved together by Newton's method, to the optimum.

    Parameters
    ----------
    lower, upper : number, one per task, dict by target name, or None
        Bounds at which outcomes are censored; ``None`` is an open side. In ``fit`` and in the
        ``predict`` methods arrays of shape (N, T) may replace them row by row. A
        :class:`CensoredTargets` passed as Y brings its own.
    outside : {"raise", "clip"}
        A value of Y beyond its bound is an error, or is treated as censored there.
    noise : {"gaussian", "logistic", "student_t"} or Noise
    alpha : float
        Strength of the ridge on β/σ; 0 is plain maximum likelihood.
    sigma : "mle", number, one per task, or dict by target name
        Estimate the noise scale per task, or hold it at a given value.
    fit_intercept : bool
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
    intercept_ : array of shape (T,)
    sigma_ : array of shape (T,)
        Noise scale: the standard deviation for Gaussian noise. Never below 1e-6 of the task's own
        standard deviation, which is where a task that is fitted exactly ends.
    log_likelihood_ : array of shape (T,)
    lower_, upper_ : arrays of shape (T,)
    n_iter_ : int
    history_ : dict
        Per task: Newton steps, final gradient norm, whether it converged.
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
        prediction: PredictionKind = "mean",
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
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> TobitRegressor:
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
        check_settings(self)
        matrix = read_features(self, X, reset=True)
        targets = read_targets(
            y,
            self.lower,
            self.upper,
            entry_lower=lower,
            entry_upper=upper,
            outside=self.outside,
        )
        check_lengths(matrix, targets)
        weight = read_weights(sample_weight, len(targets))
        check_determined(targets, weight, self.n_features_in_, self.alpha)
        problem, fixed_theta = self._pose(matrix, targets, weight)
        warn_of_collinearity(problem.features, feature_names(self), self.alpha)
        problem, result, kinds = fit_tobit(
            problem, fixed_theta, tol=self.tol, max_iter=self.max_iter
        )
        self._store(TrainedTobit(problem, result.point, result.value, float(weight.sum()), kinds))
        self.n_iter_ = max(int(result.n_iter.max()), 1)
        self.history_ = {
            "n_iter": result.n_iter,
            "gradient_norm": result.gradient_norm,
            "converged": result.converged,
        }
        _warn_of_censoring(kinds, targets)
        flat = result.least_curvature < 1e-6
        separated = warn_of_separation(problem, flat & ~kinds.one_sided, feature_names(self))
        _warn_of_convergence(~result.converged & ~separated, targets, self.max_iter)
        return self

    def _pose(
        self, matrix: Any, targets: CensoredTargets, weight: FloatArray
    ) -> tuple[OlsenProblem, FloatArray | None]:
        """The problem in standard units, and 1/σ where σ is given."""
        share = weight / weight.sum()
        design = Design.build(
            matrix, share, center=self.fit_intercept, standardize=self.standardize
        )
        scaling = TargetScaling.build(targets, share, center=self.fit_intercept)
        given = read_sigma(self.sigma, targets.names)
        problem = OlsenProblem(
            features=RoundFeatures.build(design, self.alpha),
            targets=targets,
            scaling=scaling,
            noise=resolve_noise(self.noise),
            fit_intercept=self.fit_intercept,
            free_sigma=np.full(len(targets.names), given is None),
            max_theta=1.0 / SIGMA_FLOOR if given is None else np.inf,
        )
        return problem, None if given is None else scaling.scale / given

    def _store(self, trained: TrainedTobit) -> None:
        """Keep the fit, in the user's units."""
        targets = trained.problem.targets
        self._trained = trained
        self._one_dimensional = targets.one_dimensional
        self.target_names_ = list(targets.names)
        self.lower_, self.upper_ = targets.lower, targets.upper
        self.coef_, self.intercept_, self.sigma_ = trained.in_user_units()
        self.log_likelihood_ = trained.log_likelihood()

    def _latent(self, X: Any) -> FloatArray:
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the training data: a model that is passed on must not carry them along."""
        state = dict(super().__getstate__())
        state.pop("_trained", None)
        return state


def check_settings(model: TobitRegressor) -> None:
    """Constructor parameters, checked when they are first used (scikit-learn's convention)."""
    if not (isinstance(model.alpha, Real) and 0.0 <= model.alpha < np.inf):
        raise ValueError(f"alpha must be a finite number, at least 0; got {model.alpha!r}")
    if not model.tol > 0.0:
        raise ValueError(f"tol must be positive; got {model.tol!r}")
    if not model.max_iter >= 1:
        raise ValueError(f"max_iter must be at least 1; got {model.max_iter!r}")


def read_sigma(sigma: Any, names: tuple[str, ...]) -> FloatArray | None:
    """Given noise scales of shape (T,), or ``None`` if they are to be estimated."""
    if isinstance(sigma, str):
        if sigma == "mle":
            return None
        raise ValueError(f"sigma must be 'mle', a number, one per task or a dict; got {sigma!r}")
    if isinstance(sigma, dict):
        if set(sigma) != set(names):
            raise ValueError(f"sigma must name every target once: {', '.join(map(repr, names))}")
        sigma = [sigma[name] for name in names]
    given = np.broadcast_to(np.asarray(sigma, dtype=np.float64), (len(names),)).copy()
    if not (np.isfinite(given) & (given > 0.0)).all():
        raise ValueError(f"sigma must be positive and finite; got {sigma!r}")
    return given


def _warn_of_censoring(kinds: CensoringKinds, targets: CensoredTargets) -> None:
    for task in np.flatnonzero(kinds.one_sided).tolist():
        warnings.warn(
            f"target {targets.names[task]!r}: every entry is censored on the same side, so its "
            "regression is not determined; a constant close to the bound is predicted. Drop the "
            "target, or give it bounds that its values do not all sit at",
            CensoringWarning,
            stacklevel=3,
        )
    for task in np.flatnonzero(kinds.two_sided).tolist():
        warnings.warn(
            f"target {targets.names[task]!r}: every entry is at a bound, so sigma is not "
            "determined; it was held at the standard deviation of the recorded values",
            CensoringWarning,
            stacklevel=3,
        )


def _warn_of_convergence(failed: BoolArray, targets: CensoredTargets, max_iter: int) -> None:
    if failed.any():
        names = ", ".join(repr(targets.names[task]) for task in np.flatnonzero(failed).tolist())
        warnings.warn(
            f"no convergence after {max_iter} Newton steps for target(s) {names}; increase "
            "max_iter, loosen tol, or set alpha > 0",
            ConvergenceWarning,
            stacklevel=3,
        )
