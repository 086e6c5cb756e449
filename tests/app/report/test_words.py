import numpy as np
import pandas as pd
import pytest

from deeptobit.app.report.effects import similarity_words
from deeptobit.app.report.words import _bounds


@pytest.mark.parametrize(
    ("cosine", "said"),
    [
        (0.9, "The features move MMSE and CDR most alike (cosine 0.90)."),
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
    assert _bounds(table).startswith(
        "2 of the 3 outcomes are recorded between bounds, 1 of them with 10 % or more of the values"
    )
    assert _bounds(table.iloc[[0]]).startswith("The outcome is recorded between bounds. The model")
    assert _bounds(table.iloc[[1]]) == ""
