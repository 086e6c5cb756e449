"""What must not change a fit, or must change it in a known way, on problems of every kind."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deeptobit.arrays import FloatArray
from tests.properties.problems import Problem, Recipe
from tests.properties.properties import only_our_warnings
from tests.properties.strategies import ordinary_recipes

OFTEN = settings(max_examples=25, deadline=None, derandomize=True)
RECIPES = st.one_of(
    ordinary_recipes("tobit", alpha=0.1), ordinary_recipes("subspace", rank=8, alpha=0.05)
)


def fit(problem: Problem) -> Any:
    with only_our_warnings():
        return problem.fit()


def predict(model: Any, problem: Problem) -> FloatArray:
    found: FloatArray = model.predict(problem.X, **problem.bounds)
    return found


def changed(problem: Problem, rows: Any, tasks: Any, unit: float = 1.0) -> Problem:
    """The problem with rows and tasks in another order, and targets in another unit."""
    lower, upper = unit * problem.lower[tasks], unit * problem.upper[tasks]
    model = type(problem.model)(**problem.model.get_params() | {"lower": lower, "upper": upper})
    return replace(
        problem,
        model=model,
        X=problem.X[rows],
        y=unit * problem.y[rows][:, tasks],
        sample_weight=None if problem.sample_weight is None else problem.sample_weight[rows],
        bounds={name: unit * bound[rows][:, tasks] for name, bound in problem.bounds.items()},
        lower=lower,
        upper=upper,
    )


def assert_close(found: FloatArray, expected: FloatArray) -> None:
    """Equal to five digits of the spread of the outcomes."""
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@OFTEN
@given(recipe=RECIPES, seed=st.integers(0, 99))
def test_the_order_of_rows_and_tasks_does_not_matter(recipe: Recipe, seed: int) -> None:
    problem, rng = recipe.build(), np.random.default_rng(seed)
    rows, tasks = rng.permutation(recipe.n_rows), rng.permutation(len(recipe.tasks))
    other = changed(problem, rows, tasks)
    expected = predict(fit(problem), problem)[rows][:, tasks]
    assert_close(predict(fit(other), other), expected)


@OFTEN
@given(recipe=RECIPES, power=st.integers(-100, 100))
def test_targets_and_bounds_in_another_unit_give_predictions_in_it(
    recipe: Recipe, power: int
) -> None:
    problem, unit = recipe.build(), 2.0**power
    other = changed(problem, slice(None), slice(None), unit)
    assert_close(predict(fit(other), other) / unit, predict(fit(problem), problem))


@OFTEN
@given(recipe=ordinary_recipes("subspace", alpha=0.05), rank=st.integers(1, 8))
def test_a_fit_is_not_worse_than_no_coefficients(recipe: Recipe, rank: int) -> None:
    problem = recipe.build()
    model = fit(replace(problem, model=problem.model.set_params(rank=rank)))
    objective, largest = model.history_["objective"], model.history_["alpha_max"]
    null = fit(replace(problem, model=problem.model.set_params(alpha=2.0 * largest + 1.0)))
    np.testing.assert_allclose(null.coef_, 0.0, atol=1e-9)
    assert objective <= null.history_["objective"] + 1e-9


@OFTEN
@given(recipe=ordinary_recipes("tobit", alpha=0.0))
def test_the_likelihood_rises_with_every_feature(recipe: Recipe) -> None:
    problem = recipe.build()
    with only_our_warnings():
        with_all = fit(problem).log_likelihood_
        without = fit(replace(problem, X=np.zeros_like(problem.X))).log_likelihood_
    assert (with_all >= without - 1e-6).all()


@pytest.mark.parametrize("model", ["tobit", "subspace", "network"])
def test_predictions_of_a_row_do_not_depend_on_the_others(model: str) -> None:
    problem = Recipe(model=model).build()
    fitted = fit(problem)
    whole = fitted.predict(problem.X)
    alone = np.concatenate([fitted.predict(problem.X[[row]]) for row in range(len(problem.X))])
    np.testing.assert_allclose(alone, whole, rtol=1e-12)
