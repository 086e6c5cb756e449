import pandas as pd
import pytest

from deeptobit.app.report.directions import similarity_words
from deeptobit.app.report.words import _bounds


@pytest.mark.parametrize(
    ("cosine", "said"),
    [
        (0.9, "The features move MMSE and CDR most alike (cosine 0.90)."),
        (
            -1.0,
            "The features move MMSE and CDR in opposite directions (cosine −1.00): what raises one "
            "lowers the other.",
        ),
        (
            -0.5,
            "The features move no two outcomes alike; MMSE and CDR come closest (cosine −0.50).",
        ),
    ],
)
def test_opposite_outcomes_are_not_alike(cosine: float, said: str) -> None:
    names = ["MMSE", "CDR"]
    assert similarity_words(pd.DataFrame([[1.0, cosine], [cosine, 1.0]], names, names)) == said


@pytest.mark.parametrize(
    ("n_outcomes", "bounded", "often", "said"),
    [
        (1, 1, 1, "It is recorded between bounds, and 10 % or more of its values are at one;"),
        (1, 1, 0, "It is recorded between bounds, and less than 10 % of its values are at one;"),
        (3, 1, 1, "1 of the 3 is recorded between bounds, and 10 % or more of its values are at"),
        (3, 2, 1, "2 of the 3 are recorded between bounds, and 1 of them has 10 % or more of the"),
        (3, 3, 2, "All are recorded between bounds, and 2 of them have 10 % or more of the values"),
        (3, 3, 0, "All are recorded between bounds, and none of them has 10 % or more of the"),
    ],
)
def test_bounds_of_one_and_of_many(n_outcomes: int, bounded: int, often: int, said: str) -> None:
    assert _bounds(n_outcomes, bounded, often).startswith(said)
