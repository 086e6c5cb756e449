from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from benchmarks.race.peers.tasks import SideBySide, tasks_of
from tests.benchmarks.race.peers.problems import linear

MEAN, SCALE = np.arange(12.0).reshape(4, 3), np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("method", ["cdf", "sf", "logcdf", "logsf", "logpdf"])
@pytest.mark.parametrize("shape", [(), (3,), (4, 3), (5, 1, 1), (5, 4, 3)])
def test_side_by_side_is_one_distribution_of_all_entries(
    method: str, shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    apart = SideBySide([norm(MEAN[:, t], SCALE[t]) for t in range(3)])
    together = getattr(norm(MEAN, SCALE), method)(x)
    assert_allclose(getattr(apart, method)(x), together)


def test_a_task_is_fitted_where_it_is_known_and_predicted_everywhere() -> None:
    problem = linear(missing=10).problem
    first, second, _ = tasks_of(problem)
    assert first.known.tolist() == list(range(10, len(problem.X)))
    assert len(second.known) == len(problem.X)
    for (train, test), (whole, rows) in zip(first.folds, problem.folds, strict=True):
        assert train.tolist() == [row for row in whole if row >= 10]
        assert test.tolist() == rows.tolist()
