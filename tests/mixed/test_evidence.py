"""The evidence: exact where it can be, with the gradient of finite differences, additive."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import truncnorm

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian
from deeptobit.mixed import Effects, Visits, evidence
from deeptobit.mixed.evidence import unequal_shares
from deeptobit.mixed.kernels import entry
from tests.mixed.problems import dense_log_density, make_problem


@pytest.mark.parametrize(("R", "G"), [(0, 0), (1, 0), (0, 2), (2, 1), (3, 2)])
@pytest.mark.parametrize("q", [0, 1, 2])
def test_the_evidence_without_censoring_is_the_density_of_all_entries(
    q: int, R: int, G: int
) -> None:
    problem, point = make_problem(q=q, R=R, G=G, missing=0.3)
    found = problem.evidence(point)
    np.testing.assert_allclose(found.log_z, dense_log_density(problem, point), rtol=1e-10)


def test_a_singular_covariance_is_as_good_as_any() -> None:
    problem, point = make_problem(R=1, G=0)
    effects = point.effects._replace(own=np.zeros_like(point.effects.own))
    found = problem.evidence(point._replace(effects=effects))
    expected = dense_log_density(problem, point._replace(effects=effects))
    np.testing.assert_allclose(found.log_z, expected, rtol=1e-10)


@pytest.mark.parametrize(("nodes", "G"), [(0, 1), (0, 2), (31, 0)])
@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (-0.5, 1.0)])
def test_the_gradient_is_that_of_finite_differences(
    nodes: int, G: int, bounds: tuple[float, float]
) -> None:
    factors = {"R": 0, "G": 0} if nodes else {"R": 2, "G": G}
    settings = {"n_nodes": nodes, "shrinkage": 3.0}
    problem, point = make_problem(bounds=bounds, missing=0.1, **factors, **settings)  # type: ignore[arg-type]
    theta = problem.pack(point)
    _, gradient, unconverged = problem.evaluate(theta)

    def value(at: FloatArray) -> float:
        return problem.evaluate(at)[0]

    numeric = approx_fprime(theta, value, 1e-6)
    np.testing.assert_allclose(gradient, numeric, atol=2e-6)
    assert unconverged == 0


def test_packing_and_unpacking_are_inverse() -> None:
    problem, point = make_problem(R=2, G=2)
    again = problem.unpack(problem.pack(point))
    for ours, theirs in zip(again.effects, point.effects, strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_one_censored_entry_per_person_is_exact() -> None:
    # A single site that is not Gaussian: the posterior's moments are those of the model.
    problem, point = make_problem(n_tasks=1, R=0, G=0, q=2)
    low, high = problem.visits.low.copy(), problem.visits.high.copy()
    first = problem.visits.starts[:-1]
    low[first[::2]], high[first[1::2]] = -np.inf, np.inf
    visits = Visits(problem.visits.starts, low, high, problem.visits.z, problem.visits.weight)
    mean = problem.mean(point)
    found = evidence(visits, mean, point.effects)
    exact = evidence(visits, mean, point.effects, n_nodes=60)
    np.testing.assert_allclose(found.log_z, exact.log_z, rtol=1e-7)


def test_many_censored_entries_are_close_to_quadrature() -> None:
    problem, point = make_problem(n_tasks=1, R=0, G=0, q=1, n_people=40, bounds=(-0.5, 1.0))
    mean = problem.mean(point)
    found = evidence(problem.visits, mean, point.effects)
    exact = evidence(problem.visits, mean, point.effects, n_nodes=60)
    np.testing.assert_allclose(found.log_z, exact.log_z, atol=0.02)
    np.testing.assert_allclose(found.log_z.sum(), exact.log_z.sum(), atol=0.05)


def test_people_with_many_visits_at_the_bounds_settle() -> None:
    rng = np.random.default_rng(0)
    n_people, n_visits = 100, 40
    z = np.column_stack(
        [np.ones(n_people * n_visits), np.tile(np.linspace(-2, 2, n_visits), n_people)]
    )
    own = np.array([[[4.0, 0.0], [1.0, 2.0]]])
    level = (z @ own[0] * rng.normal(size=(n_people, 2)).repeat(n_visits, axis=0)).sum(axis=1)
    above = (level + rng.normal(size=len(level)) > 0.0)[:, None]
    low, high = np.where(above, 0.0, -np.inf), np.where(above, np.inf, 0.0)
    visits = Visits(np.arange(n_people + 1) * n_visits, low, high, z, np.ones(n_people))
    effects = Effects(own, np.zeros((1, 2, 0)), np.zeros((1, 0)), np.ones(1))
    assert evidence(visits, np.zeros(above.shape), effects).unconverged == 0


def test_without_random_effects_entries_are_independent() -> None:
    problem, point = make_problem(q=0, R=0, G=0, bounds=(-0.5, 1.0), missing=0.2)
    found = problem.evidence(point)
    visits, sigma = problem.visits, point.effects.sigma
    mean = problem.mean(point)
    a, b = (visits.low - mean) / sigma, (visits.high - mean) / sigma
    censored = np.isinf(a) | np.isinf(b)
    at_ends = -Gaussian().interval(np.where(censored, a, -1.0), np.where(censored, b, 1.0)).nll
    value = np.where(censored, at_ends, Gaussian().log_pdf(a) - np.log(sigma))
    by_row = np.nansum(np.where(np.isnan(a), 0.0, value), axis=1)
    np.testing.assert_allclose(found.log_z, np.add.reduceat(by_row, visits.starts[:-1]), rtol=1e-9)


@pytest.mark.parametrize(
    ("a", "b"), [(-1.0, 2.0), (4.0, 4.5), (-40.0, -39.0), (10.0, 30.0), (0.1, 0.1001)]
)
def test_moments_of_an_interval(a: float, b: float) -> None:
    log_mass, mean, curvature, by_scale = entry(a, b, 0.0, 1.0)
    exact = Gaussian().interval(np.array(a), np.array(b))
    np.testing.assert_allclose(log_mass, -exact.nll, rtol=1e-12)
    np.testing.assert_allclose(mean, -exact.latent, rtol=1e-10)
    np.testing.assert_allclose(1.0 - curvature, truncnorm.var(a, b), rtol=1e-3)
    np.testing.assert_allclose(by_scale, -exact.log_sigma, rtol=1e-9)


def test_interval_entries_lie_between_their_ends() -> None:
    problem, point = make_problem(n_tasks=1, R=0, G=0, q=1, n_people=30)
    visits = problem.visits
    wide = Visits(visits.starts, visits.low - 0.4, visits.high + 0.4, visits.z, visits.weight)
    mean = problem.mean(point)
    found = evidence(wide, mean, point.effects)
    exact = evidence(wide, mean, point.effects, n_nodes=60)
    np.testing.assert_allclose(found.log_z, exact.log_z, atol=1e-3)


def test_what_is_eliminated_first_does_not_matter() -> None:
    # Outcomes of which nothing is known make the visits' factors the smaller part of the core.
    problem, point = make_problem(n_tasks=2, q=1, R=1, G=2, bounds=(-0.5, 1.0), missing=0.1)
    found, mean, visits = problem.evidence(point), problem.mean(point), problem.visits
    unknown = np.full((len(mean), 6), np.nan)
    padded = (np.pad(part, [(0, 6), *[(0, 0)] * (part.ndim - 1)]) for part in point.effects)
    own, shared, visit, sigma = padded
    sigma[2:] = 1.0
    low, high = np.hstack([visits.low, unknown]), np.hstack([visits.high, unknown])
    wide = Visits(visits.starts, low, high, visits.z, visits.weight)
    mean = np.hstack([mean, np.zeros(unknown.shape)])
    other = evidence(wide, mean, Effects(own, shared, visit, sigma), by_person=True)
    np.testing.assert_allclose(other.log_z, found.log_z, rtol=1e-9)
    for ours, theirs in zip(other[1:4], found[1:4], strict=True):
        np.testing.assert_allclose(ours[:, :2], theirs, atol=1e-7)


def test_shares_of_two_outcomes_are_made_equal_by_their_slopes() -> None:
    problem, point = make_problem(n_tasks=2, q=1, R=1, G=1)
    theta = problem.pack(point)
    _, gradient, _ = problem.evaluate(theta)

    def value(at: FloatArray) -> float:
        return problem.evaluate(at)[0]

    numeric = approx_fprime(theta, value, 1e-6)
    np.testing.assert_allclose(gradient, numeric, atol=2e-6)
    effects, sigma = point.effects, point.effects.sigma
    alike, apart = (effects._replace(visit=np.outer(sigma * [0.6, by], 1.0)) for by in (-0.6, 0.1))
    assert unequal_shares(alike)[0] < 1e-30
    assert unequal_shares(apart)[0] == pytest.approx(0.5 * np.log(1.36 / 1.01) ** 2)


def test_slopes_of_people_sum_to_those_of_all() -> None:
    problem, point = make_problem(bounds=(-0.5, 1.0))
    total = problem.evidence(point).slopes
    each = problem.evidence(point, by_person=True).slopes
    np.testing.assert_allclose(problem.visits.weight @ each, total, atol=1e-9)


def test_far_tails_still_teach() -> None:
    # A limit 60 standard deviations away: a clipped likelihood would have no slope there.
    visits = Visits(
        np.array([0, 2]),
        np.full((2, 1), -np.inf),
        np.full((2, 1), -60.0),
        np.ones((2, 1)),
        np.ones(1),
    )
    effects = Effects(np.ones((1, 1, 1)), np.zeros((1, 1, 0)), np.zeros((1, 0)), np.ones(1))
    found = evidence(visits, np.zeros((2, 1)), effects)
    exact = evidence(visits, np.zeros((2, 1)), effects, n_nodes=60)
    assert found.unconverged == 0
    np.testing.assert_allclose(found.log_z, exact.log_z, rtol=1e-3)
    np.testing.assert_allclose(found.pull, exact.pull, rtol=1e-2)


def test_sites_that_are_kept_give_the_same_evidence_sooner() -> None:
    problem, point = make_problem(bounds=(-0.5, 1.0), missing=0.1, n_people=40)
    keeping, theta = problem.keeping_sites(), problem.pack(point)
    for shift in (0.0, 0.3, 0.0):
        value, gradient, _ = problem.evaluate(theta + shift)
        roughly, by_roughly, unconverged = keeping.evaluate(theta + shift)
        assert roughly == pytest.approx(value, abs=1e-8)
        np.testing.assert_allclose(by_roughly, gradient, atol=1e-5)
        assert unconverged == 0
    assert problem.sites is None
    assert keeping.where(np.arange(len(problem.features)) > 3).sites is None


def test_squared_slopes_are_the_diagonal_of_their_products() -> None:
    problem, point = make_problem(bounds=(-0.5, 1.0))
    products = problem.score_products(point)
    np.testing.assert_allclose(problem.score_squares(point), np.diag(products), rtol=1e-12)
