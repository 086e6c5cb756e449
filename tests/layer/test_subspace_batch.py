"""One layer to its optimum, against optima that are known otherwise."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.layer import (
    SIGMA_FLOOR,
    BasisFeatures,
    Design,
    Layer,
    NullLayer,
    SubspaceProblem,
    TargetScaling,
    null_layer,
    solve_path,
    solve_subspace,
    spectral_start,
)
from deeptobit.layer.solve import reseed, sigma_floors
from deeptobit.likelihood import Gaussian
from deeptobit.targets import CensoredTargets

TIGHT: dict[str, Any] = {"tol": 1e-8, "max_iter": 200}
N, D, T = 300, 6, 4


def problem_of(
    X: FloatArray,
    Y: FloatArray,
    *,
    rank: int,
    sigma: float | None = None,
    lower: float | None = 0.0,
    weight: FloatArray | None = None,
    fit_intercept: bool = True,
) -> SubspaceProblem:
    """The problem as the estimator would pose it; ``sigma`` is in the units of Y."""
    weight = np.ones(len(X)) if weight is None else weight
    share, n_tasks = weight / weight.sum(), Y.shape[1]
    targets = CensoredTargets.from_bounds(Y, lower=lower)
    scaling = TargetScaling.build(targets, share, center=fit_intercept)
    design = Design.build(X, share, center=fit_intercept, standardize=True)
    return SubspaceProblem(
        features=BasisFeatures.whitened(design, 1e-6),
        targets=targets,
        scaling=scaling,
        noise=Gaussian(),
        rank=rank,
        alpha=0.0,
        fit_intercept=fit_intercept,
        free_sigma=np.full(n_tasks, sigma is None),
        sigma=None if sigma is None else np.full(n_tasks, sigma) / scaling.scale,
        total_weight=float(weight.sum()),
    )


def censored_null(
    *, rank: int = min(D, T), sigma: float | None = 3.0, n_samples: int = N, seed: int = 0
) -> NullLayer:
    """About half of the outcomes are at 0; a given sigma makes W → likelihood convex."""
    X, Y, _ = make_subspace(n_samples, D, T, 2, sigma=3.0, random_state=seed)
    return null_layer(problem_of(X, Y, rank=rank, sigma=sigma))


def coefficients(null: NullLayer, layer: Layer) -> FloatArray:
    """W of the standardised features and targets, (T, D)."""
    return np.asarray(layer.U @ null.problem.features.coefficients(layer.Z).T)


def random_start(null: NullLayer, seed: int) -> Layer:
    rng = np.random.default_rng(seed)
    U, Z = rng.normal(size=null.layer.U.shape), rng.normal(size=null.layer.Z.shape)
    return null.layer._replace(U=U, Z=Z)


def value_at(null: NullLayer, layer: Layer, alpha: float) -> float:
    problem = replace(null.problem, alpha=alpha)
    return float(problem.evaluate(problem.pack(layer)).value[0])


@pytest.mark.parametrize("rank", [1, 2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_censoring_it_is_reduced_rank_regression(
    rank: int, weighted: bool, fit_intercept: bool
) -> None:
    rng = np.random.default_rng(rank)
    X = rng.normal(size=(200, 7)) @ rng.normal(size=(7, 7)) + 3.0
    Y = X @ rng.normal(size=(7, 5)) + 4.0 * rng.normal(size=(200, 5)) * [1.0, 2.0, 0.5, 1.0, 3.0]
    weight = rng.uniform(0.5, 2.0, 200) if weighted else np.ones(200)
    options: dict[str, Any] = {"lower": None, "weight": weight, "fit_intercept": fit_intercept}
    null = null_layer(problem_of(X, Y, rank=rank, sigma=2.0, **options))
    fit = solve_subspace(null, spectral_start(null), alpha=0.0, **TIGHT)
    share = weight / weight.sum()
    mean_X, mean_Y = (share @ X, share @ Y) if fit_intercept else (np.zeros(7), np.zeros(5))
    root = np.sqrt(share)[:, None]
    ols = np.linalg.lstsq(root * (X - mean_X), root * (Y - mean_Y), rcond=None)[0]
    axes = np.linalg.svd(root * (X - mean_X) @ ols)[2][:rank]
    expected = (ols @ axes.T @ axes).T
    design, scaling = null.problem.features.design, null.problem.scaling
    found = coefficients(null, fit.layer) / design.scale * scaling.scale[:, None]
    assert fit.converged
    assert fit.certificate == 0.0
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
def test_where_rank_does_not_bind_the_optimum_of_the_trace_norm_is_certified(share: float) -> None:
    null = censored_null()
    alpha = share * null.alpha_max
    fit = solve_subspace(null, spectral_start(null), alpha=alpha, **TIGHT)
    assert fit.converged
    assert fit.certificate <= 1.001
    W = coefficients(null, fit.layer)
    problem = replace(null.problem, alpha=alpha)
    at = problem.evaluate(problem.pack(fit.layer), np.zeros(1, dtype=np.intp))
    norm = np.linalg.norm(at.coefficient_gradient(), 2)
    np.testing.assert_allclose(norm / alpha, fit.certificate, rtol=1e-6)
    np.testing.assert_allclose(norm, alpha, rtol=1e-3)  # on the support of W
    loss = value_at(null, fit.layer, 0.0)
    np.testing.assert_allclose(
        fit.objective, loss + alpha * np.linalg.norm(W, "nuc"), rtol=1e-10
    )  # the penalty is the trace norm
    for seed in range(5):
        other = solve_subspace(null, random_start(null, seed), alpha=alpha, **TIGHT)
        assert fit.objective <= other.objective + 1e-7 * abs(other.objective)


@pytest.mark.parametrize("rank", [1, 2])
def test_with_free_sigma_and_a_binding_rank_no_random_start_ends_lower(rank: int) -> None:
    null = censored_null(rank=rank, sigma=None)
    fit = solve_subspace(null, spectral_start(null), alpha=0.05, **TIGHT)
    assert fit.converged
    for seed in range(5):
        other = solve_subspace(null, random_start(null, seed), alpha=0.05, **TIGHT)
        assert fit.objective <= other.objective + 1e-7 * abs(other.objective)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_alpha_max_is_the_smallest_alpha_without_coefficients(seed: int) -> None:
    null = censored_null(seed=seed)
    size = np.linalg.norm(
        coefficients(null, solve_subspace(null, spectral_start(null), alpha=0.01, **TIGHT).layer)
    )
    for factor, from_zero in [(1.01, True), (1.01, False), (1.5, False), (10.0, False)]:
        start = null.layer if from_zero else spectral_start(null)
        above = solve_subspace(null, start, alpha=factor * null.alpha_max, **TIGHT)
        assert np.linalg.norm(coefficients(null, above.layer)) < 1e-6 * size
        np.testing.assert_allclose(above.objective, value_at(null, null.layer, 0.0), rtol=1e-9)
    for start in (null.layer, spectral_start(null)):
        below = solve_subspace(null, start, alpha=0.98 * null.alpha_max, **TIGHT)
        W = coefficients(null, below.layer)
        assert np.linalg.norm(W) > 1e-3 * size
        assert below.objective < value_at(null, null.layer, 0.0)
        singular = np.linalg.svd(W, compute_uv=False)
        assert singular[1] < 1e-3 * singular[0]


def test_a_path_reaches_the_cold_solutions_and_more_components_as_alpha_falls() -> None:
    null = censored_null()
    alphas = null.alpha_max * np.array([1.1, 0.8, 0.3, 0.1, 0.03, 0.003])
    path = list(solve_path(null, alphas, **TIGHT))
    counts = []
    for alpha, warm in zip(alphas.tolist(), path, strict=True):
        cold = solve_subspace(null, spectral_start(null), alpha=alpha, **TIGHT)
        np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-6)
        assert warm.converged
        assert warm.certificate <= 1.001
        singular = np.linalg.svd(coefficients(null, warm.layer), compute_uv=False)
        counts.append(int((singular > 1e-3).sum()))
    assert counts[0] == 0
    assert counts[-1] == min(D, T)
    assert counts == sorted(counts)
    assert all(low.objective < high.objective for high, low in pairwise(path))


@pytest.mark.parametrize("tol", [1e-3, 1e-5, 1e-8])
@pytest.mark.parametrize("sigma", [3.0, None])
def test_converged_means_a_relative_gradient_norm_below_tol(
    tol: float, sigma: float | None
) -> None:
    null = censored_null(rank=2, sigma=sigma)
    fit = solve_subspace(null, spectral_start(null), alpha=0.02, tol=tol, max_iter=100)
    problem = replace(null.problem, alpha=0.02)
    at = problem.evaluate(problem.pack(fit.layer), np.zeros(1, dtype=np.intp))
    relative = np.linalg.norm(at.gradient) / np.linalg.norm(null.gradient)
    assert fit.converged
    assert fit.gradient_norm <= tol
    np.testing.assert_allclose(fit.gradient_norm, relative, rtol=1e-6, atol=1e-13)


def test_one_step_is_not_convergence() -> None:
    null = censored_null(rank=2, sigma=None)
    fit = solve_subspace(null, spectral_start(null), alpha=0.02, tol=1e-9, max_iter=1)
    assert not fit.converged
    assert fit.n_iter == 1
    assert fit.objective < value_at(null, spectral_start(null), 0.02)


def test_reseeding_fills_vanished_components_and_lowers_the_objective() -> None:
    null = censored_null()
    alpha = 0.1 * null.alpha_max
    problem = replace(null.problem, alpha=alpha)
    whole = solve_subspace(null, spectral_start(null), alpha=alpha, **TIGHT)
    full = whole.layer
    strength = np.linalg.norm(full.U, axis=0)
    kept = strength >= np.sort(strength)[-1]  # all but the strongest have vanished
    poor = full._replace(U=full.U * kept, Z=full.Z * kept)
    seeded = reseed(problem, poor)
    singular = np.linalg.svd(coefficients(null, seeded), compute_uv=False)
    assert singular[1] > 1e-3 * singular[0]
    assert value_at(null, seeded, alpha) < value_at(null, poor, alpha)
    again = solve_subspace(null, poor, alpha=alpha, **TIGHT)
    np.testing.assert_allclose(again.objective, value_at(null, full, alpha), rtol=1e-7)
    assert again.history["n_restarts"] > 0 == whole.history["n_restarts"]


def test_reseeding_leaves_a_layer_that_needs_nothing() -> None:
    null = censored_null()
    high, low = 2.0 * null.alpha_max, 0.01 * null.alpha_max
    assert reseed(replace(null.problem, alpha=high), null.layer) is null.layer
    full = spectral_start(null)  # no component has vanished
    assert reseed(replace(null.problem, alpha=low), full) is full


def test_the_spectral_start_is_one_balanced_newton_step() -> None:
    null = censored_null(rank=2)
    start = spectral_start(null)
    V = null.problem.features.coefficients(start.Z).T
    np.testing.assert_allclose(start.U.T @ start.U, V @ V.T, rtol=1e-8, atol=1e-10)
    assert np.linalg.matrix_rank(coefficients(null, start)) == 2
    assert value_at(null, start, 0.0) < value_at(null, null.layer, 0.0)


def test_without_censoring_the_null_model_is_the_moments() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 3)), rng.normal([5.0, -40.0], [0.1, 30.0], size=(100, 2))
    weight = rng.uniform(0.5, 2.0, 100)
    null = null_layer(problem_of(X, Y, rank=2, lower=None, weight=weight))
    # Standard units: mean 0 and standard deviation 1.
    np.testing.assert_allclose(null.layer.intercept, 0.0, atol=1e-8)
    np.testing.assert_allclose(null.layer.log_sigma, 0.0, atol=1e-8)
    design = Design.build(X, weight / weight.sum(), center=True, standardize=True)
    standard = null.problem.scaling.apply(null.problem.targets.low)
    moments = design.matrix.T @ (standard * design.weight[:, None])
    np.testing.assert_allclose(null.alpha_max, np.linalg.norm(moments, 2), rtol=1e-6)


def test_sigma_floors_are_parameters_per_entry() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 8)), rng.normal(size=(50, 4))
    Y[:40, 1] = np.nan  # 10 entries are left
    Y[:46, 2] = np.nan  # 4 entries are left, fewer than parameters
    problem = problem_of(X, Y, rank=2, lower=None)
    parameters = 1.5 * 2 * (8 + 4 - 2) / 4  # with caution, of a (T, D) matrix of rank 2, per task
    floors = np.array([parameters / 50, parameters / 10, 1.0, parameters / 50])
    entries = np.array([50.0, 10.0, 4.0, 50.0])
    np.testing.assert_allclose(sigma_floors(problem, entries), floors, rtol=1e-12)
    null = null_layer(problem)
    expected = null.layer.log_sigma + np.log(floors)
    np.testing.assert_allclose(null.problem.min_log_sigma, expected, rtol=1e-12)
    np.testing.assert_allclose(sigma_floors(problem, np.full(4, 1e12)), SIGMA_FLOOR)


def test_more_features_than_rows_end_at_the_floor_of_sigma() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 60))
    Y = X[:, :3] @ rng.normal(size=(3, 3))
    null = null_layer(problem_of(X, Y, rank=1, lower=None))
    fit = solve_subspace(null, spectral_start(null), alpha=1e-6, tol=1e-6, max_iter=200)
    above = fit.layer.log_sigma - null.problem.min_log_sigma
    assert fit.converged
    assert above.min() == 0.0
    assert all(np.isfinite(part).all() for part in fit.layer)


@pytest.mark.parametrize("sigma", [None, 3.0])
def test_a_task_at_its_bound_throughout_is_set_aside(sigma: float | None) -> None:
    X, Y, _ = make_subspace(N, D, T, 2, sigma=3.0, random_state=0)
    stuck = Y.copy()
    stuck[:, 1] = 0.0
    null = null_layer(problem_of(X, stuck, rank=2, sigma=sigma))
    np.testing.assert_array_equal(null.kinds.one_sided, [False, True, False, False])
    assert null.problem.targets.missing[:, 1].all()
    fit = solve_subspace(null, spectral_start(null), alpha=0.05, **TIGHT)
    assert fit.converged
    assert all(np.isfinite(part).all() for part in fit.layer)
    np.testing.assert_allclose(coefficients(null, fit.layer)[1], 0.0, atol=1e-6)
    assert fit.layer.intercept[1] < null.problem.scaling.apply(np.zeros((1, T)))[0, 1]
    # The other tasks are as if it were not there.
    others = [0, 2, 3]
    alone = null_layer(problem_of(X, Y[:, others], rank=2, sigma=sigma))
    same = solve_subspace(alone, spectral_start(alone), alpha=0.05, **TIGHT)
    np.testing.assert_allclose(
        coefficients(null, fit.layer)[others], coefficients(alone, same.layer), atol=1e-5
    )
