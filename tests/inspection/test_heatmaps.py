"""Heat maps: the right rows in the right order, on one scale from −1 to 1."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deeptobit.arrays import FloatArray
from deeptobit.inspection import draw_similarity, draw_subspaces
from deeptobit.inspection.heatmaps import DIVERGING, similar_order
from deeptobit.inspection.style import shorten


def names_of(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def loadings(n_features: int, n_targets: int, rank: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    columns = [f"{r + 1}\n50%" for r in range(rank)]
    v = pd.DataFrame(rng.normal(size=(n_features, rank)), columns=columns)
    u = pd.DataFrame(rng.normal(size=(n_targets, rank)) * 7.0, columns=columns)
    return v.rename("x{}".format), u.rename("y{}".format)


def panels_of(ax: Axes) -> tuple[Axes, Axes]:
    left, right = ax.child_axes
    assert isinstance(left, Axes)
    assert isinstance(right, Axes)
    return left, right


def test_the_largest_features_come_first() -> None:
    v, u = loadings(40, 6, 3)
    left, _ = panels_of(draw_subspaces(v, u, n_features=10, ax=Figure().subplots()))
    effects = [np.linalg.norm(np.outer(u[r], v[r]), axis=0) for r in v.columns]
    sizes = np.linalg.norm(effects, axis=0)
    assert names_of(left) == v.index[np.argsort(-sizes)[:10]].tolist()
    assert left.get_title() == "features (largest 10 of 40)"


def test_both_sides_are_scaled_to_one() -> None:
    v, u = loadings(5, 6, 3)
    left, right = panels_of(draw_subspaces(v, u, ax=Figure().subplots()))
    assert left.get_title() == "features (all 5)"
    for panel, n_rows in ((left, 5), (right, 6)):
        (image,) = panel.images
        values = np.asarray(image.get_array())
        assert values.shape == (n_rows, 3)
        np.testing.assert_allclose(np.abs(values).max(axis=0), 1.0)
        assert image.get_clim() == (-1.0, 1.0)
        assert image.get_cmap().name == DIVERGING
    assert names_of(right) == u.index.tolist()


def test_rows_have_one_height_on_both_sides() -> None:
    v, u = loadings(50, 4, 2)
    ax = draw_subspaces(v, u, n_features=20, ax=Figure().subplots())
    left, right = (panel.get_position() for panel in panels_of(ax))
    assert left.height / 20 == pytest.approx(right.height / 4)
    assert left.y1 == pytest.approx(right.y1)


def test_tables_are_not_changed() -> None:
    v, u = loadings(5, 3, 2)
    before = v.copy(), u.copy()
    draw_subspaces(v, u, ax=Figure().subplots())
    pd.testing.assert_frame_equal(v, before[0])
    pd.testing.assert_frame_equal(u, before[1])


def blocks() -> FloatArray:
    """Tasks 0, 2, 4 are alike, so are 1, 3, 5, and the two kinds are opposite."""
    sign = np.array([1.0, -1.0] * 3)
    return np.outer(sign, sign) * np.where(np.eye(6) == 1.0, 1.0, 0.8)


def test_like_tasks_are_neighbours() -> None:
    kinds = [task % 2 for task in similar_order(blocks())]
    assert kinds in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])


@pytest.mark.parametrize("n_tasks", [1, 2, 3, 13])
def test_similarity_has_a_cell_for_every_pair(n_tasks: int) -> None:
    names = [f"score {task}" for task in range(n_tasks)]
    cosines = pd.DataFrame(np.eye(n_tasks), index=names, columns=names)
    ax = draw_similarity(cosines, ax=Figure().subplots())
    assert np.asarray(ax.images[0].get_array()).shape == (n_tasks, n_tasks)
    assert sorted(names_of(ax)) == sorted(names)
    assert [label.get_text() for label in ax.get_xticklabels()] == names_of(ax)
    assert len(ax.texts) == (n_tasks**2 if n_tasks <= 12 else 0)


def test_cells_follow_their_names() -> None:
    names = list("abcdef")
    cosines = pd.DataFrame(blocks(), index=names, columns=names)
    ax = draw_similarity(cosines, ax=Figure().subplots())
    order = names_of(ax)
    np.testing.assert_array_equal(ax.images[0].get_array(), cosines.loc[order, order])


def test_tasks_without_any_effect_do_not_disturb_the_order() -> None:
    cosines = np.zeros((4, 4))
    assert sorted(similar_order(cosines)) == [0, 1, 2, 3]


def test_more_rows_than_have_room_are_drawn_without_names() -> None:
    names = [str(task) for task in range(100)]
    cosines = pd.DataFrame(np.eye(100), index=names, columns=names)
    ax = draw_similarity(cosines, ax=Figure().subplots())
    assert names_of(ax) == []
    assert ax.get_xticklabels() == []


def test_long_names_keep_both_ends() -> None:
    short = shorten("a" * 40 + "_left")
    assert len(short) == 32
    assert short.endswith("_left")
    assert shorten("MMSE") == "MMSE"
