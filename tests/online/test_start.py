"""Starting from a given model."""

import numpy as np

from deeptobit.online import OnlineResult, OnlineSettings, OnlineSolver
from deeptobit.online.solver import RawRows, Standardization
from tests.online.problems import relative_error, stream


def started(n_rows: int) -> tuple[OnlineResult, OnlineResult]:
    """The truth as a start, and what becomes of it."""
    data = stream(max(n_rows, 8))
    U, singular, V = np.linalg.svd(data.coef, full_matrices=False)
    truth = OnlineResult(U[:, :2] * singular[:2], V[:2], np.zeros(6), np.ones(6), 0)
    solver = OnlineSolver(OnlineSettings(rank=2, random_state=0), 8, 6)
    solver.start_from(truth)
    solver.learn(data.X[:n_rows], data.low[:n_rows], data.high[:n_rows])
    return truth, solver.result()


def test_a_good_start_is_better_than_the_first_rows() -> None:
    data = stream(100)
    _, found = started(100)
    solver = OnlineSolver(OnlineSettings(rank=2), 8, 6)
    solver.learn(data.X, data.low, data.high)
    assert relative_error(found, data.coef) < relative_error(solver.result(), data.coef)


def test_standard_units_and_back() -> None:
    data, rng = stream(100), np.random.default_rng(0)
    rows = RawRows(5.0 + 3.0 * data.X, data.low, data.high, np.ones(100))
    units = Standardization.build(rows, OnlineSettings(rank=2))
    U, V = rng.normal(size=(6, 2)), rng.normal(size=(2, 8))
    model = OnlineResult(U, V, rng.normal(size=6), np.ones(6), n_seen=100)
    found = units.to_user(units.to_standard(model), n_seen=100)
    for name, value in vars(model).items():
        np.testing.assert_allclose(getattr(found, name), value, atol=1e-12)
