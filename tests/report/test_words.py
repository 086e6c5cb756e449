import pytest

from deeptobit.report._directions import Likeness
from deeptobit.report._words import likeness_words


@pytest.mark.parametrize(
    ("cosine", "said"),
    [
        (0.9, "The features move MMSE and CDR most alike (cosine 0.90)."),
        (
            -0.5,
            "The features move no two outcomes alike; MMSE and CDR come closest (cosine −0.50).",
        ),
    ],
)
def test_opposite_outcomes_are_not_alike(cosine: float, said: str) -> None:
    assert likeness_words(Likeness("MMSE", "CDR", cosine)) == said
