from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from deeptobit.metrics import anmse, centred_anmse
from deeptobit.targets import CensoredTargets


@pytest.fixture
def problem() -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    Y = rng.normal(5.0, 2.0, (40, 3))
    return Y, Y + rng.normal(size=Y.shape), rng.uniform(0.1, 3.0, 40)


def test_centred_anmse_is_one_minus_r2(problem: tuple[Any, Any, Any]) -> None:
    Y, P, weights = problem
    expected = 1 - r2_score(Y, P, multioutput="raw_values")
    np.testing.assert_allclose(centred_anmse(Y, P, multioutput="raw_values"), expected, rtol=1e-12)
    weighted = centred_anmse(Y, P, sample_weight=weights)
    expected = 1 - r2_score(Y, P, sample_weight=weights)
    assert weighted == pytest.approx(expected, rel=1e-12)


def test_anmse_is_the_papers_formula(problem: tuple[Any, Any, Any]) -> None:
    Y, P, weights = problem
    ratios = np.sum((Y - P) ** 2, axis=0) / np.sum(Y**2, axis=0)
    assert anmse(Y, P) == pytest.approx(ratios.mean(), rel=1e-13)
    ratios = weights @ (Y - P) ** 2 / (weights @ Y**2)
    weighted = anmse(Y, P, sample_weight=weights, multioutput="raw_values")
    np.testing.assert_allclose(weighted, ratios, rtol=1e-13)
    assert anmse(Y, np.zeros_like(Y)) == 1.0
    assert anmse(Y, Y) == 0.0


def test_the_mean_of_the_known_entries_scores_one(problem: tuple[Any, Any, Any]) -> None:
    Y, _, weights = problem
    Y[::3, 1] = np.nan
    known = np.where(np.isnan(Y), 0.0, weights[:, None])
    mean = (known * np.nan_to_num(Y)).sum(axis=0) / known.sum(axis=0)
    score = centred_anmse(Y, np.broadcast_to(mean, Y.shape), sample_weight=weights)
    assert score == pytest.approx(1.0, rel=1e-12)


def test_units_do_not_matter_even_extreme_ones(problem: tuple[Any, Any, Any]) -> None:
    Y, P, _ = problem
    for factor in (1e-250, -3.0, 1e250):
        assert anmse(factor * Y, factor * P) == pytest.approx(anmse(Y, P), rel=1e-12)
        shifted = centred_anmse(factor * (Y + 7), factor * (P + 7))
        assert shifted == pytest.approx(centred_anmse(Y, P), rel=1e-10)


def test_entries_at_a_bound_count_and_intervals_do_not() -> None:
    low = np.array([1.0, -np.inf, 4.0, 2.0, np.nan])
    high = np.array([1.0, 0.0, np.inf, 3.0, np.nan])
    targets = CensoredTargets.from_intervals(low, high)
    P = np.array([2.0, 1.0, 3.0, 100.0, 100.0])
    for measure in (anmse, centred_anmse):
        assert measure(targets, P) == measure([1.0, 0.0, 4.0], P[:3])


def test_only_intervals_leave_nothing_to_score() -> None:
    with pytest.raises(ValueError, match="target 'y' has no known entry"):
        anmse(CensoredTargets.from_intervals([1.0, 2.0], [3.0, 4.0]), [1.0, 2.0])


def test_nothing_to_divide_by_is_an_error_that_names_the_task() -> None:
    Y = np.array([[0.0, 0.1], [0.0, 0.1], [np.nan, 0.1]])
    with pytest.raises(ValueError, match="target 'y0' is 0 in every known entry"):
        anmse(Y, np.zeros_like(Y))
    with pytest.raises(ValueError, match="target 'y1' is constant in every known entry"):
        centred_anmse(np.column_stack([[1.0, 2.0, 3.0], Y[:, 1]]), np.zeros((3, 2)))
    assert anmse(Y[:, 1], Y[:, 1]) == 0.0
    with pytest.raises(ValueError, match="constant"):  # only the row that differs has weight 0
        centred_anmse([1.0, 1.0, 2.0], [1.0, 1.0, 1.0], sample_weight=[1, 1, 0])


def test_what_cannot_be_computed_is_an_error_and_not_nan() -> None:
    Y = np.array([1e308, -1e308])
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="'y' is not a number"):
        centred_anmse(Y, Y)
    assert anmse(Y, Y) == 0.0
