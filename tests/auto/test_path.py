"""The path: invariances, kinds of censoring, shapes that leave little room."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.auto import evidence as problem_module
from deeptobit.auto.path import PATH, EvidenceMember, fit_members, learn_path
from deeptobit.targets import CensoredTargets
from tests.auto.problems import linear, posed


def _members(X: Any, Y: Any, weight: Any = None, **bounds: Any) -> list[EvidenceMember]:
    problem = posed(X, Y, weight, **bounds)
    states = zip(PATH, learn_path(problem).values(), strict=True)
    found = [fit_members(problem, state, prior, (0.3, 0.6, 1.2)) for prior, state in states]
    return [member for members in found for member in members]


def _scores(members: list[EvidenceMember], X: FloatArray) -> FloatArray:
    return np.stack([X @ member.coef.T + member.intercept for member in members])


def test_units_of_features_and_outcomes_do_not_matter() -> None:
    X, Y = linear()
    plain = _members(X, Y, lower=-0.5, upper=1.0)
    scale, shift = np.array([1e-3, 10.0, 2.0, 1e4]), np.array([0.0, 5.0, -1.0, 3.0])
    moved = _members(
        1e3 * X + 7.0, scale * Y + shift, lower=-0.5 * scale + shift, upper=scale + shift
    )
    expected = scale * _scores(plain, X) + shift
    np.testing.assert_allclose(_scores(moved, 1e3 * X + 7.0), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(moved[5].sigma, scale * plain[5].sigma, rtol=1e-7)


def test_permutations_permute() -> None:
    X, Y = linear()
    rng = np.random.default_rng(0)
    rows, columns, tasks = rng.permutation(len(X)), rng.permutation(6), rng.permutation(4)
    plain = _members(X, Y, lower=0.0)[-1]
    moved = _members(X[rows][:, columns], Y[rows][:, tasks], lower=0.0)[-1]
    np.testing.assert_allclose(moved.coef, plain.coef[tasks][:, columns], rtol=1e-7, atol=1e-9)


def test_a_weight_of_two_is_a_row_twice_and_of_zero_no_row() -> None:
    X, Y = linear()
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    repeated = np.repeat(np.arange(len(X)), weight)
    weighted = _members(X, Y, weight, lower=0.0)
    plain = _members(X[repeated], Y[repeated], lower=0.0)
    np.testing.assert_allclose(_scores(weighted, X), _scores(plain, X), rtol=1e-8, atol=1e-9)


def test_left_of_y_is_right_of_its_mirror_image() -> None:
    X, Y = linear()
    left, right = _members(X, Y, lower=0.0), _members(X, -Y, upper=0.0)
    np.testing.assert_allclose(_scores(left, X), -_scores(right, X), rtol=1e-8, atol=1e-9)


def test_narrow_intervals_are_observations() -> None:
    X, Y = linear()
    exact = _members(X, Y)
    intervals = _members(X, CensoredTargets.from_intervals(Y - 1e-5, Y + 1e-5))
    np.testing.assert_allclose(_scores(intervals, X), _scores(exact, X), rtol=1e-3, atol=1e-3)


def test_missing_entries_cost_little_and_change_no_other_task_much() -> None:
    X, Y = linear(n_samples=400)
    holes = Y.copy()
    holes[::3, 0] = np.nan
    full, partial = _members(X, Y)[-1], _members(X, holes)[-1]
    assert np.abs(partial.coef[1:] - full.coef[1:]).max() < 0.05
    assert np.abs(partial.coef[0] - full.coef[0]).max() < 0.3


def test_a_strong_prior_has_small_effects() -> None:
    X, Y = linear()
    sizes = [np.linalg.norm(member.coef) for member in _members(X, Y, lower=0.0)[:3]]
    assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize(("n_samples", "n_features"), [(30, 60), (6, 40), (25, 1)])
def test_any_shape_gives_finite_layers_and_honest_noise(n_samples: int, n_features: int) -> None:
    X, Y = linear(n_samples=n_samples, n_features=n_features, n_tasks=3)
    noise = np.random.default_rng(0).normal(size=Y.shape)
    for member in _members(X, noise, lower=-0.5):
        assert np.isfinite(member.coef).all()
        assert (member.sigma > 0.2).all()


def test_tasks_censored_throughout_keep_to_themselves() -> None:
    X, Y = linear()
    floor, both = np.zeros(len(X)), np.where(Y[:, 0] > 0, 1.0, 0.0)
    members = _members(
        X, np.column_stack([Y, floor, both]), lower=[-9] * 4 + [0, 0], upper=[9] * 4 + [1, 1]
    )
    for member in members:
        np.testing.assert_allclose(member.coef[4], 0.0, atol=1e-12)
        assert member.intercept[4] < 0.0
        assert np.isfinite(member.coef[5]).all()


def test_a_constant_feature_has_no_effect() -> None:
    X, Y = linear()
    for member in _members(np.column_stack([X, np.ones(len(X))]), Y, lower=0.0):
        np.testing.assert_allclose(member.coef[:, -1], 0.0, atol=1e-12)


def test_sparse_features_are_made_dense_while_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = linear()
    dense, sparse = _members(X, Y)[3], _members(csr_matrix(X), Y)[3]
    np.testing.assert_allclose(sparse.coef, dense.coef)
    monkeypatch.setattr(problem_module, "_MAX_DENSE", 100)
    with pytest.raises(ValueError, match="too large to learn a variance for every feature"):
        posed(csr_matrix(X), Y)
