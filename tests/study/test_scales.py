import re

import numpy as np
import pytest

from deeptobit.datasets._scores import SCORES
from deeptobit.study._piles import find_piles
from deeptobit.study._scales import SCALES, known_scale


@pytest.mark.parametrize(
    ("column", "low", "high", "bounds"),
    [
        ("MMSE", 10, 30, (0, 30)),
        ("mmse.total_m12", 10, 30, (0, 30)),
        ("ADAS-Cog 13", 3, 60, (0, 85)),
        ("ADAS11_bl", 3, 60, (0, 70)),
        ("CDRSB", 0, 9, (0, 18)),
        ("RAVLT_immediate", 10, 60, (0, 75)),
        ("RAVLT_learning", -3, 12, (-15, 15)),
        ("NPIQ_bl", 0, 20, (0, 36)),
        ("sf36_vitality", 0, 100, (0, 100)),
        ("PHQ-9", 0, 20, (0, 27)),
        ("gad7_score", 0, 20, (0, 21)),
        ("UPDRS_III", 0, 90, (0, 108)),
        ("updrs3", 0, 120, (0, 132)),
        ("MDS-UPDRS part 2", 0, 30, (0, 52)),
        ("BDI-II", 0, 40, (0, 63)),
        ("gds", 0, 14, (0, 15)),
        ("gds", 0, 28, (0, 30)),
    ],
)
def test_columns_are_recognised(
    column: str, low: float, high: float, bounds: tuple[float, float]
) -> None:
    scale = known_scale(column, low, high)
    assert scale is not None
    assert (scale.lower, scale.upper) == bounds


@pytest.mark.parametrize(
    "column", ["age", "MMSE_change", "phq9_item3", "sf36_pcs", "mmse_missing", "RAVLT_perc_forget"]
)
def test_what_is_not_the_scale_itself_is_left_alone(column: str) -> None:
    assert known_scale(column, 0, 3) is None


def test_values_beyond_the_bounds_are_another_scale() -> None:
    assert known_scale("MMSE", 0, 31) is None
    assert known_scale("MMSE", -4, 30) is None


def test_the_table_is_sound_and_sourced() -> None:
    for scale in SCALES:
        re.compile(scale.pattern)
        assert scale.lower < scale.upper
        assert re.search(r"\d{4}", scale.source), scale.name


def test_it_agrees_with_the_simulated_cohort() -> None:
    for score in SCORES:
        scale = known_scale(score.name, score.lower, score.upper)
        assert scale is None or (scale.lower, scale.upper) == (score.lower, score.upper), score


def test_piles() -> None:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=500)
    assert find_piles(latent)[:2] == (None, None)
    assert find_piles(np.clip(latent, -1.0, 1.5))[:2] == (-1.0, 1.5)
    assert find_piles(np.round(10 * latent))[:2] == (None, None)
    assert find_piles(rng.integers(0, 2, 500).astype(float))[:2] == (None, None)
    assert find_piles(np.full(500, np.nan))[:2] == (None, None)
