"""Degrees of freedom of a layer, and the criterion that chooses alpha."""

from dataclasses import replace

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.estimators.subspace import null_of
from deeptobit.layer import NullLayer, solve_subspace, spectral_start
from deeptobit.layer import alpha as alpha_module
from deeptobit.layer.alpha import corrected_akaike, degrees_of_freedom, score_correlation
from deeptobit.layer.problem import SubspaceEvaluation
from deeptobit.penalties import Ridge

N_TASKS, N_FEATURES = 6, 12


def null_problem(alpha: float, rank: int, sigma: FloatArray | None = None) -> NullLayer:
    X, Y, _ = make_subspace(150, N_FEATURES, N_TASKS, 2, sigma=1.0, random_state=0)
    model = SubspaceTobitRegressor(rank)
    rows = model._read(X, Y, None, None, None, reset=True)
    return null_of(model, rows, Ridge(), rank, alpha, sigma)


def at_optimum(
    alpha: float, rank: int, sigma: FloatArray | None = None, tol: float = 1e-8
) -> SubspaceEvaluation:
    null = null_problem(alpha, rank, sigma)
    fit = solve_subspace(null, spectral_start(null), alpha=alpha, tol=tol, max_iter=100)
    return null.problem.evaluate(null.problem.pack(fit.layer))


def exact_degrees_of_freedom(evaluation: SubspaceEvaluation) -> float:
    """tr(H⁺G) with every entry's own curvature, less those of intercepts and σ."""
    likelihood = replace(
        evaluation,
        problem=replace(evaluation.problem, alpha=0.0),
        by_latent=np.zeros_like(evaluation.by_latent),
    )
    units = np.eye(len(evaluation.free))
    H, G = (
        np.column_stack([each.hessian_product(unit[:, None])[:, 0] for unit in units])
        for each in (evaluation, likelihood)
    )
    values, axes = np.linalg.eigh(0.5 * (H + H.T))
    kept = values > 1e-6 * values.max()
    return float(((axes.T @ G @ axes).diagonal()[kept] / values[kept]).sum()) - 2 * N_TASKS


@pytest.fixture
def _independent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of the tasks count as uncorrelated."""
    monkeypatch.setattr(alpha_module, "score_correlation", lambda evaluation: np.eye(N_TASKS))


@pytest.mark.usefixtures("_independent")
@pytest.mark.parametrize("rank", [2, 4])
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.01])
def test_degrees_of_freedom_are_near_those_of_the_exact_hessian(alpha: float, rank: int) -> None:
    evaluation = at_optimum(alpha, rank)
    found = degrees_of_freedom(evaluation)
    assert found.shape == (N_TASKS,)
    assert found.sum() == pytest.approx(exact_degrees_of_freedom(evaluation), rel=0.03)


def test_degrees_of_freedom_do_not_depend_on_rounding() -> None:
    """Rotations of U and V leave the objective as it is: its curvature there is rounding alone."""
    near, nearer = (degrees_of_freedom(at_optimum(0.3, 4, tol=tol)) for tol in (1e-7, 1e-10))
    np.testing.assert_allclose(near, nearer, rtol=1e-5)


def test_a_strong_signal_uses_as_many_parameters_as_matrices_of_its_rank_have() -> None:
    total = degrees_of_freedom(at_optimum(1e-4, 2)).sum()
    assert total == pytest.approx(2 * (N_FEATURES + N_TASKS - 2), rel=0.05)


@pytest.mark.usefixtures("_independent")
def test_full_rank_without_a_penalty_uses_every_parameter() -> None:
    np.testing.assert_allclose(degrees_of_freedom(at_optimum(1e-7, N_TASKS)), N_FEATURES, rtol=1e-3)


def test_outcomes_with_common_noise_use_more() -> None:
    evaluation = at_optimum(0.1, 2)
    apart = degrees_of_freedom(evaluation).sum()
    same = np.tile(evaluation.by_latent[:, :1], (1, N_TASKS))
    signs = np.sign(evaluation.layer.U[:, 0])
    together = degrees_of_freedom(replace(evaluation, by_latent=same * signs)).sum()
    assert together > 1.2 * apart
    assert score_correlation(replace(evaluation, by_latent=same)) == pytest.approx(1.0)


def test_without_coefficients_nothing_is_used() -> None:
    assert degrees_of_freedom(at_optimum(1e3, 2)).max() < 1e-12


def test_the_criterion_with_a_given_sigma_is_akaikes() -> None:
    evaluation = at_optimum(0.1, 2, np.ones(N_TASKS))
    freedom, problem = degrees_of_freedom(evaluation), evaluation.problem
    nll = evaluation.value[0] - problem.penalty_value(evaluation.layer)
    expected = (nll + (freedom + 1.0).sum() / 150) / N_TASKS
    assert corrected_akaike(evaluation, freedom) == pytest.approx(expected)


def test_the_criterion_charges_more_for_an_estimated_sigma_in_few_rows() -> None:
    evaluation = at_optimum(0.1, 2)
    nll = evaluation.value[0] - evaluation.problem.penalty_value(evaluation.layer)
    for used, more in ((10.0, 1.1), (100.0, 3.0)):
        excess = corrected_akaike(evaluation, np.full(N_TASKS, used)) - nll / N_TASKS
        assert excess > more * (used + 1.0) / 150


def test_floors_of_sigma_follow_alpha() -> None:
    null, other = null_problem(0.5, 2), null_problem(0.01, 2)
    found = null.at(0.01).problem
    assert found.alpha == 0.01
    np.testing.assert_allclose(found.min_log_sigma, other.problem.min_log_sigma)
    assert (found.min_log_sigma > null.problem.min_log_sigma).all()
