"""The page about other systems is a program that runs."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkCV,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import NoiseByTask, StudentT, TwoPiece
from tests.estimators.problems import censored

TEXT = (Path(__file__).parents[2] / "docs" / "use-elsewhere.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Where the page was run, and what it defined."""
    folder, names = tmp_path_factory.mktemp("page"), dict[str, Any]()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in BLOCKS:
            exec(compile(block, "use-elsewhere.md", "exec"), names)
    return folder, names


def test_the_page_runs(ran: tuple[Path, dict[str, Any]]) -> None:
    folder, names = ran
    written = {file.name for file in folder.iterdir()}
    cards = {"scores-card.md", "scores-card.json"}
    assert written == {"scores.model", "scores.onnx", "scores.skops"} | cards
    assert [len(part) for part in names["names"]] == [12, 6]


@pytest.mark.parametrize(
    "model",
    [
        TobitRegressor(noise=StudentT(df=5.0)),
        SubspaceTobitRegressor(2, upper=3.0),
        SubspaceNetworkCV(cv=2, ranks=[1], alphas=[1.0], max_layers=1, upper=3.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_trusted_types_are_all_that_a_fitted_model_holds(
    model: Any, ran: tuple[Path, dict[str, Any]]
) -> None:
    X, Y = censored(n_samples=80)
    model = clone(model).fit(X, Y)
    check_round_trip(model, X, Y, ran[1]["TRUSTED"])


def test_trusted_types_are_all_that_a_model_with_mixed_noise_holds(
    ran: tuple[Path, dict[str, Any]],
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    noise = [rng.normal(size=150), rng.exponential(2.0, size=150), rng.standard_t(3, size=150)]
    Y = X.sum(axis=1, keepdims=True) + np.column_stack(noise)
    model = AutoTobitRegressor(lower=None, random_state=0).fit(X, Y)
    assert isinstance(model.noise_, NoiseByTask)
    assert any(isinstance(family, TwoPiece) for family in model.noise_.families)
    check_round_trip(model, X, Y, ran[1]["TRUSTED"])


def check_round_trip(model: Any, X: FloatArray, Y: FloatArray, trusted: list[str]) -> None:
    """Calibrate a fitted model, write it, and read the same predictions from what was written."""
    model.calibrate_intervals(X, Y)
    import skops.io  # loads PyTorch too

    again = skops.io.loads(skops.io.dumps(model), trusted=trusted)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
