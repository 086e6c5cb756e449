from typing import Any

import numpy as np
import pytest

from deeptobit.metrics import bound_calibration


def test_bins_by_hand() -> None:
    probability = np.array([[0.05, 0.0], [0.1, 0.95], [1.0, 0.12]])
    at_bound = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, np.nan]])
    result = bound_calibration(at_bound, probability)
    np.testing.assert_allclose(result.predicted, [0.025, 0.1, 0.975])
    np.testing.assert_allclose(result.observed, [0.0, 1.0, 0.5])
    np.testing.assert_array_equal(result.count, [2, 1, 2])
    assert result.expected_error == pytest.approx((2 * 0.025 + 0.9 + 2 * 0.475) / 5)


def test_one_bin_compares_the_means() -> None:
    at_bound, probability = [True, False, False, True], [0.2, 0.3, 0.9, 0.2]
    result = bound_calibration(at_bound, probability, n_bins=1)
    assert result.expected_error == pytest.approx(0.1)
    error, *_ = result
    assert error == result.expected_error


def test_the_truth_is_calibrated_and_overconfidence_is_not() -> None:
    rng = np.random.default_rng(0)
    probability = rng.uniform(size=(20000, 3))
    at_bound = rng.uniform(size=probability.shape) < probability
    assert bound_calibration(at_bound, probability).expected_error < 0.01
    sharpened = probability**2 / (probability**2 + (1 - probability) ** 2)
    assert bound_calibration(at_bound, sharpened).expected_error > 0.08


def test_weight_two_is_the_row_twice() -> None:
    rng = np.random.default_rng(1)
    probability = rng.uniform(size=(9, 2))
    at_bound = np.where(rng.uniform(size=(9, 2)) < 0.2, np.nan, probability > 0.6)
    weights = np.array([0, 1, 2, 0, 3, 1, 1, 2, 1])
    rows = np.repeat(np.arange(9), weights)
    weighted = bound_calibration(at_bound, probability, n_bins=4, sample_weight=weights)
    repeated = bound_calibration(at_bound[rows], probability[rows], n_bins=4)
    assert weighted.expected_error == pytest.approx(repeated.expected_error, rel=1e-12)
    np.testing.assert_allclose(weighted[1:], repeated[1:], rtol=1e-12)


@pytest.mark.parametrize(
    ("at_bound", "probability", "options", "message"),
    [
        ([0, 1], [0.5], {}, r"at_bound has shape \(2,\) but probability has shape \(1,\)"),
        ([0, 2], [0.5, 0.5], {}, "must hold True and False .*; got 2"),
        ([0, 1], [0.5, 1.5], {}, "probability must lie between 0 and 1; got 1.5"),
        ([0, 1], [0.5, np.nan], {}, "between 0 and 1; got nan"),
        ([np.nan, np.nan], [0.5, 0.5], {}, "at_bound has no known entry"),
        ([np.nan, 1], [0.5, 0.5], {"sample_weight": [1, 0]}, "no known entry"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [1, -1]}, "must be finite and not negative"),
        ([0, 1], [0.5, 0.5], {"n_bins": 0}, "n_bins must be a whole number, at least 1; got 0"),
        ([0, 1], [0.5, 0.5], {"n_bins": 2.5}, "n_bins must be a whole number, at least 1; got 2.5"),
    ],
)
def test_bad_arguments_are_refused(
    at_bound: Any, probability: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        bound_calibration(at_bound, probability, **options)
