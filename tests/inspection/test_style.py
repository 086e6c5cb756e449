"""Where pictures go: on the given Axes, or on a new figure; and what is said without matplotlib."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from deeptobit.exceptions import MissingExtraError
from deeptobit.inspection import draw_layers
from deeptobit.inspection.style import CYCLE, axes_or_new, divide, grid_places, grid_shape

ERRORS = np.array([[0.9, 0.5]])


def test_given_axes_are_used_and_no_figure_is_opened() -> None:
    ax = Figure().subplots()
    assert draw_layers(ERRORS, ax=ax) is ax
    assert plt.get_fignums() == []


def test_a_new_figure_has_a_layout_that_makes_room_for_labels() -> None:
    ax = axes_or_new(None, 3.0, 2.0)
    assert plt.get_fignums() == [1]
    figure = ax.get_figure(root=True)
    assert figure is not None
    assert figure.get_size_inches().tolist() == [3.0, 2.0]
    assert type(figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"matplotlib is not installed.*\[app\]"):
        draw_layers(ERRORS)


def test_the_room_loads_without_matplotlib() -> None:
    code = "import sys, deeptobit.inspection; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "pandas", "numba", "scipy.cluster"} & set(run.stdout.split())


@pytest.mark.parametrize("n_panels", [1, 2, 3, 5, 30])
def test_panels_of_a_grid_stay_inside_and_apart(n_panels: int) -> None:
    n_columns, n_rows = grid_shape(n_panels)
    assert n_columns >= n_rows
    assert n_columns * n_rows >= n_panels
    places = np.array(grid_places(n_panels))
    assert len(places) == n_panels
    ends = places[:, :2] + places[:, 2:]
    assert places.min() > -1e-12
    assert ends.max() < 1.0 + 1e-12
    for first in range(n_panels):
        for second in range(first):
            apart = (ends[first] <= places[second, :2]) | (ends[second] <= places[first, :2])
            assert apart.any()


def test_what_is_divided_keeps_its_labels_alone() -> None:
    ax = Figure().subplots()
    ax.set_xlabel("shared")
    panels = divide(ax, grid_places(2))
    assert ax.child_axes == panels
    assert len(ax.get_xticks()) == 0
    assert ax.xaxis.label.get_visible()
    assert not any(spine.get_visible() for spine in ax.spines.values())


def test_colours_of_a_cycle_differ() -> None:
    assert len(set(CYCLE)) == len(CYCLE)
