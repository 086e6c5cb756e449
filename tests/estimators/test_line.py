"""Slopes of tasks lie around one that all of them tell together."""

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.estimators._line import common_slope, recalibrate
from deeptobit.likelihood import Gaussian
from deeptobit.targets import CensoredTargets

ROWS, TASKS = 60, 40
FREE = np.full(TASKS, True)


def scores(
    slope: float, seed: int = 0
) -> tuple[FloatArray, CensoredTargets, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    eta = rng.normal(size=(ROWS, TASKS))
    Y = np.maximum(slope * eta + 2.0 * rng.normal(size=eta.shape), -1.0)
    targets = CensoredTargets.from_bounds(Y, lower=-1.0)
    return eta, targets, np.ones(ROWS), np.full(TASKS, 2.0)


@pytest.mark.parametrize("slope", [0.25, 0.5, 1.0, 1.5])
def test_tasks_tell_together_what_none_tells_alone(slope: float) -> None:
    rows = scores(slope)
    found = common_slope(*rows, FREE, fit_intercept=True)
    assert found == pytest.approx(slope, abs=0.12)
    alone = recalibrate(*rows, Gaussian(), FREE, fit_intercept=True).slope.mean()
    assert abs(alone - slope) > abs(found - slope) or slope == 1.0


def test_slopes_are_as_often_above_as_below() -> None:
    rows = scores(0.5)
    centre = common_slope(*rows, FREE, fit_intercept=True)
    line = recalibrate(*rows, Gaussian(), FREE, centre, fit_intercept=True)
    assert line.slope.mean() == pytest.approx(centre, abs=0.02)


def test_scores_that_mislead_are_not_used() -> None:
    assert common_slope(*scores(-1.0), FREE, fit_intercept=True) == 0.0


def test_tasks_that_say_nothing_leave_it_at_1() -> None:
    assert common_slope(*scores(0.5), ~FREE, fit_intercept=True) == 1.0


def test_without_an_intercept() -> None:
    assert common_slope(*scores(0.5), FREE, fit_intercept=False) == pytest.approx(0.5, abs=0.12)
