"""What predictions must be: numbers, within the bounds, parts of one distribution."""

from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.checks._answers import ask, assert_same
from deeptobit.checks._problem import Problem, fitted, make_problem, seeded

_WITHIN_BOUNDS = ("predict", "predict_interval", "predict_quantile", "sample_y", "staged_predict")


def check_no_nan_leaves(estimator: Any) -> None:
    """Missing outcomes and features far out give finite answers; a missing feature is an error.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_no_nan_leaves(TobitRegressor())
    """
    problem = make_problem(estimator, missing=0.2)
    model = fitted(estimator, problem)
    for times in (0.0, 1.0, 1e3, 1e6):
        for name, answer in ask(model, times * problem.X).items():
            assert np.isfinite(answer).all(), f"{name} is not finite for {times:g} times X"
    assert np.isfinite(model.score(problem.X, problem.Y)), "score is not finite"
    for hole in (np.nan, np.inf):
        X = problem.X.copy()
        X[0, 0] = hole
        for what, call in (
            ("fit", lambda X=X: seeded(estimator).fit(X, problem.Y)),
            ("predict", lambda X=X: model.predict(X)),
        ):
            assert _refuses(call), f"{what} takes {hole} among the features"


def check_bounds_are_respected(estimator: Any) -> None:
    """Predictions, quantiles, intervals and draws lie within the bounds, however far out x is.

    Scores before censoring (``prediction="latent"``) are free.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_bounds_are_respected(TobitRegressor(upper=3))
    """
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    latent = estimator.get_params(deep=False).get("prediction") == "latent"
    for times in (1.0, 1e3):
        for name, answer in ask(model, times * problem.X).items():
            if name not in _WITHIN_BOUNDS or (latent and name.endswith("predict")):
                continue
            low, high = _bounds_like(name, problem)
            assert (answer >= low).all(), f"{name} falls below the lower bound"
            assert (answer <= high).all(), f"{name} exceeds the upper bound"


def check_distribution_is_coherent(estimator: Any) -> None:
    r"""Quantiles rise with q, intervals are quantiles, and probabilities at the bounds fit to them.

    .. math:: q \le P(y = \mathrm{lower}) \iff F^{-1}(q) = \mathrm{lower}

    Checked as far as the estimator has the methods. Intervals that were calibrated are no longer
    quantiles; a copy is fitted here, and is not calibrated.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_distribution_is_coherent(TobitRegressor(upper=3))
    """
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    q = np.linspace(0.05, 0.95, 19)
    if not hasattr(model, "predict_quantile"):
        return
    quantiles = model.predict_quantile(problem.X, q)
    assert (np.diff(quantiles, axis=0) >= 0.0).all(), "a quantile falls as q rises"
    if hasattr(model, "predict_interval"):
        expected = {"predict_interval": quantiles[[0, -1]]}
        found = {"predict_interval": np.asarray(model.predict_interval(problem.X, 0.9))}
        assert_same(found, expected, "from the quantiles at its ends")
    if hasattr(model, "predict_bound_proba"):
        at_lower, at_upper = model.predict_bound_proba(problem.X)
        assert (at_lower >= 0.0).all(), "a probability is negative"
        assert (at_upper >= 0.0).all(), "a probability is negative"
        assert (at_lower + at_upper <= 1.0 + 1e-12).all(), "probabilities exceed 1"
        levels = q.reshape(-1, *[1] * at_lower.ndim)
        low, high = _bounds_like("predict", problem)
        _assert_at_bound(quantiles == low, levels - at_lower)
        _assert_at_bound(quantiles == high, 1.0 - levels - at_upper)


def check_one_outcome_is_one_dimensional(estimator: Any) -> None:
    """The answers to y of shape (N,) are those to Y of shape (N, 1), without the axis of tasks.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_one_outcome_is_one_dimensional(TobitRegressor())
    """
    problem = make_problem(estimator, n_tasks=1)
    if problem.Y.ndim == 1 or len(problem.names) > 1:
        return
    many, one = fitted(estimator, problem), seeded(estimator).fit(problem.X, problem.Y[:, 0])
    found, expected = ask(one, problem.X), ask(many, problem.X)
    for name in expected.keys() - {"transform"}:
        axis = -2 if name == "sample_y" else -1
        expected[name] = np.squeeze(expected[name], axis=axis)
        shape = expected[name].shape
        assert found[name].shape == shape, f"{name} has shape {found[name].shape}, not {shape}"
    assert_same(found, expected, "for y of shape (N,)")


def _bounds_like(name: str, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Bounds that broadcast with an answer: tasks are its last axis, but for draws."""
    if problem.Y.ndim == 1:
        return problem.lower[0], problem.upper[0]
    if name == "sample_y":
        return problem.lower[:, None], problem.upper[:, None]
    return problem.lower, problem.upper


def _assert_at_bound(at_bound: Any, beyond: FloatArray) -> None:
    """A quantile is at the bound where its level is within the mass there, and only there."""
    clear = np.abs(beyond) > 1e-9
    wrong = clear & (at_bound != (beyond < 0.0))
    assert not wrong.any(), "quantiles and probabilities at the bounds disagree"


def _refuses(call: Any) -> bool:
    try:
        call()
    except ValueError:
        return True
    return False
