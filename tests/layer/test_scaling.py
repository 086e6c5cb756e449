import numpy as np
import pytest

from deeptobit.layer import TargetScaling
from deeptobit.targets import CensoredTargets

WEIGHT = np.array([0.1, 0.2, 0.3, 0.4])


def test_location_and_scale_are_weighted_moments_of_what_was_recorded() -> None:
    Y = np.array([[0.0, 5.0], [2.0, np.nan], [4.0, 7.0], [1.0, 6.0]])
    scaling = TargetScaling.build(CensoredTargets.from_bounds(Y, lower=0), WEIGHT, center=True)
    second = np.average([5.0, 7.0, 6.0], weights=[0.1, 0.3, 0.4])
    np.testing.assert_allclose(scaling.location, [WEIGHT @ Y[:, 0], second])
    variance = np.average((np.array([5.0, 7.0, 6.0]) - second) ** 2, weights=[0.1, 0.3, 0.4])
    np.testing.assert_allclose(scaling.scale[1], np.sqrt(variance))


def test_an_interval_counts_as_its_middle_and_a_bound_as_its_value() -> None:
    targets = CensoredTargets.from_intervals([-np.inf, 0.0, 3.0], [1.0, 4.0, np.inf])
    weight = np.full(3, 1 / 3)
    scaling = TargetScaling.build(targets, weight, center=True)
    np.testing.assert_allclose(scaling.location, 2.0)
    np.testing.assert_allclose(scaling.scale, np.std([1.0, 2.0, 3.0]))


def test_without_centring_the_scale_is_the_root_mean_square() -> None:
    targets = CensoredTargets.from_bounds([3.0, 4.0])
    scaling = TargetScaling.build(targets, np.full(2, 0.5), center=False)
    np.testing.assert_allclose(scaling.scale, np.sqrt(12.5))
    assert scaling.location.tolist() == [0.0]


@pytest.mark.parametrize(("constant", "unit"), [(0.0, 1.0), (0.1, 0.1), (-7.7, 7.7), (1e9, 1e9)])
def test_a_score_that_never_varies_is_its_own_unit(constant: float, unit: float) -> None:
    targets = CensoredTargets.from_bounds(np.full((700, 1), constant))
    scaling = TargetScaling.build(targets, np.full(700, 1 / 700), center=True)
    np.testing.assert_allclose(scaling.scale, unit)


def test_rescaling_a_target_with_its_bounds_changes_nothing_in_standard_units() -> None:
    Y = np.array([0.0, 0.5, 2.0, 3.0])
    here = CensoredTargets.from_bounds(Y, 0.0, 3.0)
    there = CensoredTargets.from_bounds(100.0 * Y - 7.0, -7.0, 293.0)
    ends = [TargetScaling.build(t, WEIGHT, center=True).apply(t.low) for t in (here, there)]
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12)


def test_ends_of_some_tasks_are_scaled_and_open_or_missing_ends_stay() -> None:
    scaling = TargetScaling(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 8.0]))
    ends = np.array([[-np.inf, 3.0], [11.0, np.nan]])
    scaled = scaling.apply(ends, np.array([2, 0]))
    np.testing.assert_array_equal(scaled, [[-np.inf, 1.0], [1.0, np.nan]])


@pytest.mark.parametrize("value", [-0.034401045807689525, 0.1, 1 / 3])
def test_a_constant_score_has_no_spread_however_many_rows_there_are(value: float) -> None:
    for n_samples in range(50, 3000, 37):
        targets = CensoredTargets.from_bounds(np.full((n_samples, 2), value))
        scaling = TargetScaling.build(targets, np.full(n_samples, 1.0 / n_samples), center=True)
        np.testing.assert_allclose(scaling.scale, abs(value))
