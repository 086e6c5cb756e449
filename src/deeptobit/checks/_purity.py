"""What an estimator must leave alone: its inputs, its state, what it hands out."""

from typing import Any

import joblib
import numpy as np
from sklearn.utils.validation import has_fit_parameter

from deeptobit.arrays import FloatArray
from deeptobit.checks._answers import ask, assert_same
from deeptobit.checks._problem import Problem, fitted, make_problem, seeded


def check_inputs_are_not_modified(estimator: Any) -> None:
    """Fitting, predicting and scoring leave X, Y, weights and limits as they were.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_inputs_are_not_modified(TobitRegressor())
    """
    problem = make_problem(estimator, missing=0.1)
    metadata = _metadata(estimator, problem)
    given = {"X": problem.X, "Y": problem.Y, **metadata}
    before = {name: array.copy() for name, array in given.items()}
    for method in ("fit", "partial_fit"):
        if not hasattr(estimator, method):
            continue
        model = getattr(seeded(estimator), method)(problem.X, problem.Y, **metadata)
        ask(model, problem.X)
        model.score(problem.X, problem.Y)
        for name, array in given.items():
            np.testing.assert_array_equal(
                array, before[name], err_msg=f"{name} is modified by {method} or a prediction"
            )


def check_nothing_is_shared(estimator: Any) -> None:
    """What happens to the arrays after ``fit`` does not happen to the model.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_nothing_is_shared(TobitRegressor())
    """
    problem = make_problem(estimator)
    given = problem.copy()
    model = fitted(estimator, given)
    expected = ask(model, problem.X)
    given.X[:], given.Y[:] = 1e3, 1e3
    assert_same(ask(model, problem.X), expected, "after the training data were overwritten")
    for answer in ask(model, problem.X).values():
        if answer.flags.writeable:
            answer[...] = 1e3
    assert_same(ask(model, problem.X), expected, "after an earlier answer was overwritten")


def check_predict_is_pure(estimator: Any) -> None:
    """Asking changes neither the answers, nor the fitted attributes, nor NumPy's global seed.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_predict_is_pure(TobitRegressor())
    """
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    attributes, seed = _attributes(model), _global_seed()
    first = ask(model, problem.X)
    model.score(problem.X, problem.Y)
    changed = [name for name, value in _attributes(model).items() if value != attributes.get(name)]
    assert not changed, f"predictions change {', '.join(changed)}"
    assert _global_seed() == seed, "predictions draw from NumPy's global random numbers"
    assert_same(ask(model, problem.X), first, "when asked again", rtol=0.0, atol=0.0)


def _metadata(estimator: Any, problem: Problem) -> dict[str, FloatArray]:
    """What ``fit`` takes beside X and Y, row by row."""
    rows = {
        "sample_weight": np.linspace(0.5, 2.0, len(problem.X)),
        "lower": np.broadcast_to(problem.lower, problem.Y.shape).copy(),
        "upper": np.broadcast_to(problem.upper, problem.Y.shape).copy(),
    }
    return {name: value for name, value in rows.items() if has_fit_parameter(estimator, name)}


def _attributes(model: Any) -> dict[str, str]:
    """A fingerprint of every fitted attribute."""
    return {name: joblib.hash(value) for name, value in vars(model).items() if name[-1] == "_"}


def _global_seed() -> str:
    return str(joblib.hash(np.random.get_state()))  # noqa: NPY002  (to see whether anyone uses it)
