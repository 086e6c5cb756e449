"""From triangles in space to pixels: which triangle is nearest, and where in it a pixel lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray

IntArray: TypeAlias = NDArray[np.intp]


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
