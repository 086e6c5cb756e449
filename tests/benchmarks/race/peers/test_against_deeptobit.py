"""Peers whose optimum is that of a Tobit model of this library."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks.race.peers import lifelines_aft, r_tobit
from benchmarks.race.peers.tasks import Task, tasks_of
from benchmarks.race.peers.units import LogUnits
from deeptobit import TobitRegressor
from tests.benchmarks.race.peers.problems import Known, linear


@pytest.fixture
def known() -> Known:
    return linear()


def test_aer(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := r_tobit.r_has("AER")():
        pytest.skip(reason)
    monkeypatch.setattr(r_tobit, "_COMPONENTS", ())  # all features are the only choice
    fitted = r_tobit.fit_aer(known.problem)
    expected = _tobit(known)
    assert_allclose(fitted.coef.T, expected.coef_, atol=1e-4)
    assert_allclose(fitted.intercept, expected.intercept_, atol=1e-4)
    assert_allclose(fitted.sigma, expected.sigma_, rtol=1e-4)


def test_vgam_of_full_rank(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    if reason := r_tobit.r_has("VGAM")():
        pytest.skip(reason)
    monkeypatch.setattr(r_tobit, "_RANKS", (3,))
    fitted = r_tobit.fit_vgam(known.problem)
    expected = _tobit(known)
    assert_allclose(fitted.coef.T, expected.coef_, atol=1e-2)
    assert_allclose(fitted.sigma, expected.sigma_, rtol=1e-2)


def test_lifelines_without_a_penalty(known: Known) -> None:
    pytest.importorskip("lifelines")
    task = tasks_of(known.problem)[0]
    # Outcomes of which log(y − origin) is the first task of the problem.
    exponential = Task(task.X, np.exp(task.y), np.exp(task.lower), np.inf, task.folds, 0)
    fitted = lifelines_aft._fit(exponential, LogUnits(0.0, 0.0, 1.0), task.known, 1e-6)
    expected = _tobit(known)
    assert_allclose(fitted.coef, expected.coef_[0], atol=2e-3)
    assert_allclose(fitted.sigma, expected.sigma_[0], rtol=2e-3)


def test_lifelines_with_a_feature_that_is_constant_in_training(known: Known) -> None:
    pytest.importorskip("lifelines")
    task = tasks_of(known.problem)[0]
    constant = np.hstack([task.X, np.full((len(task.X), 1), 0.3)])
    with_it = Task(constant, np.exp(task.y), np.exp(task.lower), np.inf, task.folds, 0)
    without = Task(task.X, *with_it[1:])
    units = LogUnits(0.0, 0.0, 1.0)
    fitted = lifelines_aft._fit(with_it, units, task.known, 0.1)
    expected = lifelines_aft._fit(without, units, task.known, 0.1)
    assert_allclose(fitted.coef, np.append(expected.coef, 0.0))


def _tobit(known: Known) -> TobitRegressor:
    problem = known.problem
    return TobitRegressor(lower=problem.lower, upper=problem.upper, alpha=0.0).fit(
        problem.X, problem.Y
    )
