"""Four looks at the cortex, drawn once: where each region is seen, and how light falls on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.report._brain_names import region_names
from deeptobit.report._brain_raster import IntArray, rasterise
from deeptobit.report._brain_surface import Hemisphere, load_hemisphere

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
