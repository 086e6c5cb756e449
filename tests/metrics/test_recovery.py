from typing import Any

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from deeptobit.metrics import mutual_coherence, principal_angles, subspace_difference


def test_known_angles_come_back_ascending() -> None:
    angles = np.array([1e-12, 0.3, 1.2])
    U = np.eye(6)[:, :3]
    U_hat = np.vstack([np.diag(np.cos(angles)), np.diag(np.sin(angles))])[:, ::-1]
    np.testing.assert_allclose(principal_angles(U, U_hat), angles, rtol=1e-3)


def test_angles_agree_with_scipy_where_all_are_large() -> None:
    rng = np.random.default_rng(5)
    for shape in [(8, 3), (8, 5), (3, 2), (3, 4)]:
        U, U_hat = rng.normal(size=(shape[0], 3)), rng.normal(size=shape)
        expected = subspace_angles(U, U_hat)[::-1]
        np.testing.assert_allclose(principal_angles(U, U_hat), expected, atol=1e-7)


def test_a_dependent_column_adds_no_angle() -> None:
    U = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(principal_angles(U, np.eye(3)[:, :2]), [np.pi / 4])


def test_principal_angles_do_not_depend_on_the_basis() -> None:
    rng = np.random.default_rng(0)
    U, U_hat = rng.normal(size=(12, 3)), rng.normal(size=(12, 4))
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    expected = principal_angles(U, U_hat)
    assert expected.shape == (3,)
    assert (np.diff(expected) > 0).all()
    np.testing.assert_allclose(principal_angles(U @ rotation, U_hat), expected, rtol=1e-10)
    skewed = U @ np.array([[1.0, 2.0, 0.0], [0.0, 0.1, 0.0], [3.0, 0.0, -5.0]])
    np.testing.assert_allclose(principal_angles(skewed, U_hat), expected, rtol=1e-10)
    np.testing.assert_allclose(principal_angles(U_hat, U), expected, rtol=1e-10)
    assert principal_angles(U, skewed).max() < 1e-13
    assert subspace_difference(U, skewed) > 0.5


def test_cosines_are_the_singular_values_between_bases() -> None:
    rng = np.random.default_rng(1)
    U, U_hat = rng.normal(size=(9, 3)), rng.normal(size=(9, 3))
    between = np.linalg.qr(U)[0].T @ np.linalg.qr(U_hat)[0]
    cosines = np.linalg.svd(between, compute_uv=False)
    np.testing.assert_allclose(np.cos(principal_angles(U, U_hat)), cosines, rtol=1e-12)


def test_subspace_difference_is_the_papers_and_sees_rotations() -> None:
    rng = np.random.default_rng(2)
    U = rng.normal(size=(10, 3))
    noise = rng.normal(size=(10, 3))
    expected = np.sqrt((noise**2).sum() / (U**2).sum())
    assert subspace_difference(U, U + noise) == pytest.approx(expected, rel=1e-12)
    assert subspace_difference(U, U) == 0.0
    assert subspace_difference(U, U[:, ::-1]) > 0.5
    assert subspace_difference(1e-200 * U, -1e-200 * U) == pytest.approx(2.0)


def test_mutual_coherence_is_the_absolute_cosine_of_every_pair() -> None:
    rng = np.random.default_rng(3)
    U, U_hat = rng.normal(size=(7, 2)), rng.normal(size=(7, 3))
    pairs = [
        abs(u @ v) / (np.linalg.norm(u) * np.linalg.norm(v)) for u in U.T for v in (U_hat * -4).T
    ]
    got = mutual_coherence(U, U_hat)
    assert got.maximum == pytest.approx(max(pairs), rel=1e-12)
    assert got.mean == pytest.approx(np.mean(pairs), rel=1e-12)
    assert mutual_coherence(U, 2 * U).maximum == pytest.approx(1.0, rel=1e-12)
    assert mutual_coherence(U, 2 * U).maximum <= 1.0


@pytest.mark.parametrize(("length", "level"), [(1, 1.0), (2, 2 / np.pi), (3, 0.5)])
def test_chance_level_in_closed_form(length: int, level: float) -> None:
    assert mutual_coherence([[1.0]] * length, [[1.0]] * length).chance == pytest.approx(level)


@pytest.mark.parametrize(("length", "level"), [(10, 0.2587), (100, 0.0800)])
def test_chance_level_is_the_mean_of_independent_vectors(length: int, level: float) -> None:
    rng = np.random.default_rng(4)
    U, U_hat = rng.normal(size=(length, 400)), rng.normal(size=(length, 400))
    got = mutual_coherence(U, U_hat)
    assert got.chance == pytest.approx(level, abs=5e-5)
    assert got.mean == pytest.approx(got.chance, rel=0.02)


@pytest.mark.parametrize("measure", [principal_angles, subspace_difference, mutual_coherence])
def test_matrices_are_checked(measure: Any) -> None:
    U = np.eye(3)[:, :2]
    with pytest.raises(ValueError, match=r"U must be a matrix.* got shape \(3,\)"):
        measure(U[:, 0], U)
    with pytest.raises(ValueError, match=r"U_hat must be a matrix.* got shape \(3, 0\)"):
        measure(U, U[:, :0])
    with pytest.raises(ValueError, match="U_hat contains NaN or infinity"):
        measure(U, np.where(U == 0, np.nan, U))
    with pytest.raises(ValueError, match=r"of U is 0 and|U is 0 everywhere"):
        measure(0 * U, U)


def test_mismatched_matrices_are_refused() -> None:
    U, U_hat = np.ones((4, 2)), np.ones((3, 2))
    for measure in (principal_angles, subspace_difference, mutual_coherence):
        with pytest.raises(ValueError, match=r"U has shape \(4, 2\) but U_hat has shape \(3, 2\)"):
            measure(U, U_hat)
    with pytest.raises(ValueError, match="both need one row per task"):
        principal_angles(U, U_hat)
    with pytest.raises(ValueError, match="column 1 of U_hat is 0 and has no direction"):
        mutual_coherence(U, U * [1, 0])
    with pytest.raises(ValueError, match="U_hat is 0 everywhere"):
        principal_angles(U, 0 * U)
