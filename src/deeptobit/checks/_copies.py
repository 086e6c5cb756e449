"""Copies of a model, models that are fitted again, and what a stored model carries along."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import clone

from deeptobit.arrays import FloatArray
from deeptobit.checks._answers import ask, assert_same
from deeptobit.checks._problem import fitted, make_problem

_MANY = 4  # consecutive numbers that are no coincidence


def check_copies_agree(estimator: Any) -> None:
    """A pickled or copied model answers as the model does; a clone is as good as new.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_copies_agree(TobitRegressor())
    """
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    expected = ask(model, problem.X)
    pickled = pickle.loads(pickle.dumps(model))
    assert_same(ask(pickled, problem.X), expected, "after pickling", rtol=0.0, atol=0.0)
    assert_same(ask(deepcopy(model), problem.X), expected, "in a copy", rtol=0.0, atol=0.0)
    left = [name for name in vars(clone(model)) if name.endswith("_")]
    assert not left, f"a clone keeps {', '.join(left)}"
    again = clone(model).fit(problem.X, problem.Y)
    assert_same(ask(again, problem.X), expected, "in a clone that is fitted to the same data")


def check_refit_forgets(estimator: Any) -> None:
    """A model that is fitted again knows nothing of the first data, which had another shape.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_refit_forgets(TobitRegressor())
    """
    other = make_problem(estimator, 60, 5, n_tasks=2, seed=1)
    problem = make_problem(estimator)
    model = fitted(estimator, other)
    model.fit(problem.X, problem.Y)
    expected = fitted(estimator, problem)
    assert_same(ask(model, problem.X), ask(expected, problem.X), "after a fit to other data")
    left = sorted(vars(model).keys() ^ vars(expected).keys())
    assert not left, f"attributes depend on earlier fits: {', '.join(left)}"


def check_training_rows_are_not_stored(estimator: Any) -> None:
    """A pickled model holds no row of X, and no stretch of a column of X or Y.

    A model that is passed on must not carry its training data along. Found are values as they were
    given, in either order of memory; values in other units are not.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> check_training_rows_are_not_stored(TobitRegressor())
    """
    problem = make_problem(estimator)
    stored = pickle.dumps(fitted(estimator, problem))
    for name, values in (("X", problem.X), ("Y", problem.Y.reshape(len(problem.X), -1))):
        for part, stretches in (("row", values), ("column", values.T)):
            found = sum(_holds(stored, stretch) for stretch in stretches)
            assert not found, f"the pickled model holds {found} {part}(s) of {name}"


def _holds(stored: bytes, stretch: FloatArray) -> bool:
    """Whether consecutive numbers that are not all the same lie side by side in memory."""
    if len(stretch) < _MANY or len(np.unique(stretch)) < _MANY:
        return False
    return np.ascontiguousarray(stretch).tobytes() in stored or (
        len(stretch) > 2 * _MANY and np.ascontiguousarray(stretch[:_MANY]).tobytes() in stored
    )
