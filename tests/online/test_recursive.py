"""A fitted layer goes on learning: against fits to all rows, and in the corners."""

from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian, StudentT
from deeptobit.metrics import anmse
from deeptobit.online import OnlineResult, RecursiveTobit
from deeptobit.targets import CensoredTargets


def data(n_samples: int = 700, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(n_samples, 8, 5, 2, sigma=1.0, latent_sd=2.0, random_state=seed)
    return X, Y


def going_on(
    U: FloatArray, V: FloatArray, n_seen: int, sigma: float = 1.0, **options: Any
) -> RecursiveTobit:
    model = OnlineResult(U, V, np.zeros(len(U)), np.full(len(U), sigma), n_seen)
    defaults: dict[str, Any] = {"noise": Gaussian(), "fit_intercept": True, "learns_sigma": True}
    mean_squares = options.pop("mean_squares", np.ones(V.shape[1]))
    return RecursiveTobit(model, mean_squares, **(defaults | options))


def learned(solver: RecursiveTobit, X: FloatArray, Y: FloatArray, weight: Any = None) -> Any:
    targets = CensoredTargets.from_bounds(Y, 0.0)
    solver.learn(X, targets.low, targets.high, np.ones(len(X)) if weight is None else weight)
    return solver.result()


def test_without_rows_behind_it_is_the_tobit_of_the_new_ones() -> None:
    X, Y = data(500)
    rng = np.random.default_rng(0)
    start = 1e-3 * rng.normal(size=(5, 5)), rng.normal(size=(5, 8))
    found = learned(going_on(*start, n_seen=0, learns_sigma=False), X, Y)
    expected = TobitRegressor(sigma=1.0).fit(X, Y)
    np.testing.assert_allclose(found.U @ found.V, expected.coef_, atol=0.1)
    np.testing.assert_allclose(found.intercept, expected.intercept_, atol=0.1)


def test_it_ends_near_a_fit_to_all_rows() -> None:
    X, Y = data(3000)
    test, old, new = slice(2000, None), slice(300), slice(300, 2000)
    few = SubspaceTobitRegressor(2).fit(X[old], Y[old])
    every = SubspaceTobitRegressor(2).fit(X[:2000], Y[:2000])
    models = few, every, deepcopy(few).partial_fit(X[new], Y[new])
    errors = [anmse(Y[test], model.predict(X[test])) for model in models]
    assert errors[2] < errors[1] + 0.2 * (errors[0] - errors[1])
    np.testing.assert_allclose(models[2].sigma_, every.sigma_, rtol=0.1)


def test_many_rows_behind_hold_it_where_it_is() -> None:
    X, Y = data(100)
    rng = np.random.default_rng(1)
    U, V = rng.normal(size=(5, 2)), rng.normal(size=(2, 8))
    found = learned(going_on(U, V, n_seen=10**9), X, Y)
    np.testing.assert_allclose(found.U @ found.V, U @ V, atol=1e-4)
    np.testing.assert_allclose(found.sigma, 1.0, atol=1e-4)


@pytest.mark.parametrize("cuts", [[0, 1, 512, 700], [0, 100, 200, 650, 700]])
def test_pieces_do_not_matter(cuts: list[int]) -> None:
    X, Y = data()
    U, V = np.ones((5, 2)), np.ones((2, 8))
    whole, parts = learned(going_on(U, V, 50), X, Y), going_on(U, V, 50)
    for start, end in pairwise(cuts):
        result = learned(parts, X[start:end], Y[start:end])
    np.testing.assert_allclose(result.U @ result.V, whole.U @ whole.V, rtol=1e-12)
    assert result.n_seen == whole.n_seen == 750


def test_features_that_have_left_stay_out() -> None:
    X, Y = data()
    V = np.ones((2, 8))
    V[:, [2, 5]] = 0.0
    found = learned(going_on(np.ones((5, 2)), V, 50), X, Y)
    assert (found.V[:, [2, 5]] == 0.0).all()
    assert found.V[:, [0, 1, 3, 4, 6, 7]].any(axis=0).all()


def test_a_category_that_new_rows_lack_keeps_its_effect() -> None:
    X, Y = data()
    X[:512, 3] = 0.0
    U, V = np.ones((5, 1)), np.ones((1, 8))
    found = learned(going_on(U, V, 10**6), X, Y)
    np.testing.assert_allclose((found.U @ found.V)[:, 3], 1.0, atol=0.02)


def test_a_task_without_new_entries_stays_as_it_is() -> None:
    X, Y = data()
    Y[:, 2] = np.nan
    found = learned(going_on(np.eye(5), np.ones((5, 8)), 50), X, Y)
    np.testing.assert_allclose((found.U @ found.V)[2], 1.0, rtol=1e-9)
    assert found.sigma[2] == 1.0


def test_given_scales_and_a_missing_intercept_are_kept() -> None:
    X, Y = data()
    found = learned(
        going_on(
            np.ones((5, 2)), np.ones((2, 8)), 50, 3.0, fit_intercept=False, learns_sigma=False
        ),
        X,
        Y,
    )
    assert (found.sigma == 3.0).all()
    assert (found.intercept == 0.0).all()


@pytest.mark.parametrize("noise", [Gaussian(), StudentT(df=3)])
def test_outliers_and_bad_scales_leave_it_finite(noise: Any) -> None:
    X, Y = data()
    X[:, 0] *= 1e8
    X[:, 1] *= 1e-8
    Y[3] = 1e6
    found = learned(going_on(np.ones((5, 2)), np.zeros((2, 8)) + 1e-9, 10, noise=noise), X, Y)
    for part in (found.U, found.V, found.intercept, found.sigma):
        assert np.isfinite(part).all()


def test_weight_zero_rows_are_not_there() -> None:
    X, Y = data(400)
    weight = np.ones(400)
    weight[300:] = 0.0
    U, V = np.ones((5, 2)), np.ones((2, 8))
    some = learned(going_on(U, V, 50), X, Y, weight)
    assert some.n_seen == 350
    fewer = learned(going_on(U, V, 50), X[:300], Y[:300])
    # Second moments are shrunk by the number of rows that came, of whatever weight.
    np.testing.assert_allclose(some.U @ some.V, fewer.U @ fewer.V, atol=0.02)
