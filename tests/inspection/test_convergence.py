"""Layers and convergence: bars are means, lines are what the solver wrote down."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from deeptobit.inspection import draw_convergence, draw_layers, draw_steps
from deeptobit.inspection.convergence import Stage, read_stages

ERRORS = np.array([[0.9, 0.5, 1.2], [0.8, 0.4, 1.1]])


def steps(*objectives: float) -> list[Any]:
    return [
        SimpleNamespace(n_iter=at, objective=value) for at, value in enumerate(objectives, start=1)
    ]


def records(*objectives: float) -> list[Any]:
    return [
        SimpleNamespace(n_rows=64 * at, objective=value)
        for at, value in enumerate(objectives, start=1)
    ]


def test_bars_are_means_and_dots_are_targets() -> None:
    ax = draw_layers(ERRORS, ax=Figure().subplots())
    heights = [bar.get_height() for bar in ax.patches]  # type: ignore[attr-defined]
    np.testing.assert_allclose(heights, ERRORS.mean(axis=1))
    (dots,) = ax.collections
    np.testing.assert_allclose(np.asarray(dots.get_offsets())[:, 1], ERRORS.ravel())
    assert ax.get_xticks().tolist() == [1, 2]
    assert ax.get_ylim()[1] > 1.2
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("layer", "error relative to the mean, 1 − R²")


def test_one_target_has_a_bar_alone() -> None:
    ax = draw_layers(ERRORS[:1, :1], ax=Figure().subplots())
    assert len(ax.patches) == 1
    assert len(ax.collections) == 0


def test_stages_follow_one_another_or_begin_together() -> None:
    layers = [{"course": steps(3.0, 2.0, 1.0)}, {"course": steps(1.0, 0.5)}]
    in_turn = draw_convergence({"solver": "batch", "layers": layers}, ax=Figure().subplots())
    assert [np.asarray(line.get_xdata()).tolist() for line in in_turn.lines] == [[1, 2, 3], [4, 5]]
    assert (in_turn.get_xlabel(), in_turn.get_ylabel()[:9]) == ("iteration", "objective")
    layers = [{"course": records(3.0, 2.0)}, {"course": records(1.0)}]
    together = draw_convergence({"solver": "online", "layers": layers}, ax=Figure().subplots())
    assert [np.asarray(line.get_xdata()).tolist() for line in together.lines] == [[64, 128], [64]]
    assert [line.get_label() for line in together.lines] == ["layer 1", "layer 2"]
    assert together.get_xlabel() == "rows learned from"


def test_one_stage_needs_no_legend() -> None:
    ax = draw_convergence({"solver": "batch", "course": steps(3.0)}, ax=Figure().subplots())
    assert ax.get_legend() is None


def test_steps_tell_who_did_not_converge() -> None:
    names = ["MMSE", "ADAS", "MoCA"]
    ax = draw_steps(names, [3, 100, 4], [True, False, True], ax=Figure().subplots())
    bars: list[Any] = list(ax.patches)
    assert [bar.get_width() for bar in bars] == [3, 100, 4]
    good, bad, again = (bar.get_facecolor() for bar in bars)
    assert good == again != bad
    assert [bool(bar.get_hatch()) for bar in bars] == [False, True, False]
    assert "hatched: not converged" in ax.get_xlabel()
    assert [label.get_text() for label in ax.get_yticklabels()] == names


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (True, ["layer 1", "layer 2", "joint tuning"]),
        (False, ["layer 1", "layer 2 (did not pay)", "joint tuning (not kept)"]),
    ],
)
def test_a_network_is_grown_then_tuned(kept: bool, expected: list[str]) -> None:
    history = {
        "solver": "batch",
        "layers": [{"course": steps(5.0, 4.0)}, {"course": steps(3.9)}],
        "paying_depth": 1,
        "tuning": {"kept": kept, "objective": (3.9, 3.0)},
    }
    stages = read_stages(history)
    assert [stage.name for stage in stages] == expected
    assert stages[-1] == (expected[-1], [0, 1], [3.9, 3.0])


def test_an_online_fit_is_by_rows_without_the_tuning() -> None:
    history = {
        "solver": "online",
        "layers": [{"course": records(5.0, 4.0)}, {"course": []}],
        "paying_depth": 2,
        "tuning": {"kept": True, "objective": (3.9, 3.0)},
    }
    assert read_stages(history) == [Stage("layer 1", [64, 128], [5.0, 4.0])]


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ({"solver": "evidence"}, "members_ has the candidates"),
        ({"solver": "online", "course": []}, "too few rows"),
    ],
)
def test_a_history_may_have_no_stages(history: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        draw_convergence(history)
