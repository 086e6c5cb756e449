"""Steps between scores are found where there are some, and nowhere else."""

import numpy as np
import pytest

from deeptobit.targets import find_step

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0, 1, 2, 7, np.nan], 1.0),
        ([3.5, 4.0, 6.0], 0.5),
        ([1e9, 1e9 + 1, 1e9 + 5], 1.0),
        (np.round(np.arange(31) * 100 / 30, 2), 100 / 30),  # recorded as 3.33, 6.67, 10, ...
        ([-4.0, 0.0, 12.0], 4.0),
    ],
)
def test_scores_on_a_grid(values: list[float], step: float) -> None:
    assert find_step(np.array(values, dtype=np.float64)) == pytest.approx(step, rel=1e-9)


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1.0, np.nan],  # any two are
        [],
        [np.nan, np.nan, np.nan],
        [0.0, 1.0, 2.5],
        RNG.normal(size=200),
        np.maximum(RNG.normal(size=200), 0.0),
        [0.0, 5e-324, 1e300],
        [-1e308, 1.0, 1e308],
    ],
)
def test_what_is_on_no_grid(values: list[float]) -> None:
    assert find_step(np.array(values, dtype=np.float64)) == 0.0


def test_bounds_are_scores() -> None:
    assert find_step(np.array([1.0]), 0.0, 30.0) == 1.0
    assert find_step(np.array([1.0, 2.0]), 0.5, np.inf) == 0.5
    assert find_step(np.array([1.0, 2.0]), 0.1, np.inf) == 0.0
