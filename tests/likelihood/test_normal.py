from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.likelihood import Gaussian
from deeptobit.likelihood import normal as special
from deeptobit.likelihood.kernels import log_ndtr_mills_excess
from deeptobit.likelihood.normal import log_ndtr

REFERENCE = Path(__file__).parents[1] / "reference" / "special"
# As text first: pandas rounds numbers less exactly than Python.
NORMAL = pd.read_csv(REFERENCE / "normal.csv", dtype=str).astype(float)
INTERVAL = pd.read_csv(REFERENCE / "interval.csv", dtype=str).astype(float)


def worst_relative_error(got: np.ndarray, expected: pd.Series) -> float:
    known = expected.notna().to_numpy() & (expected.to_numpy() != 0)
    assert known.sum() > 150
    reference = expected.to_numpy()[known]
    return float(np.max(np.abs(got[known] - reference) / np.abs(reference)))


@pytest.mark.parametrize("function", [log_ndtr, special.mills, special.mills_excess])
def test_tail_functions_agree_with_mpmath(function: Callable[..., np.ndarray]) -> None:
    name, got = function.__name__, function(NORMAL["z"].to_numpy())
    assert worst_relative_error(got, NORMAL[name]) < 1e-12


def test_interval_mass_agrees_with_mpmath() -> None:
    a, b = INTERVAL["a"].to_numpy(), INTERVAL["b"].to_numpy()
    found = -Gaussian().interval(a, b).nll
    assert worst_relative_error(found, INTERVAL["log_diff_ndtr"]) < 1e-12


@pytest.mark.parametrize("function", [log_ndtr, special.mills, special.mills_excess])
def test_tail_functions_stay_finite_far_out(function: Callable[..., np.ndarray]) -> None:
    far = np.array([-1e150, -1e100, -1e20, -1e5, 1e5, 1e20, 1e150])
    assert np.isfinite(function(far)).all()


def test_interval_functions_stay_finite_far_out() -> None:
    start = np.array([-1e100, -1e12, -1e4, 1e4, 1e12, 1e100])
    end = start + np.array([1e90, 1.0, 1e-6, 1e-6, 1.0, 1e90])
    assert np.isfinite(Gaussian().interval(start, end).nll).all()


def test_open_intervals_are_one_sided_tails() -> None:
    z, infinity = np.linspace(-40, 40, 33), np.array(np.inf)
    interval = Gaussian().interval
    np.testing.assert_allclose(interval(-infinity, z).nll, -log_ndtr(z), rtol=1e-12)
    np.testing.assert_allclose(interval(z, infinity).nll, -log_ndtr(-z), rtol=1e-12)
    assert interval(-infinity, infinity).nll == 0


@pytest.mark.parametrize("region", [(-60.0, -40.0), (-40.0, -8.0), (-8.0, 0.0), (0.0, 40.0)])
def test_compiled_tail_is_its_reference(region: tuple[float, float]) -> None:
    z = np.random.default_rng(0).uniform(*region, 20_000)
    found = np.array([log_ndtr_mills_excess(value) for value in z])
    np.testing.assert_allclose(found[:, 0], log_ndtr(z), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found[:, 1], special.mills(z), rtol=1e-12, atol=1e-13)


def test_compiled_excess_keeps_its_digits_in_the_tail() -> None:
    z = np.linspace(-60.0, -1.0, 5001)
    found = np.array([log_ndtr_mills_excess(value)[2] for value in z])
    np.testing.assert_allclose(found, special.mills_excess(z), rtol=1e-11)


def test_cells_of_the_table_join() -> None:
    edges = np.arange(-40.0, 9.0, 1.0 / 16.0)
    below, above = np.nextafter(edges, -100.0), np.nextafter(edges, 100.0)
    left = np.array([log_ndtr_mills_excess(value) for value in below])
    right = np.array([log_ndtr_mills_excess(value) for value in above])
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-13)
