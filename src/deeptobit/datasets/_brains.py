r"""Simulated FreeSurfer measurements of the cortex: 68 thicknesses, 68 areas, 2 hemisphere areas.

Each measurement is a sum of independent standard Gaussian sources,

.. math:: x = \mu + L s, \qquad s \sim N(0, I), \qquad \operatorname{Cov} x = L L^\top

so that every population moment is known exactly. For one region of one hemisphere the sources
are one for the whole cortex (atrophy thins it, head size widens it), one for its lobe, one for
the region on both sides and one for this side alone.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from deeptobit.datasets._regions import REGIONS

HEMISPHERES = ("lh", "rh")

# Share of the variance that a region has in common with its homologue on the other side; this
# is also their correlation. Part of it is shared with the cortex and part with the lobe.
HOMOLOGUE_SHARE = 0.75
LOBE_SHARE = 0.15

# Share of the variance of thickness that is due to atrophy: highest where Alzheimer's disease is.
ATROPHY_SHARE = {
    "temporal": 0.42,
    "parietal": 0.38,
    "cingulate": 0.26,
    "insula": 0.26,
    "frontal": 0.20,
    "occipital": 0.14,
}
HEAD_SIZE_SHARE = 0.45

# Standard deviation as a share of the mean.
THICKNESS_VARIATION = 0.06
AREA_VARIATION = 0.12

# The surface of a hemisphere is measured on its own, a little above the sum of its regions.
HEMISPHERE_EXCESS = 1.01
HEMISPHERE_ERROR = 250.0  # mm²


@dataclass(frozen=True, eq=False)
class BrainPopulation:
    """The distribution of D = 138 measurements over people, driven by S sources.

    Attributes
    ----------
    names : list of str
        FreeSurfer's names of the measurements, for example ``lh_bankssts_thickness``.
    mean, sd : ndarray of shape (D,)
    loadings : ndarray of shape (D, S)
        L, in the units of the measurements.
    decimals : ndarray of shape (D,)
        Digits after the point that FreeSurfer prints: 3 for mm, none for mm².
    """

    names: list[str]
    mean: NDArray[np.float64]
    loadings: NDArray[np.float64]

    @property
    def sd(self) -> NDArray[np.float64]:
        return np.sqrt((self.loadings**2).sum(axis=1))

    @property
    def correlation(self) -> NDArray[np.float64]:
        """Population correlation of the measurements, (D, D)."""
        standardised = self.loadings / self.sd[:, None]
        return standardised @ standardised.T
