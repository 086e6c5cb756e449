"""Plots as methods: they draw what the other methods say, and name what is wrong."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from deeptobit import (
    AutoTobitRegressor,
    CensoredTargets,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
    metrics,
)
from tests.estimators.problems import bounded, censored, one_task

MODELS: dict[str, Any] = {
    "tobit": TobitRegressor(upper=3),
    "subspace": SubspaceTobitRegressor(rank=2, upper=3),
    "online": SubspaceTobitRegressor(rank=2, upper=3, solver="online", n_passes=8),
    "network": SubspaceNetworkRegressor(rank=2, n_layers=2, upper=3),
    "stream": SubspaceNetworkRegressor(rank=2, n_layers=2, upper=3, solver="online", n_passes=8),
    "auto": AutoTobitRegressor(upper=3, cv=2, members=("stack",), random_state=0),
}
NEED_ROWS_TO_FIT = ("plot_predictions", "plot_calibration", "plot_layers")


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    plt.close("all")


def named() -> tuple[pd.DataFrame, pd.DataFrame]:
    X, Y = censored(n_tasks=3)
    Y[::9, 1] = np.nan
    return (
        pd.DataFrame(X, columns=["age", "volume", "marker"]),
        pd.DataFrame(Y, columns=["MMSE", "ADAS", "MoCA"]),
    )


@cache
def fitted(name: str) -> Any:
    return clone(MODELS[name]).fit(*named())


def marked(ax: Axes) -> int:
    """Number of entries that are drawn."""
    found = [each for each in ax.collections if isinstance(each, PathCollection)]
    return sum(len(np.asarray(each.get_offsets())) for each in found)


def panels_of(ax: Axes) -> list[Axes]:
    return [panel for panel in ax.child_axes if isinstance(panel, Axes)]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_draws_every_picture_and_changes_nothing(name: str) -> None:
    X, Y = named()
    before = X.copy(), Y.copy()
    model = fitted(name)
    state = set(vars(model))
    pictures = [
        model.plot_predictions(X, Y),
        model.plot_calibration(X, Y),
        model.plot_layers(X, Y),
        model.plot_subspaces(X=X),
        model.plot_task_similarity(X),
    ]
    if name != "auto":
        pictures.append(model.plot_convergence())
    for ax in pictures:
        assert isinstance(ax, Axes)
        if name == "network":  # the others are drawn by the same functions
            ax.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]
    assert len(plt.get_fignums()) == len(pictures)
    assert set(vars(model)) == state
    pd.testing.assert_frame_equal(X, before[0])
    pd.testing.assert_frame_equal(Y, before[1])


def test_predictions_are_those_of_predict() -> None:
    X, Y = named()
    model = bounded(prediction="latent").fit(X, Y)
    ax = model.plot_predictions(X, Y, "ADAS", coverage=0.8)
    known = Y["ADAS"].notna().to_numpy()
    assert ax.get_title() == "ADAS"
    assert marked(ax) == known.sum()
    expected = model.predict(X, "mean")[known, 1]
    places = [
        np.asarray(each.get_offsets())[:, 0]
        for each in ax.collections
        if isinstance(each, PathCollection)
    ]
    np.testing.assert_allclose(np.sort(np.concatenate(places)), np.sort(expected))
    assert "80 % interval" in ax.get_legend_handles_labels()[1]


@pytest.mark.parametrize("target", ["MoCA", 2, -1, np.int64(2)])
def test_a_target_has_a_name_and_a_number(target: Any) -> None:
    X, Y = named()
    assert bounded().fit(X, Y).plot_predictions(X, Y, target).get_title() == "MoCA"


def test_all_targets_have_a_panel_each() -> None:
    X, Y = named()
    panels = panels_of(bounded().fit(X, Y).plot_predictions(X, Y))
    assert [panel.get_title() for panel in panels] == ["MMSE", "ADAS", "MoCA"]
    assert [marked(panel) for panel in panels] == Y.notna().sum().tolist()


@pytest.mark.parametrize("name", ["tobit", "network", "auto"])
def test_one_dimensional_outcomes(name: str) -> None:
    X, y = one_task()
    y[::5] = np.nan
    model = clone(MODELS[name]).fit(X, y)
    assert marked(model.plot_predictions(X, y)) == np.isfinite(y).sum()
    *_, histogram = panels_of(model.plot_calibration(X, y, step=0.5))
    assert histogram.get_ylabel() == f"share of {np.isfinite(y).sum()} entries"
    errors = [bar.get_height() for bar in model.plot_layers(X, y).patches]
    assert errors[-1] == pytest.approx(1.0 - model.score(X, y))
    assert np.asarray(model.plot_task_similarity(X).images[0].get_array()).shape == (1, 1)


def test_limits_per_entry_come_with_the_targets() -> None:
    X, y = one_task()
    limits = np.where(np.arange(len(y)) % 2 == 0, 0.5, 0.0)
    targets = CensoredTargets.from_bounds(np.maximum(y, limits), 0, 3, entry_lower=limits)
    model = clone(MODELS["network"]).fit(X, targets)
    assert marked(model.plot_predictions(X, targets)) == len(y)
    _, reliability, _ = panels_of(model.plot_calibration(X, targets))
    probability = model.predict_bound_proba(X, lower=limits[:, None])[0]
    expected = metrics.bound_calibration(targets.at_lower[:, 0], probability)
    np.testing.assert_allclose(
        np.asarray(reliability.lines[1].get_xdata(), dtype=float), expected.predicted
    )
    errors = [bar.get_height() for bar in model.plot_layers(X, targets).patches]
    assert errors[-1] == pytest.approx(1.0 - model.score(X, targets))


def test_calibrated_intervals_are_the_ones_drawn() -> None:
    X, Y = named()
    model = bounded(sigma=0.2).fit(X, Y).calibrate_intervals(X, Y)
    band = model.plot_predictions(X, Y, 0).collections[0]
    corners = {tuple(corner) for corner in np.asarray(band.get_paths()[0].vertices).tolist()}
    low, high = model.predict_interval(X)
    mean = model.predict(X)[:, 0]
    assert set(zip(mean.tolist(), low[:, 0].tolist(), strict=True)) <= corners
    assert set(zip(mean.tolist(), high[:, 0].tolist(), strict=True)) <= corners


def test_calibration_of_one_target() -> None:
    X, Y = named()
    model = bounded().fit(X, Y)
    ax = model.plot_calibration(X, Y, "ADAS", step=[0.0, 0.1, 0.0])
    *_, histogram = panels_of(ax)
    assert histogram.get_ylabel() == f"share of {Y['ADAS'].notna().sum()} entries"


def test_layers_are_those_of_staged_predict() -> None:
    X, Y = named()
    model = fitted("network")
    heights = [bar.get_height() for bar in model.plot_layers(X, Y).patches]
    expected = [float(metrics.centred_anmse(Y, mean)) for mean in model.staged_predict(X, "mean")]
    np.testing.assert_allclose(heights, expected)


def test_subspaces_are_those_of_the_method() -> None:
    X, _ = named()
    model = fitted("network")
    ax = model.plot_subspaces(1, X, n_features=4, n_components=1)
    left, right = panels_of(ax)
    first = model.subspaces(1, X)[0]
    assert left.get_title() == "features (largest 4 of 6)"
    assert [label.get_text() for label in right.get_yticklabels()] == list(first.targets)
    np.testing.assert_allclose(
        np.asarray(right.images[0].get_array())[:, 0],
        first.target_loadings / np.abs(first.target_loadings).max(),
    )
    assert [label.get_text() for label in left.get_xticklabels()] == [f"1\n{first.share:.0%}"]


def test_convergence_is_the_course() -> None:
    batch = fitted("subspace")
    (line,) = batch.plot_convergence().lines
    course = batch.history_["course"]
    np.testing.assert_array_equal(line.get_xdata(), [step.n_iter for step in course])
    np.testing.assert_array_equal(line.get_ydata(), [step.objective for step in course])
    online = fitted("online")
    ax = online.plot_convergence()
    rows = [record.n_rows for record in online.history_["course"]]
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), rows)
    assert ax.get_xlabel() == "rows learned from"


def test_convergence_of_a_network_has_a_line_for_every_stage() -> None:
    model = fitted("network")
    labels = [str(line.get_label()) for line in model.plot_convergence().lines]
    assert [label.split(" (")[0] for label in labels] == ["layer 1", "layer 2", "joint tuning"]


def test_a_model_from_a_formula_draws_from_raw_columns() -> None:
    X, Y = named()
    data = pd.concat([X, Y], axis=1)
    data["site"] = ["A", "B", "C"] * 50
    formula = "MMSE + MoCA ~ age + volume + site"
    model = SubspaceNetworkRegressor.from_formula(formula, data, rank=1, n_layers=2, upper=3)
    outcomes = data[["MMSE", "MoCA"]]
    assert len(model.plot_layers(data, outcomes).patches) == 2
    assert len(panels_of(model.plot_predictions(data, outcomes))) == 2


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    "method", [*NEED_ROWS_TO_FIT, "plot_subspaces", "plot_task_similarity", "plot_convergence"]
)
def test_a_model_that_is_not_fitted_says_so(name: str, method: str) -> None:
    model = type(MODELS[name])()
    rows = censored() if method in NEED_ROWS_TO_FIT else ()
    with pytest.raises(NotFittedError):
        getattr(model, method)(*rows)
    assert plt.get_fignums() == []


@pytest.mark.parametrize("target", ["mmse", 3, -4, 1.0])
def test_an_unknown_target_is_an_error_that_names_the_known(target: Any) -> None:
    X, Y = named()
    model = bounded().fit(X, Y)
    with pytest.raises(ValueError, match=r"'MMSE', 'ADAS', 'MoCA', or its number from 0 to 2"):
        model.plot_predictions(X, Y, target)


def test_a_layer_out_of_range_is_an_error() -> None:
    X, _ = named()
    with pytest.raises(ValueError, match="layer must lie from -2 to 1; got 2"):
        fitted("network").plot_subspaces(2, X)
    with pytest.raises(ValueError, match="layer must lie from -1 to 0"):
        fitted("subspace").plot_subspaces(1)


@pytest.mark.parametrize("setting", ["n_features", "n_components"])
def test_at_least_one_row_and_column_are_drawn(setting: str) -> None:
    X, Y = named()
    settings: dict[str, Any] = {setting: 0}
    with pytest.raises(ValueError, match=f"{setting} must be a whole number, at least 1; got 0"):
        bounded().fit(X, Y).plot_subspaces(**settings)


def test_a_model_without_effects_has_nothing_to_draw() -> None:
    X, Y = named()
    model = bounded().fit(X, Y)
    model.coef_ = np.zeros_like(model.coef_)
    with pytest.raises(ValueError, match="no feature has an effect"):
        model.plot_subspaces()


def test_other_outcomes_than_those_of_the_fit_are_an_error() -> None:
    X, Y = named()
    targets = CensoredTargets.from_bounds(Y.to_numpy()[:, :2], 0, 3)
    with pytest.raises(ValueError, match=r"y has 2 target\(s\), but the model was fitted to 3"):
        bounded().fit(X, Y).plot_predictions(X, targets)


def test_a_model_without_a_course_says_why() -> None:
    X, Y = named()
    with pytest.raises(ValueError, match=r"chosen by cross-validation.*members_"):
        fitted("auto").plot_convergence()
    early = SubspaceTobitRegressor(rank=1, upper=3).partial_fit(X[:5], Y[:5])
    with pytest.raises(ValueError, match="too few rows"):
        early.plot_convergence()
    old = SubspaceTobitRegressor(rank=1, upper=3).fit(X, Y)
    del old.history_["course"]
    with pytest.raises(ValueError, match="this model stored no convergence"):
        old.plot_convergence()
