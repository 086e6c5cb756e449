"""Features that leave: optimality conditions, supports and the path."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.layer import (
    Design,
    Layer,
    NullLayer,
    SubspaceProblem,
    TargetScaling,
    features_for,
    null_layer,
    solve_path,
    solve_subspace,
    spectral_start,
)
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.penalties import Group, group_share
from deeptobit.targets import CensoredTargets

TIGHT: dict[str, Any] = {"tol": 1e-7, "max_iter": 200}
ACTIVE = 4


def cohort(seed: int, n_samples: int = 200, n_features: int = 30) -> tuple[FloatArray, FloatArray]:
    """Six outcomes of four features among correlated ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) + 0.5 * rng.normal(size=(n_samples, 1))
    coef = np.zeros((n_features, 6))
    coef[:ACTIVE] = rng.normal(size=(ACTIVE, 2)) @ rng.normal(size=(2, 6))
    return X, X @ coef + rng.normal(size=(n_samples, 6))


def every_kind(Y: FloatArray, seed: int) -> CensoredTargets:
    """Left- and right-censored, interval-censored and missing entries."""
    rng = np.random.default_rng(seed)
    Y = np.clip(Y, -1.0, 2.5)
    Y[rng.uniform(size=Y.shape) < 0.1] = np.nan
    at_bounds = CensoredTargets.from_bounds(Y, -1.0, 2.5)
    wide = at_bounds.observed & (rng.uniform(size=Y.shape) < 0.1)
    return CensoredTargets.from_intervals(
        at_bounds.low - 0.3 * wide, at_bounds.high + 0.4 * wide, lower=-1.0, upper=2.5
    )


def null_of(
    seed: int, sparsity: float, *, rank: int = 2, free_sigma: bool = True, **shape: int
) -> NullLayer:
    X, Y = cohort(seed, **shape)
    targets = every_kind(Y, seed)
    weight = np.random.default_rng(seed + 100).uniform(0.5, 2.0, len(X))
    share, n_tasks = weight / weight.sum(), targets.shape[1]
    design = Design.build(X, share, center=True, standardize=True)
    problem = SubspaceProblem(
        features=features_for(design, Group(sparsity)),
        targets=targets,
        scaling=TargetScaling.build(targets, share, center=True),
        noise=Gaussian(),
        rank=rank,
        alpha=0.0,
        fit_intercept=True,
        free_sigma=np.full(n_tasks, free_sigma),
        total_weight=float(weight.sum()),
        penalty=Group(sparsity),
    )
    return null_layer(problem)


def slopes(null: NullLayer, layer: Layer) -> tuple[FloatArray, FloatArray]:
    """The likelihood's gradient by U (T, R) and by V transposed (D, R), written out in full."""
    problem = null.problem
    X, scaling = problem.features.matrix, problem.scaling
    assert X is not None
    latent = X @ layer.Z @ layer.U.T + layer.intercept
    low, high = scaling.apply(problem.targets.low), scaling.apply(problem.targets.high)
    by_latent = evaluate(Gaussian(), low, high, latent, np.exp(layer.log_sigma)).latent
    G = by_latent * problem.weight[:, None]
    return G.T @ (X @ layer.Z), X.T @ (G @ layer.U)


@pytest.mark.parametrize("sparsity", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("part", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_optimality_conditions_hold(sparsity: float, part: float, seed: int) -> None:
    null = null_of(seed, sparsity)
    alpha = part * null.alpha_max
    fit = solve_subspace(null, spectral_start(null), alpha=alpha, **TIGHT)
    assert fit.converged
    assert fit.gradient_norm <= 1e-7
    by_U, by_V = slopes(null, fit.layer)
    V, scale = fit.layer.Z, 1e-6 * null.gradient_scale
    norms = np.linalg.norm(V, axis=1)
    share = group_share(sparsity, len(V))
    np.testing.assert_allclose(by_U, -alpha * fit.layer.U, atol=scale)
    present = norms > 0.0
    pull = (1 - share) + share * norms.mean() / norms[present]
    np.testing.assert_allclose(by_V[present], -alpha * pull[:, None] * V[present], atol=scale)
    outside = np.linalg.norm(by_V[~present], axis=1)
    assert (outside <= alpha * share * norms.mean() + scale).all()


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_true_features_stay_and_most_others_leave(seed: int) -> None:
    null = null_of(seed, 1.0, n_samples=400)
    fit = solve_subspace(null, spectral_start(null), alpha=0.15 * null.alpha_max, **TIGHT)
    present = np.linalg.norm(fit.layer.Z, axis=1) > 0.0
    assert present[:ACTIVE].all()
    assert present[ACTIVE:].sum() <= 6  # of 26


@pytest.mark.parametrize("sparsity", [0.3, 1.0])
def test_more_features_enter_as_alpha_falls(sparsity: float) -> None:
    null = null_of(0, sparsity)
    alphas = null.alpha_max * np.array([1.001, 0.7, 0.4, 0.2, 0.1, 0.03, 0.001])
    path = list(solve_path(null, alphas, **TIGHT))
    counts = [int(fit.layer.Z.any(axis=1).sum()) for fit in path]
    assert all(fit.converged for fit in path)
    assert counts[0] == 0
    assert counts[-1] >= 28
    assert all(low >= high - 1 for high, low in pairwise(counts))
    assert all(low.objective < high.objective for high, low in pairwise(path))
    for alpha, warm in zip(alphas[1:].tolist(), path[1:], strict=True):
        cold = solve_subspace(null, spectral_start(null), alpha=alpha, **TIGHT)
        np.testing.assert_allclose(warm.objective, cold.objective, rtol=0.02)  # local optima


@pytest.mark.parametrize("sparsity", [0.1, 0.5, 0.9, 1.0])
def test_alpha_max_separates_nothing_from_something(sparsity: float) -> None:
    null = null_of(2, sparsity, free_sigma=False)
    for start in (null.layer, spectral_start(null)):
        above = solve_subspace(null, start, alpha=1.02 * null.alpha_max, **TIGHT)
        assert not above.layer.Z.any()
        assert not above.layer.U.any()
        assert above.certificate <= 1.0
    below = solve_subspace(null, null.layer, alpha=0.97 * null.alpha_max, **TIGHT)
    assert below.layer.Z.any()
    assert below.objective < above.objective


def test_where_rank_does_not_bind_the_certificate_is_one() -> None:
    null = null_of(0, 0.7, rank=6)
    fit = solve_subspace(null, spectral_start(null), alpha=0.2 * null.alpha_max, **TIGHT)
    assert fit.certificate <= 1.001


def test_more_features_than_rows_converge() -> None:
    null = null_of(0, 0.8, n_samples=40, n_features=80)
    fit = solve_subspace(null, spectral_start(null), alpha=0.2 * null.alpha_max, **TIGHT)
    assert fit.converged
    assert 0 < fit.layer.Z.any(axis=1).sum() < 40


def test_a_hardly_sparse_problem_is_the_dense_one() -> None:
    sparse, dense = null_of(0, 1e-9), null_of(0, 0.0)
    alpha = 0.1 * dense.alpha_max
    np.testing.assert_allclose(sparse.alpha_max, dense.alpha_max, rtol=1e-6)
    first, second = (
        solve_subspace(null, spectral_start(null), alpha=alpha, **TIGHT) for null in (sparse, dense)
    )
    np.testing.assert_allclose(first.objective, second.objective, rtol=1e-8)
    V = dense.problem.features.coefficients(second.layer.Z)
    np.testing.assert_allclose(
        first.layer.U @ first.layer.Z.T, second.layer.U @ V.T, rtol=1e-4, atol=1e-5
    )


def test_the_course_tells_every_step() -> None:
    seen: list[Any] = []
    null = null_of(0, 0.0)
    fit = solve_subspace(null, spectral_start(null), alpha=0.1, watch=seen.append, **TIGHT)
    assert tuple(seen) == fit.steps
    assert [step.n_iter for step in fit.steps] == list(range(1, fit.n_iter + 1))
    last = fit.steps[-1]
    assert (last.objective, last.gradient_norm) == (fit.objective, fit.gradient_norm)
    assert np.diff([step.objective for step in fit.steps]).max() < 1e-9
    assert last.subspace_change < 1e-3 < fit.steps[0].subspace_change
