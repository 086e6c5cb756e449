import numpy as np
import pytest

from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import bound_calibration
from deeptobit.report._reliability import N_BINS, bound_errors, without_small_bins
from deeptobit.targets import CensoredTargets


def _problem(n_rows: int, seed: int) -> tuple[CensoredTargets, Predictive]:
    rng = np.random.default_rng(seed)
    latent = rng.normal(scale=2.0, size=(n_rows, 3))
    Y = np.clip(latent + rng.normal(size=latent.shape), -1.0, 1.5)
    Y[rng.random(Y.shape) < 0.1] = np.nan
    targets = CensoredTargets.from_bounds(
        Y, [-1.0, -1.0, -np.inf], [1.5, np.inf, 1.5], outside="clip"
    )
    return targets, Predictive(Gaussian(), latent, np.ones(3), targets.lower, targets.upper)


@pytest.mark.parametrize("n_rows", [10, 40, 400])
def test_no_bin_holds_fewer_than_five(n_rows: int) -> None:
    targets, predictive = _problem(n_rows, seed=n_rows)
    kept = without_small_bins(targets, predictive)
    assert kept.missing.sum() >= targets.missing.sum()
    for censored, bounds, probability in (
        (kept.at_lower, kept.lower, predictive.at_lower()),
        (kept.at_upper, kept.upper, predictive.at_upper()),
    ):
        happened = np.where(kept.missing | np.isinf(bounds), np.nan, censored)
        if not np.isnan(happened).all():
            assert bound_calibration(happened, probability, n_bins=N_BINS).count.min() >= 5


def test_large_bins_stay_as_they_are() -> None:
    targets, predictive = _problem(4000, seed=0)
    assert without_small_bins(targets, predictive) is targets


def test_errors_by_side_are_those_of_the_metric() -> None:
    targets, predictive = _problem(500, seed=1)
    happened = np.where(targets.missing, np.nan, targets.at_lower)
    happened[:, 2] = np.nan  # has no lower bound
    expected = bound_calibration(happened, predictive.at_lower()).expected_error
    errors = bound_errors(targets, predictive)
    assert set(errors) == {"lower", "upper"}
    assert errors["lower"] == pytest.approx(expected)
