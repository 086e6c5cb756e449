from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.layer import BasisFeatures, Design
from deeptobit.layer import features as _basis
from deeptobit.layer import features as _design
from tests.layer.problems import features, row_weights

SPARSE = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
ALPHA = pytest.mark.parametrize("alpha", [0.0, 1e-3, 5.0])


def make_design(X: FloatArray, weight: FloatArray, *, sparse: bool = False) -> Design:
    given: Any = csr_matrix(X) if sparse else X
    return Design.build(given, weight, center=True, standardize=True)


def wide_design() -> Design:
    return make_design(features()[:12].reshape(6, 8), np.arange(1.0, 7.0) / 21.0)


def standardised_rows(X: FloatArray, weight: FloatArray) -> FloatArray:
    return np.asarray(make_design(X, weight).matrix)


def all_rows(whitened: BasisFeatures) -> FloatArray:
    return np.concatenate([block.dense() for _, block in whitened.blocks()])


@SPARSE
@ALPHA
def test_the_basis_makes_the_gram_matrix_round(sparse: bool, alpha: float) -> None:
    design = make_design(features(), row_weights(), sparse=sparse)
    basis = BasisFeatures.whitened(design, alpha).basis
    regularised = design.gram() + alpha * np.eye(4)
    np.testing.assert_allclose(basis.T @ regularised @ basis, np.eye(4), atol=1e-11)


@ALPHA
def test_a_wide_matrix_keeps_only_the_directions_it_varies_in(alpha: float) -> None:
    design = wide_design()
    whitened = BasisFeatures.whitened(design, alpha)
    assert (whitened.rank, whitened.n_dropped) == (5, 3)
    regularised = design.gram() + alpha * np.eye(8)
    product = whitened.basis.T @ regularised @ whitened.basis
    np.testing.assert_allclose(product, np.eye(5), atol=1e-11)
    # Nothing of the null space is left in: every column is a combination of rows.
    null = np.linalg.svd(design.matrix)[2][5:]
    np.testing.assert_allclose(null @ whitened.basis, 0.0, atol=1e-12)


@SPARSE
@ALPHA
def test_rounded_rows_times_z_are_rows_times_coefficients(sparse: bool, alpha: float) -> None:
    X, weight = features(), row_weights()
    whitened = BasisFeatures.whitened(make_design(X, weight, sparse=sparse), alpha)
    z = np.random.default_rng(0).normal(size=(whitened.rank, 3))
    expected = standardised_rows(X, weight) @ whitened.coefficients(z)
    covered = np.zeros(len(X))
    for rows, block in whitened.blocks():
        covered[rows] += 1
        np.testing.assert_allclose(block @ z, expected[rows], atol=1e-11)
        np.testing.assert_allclose(block.dense() @ z, expected[rows], atol=1e-11)
    assert (covered == 1).all()


@SPARSE
def test_adjoint_is_the_transpose_of_forward(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_design, "_SPARSE_BLOCK_ROWS", 300)
    whitened = BasisFeatures.whitened(make_design(features(), row_weights(), sparse=sparse), 0.1)
    rng = np.random.default_rng(0)
    z, values = rng.normal(size=(4, 3)), rng.normal(size=(700, 3))
    there, back = np.zeros(3), np.zeros((4, 3))
    n_blocks = 0
    for rows, block in whitened.blocks():
        there += ((block @ z) * values[rows]).sum(axis=0)
        back += block.adjoint(values[rows])
        n_blocks += 1
    assert n_blocks == (3 if sparse else 2)
    np.testing.assert_allclose((back * z).sum(axis=0), there, rtol=1e-11)


@SPARSE
def test_single_rows_are_the_rows_to_single_precision(sparse: bool) -> None:
    whitened = BasisFeatures.whitened(make_design(features(), row_weights(), sparse=sparse), 0.1)
    z = np.random.default_rng(0).normal(size=(4, 2))
    pairs = zip(whitened.blocks(), whitened.blocks(single=True), strict=True)
    for (rows, exact), (rough_rows, rough) in pairs:
        assert rows == rough_rows
        np.testing.assert_allclose(rough @ z, exact @ z, rtol=1e-5, atol=1e-5)
        assert sparse or (rough @ z).dtype == np.float32


@SPARSE
@ALPHA
@pytest.mark.parametrize("max_gram", [4000, 3])
def test_the_ridge_is_diagonal_in_z(
    sparse: bool, alpha: float, max_gram: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_basis, "_MAX_GRAM", max_gram)
    whitened = BasisFeatures.whitened(make_design(features(), row_weights(), sparse=sparse), alpha)
    z = np.random.default_rng(0).normal(size=(4, 3))
    penalty = alpha * np.square(whitened.coefficients(z)).sum(axis=0)
    np.testing.assert_allclose((whitened.ridge[:, None] * z**2).sum(axis=0), penalty, rtol=1e-12)


@SPARSE
def test_too_many_features_are_only_scaled(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_basis, "_MAX_GRAM", 3)
    X, weight = features(), row_weights()
    design = make_design(X, weight, sparse=sparse)
    whitened = BasisFeatures.whitened(design, 0.3)
    assert whitened.basis.shape == (4,)
    assert whitened.n_dropped == 0
    assert not whitened.dependent_columns().any()
    diagonal = whitened.basis**2 * np.diag(design.gram() + 0.3 * np.eye(4))
    np.testing.assert_allclose(diagonal, 1.0, rtol=1e-12)
    z = np.random.default_rng(0).normal(size=(4, 2))
    expected = standardised_rows(X, weight) @ whitened.coefficients(z)
    found = np.concatenate([block @ z for _, block in whitened.blocks()])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(all_rows(whitened) @ z, expected, atol=1e-12)


@SPARSE
def test_dependent_columns_are_found_and_share_their_coefficient(sparse: bool) -> None:
    X = features()
    X[:, 3] = 2.0 * X[:, 1]
    whitened = BasisFeatures.whitened(make_design(X, row_weights(), sparse=sparse), 0.0)
    assert (whitened.rank, whitened.n_dropped) == (3, 1)
    assert whitened.dependent_columns().tolist() == [False, True, False, True]
    gamma = whitened.coefficients(np.random.default_rng(0).normal(size=(3, 1)))
    np.testing.assert_allclose(gamma[1], gamma[3], rtol=1e-9)


def test_features_that_never_vary_leave_no_direction() -> None:
    whitened = BasisFeatures.whitened(make_design(np.full((700, 2), 0.3), row_weights()), 0.0)
    assert (whitened.rank, whitened.n_dropped) == (0, 2)
    for rows, block in whitened.blocks():
        assert ((block @ np.zeros((0, 3))) == np.zeros((rows.stop - rows.start, 3))).all()
    np.testing.assert_array_equal(whitened.coefficients(np.zeros((0, 1))), np.zeros((2, 1)))


def test_only_a_sparse_matrix_is_kept_beside_the_basis() -> None:
    dense = BasisFeatures.whitened(make_design(features(), row_weights()), 0.1)
    sparse = BasisFeatures.whitened(make_design(features(), row_weights(), sparse=True), 0.1)
    assert dense.design.matrix is None
    assert dense.n_samples == sparse.n_samples == 700
    assert sparse.matrix is None
    assert sparse.design.is_sparse


def test_a_sparse_constant_column_has_no_direction() -> None:
    X = csr_matrix(np.column_stack([np.full(100, 1.1), np.arange(100.0)]))
    design = Design.build(X, np.full(100, 0.01), center=True, standardize=True)
    assert design.vanishing.tolist() == [True, False]
    assert BasisFeatures.whitened(design, alpha=0.0).n_dropped == 1
