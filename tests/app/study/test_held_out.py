from typing import Any

import numpy as np
import pytest
from sklearn.metrics import r2_score

from deeptobit.app.study import HeldOut
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.targets import CensoredTargets


def _held_out(targets: CensoredTargets, latent: object, sigma: float = 1.0) -> HeldOut:
    bounds = targets.lower_bounds, targets.upper_bounds
    scores = np.broadcast_to(np.asarray(latent, dtype=float), targets.shape)
    model = Predictive(Gaussian(), scores, np.full(targets.shape, sigma), *bounds)
    centre = np.broadcast_to(np.nanmean(targets.values), targets.shape)
    null = Predictive(Gaussian(), centre, np.full(targets.shape, sigma), *bounds)
    return HeldOut(targets, model, null, (model.mean(),), 0.9)


def test_measures_of_unbounded_targets_are_the_textbook_ones() -> None:
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(200, 2)) + 3.0
    P = Y + 0.5 * rng.normal(size=Y.shape)
    Y[::3, 0] = np.nan
    known = ~np.isnan(Y[:, 0])
    table = _held_out(CensoredTargets.from_bounds(Y, names=["a", "b"]), P, 0.5).table()
    assert table["entries"].tolist() == [known.sum(), 200]
    assert table.loc["a", "r2"] == pytest.approx(r2_score(Y[known, 0], P[known, 0]))
    assert table.loc["b", "r2"] == pytest.approx(r2_score(Y[:, 1], P[:, 1]))
    error = ((Y - P)[known, 0] ** 2).sum() / (Y[known, 0] ** 2).sum()
    assert table.loc["a", "anmse"] == pytest.approx(error)
    inside = np.abs(Y - P)[known, 0] <= 0.5 * 1.6448536269514722
    assert table.loc["a", "coverage"] == inside.mean()
    assert np.isinf(table[["lower", "upper"]]).all(axis=None)


def test_a_sharp_prediction_scores_its_absolute_error() -> None:
    Y = np.array([[1.0], [2.0], [4.0]])
    table = _held_out(CensoredTargets.from_bounds(Y, names=["y"]), Y + 0.25, 1e-6).table()
    assert table.loc["y", "crps"] == pytest.approx(0.25, rel=1e-4)
    assert table.loc["y", "coverage"] == 0.0
    assert table.loc["y", "null_r2"] == pytest.approx(0.0, abs=1e-12)


def test_an_outcome_at_its_bound_is_inside_an_interval_that_reaches_it() -> None:
    targets = CensoredTargets.from_bounds([[30.0], [30.0], [10.0]], 0, 30, names=["MMSE"])
    table = _held_out(targets, [[32.0], [20.0], [10.0]]).table()
    assert table.loc["MMSE", "coverage"] == pytest.approx(2 / 3)
    assert table.loc["MMSE", "at_upper"] == pytest.approx(2 / 3)


def test_every_row_has_its_own_limit() -> None:
    limits = np.array([[0.5], [2.0], [0.5]])
    targets = CensoredTargets.from_bounds(
        [[0.5], [2.0], [1.5]], entry_lower=limits, entry_upper=np.full((3, 1), np.inf), names=["a"]
    )
    held_out = _held_out(targets, [[-9.0], [-9.0], [1.5]], 0.1)
    np.testing.assert_allclose(held_out.predictive.mean(), [[0.5], [2.0], [1.5]])
    table: Any = held_out.table()
    assert table.loc["a", "r2"] == pytest.approx(1.0)
    assert table.loc["a", "coverage"] == 1.0
    assert np.isnan(table.loc["a", "lower"])


def test_what_a_target_does_not_determine_is_not_a_number() -> None:
    Y = np.array([[3.0, 0.0, np.nan, 1.0], [3.0, 0.0, np.nan, np.nan], [3.0, 0.0, np.nan, 2.0]])
    targets = CensoredTargets.from_bounds(Y, names=["constant", "zero", "empty", "fine"])
    table = _held_out(targets, 1.0).table()
    assert table["r2"].isna().tolist() == [True, True, True, False]
    assert table["anmse"].isna().tolist() == [False, True, True, False]
    assert table["crps"].isna().tolist() == [False, False, True, False]
    assert table["coverage"].isna().tolist() == [False, False, True, False]
    assert table["null_r2"].isna().tolist() == [True, True, True, False]
    assert table["entries"].tolist() == [3, 3, 0, 2]


def test_intervals_have_no_error_but_a_coverage() -> None:
    low, high = [[1.0], [0.0], [3.0]], [[1.0], [9.0], [3.0]]
    targets = CensoredTargets.from_intervals(low, high, names=["y"])
    table = _held_out(targets, [[1.0], [-50.0], [3.0]]).table()
    assert table.loc["y", "r2"] == 1.0
    assert table.loc["y", "coverage"] == pytest.approx(2 / 3)
