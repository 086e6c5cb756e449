"""Predicted against observed: every known entry once, in the marker of what is known of it."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection, PathCollection
from matplotlib.figure import Figure

from deeptobit import CensoredTargets
from deeptobit.arrays import FloatArray
from deeptobit.inspection import draw_predictions

Y = np.array([[0.0, 2.0], [3.0, np.nan], [10.0, 5.0], [4.0, 10.0], [0.0, 7.0]])
PREDICTED = np.array([[1.0, 2.0], [3.0, 3.0], [8.0, 5.0], [5.0, 9.0], [2.0, 6.0]])


def drawn(targets: CensoredTargets, predicted: FloatArray, width: float = 2.0) -> Axes:
    ax = Figure().subplots()
    return draw_predictions(targets, predicted, predicted - width, predicted + width, ax=ax)


def one_target() -> CensoredTargets:
    return CensoredTargets.from_bounds(Y[:, :1], lower=0, upper=10, names=["ADAS"])


def points(ax: Axes) -> dict[str, list[list[float]]]:
    """Places of the markers by label."""
    found = [each for each in ax.collections if isinstance(each, PathCollection)]
    return {str(each.get_label()): np.asarray(each.get_offsets()).tolist() for each in found}


def horizontals(ax: Axes) -> list[float]:
    heights = [np.asarray(line.get_ydata(), dtype=float) for line in ax.lines]
    return [float(height[0]) for height in heights if len(height) == 2 and height[0] == height[1]]


def test_entries_are_marked_by_what_is_known_of_them() -> None:
    assert points(drawn(one_target(), PREDICTED[:, :1])) == {
        "observed": [[3.0, 3.0], [5.0, 4.0]],
        "at lower bound": [[1.0, 0.0], [2.0, 0.0]],
        "at upper bound": [[8.0, 10.0]],
    }


def test_axes_are_labelled_and_bounds_are_drawn() -> None:
    ax = drawn(one_target(), PREDICTED[:, :1])
    assert (ax.get_title(), ax.get_xlabel()) == ("ADAS", "predicted, E[y|x]")
    assert ax.get_ylabel() == "observed"
    assert horizontals(ax) == [0.0, 10.0]
    assert ax.get_ylim()[0] < 0.0 < 10.0 < ax.get_ylim()[1]
    legend = ax.get_legend()
    assert legend is not None
    assert "90 % interval" in [text.get_text() for text in legend.get_texts()]


def test_intervals_are_a_band_where_the_prediction_decides() -> None:
    (band,) = [
        each
        for each in drawn(one_target(), PREDICTED[:, :1]).collections
        if isinstance(each, FillBetweenPolyCollection)
    ]
    ends = band.get_paths()[0].vertices
    assert np.asarray(ends)[:, 0].min() == 1.0
    assert np.asarray(ends)[:, 0].max() == 8.0


def test_intervals_are_bars_where_limits_differ_by_row() -> None:
    predicted = np.array([[1.0], [2.0], [3.0]])
    low, high = np.array([[0.0], [0.5], [0.2]]), predicted + 1.0
    targets = CensoredTargets.from_bounds([[0.5], [2.0], [3.0]], lower=0)
    ax = draw_predictions(targets, predicted, low, high, ax=Figure().subplots())
    (bars,) = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert [segment.tolist() for segment in bars.get_segments()] == [
        [[1.0, 0.0 if ax.get_ylim()[0] < 0 else ax.get_ylim()[0]], [1.0, 2.0]],
        [[2.0, 0.5], [2.0, 3.0]],
        [[3.0, 0.2], [3.0, pytest.approx(min(4.0, ax.get_ylim()[1]))]],
    ]


def test_open_intervals_end_at_the_frame() -> None:
    targets = CensoredTargets.from_bounds([[1.0], [2.0]])
    predicted = np.array([[1.0], [2.0]])
    endless = np.full_like(predicted, np.inf)
    ax = draw_predictions(targets, predicted, -endless, endless, ax=Figure().subplots())
    (band,) = [each for each in ax.collections if isinstance(each, FillBetweenPolyCollection)]
    assert np.isfinite(np.asarray(band.get_paths()[0].vertices)).all()


def test_an_entry_known_as_interval_is_a_line() -> None:
    targets = CensoredTargets.from_intervals([[1.0], [2.0]], [[1.0], [4.0]])
    ax = drawn(targets, np.array([[1.0], [3.0]]))
    (line,) = [each for each in ax.collections if each.get_label() == "known as interval"]
    assert isinstance(line, LineCollection)
    assert line.get_segments()[0].tolist() == [[3.0, 2.0], [3.0, 4.0]]


def test_many_targets_have_a_panel_each_and_one_legend() -> None:
    targets = CensoredTargets.from_bounds(Y, lower=0, upper=10, names=["ADAS", "MMSE"])
    ax = drawn(targets, PREDICTED)
    panels = [panel for panel in ax.child_axes if isinstance(panel, Axes)]
    assert [panel.get_title() for panel in panels] == ["ADAS", "MMSE"]
    assert ax.get_xlabel() == "predicted, E[y|x]"
    assert points(panels[1])["observed"] == [[2.0, 2.0], [5.0, 5.0], [6.0, 7.0]]
    legend = ax.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert sorted(labels) == sorted(set(labels))
    assert {"observed", "at lower bound", "at upper bound"} <= set(labels)


def test_a_bound_far_from_all_outcomes_does_not_squeeze_them() -> None:
    targets = CensoredTargets.from_bounds([[1.0], [2.0]], lower=0, upper=1000)
    assert drawn(targets, np.array([[1.0], [2.0]])).get_ylim()[1] < 3.0


def test_a_target_without_known_entries_has_an_empty_panel() -> None:
    targets = CensoredTargets.from_bounds(np.full((3, 1), np.nan), lower=0)
    ax = drawn(targets, np.ones((3, 1)))
    assert points(ax) == {}
    ax.get_figure(root=True).draw_without_rendering()  # type: ignore[union-attr]
