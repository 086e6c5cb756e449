from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from benchmarks.race.peers.tasks import Task
from benchmarks.race.peers.units import (
    Family,
    LinearUnits,
    LogUnits,
    Units,
    find_linear_units,
    find_log_units,
)

FAMILIES: list[Family] = ["normal", "logistic"]
UNITS: list[Units] = [LinearUnits(2.0, 0.5), LogUnits(-1.0, 0.3, 0.7)]


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_median_is_the_score(units: Units, family: Family) -> None:
    score = np.array([-1.0, 0.0, 2.0])
    assert_allclose(units.standard(units.latent(score, 0.4, family).ppf(0.5)), score, atol=1e-12)


def test_a_far_origin_is_a_normal_distribution() -> None:
    y = np.random.default_rng(0).normal(size=400).clip(-0.5, 1.5)
    task = Task(y[:, None], y, -0.5, 1.5, [], 0)
    log, linear = find_log_units(task), find_linear_units(task)
    x = np.linspace(-2.0, 2.0, 9)
    far = log.latent(np.zeros(1), 1.0, "normal")
    assert log.origin == -100.5
    assert_allclose(far.cdf(x), norm(linear.centre, linear.spread).cdf(x), atol=5e-3)


def test_no_lower_bound() -> None:
    y = np.random.default_rng(0).normal(size=100)
    units = find_log_units(Task(y[:, None], y, -np.inf, np.inf, [], 0))
    assert units.standard(-np.inf) == -np.inf
    assert_allclose(units.standard(y).std(), 1.0, atol=1e-3)
