"""The patient page in a real browser, against what the model predicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
    datasets,
)
from deeptobit.app.report import render_patient_page
from deeptobit.app.study import FittedStudy, Table
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    Noise,
    NoiseByTask,
    ScoreGrid,
    Spread,
    StudentT,
    TwoPiece,
)
from tests.app.report.browsing import SIZES, open_page
from tests.app.report.studies import HOSTILE, HOSTILE_TARGET, cohort_study, fit_text

PREDICT = """(rows) => rows.map((x) => patient.predict(x).map(
  ({mean, atLower, atUpper, intervals}) => [mean, atLower, atUpper, ...intervals.flat()]))"""
N_TASKS = 8


def _problem(seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    X, Y, _ = datasets.make_subspace(120, 6, N_TASKS, 2, sigma=2.0, upper=9.0, random_state=seed)
    return X, Y


def _with_noise(model: Any, *, step: float = 1.0) -> Any:
    """The same model with every family, spreads that grow, and whole scores for half the tasks."""
    t, heavy = StudentT(4.0), StudentT(2.5)
    families: list[Noise] = [Gaussian(), Logistic(), t, heavy]
    families += [TwoPiece(base, s) for base, s in ((Gaussian(), 0.7), (t, -1.05))]
    families += [TwoPiece(Logistic(), 0.35), TwoPiece(heavy, -0.35)]
    growth = np.linspace(-0.4, 0.6, N_TASKS)
    spread = Spread(growth, np.full(N_TASKS, 4.0), np.full(N_TASKS, 3.0))
    grid = ScoreGrid(np.where(np.arange(N_TASKS) % 2, step, 0.0), np.zeros(N_TASKS))
    model._chosen_noise = NoiseByTask(families, spread, grid)
    return model


def _tobit(noise: str, **options: Any) -> TobitRegressor:
    return TobitRegressor(noise=noise, upper=9.0, **options).fit(*_problem())


def _calibrated() -> TobitRegressor:
    return _tobit("gaussian").calibrate_intervals(*_problem(1))


def _auto(members: str) -> Any:
    X, Y = _problem()
    model = AutoTobitRegressor(members=[members], cv=2, upper=9.0, random_state=0)
    return model.fit(X, np.round(Y))


def _network(**options: Any) -> SubspaceNetworkRegressor:
    settings = {"rank": 2, "n_layers": 3, "prune_layers": False, "upper": 9.0} | options
    return SubspaceNetworkRegressor(**settings, random_state=0).fit(*_problem())


QUICK: dict[str, Callable[[], Any]] = {
    "tobit": lambda: _tobit("gaussian"),
    "student": lambda: _tobit("student_t"),
    "calibrated": _calibrated,
    "every noise": lambda: _with_noise(SubspaceTobitRegressor(2, upper=9.0).fit(*_problem())),
    "network": _network,
}
SLOW: dict[str, Callable[[], Any]] = QUICK | {
    "logistic": lambda: _tobit("logistic"),
    "subspace": lambda: SubspaceTobitRegressor(2, upper=9.0).fit(*_problem()),
    "without skip": lambda: _network(skip_connection=False),
    "coarse scores": lambda: _with_noise(_network(n_layers=2), step=4.5),
    "open": lambda: SubspaceTobitRegressor(2, lower=None).fit(*_problem()),
    "stack": lambda: _auto("stack"),
    "deeper": lambda: _auto("deeper"),
}


def _expected(model: Any, X: Any) -> np.ndarray[Any, Any]:
    """Mean, probabilities of the bounds, and both intervals, (N, T, 7)."""
    parts = [model.predict(X), *model.predict_bound_proba(X)]
    parts += [end for coverage in (0.5, 0.9) for end in model.predict_interval(X, coverage)]
    return np.stack([part.reshape(len(X), -1) for part in parts], axis=-1)


def _open(browser: Browser, folder: Path, page: str, size: str = "desktop") -> Page:
    path = folder / "patient.html"
    path.write_text(page, encoding="utf-8")
    opened = open_page(browser, path.as_uri(), size)
    assert opened.complaints == []
    assert opened.refused == []
    return opened.page


def _compare(browser: Browser, folder: Path, model: Any, n_patients: int) -> None:
    page = _open(browser, folder, render_patient_page(model))
    X = np.random.default_rng(7).normal(scale=1.5, size=(n_patients, model.n_features_in_))
    X[0] *= 30.0  # far outside
    found = np.array(page.evaluate(PREDICT, X.tolist()), dtype=np.float64)
    np.testing.assert_allclose(found, _expected(model, X), rtol=1e-9, atol=1e-9)
    page.context.close()


@pytest.mark.parametrize("kind", QUICK)
def test_the_page_predicts_what_the_model_does(browser: Browser, tmp_path: Path, kind: str) -> None:
    _compare(browser, tmp_path, QUICK[kind](), 20)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SLOW)
def test_the_page_predicts_what_the_model_does_for_many(
    browser: Browser, tmp_path: Path, kind: str
) -> None:
    _compare(browser, tmp_path, SLOW[kind](), 200)
