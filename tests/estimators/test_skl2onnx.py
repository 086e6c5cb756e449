"""Pipelines, searches and ensembles convert once the estimators are registered."""

from typing import Any

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.ensemble import StackingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deeptobit import SubspaceNetworkCV, SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.estimators import register_skl2onnx
from tests.estimators.problems import bounded, censored
from tests.files.runtimes import RUNTIMES, assert_alike

X, Y = censored(n_samples=80, n_features=4, n_tasks=3)
SINGLE = X.astype(np.float32)
HOLES = np.where(np.arange(X.size).reshape(X.shape) % 7, SINGLE, np.float32(np.nan))


@pytest.fixture(autouse=True)
def _registered() -> None:
    register_skl2onnx()


def assert_converts(model: Any, rows: Any, expected: Any = None, **settings: Any) -> None:
    file = to_onnx(model, rows[:1], **settings).SerializeToString()
    expected = model.predict(rows) if expected is None else expected
    for run in RUNTIMES.values():
        found = run(file, rows)
        assert found.dtype == rows.dtype
        assert_alike(found, expected.reshape(len(rows), -1), 3.0)


@pytest.mark.parametrize(
    "last",
    [
        bounded(),
        SubspaceTobitRegressor(2, upper=3.0),
        SubspaceNetworkRegressor(2, 2, upper=3.0),
        SubspaceNetworkCV(cv=2, ranks=[2], alphas=[0.1], upper=3.0, max_layers=1),
    ],
    ids=lambda last: type(last).__name__,
)
def test_pipelines(last: Any) -> None:
    """The imputer of onnxruntime knows single precision alone."""
    assert_converts(make_pipeline(SimpleImputer(), StandardScaler(), last).fit(HOLES, Y), HOLES)
    assert_converts(make_pipeline(StandardScaler(), last).fit(X, Y), X)


def test_another_kind() -> None:
    pipeline = make_pipeline(StandardScaler(), bounded()).fit(SINGLE, Y)
    clipped = pipeline[-1].predict(pipeline[:-1].transform(SINGLE), "clip")
    for key in (type(pipeline[-1]), id(pipeline[-1])):
        assert_converts(pipeline, SINGLE, clipped, options={key: {"kind": "clip"}})
    with pytest.raises(ValueError, match=r"it must be in \['mean', 'clip', 'latent'\]"):
        to_onnx(pipeline, SINGLE, options={id(pipeline[-1]): {"kind": "median"}})


def test_the_kind_of_the_estimator() -> None:
    assert_converts(bounded(prediction="clip").fit(SINGLE, Y), SINGLE)


def test_searches_and_ensembles() -> None:
    steps = make_pipeline(StandardScaler(), SubspaceTobitRegressor(upper=3.0))
    grid = {"subspacetobitregressor__rank": [1, 2]}
    assert_converts(GridSearchCV(steps, grid, cv=2).fit(SINGLE, Y), SINGLE)
    stack = StackingRegressor([("tobit", bounded()), ("ridge", Ridge())], cv=2)
    assert_converts(stack.fit(SINGLE, Y[:, 0]), SINGLE)


def test_whole_numbers_and_old_operators() -> None:
    counts: Any = np.round(3.0 * X).astype(np.int64)
    model = bounded().fit(counts, Y)
    file = to_onnx(model, counts[:1], target_opset=13).SerializeToString()
    for run in RUNTIMES.values():
        assert_alike(run(file, counts), model.predict(counts), 3.0)


def test_what_is_refused() -> None:
    transform = make_pipeline(SubspaceTobitRegressor(2, upper=3.0), Ridge()).fit(SINGLE, Y)
    with pytest.raises(NotImplementedError, match="is followed by another step"):
        to_onnx(transform, SINGLE)


def test_a_step_with_other_noise() -> None:
    model = bounded(noise="logistic").fit(SINGLE, Y)
    file = to_onnx(model, SINGLE).SerializeToString()
    for run in RUNTIMES.values():
        assert_alike(run(file, SINGLE), model.predict(SINGLE), 3.0)
