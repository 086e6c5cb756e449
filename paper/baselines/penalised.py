"""Multi-task regressions with a norm on the coefficients of all tasks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from deeptobit import CensoredTargets
from deeptobit.app.study import Baseline, Folds
from deeptobit.exceptions import CensoringWarning
from deeptobit.likelihood import Gaussian, Predictive
from paper.arrays import FloatArray, Rows
from paper.baselines.norms import (
    SIGMA_FLOOR,
    CensoredProblem,
    GroupNorm,
    Penalty,
    Problem,
    Solution,
    SquaredProblem,
    TraceNorm,
)

# The strength of a norm, by cross-validation along a path of warm starts.

_PATH = np.logspace(0.0, -4.0, 14)  # of the least strength at which nothing is left
_PATIENCE = 3
_ROUGH = 1e-2  # enough to compare strengths


class Chosen(NamedTuple):
    """The best α, where to start its solution from, and scores of held-out rows at it (N, T)."""

    alpha: float
    start: Solution
    held_out: FloatArray


def choose_alpha(
    pose: Callable[[Rows], Problem],
    X: FloatArray,
    folds: Folds,
    alphas: FloatArray,
    error: Callable[[Solution, Rows], float],
) -> Chosen:
    """Solve all folds at ever smaller α, until errors have not fallen for three of them.

    Parameters
    ----------
    pose : callable
        The problem of some rows.
    X : array of shape (N, D)
    folds : list of pairs of rows
    alphas : array
        Descending.
    error : callable
        Of a solution, on rows that were held out.

    Returns
    -------
    Chosen
    """
    problems = [pose(train) for train, _ in folds]
    tests = [test for _, test in folds]
    solutions = [problem.null() for problem in problems]
    best, lowest, waited = (float(alphas[0]), solutions), np.inf, 0
    for alpha in alphas.tolist():
        solutions = [
            problem.solve(alpha, start, _ROUGH)
            for problem, start in zip(problems, solutions, strict=True)
        ]
        found = sum(map(error, solutions, tests))
        waited += 1
        if found < lowest:
            best, lowest, waited = (alpha, solutions), found, 0
        if waited == _PATIENCE:
            break
    alpha, solutions = best
    held_out = np.full((len(X), len(solutions[0].theta)), np.nan)
    for solution, test in zip(solutions, tests, strict=True):
        held_out[test] = solution.latent(X[test])
    return Chosen(alpha, solutions[0], held_out)


def path(problem: Problem) -> FloatArray:
    """From the α at which all coefficients are 0 down to a ten-thousandth of it."""
    return np.asarray(problem.alpha_max * _PATH)


_TOLERANCE = 1e-5


class PenalisedBaseline(Baseline):
    r"""All tasks at once, with a norm Ω on their coefficients, in standard units.

    Without censoring it minimises squared errors of recorded values,

    .. math:: \frac{1}{2N}\sum_{it} (y_{it} - x_i^\top w_t - b_t)^2 + \alpha\,\Omega(W),

    predicts the clipped score, and takes σ from errors on held-out rows. With censoring it
    minimises the negative log likelihood of y = clip(xᵀβ + b + σε) under the same norm of γ = β/σ,
    as :class:`~deeptobit.TobitRegressor` does with its ridge: the problem is convex in γ, b/σ and
    1/σ. It predicts E[y|x], and σ is part of the optimum. Missing outcomes are skipped.

    Parameters
    ----------
    censored : bool
    alpha : float, optional
        α > 0 of the objectives above, as ``alpha_`` reports it. By default the folds choose it, by
        squared errors of what is predicted.
    cv, random_state
        As for every :class:`~deeptobit.app.study.Baseline`. Where α is given, folds serve σ of the
        squared loss alone.

    Attributes
    ----------
    alpha_ : float
        As given, or on a path from ``alpha_max_``, from which on all coefficients are 0, down to
        1e-4 of it.
    alpha_max_ : float
    coef_ : array of shape (T, D)
    intercept_, sigma_ : arrays of shape (T,)
    certificate_ : float
        How far from the optimum the solution can be: the duality gap as a share of the objective
        at W = 0, or, for the likelihood, the largest violation of the conditions of optimality.
        At most 1e-5, or there is a warning.
    """

    _penalty: ClassVar[Penalty]

    def __init__(
        self,
        *,
        censored: bool = False,
        alpha: float | None = None,
        cv: int | Folds = 5,
        random_state: Any = 0,
    ) -> None:
        super().__init__(cv=cv, random_state=random_state)
        self.censored = censored
        self.alpha = alpha

    @property
    def prediction(self) -> Literal["clip", "mean"]:  # type: ignore[override]
        """E[y|x] of a censored model, otherwise the clipped score."""
        return "mean" if self.censored else "clip"

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        given = _check_alpha(self.alpha)
        features, outcomes = StandardScaler().fit(X), StandardScaler().fit(targets.values)
        X, Y = features.transform(X), outcomes.transform(targets.values)
        low, high, *bounds = (
            (ends - outcomes.mean_) / outcomes.scale_
            for ends in (targets.low, targets.high, targets.lower, targets.upper)
        )

        def pose(rows: Rows | slice) -> Problem:
            if self.censored:
                return CensoredProblem(X[rows], low[rows], high[rows], self._penalty)
            return SquaredProblem(X[rows], Y[rows], self._penalty)

        def error(solution: Solution, rows: Rows) -> float:
            latent = solution.latent(X[rows])
            if self.censored:
                predictive = Predictive(Gaussian(), latent, 1.0 / solution.theta, *bounds)
                return float(np.nansum(np.square(Y[rows] - predictive.mean())))
            return float(np.nansum(np.square(Y[rows] - np.clip(latent, *bounds))))

        whole = pose(slice(None))
        if given is not None and self.censored:  # σ is part of the optimum: folds have no say
            chosen = Chosen(given, whole.null(), np.full_like(Y, np.nan))
        else:
            alphas = path(whole) if given is None else np.array([given])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CensoringWarning)  # of tasks in one fold's rows
                chosen = choose_alpha(pose, X, folds, alphas, error)
        solution = whole.solve(chosen.alpha, chosen.start, _TOLERANCE)
        self._store(solution, features, outcomes)
        self.alpha_, self.alpha_max_ = chosen.alpha, float(whole.alpha_max)
        sigma = 1.0 / solution.theta if self.censored else _spread(Y - chosen.held_out)
        self.sigma_ = outcomes.scale_ * sigma

    def _store(
        self, solution: Solution, features: StandardScaler, outcomes: StandardScaler
    ) -> None:
        """Keep a solution, in the user's units."""
        if solution.certificate > _TOLERANCE:
            warnings.warn(
                f"no convergence: the certificate of optimality is {solution.certificate:.1e} "
                f"instead of {_TOLERANCE:.0e}; drop features that depend linearly on others",
                ConvergenceWarning,
                stacklevel=5,
            )
        by_task = outcomes.scale_ / solution.theta
        self.coef_ = (solution.coef * by_task).T / features.scale_
        centre = solution.intercept * by_task + outcomes.mean_
        self.intercept_ = centre - self.coef_ @ features.mean_
        self.certificate_ = solution.certificate

    def _latent(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.coef_.T + self.intercept_)


def _check_alpha(alpha: Any) -> float | None:
    if alpha is None:
        return None
    if not (isinstance(alpha, Real) and 0.0 < float(alpha) < np.inf):
        raise ValueError(
            "alpha must be a positive number, or None for the folds to choose it; got "
            f"{alpha!r}. Without a penalty there are LeastSquaresBaseline and TobitBaseline"
        )
    return float(alpha)


def _spread(errors: FloatArray) -> FloatArray:
    """Root mean squares of the known errors of every task, (T,)."""
    return np.asarray(np.maximum(np.sqrt(np.nanmean(np.square(errors), axis=0)), SIGMA_FLOOR))


class TraceNormBaseline(PenalisedBaseline):
    """Coefficients of low rank: the norm Ω is the sum of the singular values of W (or γ).

    Parameters, attributes and both objectives are those of :class:`PenalisedBaseline`.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> for censored in (False, True):
    ...     model = TraceNormBaseline(censored=censored)
    ...     print(model.fit(X, CensoredTargets.from_bounds(Y, 0)).certificate_ <= 1e-5)
    True
    True
    """

    _penalty = TraceNorm()


class GroupLassoBaseline(PenalisedBaseline):
    """The same few features for all tasks: Ω is the ℓ2,1 norm, the sum of the lengths of W's rows.

    Parameters, attributes and both objectives are those of :class:`PenalisedBaseline`. Without
    censoring and gaps this is the problem of :class:`sklearn.linear_model.MultiTaskLasso`.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, _ = make_subspace(200, 10, 3, 2, random_state=0)
    >>> for censored in (False, True):
    ...     model = GroupLassoBaseline(censored=censored)
    ...     print(model.fit(X, CensoredTargets.from_bounds(Y, 0)).certificate_ <= 1e-5)
    True
    True
    """

    _penalty = GroupNorm()
