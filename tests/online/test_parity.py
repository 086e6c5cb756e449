from typing import NamedTuple

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian
from deeptobit.online import reference
from deeptobit.online.adaptive import restrict, whiten
from deeptobit.online.reference import Block, Iterate, RowPlan, rows_of
from tests.online.problems import Interpreted

N, D, T, R = 40, 5, 7, 3


BOTH = Gaussian(), Interpreted()


class Case(NamedTuple):
    block: Block
    now: Iterate
    rng: np.random.Generator


def make_case(*, intervals: bool, far: float = 1.0) -> Case:
    """Every kind of entry, weights among them 0, and z up to ±10 × far."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D))
    y, kind = 3.0 * far * rng.normal(size=(N, T)), rng.integers(0, 5, size=(N, T))
    width = rng.choice([1e-7, 0.1, 1.0, 5.0, 40.0], size=(N, T))
    low = np.choose(kind, [y, np.full_like(y, -np.inf), y, np.full_like(y, np.nan), y])
    high = np.choose(kind, [y, y, np.full_like(y, np.inf), np.full_like(y, np.nan), y])
    if intervals:
        high = np.where(kind == 4, y + width, high)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=N)
    block = Block(X, low, high, weight)
    sigma = rng.uniform(0.5, 2.0, T)
    now = Iterate(rng.normal(size=(R, D)), rng.normal(size=(R, T)), rng.normal(size=T), sigma)
    return Case(block, now, rng)


CASES = pytest.mark.parametrize(
    ("intervals", "far"), [(False, 1.0), (True, 1.0), (False, 30.0), (True, 30.0)]
)


def plan_of(case: Case, every: int) -> RowPlan:
    return RowPlan(
        case.block.X @ (np.eye(D) + 0.1),
        np.full(N, 0.05),
        np.full(N, 0.02),
        np.eye(R) + 0.05,
        1.3,
        np.full(T, 0.3),
        np.full(T, 3.0),
        1.0,
        every,
        4,
    )


@CASES
def test_scores_and_sums(intervals: bool, far: float) -> None:
    case = make_case(intervals=intervals, far=far)
    linear = case.block.X @ case.now.V.T @ case.now.Ut
    # The curvature of a short interval is a difference of large numbers.
    tolerance = 1e-6 if intervals else 1e-10
    for tasks in (slice(0, T), slice(2, 5)):
        some = linear[:, tasks]
        both = (reference.evaluate(noise, case.block, tasks, some, case.now) for noise in BOTH)
        for mine, other in zip(*both, strict=True):
            np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


@CASES
def test_sums_around_a_constant(intervals: bool, far: float) -> None:
    case = make_case(intervals=intervals, far=far)
    mean, sigma = case.now.intercept, case.now.sigma
    found, expected = (reference.null_sums(noise, case.block, mean, sigma) for noise in BOTH)
    np.testing.assert_allclose(found[:4], expected[:4], rtol=1e-7, atol=1e-7)
    if not intervals:  # second derivatives of a narrow interval cancel, and only steer a step
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-7)


def both_moments(now: Iterate, mean: Iterate) -> FloatArray:
    V = np.concatenate([now.V, mean.V])[:, : D - 1]  # one feature does not vary
    return np.asarray(V @ V.T)


@pytest.mark.parametrize("lost", ["none", "scale", "direction"])
def test_whiten(lost: str) -> None:
    case = make_case(intervals=False)
    mean = case.now.copy()
    mean.V[...] += 0.01 * case.rng.normal(size=(R, D))
    mean.V[1] *= {"none": 1.0, "scale": 100.0, "direction": -1.0}[lost]
    curvature = case.rng.uniform(0.0, 1.0, T)
    now = case.now.copy()
    inverse, spread = whiten(both_moments(now, mean), now, mean, curvature, 0.1)
    np.testing.assert_allclose(now.V[:, : D - 1] @ now.V[:, : D - 1].T, np.eye(R), atol=1e-9)
    np.testing.assert_allclose(now.V.T @ now.Ut, case.now.V.T @ case.now.Ut, atol=1e-9)
    assert (mean.V == now.V).all(axis=1).any() == (lost != "none")
    scaled = now.Ut / now.sigma
    metric = (scaled * curvature) @ scaled.T
    damped = metric + (0.1 + 1e-4 * np.trace(metric) / R) * np.eye(R)
    np.testing.assert_allclose(np.linalg.inv(inverse), damped, rtol=1e-9)
    assert spread == pytest.approx(max(1.0, np.trace(inverse @ scaled @ scaled.T) / R))


def test_restrict() -> None:
    case = make_case(intervals=False)
    middle, scale = np.full(T, 0.1), case.rng.uniform(0.1, 3.0, T)
    now, mean = case.now.copy(), case.now.copy()
    mean.Ut[...] *= 2.0
    moments = both_moments(now, mean)
    assert restrict(moments, now, mean, middle, scale)
    for part in (now, mean):
        length = np.sqrt(np.sum(part.Ut * (moments[:R, :R] @ part.Ut), axis=0))
        assert (length <= 1.5 * scale * (1.0 + 1e-12)).all()
        assert (np.abs(part.intercept - middle) <= 2.0 * scale * (1.0 + 1e-12)).all()
    assert 0 < (now.Ut == case.now.Ut).all(axis=0).sum() < T
    assert 0 < (now.intercept == case.now.intercept).sum() < T


@pytest.mark.parametrize("wrong", ["V", "Ut", "intercept", "sigma", "size"])
def test_a_diverged_iterate_is_left_unchanged(wrong: str) -> None:
    case = make_case(intervals=False)
    spoiled = case.now.copy()
    if wrong == "size":
        spoiled.V[...] *= 1e3
    else:
        getattr(spoiled, wrong)[0] = np.inf if wrong == "sigma" else np.nan
    null = np.zeros(T), np.full(T, 0.1)
    now, mean = spoiled.copy(), case.now.copy()
    assert not restrict(both_moments(now, mean), now, mean, *null)
    for mine, other in zip([*now, *mean], [*spoiled, *case.now], strict=True):
        np.testing.assert_array_equal(mine, other)


@CASES
def test_adaptive_rows(intervals: bool, far: float) -> None:
    case = make_case(intervals=intervals, far=far)
    plan = plan_of(case, every=8)
    states = []
    for noise in BOTH:
        now, mean = case.now.copy(), case.now.copy()
        moments = np.tile([[0.5], [0.4], [0.9]], T)
        sums = reference.learn_rows(noise, case.block, plan, now, mean, moments)
        states.append([*now, *mean, moments, np.array(sums)])
    for mine, other in zip(*states, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-8)
    assert not np.array_equal(states[0][0], case.now.V)


@CASES
@pytest.mark.parametrize("size", [1, 16, N])
def test_adaptive_batches(intervals: bool, far: float, size: int) -> None:
    """The last batch of 16 is half full."""
    case = make_case(intervals=intervals, far=far)
    count = -(-N // size)
    plan = plan_of(case, every=size)._replace(
        step=np.linspace(0.05, 0.02, count), forget=np.linspace(0.02, 0.01, count)
    )
    states = []
    for noise in BOTH:
        now, mean = case.now.copy(), case.now.copy()
        moments = np.tile([[0.5], [0.4], [0.9]], T)
        sums = reference.learn_batches(noise, case.block, plan, now, mean, moments)
        states.append([*now, *mean, moments, np.array(sums)])
    for mine, other in zip(*states, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-7, atol=1e-8)
    assert not np.array_equal(states[0][0], case.now.V)


@pytest.mark.parametrize("noise", BOTH)
def test_a_batch_survives_numbers_that_are_not(noise: Gaussian) -> None:
    """A singular metric may round below 0; what overflows is an infinite loss, and no error."""
    case = make_case(intervals=False)
    plan = plan_of(case, every=N)
    for Z, finite in ((-100.0 * case.block.X, True), (np.full((N, D), np.inf), False)):
        now, moments = case.now.copy(), np.full((3, T), 0.5)
        state = plan._replace(Z=Z), now, now.copy(), moments
        with np.errstate(all="ignore"):
            loss, _ = reference.learn_batches(noise, case.block, *state)
        assert np.isfinite(loss) == finite
        assert not finite or all(np.isfinite(part).all() for part in now)


def test_rows_of_a_block_are_rows() -> None:
    block = make_case(intervals=True).block
    part = rows_of(block, slice(3, 5))
    np.testing.assert_array_equal(part.X, block.X[3:5])
    np.testing.assert_array_equal(part.low, block.low[3:5])
