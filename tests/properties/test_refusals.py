"""Numbers with which nothing can be computed are refused by name, and large answers are given."""

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor, TobitRegressor
from deeptobit.targets import CensoredTargets

X = np.column_stack([np.sin(np.arange(20.0)), np.cos(1.7 * np.arange(20.0))])
Y = np.clip(1.0 + X[:, 0] + 0.3 * np.sin(7.3 * np.arange(20.0)), 0.0, 2.0)
MODELS = [TobitRegressor(), SubspaceTobitRegressor(1), SubspaceNetworkRegressor(1, 1)]


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request: pytest.FixtureRequest) -> Any:
    return clone(request.param)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_a_feature_that_is_too_large(model: Any, container: Any) -> None:
    large = X.copy()
    large[3, 1] = -1e160
    with pytest.raises(ValueError, match=r"feature 'x1' is too large in row 3 \(-1e\+160\); resc"):
        model.fit(container(large), Y)


def test_an_interval_that_is_too_large(model: Any) -> None:
    low, high = Y.copy(), Y.copy()
    low[2], high[2] = -1e200, 1e200
    with pytest.raises(ValueError, match=r"target 'y' is too large in row 2 \(-1e\+200\); rescale"):
        model.fit(X, CensoredTargets.from_intervals(low, high))


def test_a_target_that_is_too_small(model: Any) -> None:
    with pytest.raises(
        ValueError, match=r"target 'y' is too small \(at most .*e-201\); rescale it"
    ):
        model.fit(X, 1e-201 * Y)


def test_bounds_that_are_too_large(model: Any) -> None:
    with pytest.raises(
        ValueError, match=r"upper bound of target 'y' is too large \(1e\+300\); use"
    ):
        type(model)(upper=1e300).fit(X, Y)
    limits = np.full((20, 1), -1e300)
    with pytest.raises(ValueError, match=r"lower bound of target 'y' is too large \(-1e\+300\)"):
        model.fit(X, Y).predict(X, lower=limits)


@pytest.mark.parametrize("sigma", [1e-30, 1e30])
def test_a_sigma_of_another_unit(model: Any, sigma: float) -> None:
    with pytest.raises(ValueError, match=r"'y': sigma = 1e.* cannot belong to values that spread"):
        type(model)(sigma=sigma).fit(X, Y)


@pytest.mark.parametrize("kind", [SubspaceTobitRegressor, SubspaceNetworkRegressor])
def test_a_sigma_of_another_unit_in_a_stream(kind: Any) -> None:
    with pytest.raises(
        ValueError, match=r"'y': sigma = 1e-09 cannot belong to values up to 2e\+60;"
    ):
        kind(1, sigma=1e-9).partial_fit(X, np.full(20, 2e60))


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_weights_that_cannot_count_rows(model: Any, size: float) -> None:
    with pytest.raises(ValueError, match=r"the largest sample_weight is 1e.*; weights count rows"):
        model.fit(X, Y, sample_weight=np.full(20, size))


def test_weights_that_are_large() -> None:
    model = TobitRegressor().fit(1e140 * X, Y, sample_weight=np.full(20, 1e99))
    np.testing.assert_allclose(model.feature_scale_ / 1e140, X.std(axis=0))


@pytest.mark.parametrize("size", [1e-150, 1e-40])
def test_a_feature_that_is_too_small(model: Any, size: float) -> None:
    model.set_params(standardize=size < 1e-100)
    with pytest.raises(ValueError, match=r"feature 'x0' is too small \(at most .*\); rescale it"):
        model.fit(csr_array(size * X), Y)


def test_answers_beyond_single_precision_stay_in_double(model: Any) -> None:
    single = X.astype(np.float32)
    assert model.fit(single, Y).predict(single).dtype == np.float32
    large = type(model)(upper=2e100).fit(single, 1e100 * Y).predict(single)
    assert large.dtype == np.float64
    np.testing.assert_allclose(
        large / 1e100, model.set_params(upper=2.0).fit(X, Y).predict(X), 1e-4
    )
