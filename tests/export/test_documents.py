"""The page about other systems is a program that runs."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.base import clone

from deeptobit import SubspaceNetworkCV, SubspaceTobitRegressor, TobitRegressor
from deeptobit.likelihood import StudentT
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
    model.calibrate_intervals(X, Y)
    again = skops.io.loads(skops.io.dumps(model), trusted=ran[1]["TRUSTED"])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
