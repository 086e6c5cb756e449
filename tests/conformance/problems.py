"""Data that an estimator can learn from, whatever its bounds are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags

from deeptobit.arrays import FloatArray
from deeptobit.targets import task_bounds

N_TASKS = 3


@dataclass(frozen=True)
class Problem:
    """Features (N, D) and outcomes (N, T), or (N,), within bounds (T,)."""

    X: FloatArray
    Y: FloatArray
    lower: FloatArray
    upper: FloatArray
    names: tuple[str, ...]

    def copy(self) -> Problem:
        """The same numbers in other memory."""
        return Problem(self.X.copy(), self.Y.copy(), self.lower, self.upper, self.names)


def make_problem(
    estimator: Any,
    n_samples: int = 80,
    n_features: int = 4,
    *,
    n_tasks: int = N_TASKS,
    missing: float = 0.0,
    seed: int = 0,
) -> Problem:
    r"""Outcomes on the scales of ``lower`` and ``upper``, of the estimator or a step in it.

    .. math:: y_t = \mathrm{clip}(c_t + u_t (\beta_t^\top x + \varepsilon / 2),\ \text{bounds}),
        \quad \|\beta_t\| = 1

    with centre c and unit u between the bounds, or at a distance of one from a single bound. Bounds
    per task decide how many tasks there are; targets have no names, and bounds by name no meaning.
    An estimator of one outcome gets y of shape (N,).

    Parameters
    ----------
    missing : float
        Share of the outcomes that are NaN.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> problem = make_problem(TobitRegressor(lower=0, upper=[10, 100]))
    >>> problem.X.shape, problem.Y.shape, problem.Y.mean(axis=0).round(1)
    ((80, 4), (80, 2), array([ 4.6, 51.7]))
    """
    tags = get_tags(estimator)
    settings = {name.split("__")[-1]: value for name, value in estimator.get_params().items()}
    lower, upper = settings.get("lower"), settings.get("upper")
    if lower is None and tags.target_tags.positive_only:
        lower = 0.0
    names = _names(lower, upper, n_tasks if tags.target_tags.multi_output else 1)
    low, high = task_bounds(lower, upper, names)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    coef = rng.standard_normal((n_features, len(names)))
    score = X @ (coef / np.linalg.norm(coef, axis=0))
    score += 0.5 * rng.standard_normal(score.shape)
    centre, unit = _centre_and_unit(low, high)
    Y = np.clip(centre + unit * score, low, high)
    Y[rng.random(Y.shape) < missing] = np.nan
    if not tags.target_tags.multi_output:
        Y = Y[:, 0]
    return Problem(X, Y, low, high, names)


def seeded(estimator: Any) -> Any:
    """An unfitted copy in which nothing is left to chance."""
    copy = clone(estimator)
    names = [name for name in copy.get_params() if name.split("__")[-1] == "random_state"]
    return copy.set_params(**dict.fromkeys(names, 0))


def fitted(estimator: Any, problem: Problem, **metadata: Any) -> Any:
    """A copy of the estimator, fitted to the problem."""
    return seeded(estimator).fit(problem.X, problem.Y, **metadata)


def _names(lower: Any, upper: Any, n_tasks: int) -> tuple[str, ...]:
    counted = [len(bound) for bound in (lower, upper) if np.ndim(bound) == 1]
    return tuple(f"y{task}" for task in range(max(counted, default=n_tasks)))


def _centre_and_unit(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A scale between two bounds, above one, below one, or around zero."""
    bounded = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        middle, width = 0.5 * (low + high), high - low
    beside = np.where(np.isfinite(low), low + 1.0, np.where(np.isfinite(high), high - 1.0, 0.0))
    return np.where(bounded, middle, beside), np.where(bounded, 0.25 * width, 1.0)


# Everything that a fitted model can be asked, and how two sets of answers are compared.

Answers = dict[str, NDArray[np.floating[Any]]]

QUANTILES = (0.1, 0.5, 0.9)
N_DRAWS = 3

_QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "predict": lambda model, X: model.predict(X),
    "predict_bound_proba": lambda model, X: model.predict_bound_proba(X),
    "predict_interval": lambda model, X: model.predict_interval(X),
    "predict_quantile": lambda model, X: model.predict_quantile(X, QUANTILES),
    "sample_y": lambda model, X: model.sample_y(X, N_DRAWS, random_state=0),
    "staged_predict": lambda model, X: list(model.staged_predict(X)),
    "transform": lambda model, X: model.transform(X),
}


def ask(model: Any, X: Any) -> Answers:
    """The answers of all methods that the model has, by their names."""
    return {
        name: np.asarray(question(model, X))
        for name, question in _QUESTIONS.items()
        if hasattr(model, name)
    }


def assert_same(
    found: Answers, expected: Answers, when: str, *, rtol: float = 1e-7, atol: float = 1e-9
) -> None:
    """Fail with the name of the method that answers differently, and ``when`` it does."""
    for name, answer in expected.items():
        np.testing.assert_allclose(
            found[name],
            answer,
            rtol=rtol,
            atol=atol * float(np.abs(answer).max()),
            err_msg=f"{name} answers differently {when}",
        )
