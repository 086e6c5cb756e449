"""Every estimator predicts the same after ``to_onnx``, in every runtime."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
    __version__,
)
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    NoiseByTask,
    ScoreGrid,
    Spread,
    StudentT,
    TwoPiece,
)
from tests.estimators.problems import bounded, censored, one_task
from tests.files.runtimes import RUNTIMES, assert_alike, exported

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

X, Y = censored(n_samples=80, n_features=4, n_tasks=3)
MODELS = {
    "tobit": TobitRegressor(upper=[3.0, None, 4.0]),
    "layer": SubspaceTobitRegressor(2, upper=3.0),
    "network": SubspaceNetworkRegressor(2, 3, upper=3.0, joint_tuning=True),
    "naive": SubspaceNetworkRegressor(2, 2, upper=3.0, skip_connection=False),
    "search": SubspaceNetworkCV(cv=2, ranks=[2], alphas=[0.1], max_layers=1, upper=3.0),
    "auto": AutoTobitRegressor(
        members=("stack",), cv=2, upper=3.0, noise="gaussian", random_state=0
    ),
    "open": TobitRegressor(lower=None, upper=None),
}
FEATURES = {"plain": X, "far": 1e6 + X, "huge": 1e8 * X, "tiny": 1e-8 * X}


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", MODELS)
def test_agreement(name: str, features: str, tmp_path: Path) -> None:
    """With 1e6 ± 1 in single precision, the rounded features are those that both predict from."""
    given = FEATURES[features]
    model: Any = clone(MODELS[name]).fit(given, Y)
    for dtype in ("float32", "float64"):
        rows = given.astype(dtype)
        for kind in ("mean", "clip", "latent"):
            expected = model.predict(rows.astype(np.float64), kind)
            file = exported(model, tmp_path, kind, dtype=dtype)
            for run in RUNTIMES.values():
                found = run(file, rows)
                assert found.dtype == dtype
                assert_alike(found, expected, 3.0)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_ordinary_features_lose_nothing_in_single_precision(runtime: str, tmp_path: Path) -> None:
    model = clone(MODELS["network"]).fit(X, Y)
    found = RUNTIMES[runtime](exported(model, tmp_path), X.astype(np.float32))
    assert_alike(found, model.predict(X), 3.0, accuracy=1e-6)


def test_rows_far_from_the_others(tmp_path: Path) -> None:
    model = clone(MODELS["network"]).fit(X, Y)
    far: FloatArray = 1e4 * X
    for run in RUNTIMES.values():
        assert_alike(
            run(exported(model, tmp_path, dtype="float64"), far), model.predict(far), 3.0, 1e-9
        )


def test_any_number_of_rows(tmp_path: Path) -> None:
    file = exported(bounded().fit(X, Y), tmp_path)
    for run in RUNTIMES.values():
        for n_rows in (0, 1, 7):
            assert run(file, X[:n_rows].astype(np.float32)).shape == (n_rows, 3)


def test_one_outcome_keeps_its_axis(tmp_path: Path) -> None:
    features, y = one_task()
    model = bounded().fit(features, y)
    for run in RUNTIMES.values():
        found = run(exported(model, tmp_path, dtype="float64"), features)
        assert_alike(found, model.predict(features)[:, None], 3.0)


def test_the_kind_is_that_of_the_estimator_unless_told(tmp_path: Path) -> None:
    model = bounded(prediction="clip").fit(X, Y)
    assert _output(exported(model, tmp_path)) == "clip"
    assert _output(exported(model, tmp_path, "latent")) == "latent"
    assert _output(exported(model, tmp_path, kind="mean")) == "mean"


def test_names_bounds_and_version_are_in_the_file(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["age", "体重", "sex=m", "volume"])
    targets = pd.DataFrame(Y, columns=["MMSE", "tau", "speed"])
    model = TobitRegressor(upper={"MMSE": 3.0}).fit(frame, targets)
    proto = onnx.load_from_string(exported(model, tmp_path))
    props = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(props["feature_names"]) == list(frame.columns)
    assert json.loads(props["target_names"]) == list(targets.columns)
    assert json.loads(props["lower"]) == [0.0, 0.0, 0.0]
    assert json.loads(props["upper"]) == [3.0, None, None]
    assert json.loads(props["sigma"]) == model.sigma_.tolist()
    assert (props["kind"], props["noise"]) == ("mean", "gaussian")
    assert props["deeptobit_version"] == __version__
    (given,), (written,) = proto.graph.input, proto.graph.output
    assert (given.name, written.name) == ("X", "mean")
    assert [dim.dim_param or dim.dim_value for dim in given.type.tensor_type.shape.dim] == [
        "batch",
        4,
    ]
    assert [dim.dim_param or dim.dim_value for dim in written.type.tensor_type.shape.dim] == [
        "batch",
        3,
    ]


def test_what_row_limits_leave(tmp_path: Path) -> None:
    """Limits of rows are not in the graph; the scores and σ in it are all that they need."""
    limits = np.where(np.arange(len(Y))[:, None] % 2, 0.5, 0.0) * np.ones_like(Y)
    model = TobitRegressor(upper=3.0).fit(X, np.maximum(Y, limits), lower=limits)
    for run in RUNTIMES.values():
        found = run(exported(model, tmp_path, dtype="float64"), X)
        assert_alike(found, model.predict(X), 3.0)
        latent = run(exported(model, tmp_path, "latent", dtype="float64"), X)
        assert_alike(np.clip(latent, limits, 3.0), model.predict(X, "clip", lower=limits), 3.0)


@pytest.mark.parametrize("bounds", [(0.0, 3.0), (0.0, None), (None, 3.0), (None, None)])
def test_the_mean_under_any_noise(bounds: Any, tmp_path: Path) -> None:
    lower, upper = bounds
    model: Any = SubspaceTobitRegressor(2, lower=lower, upper=upper, outside="clip").fit(X, Y)
    n_tasks = Y.shape[1]
    families = [StudentT(2.5), Logistic(), TwoPiece(StudentT(4.0), 0.7), Gaussian()] * n_tasks
    spread = Spread(np.linspace(-0.4, 0.6, n_tasks), np.ones(n_tasks), np.ones(n_tasks))
    grid = ScoreGrid(np.tile([0.0, 0.5], n_tasks)[:n_tasks], np.zeros(n_tasks))
    model._chosen_noise = NoiseByTask(families[:n_tasks], spread, grid)
    file = exported(model, tmp_path, "mean", dtype="float64")
    far = np.concatenate([X, 30.0 * X[:20]])
    for run in RUNTIMES.values():
        scale = np.maximum(np.abs(model.predict(far)), 3.0)
        assert (np.abs(run(file, far) - model.predict(far)) / scale).max() < 1e-6
    broken = X[:2].copy()
    broken[0, 0] = np.nan
    assert np.isnan(RUNTIMES["onnxruntime"](file, broken)).all(axis=1).tolist() == [True, False]


@pytest.mark.parametrize("kind", ["clip", "latent"])
def test_other_noise_where_it_does_not_matter(kind: Any, tmp_path: Path) -> None:
    model = bounded(noise="student_t").fit(X, Y)
    file = exported(model, tmp_path, kind, dtype="float64")
    for run in RUNTIMES.values():
        assert_alike(run(file, X), model.predict(X, kind), 3.0)


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    with pytest.raises(NotFittedError):
        bounded().to_onnx(path)
    model: Any = bounded().fit(X, Y)
    with pytest.raises(
        ValueError,
        match="kind must be 'mean', 'clip', 'latent', 'p_lower', 'p_upper' or 'quantile'",
    ):
        model.to_onnx(path, "median")
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'; got 'float16'"):
        model.to_onnx(path, dtype="float16")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        model.to_onnx(tmp_path / "none" / "a.onnx")
    assert list(tmp_path.iterdir()) == []


def _output(file: bytes) -> str:
    (output,) = onnx.load_from_string(file).graph.output
    return str(output.name)
