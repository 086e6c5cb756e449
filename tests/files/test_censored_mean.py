"""The censored mean against mpmath and against the library's own, far into both tails."""

from typing import Any

import mpmath
import numpy as np
import onnx
import pytest

from deeptobit import TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.files.onnx import onnx_bytes, tail_factor
from deeptobit.likelihood import Gaussian, Predictive
from tests.files.runtimes import RUNTIMES

INF = np.inf
BOUNDS = [(0.0, 30.0), (-INF, 1.0), (-2.0, INF), (-INF, INF), (0.0, 1e-9), (1e6, 1e6 + 1.0)]


def identity(sigma: float) -> Any:
    """A model whose score is its only feature, for every pair of bounds."""
    n_tasks = len(BOUNDS)
    model = TobitRegressor()
    model.n_features_in_ = 1
    model.coef_, model.intercept_ = np.ones((n_tasks, 1)), np.zeros(n_tasks)
    model.lower_, model.upper_ = np.array(BOUNDS).T
    model.sigma_ = np.full(n_tasks, sigma)
    model.target_names_ = [f"y{task}" for task in range(n_tasks)]
    return model


def test_the_polynomial_against_mpmath() -> None:
    z = np.concatenate([np.linspace(0.0, 12.0, 200), [20.0, 40.0]])
    exact = [float(mpmath.erfc(mpmath.mpf(at) / mpmath.sqrt(2)) / 2) for at in z]
    found = np.exp(-0.5 * z * z) * np.polynomial.Polynomial(tail_factor())((4 - z) / (4 + z))
    np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("sigma", [1e-6, 0.3, 5.0, 1e4])
def test_every_tail(sigma: float, runtime: str) -> None:
    model = identity(sigma)
    steps = np.concatenate([np.linspace(-60, 60, 121), [-1e8, 1e8]])
    ends = np.array([end for bounds in BOUNDS for end in bounds if np.isfinite(end)])
    X = (ends[:, None] + sigma * steps).reshape(-1, 1)
    expected = Predictive(
        Gaussian(), np.tile(X, len(BOUNDS)), model.sigma_, model.lower_, model.upper_
    ).mean()
    found = RUNTIMES[runtime](onnx_bytes(model, "mean", "float64"), X)
    assert ((found >= model.lower_) & (found <= model.upper_)).all()
    rounding = 4 * np.finfo(float).eps * (np.abs(X) + 1e6)
    assert (np.abs(found - expected) <= 1e-12 * sigma + rounding).all()


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kind", ["mean", "clip", "latent"])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_missing_feature_is_not_predicted_from(kind: Any, runtime: str) -> None:
    X: FloatArray = np.array([[1.0], [np.nan]])
    found = RUNTIMES[runtime](onnx_bytes(identity(1.0), kind, "float64"), X)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_operators_are_few_and_old() -> None:
    model = onnx.load_from_string(onnx_bytes(identity(1.0), "mean", "float64"))
    assert (model.opset_import[0].version, model.ir_version) == (17, 8)
    used = {node.op_type for node in model.graph.node}
    assert used == {"Cast", "MatMul", "Add", "Sub", "Mul", "Div", "Abs", "Exp", "Max", "Min"}


def test_single_precision_is_refused_where_it_cannot_tell_predictions_apart() -> None:
    with pytest.raises(ValueError, match="'y5' lies between 1000000 and 1000001, which single"):
        onnx_bytes(identity(1.0), "mean", "float32")
