import numpy as np
from scipy.optimize import minimize

from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.online.adaptive import Validation, penalty_step
from deeptobit.online.reference import (
    Block,
    Iterate,
    RowPlan,
    learn_batches,
    learn_rows,
    rows_of,
    validation_sums,
)
from deeptobit.online.start import (
    FeatureMetric,
    RunningNull,
    first_gram,
    is_correlated,
    whitening,
)
from tests.online.problems import stream


def block_of(n: int) -> Block:
    data = stream(n)
    return Block(data.X, data.low, data.high, np.ones(n))


def test_null_model_is_the_tobit_without_features() -> None:
    block = block_of(400)
    null = RunningNull.fit(Gaussian(), block, free_mean=True)
    for task in range(6):
        low, high = block.low[:, task], block.high[:, task]

        def nll(point: np.ndarray, low: np.ndarray = low, high: np.ndarray = high) -> float:
            latent, sigma = np.full(400, point[0]), np.exp(point[1:])
            return float(evaluate(Gaussian(), low, high, latent, sigma).nll.sum())

        best = minimize(nll, [0.0, 0.0], tol=1e-10)
        assert abs(null.mean[task] - best.x[0]) < 0.02
        assert abs(null.log_sigma[task] - best.x[1]) < 0.02


def test_running_null_model_stays_with_the_optimum() -> None:
    block = block_of(4000)
    null = RunningNull.fit(Gaussian(), rows_of(block, slice(0, 400)), free_mean=True)
    for first in range(400, 4000, 100):
        null.update(Gaussian(), rows_of(block, slice(first, first + 100)))
    best = RunningNull.fit(Gaussian(), block, free_mean=True)
    np.testing.assert_allclose(null.mean, best.mean, atol=0.03)
    np.testing.assert_allclose(null.log_sigma, best.log_sigma, atol=0.02)


def test_a_batch_of_one_is_a_row() -> None:
    block = rows_of(block_of(3), slice(1, 2))
    rng = np.random.default_rng(0)
    states = []
    one = np.ones(6)
    for batch in (False, True):
        rng = np.random.default_rng(0)
        now = Iterate(rng.normal(size=(2, 8)), rng.normal(size=(2, 6)), rng.normal(size=6), 2 * one)
        plan = RowPlan(
            1.5 * block.X, np.full(1, 0.1), np.full(1, 0.05), np.eye(2) + 0.2, 1.4,
            0.1 * one, 5.0 * one, 1.0, 1, 0,
        )  # fmt: skip
        step = Gaussian(), block, plan, now, now.copy(), np.full((3, 6), 0.5)
        sums = learn_batches(*step) if batch else learn_rows(*step)
        states.append([*now, step[-1], np.array(sums)])
    for mine, other in zip(*states, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10)


def test_preconditioner_is_the_inverse_second_moment() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4)) @ rng.normal(size=(4, 4))
    metric = FeatureMetric.build(X[:500], np.ones(500), first_gram(X[:500], np.ones(500)))
    for first in range(500, 5000, 500):
        metric.add(X[first : first + 500], np.ones(500))
    metric.rebuild()
    product = metric.inverse @ (X.T @ X / 5000)
    np.testing.assert_allclose(product, np.eye(4), atol=0.02)


def test_correlation_is_told_from_chance() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.normal(size=(512, 100))
        assert not is_correlated(X.T @ X, 512)
        X[:, 1] += X[:, 0]
        assert is_correlated(X.T @ X, 512)


def test_whitening_whitens_and_undoes() -> None:
    A = np.random.default_rng(0).normal(size=(3, 3))
    there, back = whitening(A @ A.T)
    np.testing.assert_allclose(there @ A @ A.T @ there.T, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(there @ back, np.eye(3), atol=1e-9)


def test_whitening_leaves_what_has_no_variance() -> None:
    """Else V of collinear features grows by 1e4 each time, until rounding decides."""
    direction = np.array([0.6, 0.8])
    there, back = whitening(4.0 * np.outer(direction, direction))
    other = np.array([-0.8, 0.6])
    np.testing.assert_allclose(there @ direction, 0.5 * direction, atol=1e-12)
    np.testing.assert_allclose(there @ other, other, atol=1e-12)
    np.testing.assert_allclose(there @ back, np.eye(2), atol=1e-12)


def test_penalty_does_not_depend_on_a_rotation() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    metric = FeatureMetric.build(X, np.ones(300), first_gram(X, np.ones(300)))
    V, Ut, there = (
        rng.normal(size=(2, 5)),
        rng.normal(size=(2, 6)),
        np.linalg.qr(rng.normal(size=(2, 2)))[0],
    )
    products = []
    for B in (np.eye(2), there):
        now = Iterate(B @ V, np.linalg.inv(B).T @ Ut, np.zeros(6), np.ones(6))
        G = now.Ut @ now.Ut.T
        inverse = np.asarray(np.linalg.inv(G), dtype=np.float64)
        penalty_step(0.05, now, metric, inverse, np.ones(6))
        products.append(now.Ut.T @ now.V)
    np.testing.assert_allclose(products[0], products[1], rtol=1e-6, atol=1e-8)
    assert np.linalg.norm(products[0], "nuc") < np.linalg.norm(Ut.T @ V, "nuc")


def test_validation_finds_the_right_length() -> None:
    """The true model keeps its length, one twice too long is halved."""
    block = block_of(2000)
    data = stream(2000)
    for factor, wanted in ((1.0, 1.0), (2.0, 0.5)):
        zero = np.zeros(6)
        found = Validation.begin(np.full(6, factor * 3.0))
        left, values, right = np.linalg.svd(factor * data.coef, full_matrices=False)
        model = Iterate(values[:2, None] * right[:2], left[:, :2].T.copy(), zero, found.sigma)
        limits = found.sigma, found.sigma
        sums = validation_sums(Gaussian(), block, model)
        found.score(2000.0, sums, 0.0, np.ones(6), limits, None)
        np.testing.assert_allclose(found.shrinkage(2000.0, 20.0), wanted, atol=0.25)
