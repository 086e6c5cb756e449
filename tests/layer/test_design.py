from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_array, csr_matrix

from deeptobit.layer import BasisFeatures, Design
from tests.layer.problems import features, row_weights

EVERY_SCALING = pytest.mark.parametrize(
    ("center", "standardize"), [(True, True), (True, False), (False, True), (False, False)]
)


def test_columns_have_weighted_mean_0_and_variance_1() -> None:
    X, weight = features(), row_weights()
    design = Design.build(X, weight, center=True, standardize=True)
    np.testing.assert_allclose(weight @ design.matrix, 0.0, atol=1e-14)
    np.testing.assert_allclose(weight @ design.matrix**2, 1.0, rtol=1e-12)
    np.testing.assert_allclose(design.matrix * design.scale + design.mean, X, atol=1e-13)
    np.testing.assert_allclose(design.mean, np.average(X, axis=0, weights=weight), rtol=1e-12)


def test_the_gram_matrix_is_that_of_the_standardised_rows() -> None:
    X, weight = features(), row_weights()
    design = Design.build(X, weight, center=True, standardize=True)
    cov = np.cov(X, rowvar=False, aweights=weight, ddof=0)
    spread = np.sqrt(np.diag(cov))
    np.testing.assert_allclose(design.gram(), cov / np.outer(spread, spread), atol=1e-12)
    assert design.shape == X.shape


@EVERY_SCALING
@pytest.mark.parametrize("kind", [csr_matrix, csc_matrix, csr_array])
def test_sparse_and_dense_features_have_the_same_moments(
    kind: Any, center: bool, standardize: bool
) -> None:
    X, weight = features(), row_weights()
    dense = Design.build(X, weight, center=center, standardize=standardize)
    sparse = Design.build(kind(X), weight, center=center, standardize=standardize)
    assert sparse.is_sparse
    assert not dense.is_sparse
    np.testing.assert_allclose(sparse.mean, dense.mean, rtol=1e-12)
    np.testing.assert_allclose(sparse.scale, dense.scale, rtol=1e-12)
    np.testing.assert_allclose(sparse.gram(), dense.gram(), atol=1e-11)


def test_sparse_features_stay_as_given() -> None:
    X = csr_matrix(features())
    design = Design.build(X, row_weights(), center=True, standardize=True)
    assert (design.matrix != X).nnz == 0


def test_units_and_origins_of_the_columns_do_not_matter() -> None:
    X, weight = features(), row_weights()
    here = Design.build(X, weight, center=True, standardize=True)
    moved = X * [1e-6, 40.0, 1.0, 1e8] + [0.0, -3.0, 7.0, 0.0]
    there = Design.build(moved, weight, center=True, standardize=True)
    np.testing.assert_allclose(there.matrix, here.matrix, atol=1e-11)
    np.testing.assert_allclose(there.scale, here.scale * [1e-6, 40.0, 1.0, 1e8], rtol=1e-11)


def test_a_large_mean_does_not_eat_a_small_deviation() -> None:
    deviation = np.linspace(-1.0, 1.0, 9)[:, None]
    weight = np.full(9, 1 / 9)
    design = Design.build(deviation + 2.0**30, weight, center=True, standardize=True)
    expected = Design.build(deviation, weight, center=True, standardize=True)
    np.testing.assert_allclose(design.matrix, expected.matrix, atol=1e-6)


def test_a_row_of_weight_two_is_the_row_twice() -> None:
    X = features()[:5]
    heavy = Design.build(X, np.array([1, 2, 1, 1, 1]) / 6, center=True, standardize=True)
    twice = Design.build(X[[0, 1, 1, 2, 3, 4]], np.full(6, 1 / 6), center=True, standardize=True)
    np.testing.assert_allclose(heavy.mean, twice.mean, rtol=1e-13)
    np.testing.assert_allclose(heavy.scale, twice.scale, rtol=1e-13)
    np.testing.assert_allclose(heavy.gram(), twice.gram(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("constant", [0.0, 0.1, -7.7, 1e12])
def test_a_constant_column_becomes_zero(constant: float) -> None:
    X = features()
    X[:, 2] = constant
    design = Design.build(X, row_weights(), center=True, standardize=True)
    assert (design.matrix[:, 2] == 0.0).all()
    assert design.scale[2] == 1.0
    assert design.vanishing.tolist() == [False, False, True, False]


def test_an_empty_sparse_column_is_constant() -> None:
    X = features()
    X[:, 1] = 0.0
    design = Design.build(csr_matrix(X), row_weights(), center=True, standardize=True)
    assert design.vanishing.tolist() == [False, True, False, False]
    assert design.scale[1] == 1.0


def test_without_centring_a_column_is_scaled_by_its_root_mean_square() -> None:
    X = np.array([[3.0, 5.0, 0.0], [-4.0, 5.0, 0.0]])
    design = Design.build(X, np.full(2, 0.5), center=False, standardize=True)
    np.testing.assert_allclose(design.scale, [np.sqrt(12.5), 5.0, 1.0])
    np.testing.assert_allclose(design.matrix, X / design.scale)
    assert (design.mean == 0.0).all()


def test_without_standardising_units_are_kept() -> None:
    X, weight = features(), row_weights()
    design = Design.build(X, weight, center=True, standardize=False)
    np.testing.assert_allclose(design.matrix, X - weight @ X, atol=1e-13)
    assert (design.scale == 1.0).all()


def test_features_are_never_modified() -> None:
    X = features()
    X.setflags(write=False)
    before = X.copy()
    Design.build(X, row_weights(), center=True, standardize=True)
    np.testing.assert_array_equal(X, before)


def test_moments_outlive_the_matrix() -> None:
    design = Design.build(features(), row_weights(), center=True, standardize=True)
    light = design.without_matrix()
    assert light.matrix is None
    assert light.scale is design.scale
    assert design.matrix is not None


def test_rows_of_weight_zero_hold_nothing() -> None:
    """In units of the other rows their features could be beyond any precision."""
    X = np.array([[1.0, 0.0], [3.0, 1e-40], [1e300, 1.0]])
    design = Design.build(X, np.array([0.5, 0.5, 0.0]), center=True, standardize=True)
    np.testing.assert_array_equal(design.matrix, [[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    assert X[2, 0] == 1e300


@pytest.mark.parametrize("value", [-0.034401045807689525, 0.1, 1 / 3, 1e9 + 0.1])
def test_a_constant_column_has_no_spread_however_many_rows_there_are(value: float) -> None:
    """Sums of many rows are rounded, which must not look like a spread of 1e-16."""
    for n_samples in range(50, 3000, 7):
        X, weight = np.full((n_samples, 1), value), np.full(n_samples, 1.0 / n_samples)
        design = Design.build(X, weight, center=True, standardize=True)
        assert design.vanishing.all()
        assert (design.matrix == 0.0).all()


@pytest.mark.parametrize("mean", [300.0, 1e5, -1e8])
def test_a_sparse_column_far_from_zero_keeps_its_digits(mean: float) -> None:
    """Products of raw values are too large for what is left of them: here, two equal columns."""
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=500), rng.random(500)
    X = np.column_stack([mean + x, rng.poisson(0.2, 500), 7.0 + 2.0 * mean + 2.0 * x, np.ones(500)])
    weight /= weight.sum()
    dense = Design.build(X, weight, center=True, standardize=True)
    sparse = Design.build(csr_matrix(X), weight, center=True, standardize=True)
    np.testing.assert_allclose(sparse.gram(), dense.gram(), atol=1e-13)
    (_, rows), *_ = BasisFeatures.own(sparse).blocks()
    np.testing.assert_allclose(rows.dense(), dense.matrix, atol=1e-8)
