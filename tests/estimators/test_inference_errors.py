"""What inference cannot answer, in the words that users read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit import TobitRegressor, load
from tests.estimators.problems import bounded, censored

FEATURES, Y = censored()
X = pd.DataFrame(FEATURES, columns=["age", "volume", "years"])


def fitted(**settings: Any) -> TobitRegressor:
    return bounded(**settings).fit(X, Y)


@pytest.mark.parametrize(
    ("restricted", "message"),
    [
        (
            lambda: bounded().fit(X[["age"]].rename(columns={"age": "height"}), Y),
            "the models are not nested: 'height' is not among this model's features",
        ),
        (
            lambda: bounded().fit(X[["age"]], Y, sample_weight=np.arange(len(X))),
            "both models must be fitted with the same sample weights",
        ),
        (lambda: fitted(noise="logistic"), "both models must assume the same noise"),
    ],
)
def test_a_likelihood_ratio_needs_nested_models(
    restricted: Callable[[], TobitRegressor], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fitted().likelihood_ratio_test(restricted())


def test_every_row_belongs_to_a_cluster() -> None:
    groups = [None, *range(1, len(X))]
    with pytest.raises(ValueError, match="groups is missing in row 0 "):
        fitted().summary(cov_type="cluster", groups=groups)


def test_a_loaded_model_has_no_training_data(tmp_path: Path) -> None:
    fitted().save(tmp_path / "a.model")
    with pytest.raises(ValueError, match="training data, which are never stored with a"):
        load(tmp_path / "a.model").summary()
