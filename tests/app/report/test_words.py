from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.report.effects import similarity_words
from deeptobit.app.report.page import environment
from deeptobit.app.report.words import count_bounded


@pytest.mark.parametrize(
    ("cosine", "said"),
    [
        (0.9, "The features move MMSE and CDR most alike (cosine 0.90)."),
        (0.0, "The features move MMSE and CDR most alike (cosine 0.00)."),
        (-1.0, "The features move MMSE and CDR in the most opposite directions (cosine −1.00)."),
    ],
)
def test_opposite_outcomes_are_not_alike(cosine: float, said: str) -> None:
    names = ["MMSE", "CDR"]
    assert similarity_words(pd.DataFrame([[1.0, cosine], [cosine, 1.0]], names, names)) == said


def test_bounds_and_values_at_them_are_counted() -> None:
    table = pd.DataFrame(
        {
            "lower": [0.0, -np.inf, np.nan],
            "upper": [30.0, np.inf, np.inf],
            "at_lower": [0.05, 0.0, 0.02],
            "at_upper": [0.06, 0.0, 0.0],
        }
    )
    assert "\n2 of the 3 outcomes are recorded between bounds, 1 of them with\n10 % or" in _told(
        table
    )
    assert "\nThe outcome is recorded between bounds.\nThe model" in _told(table.iloc[[0]])
    assert "bounds" not in _told(table.iloc[[1]])


def _told(table: pd.DataFrame) -> str:
    n_bounded, n_often = count_bounded(table)
    return str(
        environment()
        .get_template("study.html.j2")
        .render(
            rows=range(len(table)),
            features=["age"],
            model=SimpleNamespace(n_features_in_=1),
            n_rows="40",
            n_bounded=n_bounded,
            n_often=n_often,
            often="10 %",
            held_out_rows="Each row was predicted",
            fitted=SimpleNamespace(streamed=False),
        )
    )
