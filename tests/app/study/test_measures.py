"""One table of measures; the coverage of censored entries is calibrated."""

import numpy as np
import pytest

from deeptobit.app.study import MEASURES, Measure, Predicted, measure
from deeptobit.app.study.measures import covered
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, NoiseByTask, Predictive, ScoreGrid
from deeptobit.targets import CensoredTargets

N = 20_000


def _drawn(seed: int = 0) -> tuple[FloatArray, Predictive]:
    """Outcomes of a known model, and their distributions."""
    rng = np.random.default_rng(seed)
    predictive = Predictive(Gaussian(), 3.0 * rng.normal(size=(N, 1)), np.array([1.5]))
    return predictive.sample(rng, 1)[:, :, 0], predictive


def _coverage(targets: CensoredTargets, predictive: Predictive, nominal: float) -> float:
    return float(measure(targets, predictive, nominal)["coverage"][0])


@pytest.mark.parametrize("width", [0.0, 0.1, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("nominal", [0.5, 0.9])
def test_of_the_true_model_intervals_of_any_width_are_covered_as_often_as_nominal(
    width: float, nominal: float
) -> None:
    y, predictive = _drawn()
    low = y if width == 0.0 else width * np.floor(y / width)
    targets = CensoredTargets.from_intervals(low, y if width == 0.0 else low + width)
    assert _coverage(targets, predictive, nominal) == pytest.approx(nominal, abs=0.01)


def test_entries_below_limits_of_their_own_are_covered_as_often_as_nominal() -> None:
    y, predictive = _drawn()
    limit = np.random.default_rng(1).normal(size=y.shape)
    below = y < limit
    targets = CensoredTargets.from_intervals(np.where(below, -np.inf, y), np.where(below, limit, y))
    assert _coverage(targets, predictive, 0.9) == pytest.approx(0.9, abs=0.01)


def test_too_narrow_a_model_covers_intervals_less_often() -> None:
    y, predictive = _drawn()
    narrow = Predictive(Gaussian(), predictive.latent, np.array([0.75]))
    low = np.floor(y)
    targets = CensoredTargets.from_intervals(low, low + 1.0)
    assert _coverage(targets, narrow, 0.9) < 0.7


def test_a_value_at_a_bound_of_the_scale_is_inside_or_outside() -> None:
    targets = CensoredTargets.from_bounds([[0.0], [0.0], [2.0]], 0, 9)
    latent = np.array([[-1.0], [5.0], [2.0]])
    predictive = Predictive(Gaussian(), latent, np.ones(1), targets.lower, targets.upper)
    inside = covered(Predicted(targets, predictive, latent, 0.9))
    np.testing.assert_array_equal(inside.ravel(), [1.0, 0.0, 1.0])


def test_an_interval_beyond_the_scale_is_at_its_bound() -> None:
    targets = CensoredTargets.from_intervals([-9.0, -9.0], [-5.0, -5.0], lower=0.0)
    latent = np.array([[-1.0], [5.0]])
    predictive = Predictive(Gaussian(), latent, np.ones(1), targets.lower, targets.upper)
    inside = covered(Predicted(targets, predictive, latent, 0.9))
    np.testing.assert_array_equal(inside.ravel(), [1.0, 0.0])


def test_far_in_a_tail_the_share_is_still_a_share() -> None:
    targets = CensoredTargets.from_intervals([40.0, -np.inf, 0.0], [41.0, -60.0, 1e6])
    predictive = Predictive(Gaussian(), np.zeros((3, 1)), np.ones(1))
    inside = covered(Predicted(targets, predictive, np.zeros((3, 1)), 0.9)).ravel()
    assert inside[:2].tolist() == [0.0, 0.0]
    assert inside[2] == pytest.approx(0.9)


def test_whole_scores_count_with_all_that_is_recorded_as_them() -> None:
    whole = NoiseByTask([Gaussian()], grid=ScoreGrid(np.ones(1), np.zeros(1)))
    rng = np.random.default_rng(0)
    predictive = Predictive(whole, 15 + 3 * rng.normal(size=(N, 1)), np.array([4.0]), 0.0, 30.0)
    y = predictive.sample(rng, 1)[:, :, 0]
    exact = CensoredTargets.from_bounds(y, 0.0, 30.0)
    inside = _coverage(exact, predictive, 0.9)
    between = (y > 0.0) & (y < 30.0)
    low = np.where(between, 3.0 * np.floor(y / 3.0) - 0.5, exact.low)
    high = np.where(between, 3.0 * np.floor(y / 3.0) + 2.5, exact.high)
    rough = CensoredTargets.from_intervals(low, high, lower=0.0, upper=30.0)
    assert inside > 0.9
    assert _coverage(rough, predictive, 0.9) == pytest.approx(inside, abs=0.02)


def test_missing_entries_count_for_nothing() -> None:
    y, predictive = _drawn()
    gaps = np.where(np.arange(N)[:, None] % 2, np.nan, y)
    known = measure(CensoredTargets.from_bounds(y[::2]), _rows(predictive, 2), 0.9)
    found = measure(CensoredTargets.from_bounds(gaps), predictive, 0.9)
    for name in MEASURES:
        np.testing.assert_allclose(found[name], known[name], rtol=1e-12, err_msg=name)


def _rows(predictive: Predictive, step: int) -> Predictive:
    return Predictive(predictive.noise, predictive.latent[::step], predictive.sigma)


def test_a_new_measure_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def mean_error(of: Predicted) -> FloatArray:
        return np.nanmean(np.abs(of.targets.values - of.point), axis=0)

    mae = Measure("MAE", "the mean absolute error", mean_error, "lower", style="significant")
    monkeypatch.setitem(MEASURES, "mae", mae)
    targets = CensoredTargets.from_bounds([[1.0, np.nan], [2.0, np.nan]])
    latent, bounds = np.array([[2.0, 0.0], [4.0, 0.0]]), (targets.lower, targets.upper)
    predictive = Predictive(Gaussian(), latent, np.ones(2), *bounds)
    np.testing.assert_array_equal(measure(targets, predictive, 0.9)["mae"], [1.5, np.nan])
