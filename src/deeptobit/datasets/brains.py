r"""Simulated FreeSurfer measurements of the cortex: 68 thicknesses, 68 areas, 2 hemispheres.

Each of the D = 138 measurements is a sum of independent standard Gaussian sources,

.. math:: x = \mu + L s, \qquad s \sim N(0, I), \qquad \operatorname{Cov}(x) = L L^\top

so that every population moment is known exactly. The sources of a region on one side are one
for the whole cortex (atrophy thins it, head size widens it), one for the lobe, one for the
region on both sides and one for this side alone.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from deeptobit.arrays import FloatArray
from deeptobit.datasets.common import packaged_table

# Share of the variance that a region has in common with its homologue on the other side, which
# is also their correlation. It holds what the region shares with its lobe and with the cortex.
HOMOLOGUE_SHARE = 0.75
LOBE_SHARE = 0.15

# Share of the variance of thickness that is atrophy, highest where Alzheimer's disease strikes.
ATROPHY_SHARE = {
    "temporal": 0.42,
    "parietal": 0.38,
    "cingulate": 0.26,
    "insula": 0.26,
    "frontal": 0.20,
    "occipital": 0.14,
}
# The same for areas and head size.
SIZE_SHARE = 0.45

# Standard deviation of a region over people, relative to its mean.
THICKNESS_VARIATION = 0.06
AREA_VARIATION = 0.12

# A hemisphere is measured on its own: a little above the sum of its regions, with an error (mm²).
HEMISPHERE_EXCESS = 1.01
HEMISPHERE_ERROR = 250.0


@dataclass(frozen=True, eq=False)
class BrainPopulation:
    """The distribution of D measurements over people.

    Attributes
    ----------
    names : tuple of str
        FreeSurfer's names: ``lh_bankssts_thickness`` ... ``rh_WhiteSurfArea_area``.
    groups : tuple of str
        Lobe and measure of each, as ``temporal thickness``; at the end ``hemisphere area``.
    mean : ndarray of shape (D,)
        In mm and mm².
    loadings : ndarray of shape (D, S)
        L, the effect of each of S sources, in the same units.
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    mean: FloatArray
    loadings: FloatArray

    @property
    def sd(self) -> FloatArray:
        """Standard deviation of each measurement, (D,)."""
        return np.asarray(np.linalg.norm(self.loadings, axis=1))

    @property
    def correlation(self) -> FloatArray:
        """Correlation between the measurements, (D, D)."""
        standardised = self.loadings / self.sd[:, None]
        return standardised @ standardised.T

    def sample(self, n_subjects: int, state: np.random.RandomState) -> FloatArray:
        """Measure ``n_subjects`` people, (n, D), to the digits that FreeSurfer prints."""
        sources = state.standard_normal((n_subjects, self.loadings.shape[1]))
        measured = self.mean + sources @ self.loadings.T
        is_area = np.strings.endswith(np.array(self.groups), "area")
        return np.where(is_area, measured.round(), measured.round(3))


@cache
def brain_population() -> BrainPopulation:
    """The population of brains, from the regions of the Desikan-Killiany atlas.

    Examples
    --------
    >>> population = brain_population()
    >>> len(population.names), population.names[0]
    (138, 'lh_bankssts_thickness')
    >>> left, right = (population.names.index(f"{side}_insula_area") for side in ("lh", "rh"))
    >>> print(population.correlation[left, right].round(2))
    0.75
    """
    # Round figures for an adult: thickness in mm, area of the white surface in mm².
    regions = packaged_table("brain_regions")
    lobes = regions["lobe"].to_numpy(dtype=str)
    thickness, area = np.tile(regions["thickness"], 2), np.tile(regions["area"], 2)
    # Atrophy has the opposite sign of thickness, head size has that of area.
    atrophy = np.array([-np.sqrt(ATROPHY_SHARE[lobe]) for lobe in lobes])
    head_size = np.full(len(lobes), np.sqrt(SIZE_SHARE))
    thickness_sd, area_sd = THICKNESS_VARIATION * thickness, AREA_VARIATION * area
    thickness_loadings = thickness_sd[:, None] * _regional_loadings(lobes, atrophy)
    area_loadings = area_sd[:, None] * _regional_loadings(lobes, head_size)

    hemisphere_from_areas = HEMISPHERE_EXCESS * np.kron(np.eye(2), np.ones(len(lobes)))
    loadings = block_diag(thickness_loadings, area_loadings, HEMISPHERE_ERROR * np.eye(2))
    loadings[-2:, thickness_loadings.shape[1] : -2] = hemisphere_from_areas @ area_loadings
    names = packaged_table("adni_features")["name"]
    groups = [f"{lobe} {measure}" for measure in ("thickness", "area") for lobe in [*lobes, *lobes]]
    groups += ["hemisphere area"] * 2
    mean = np.concatenate([thickness, area, hemisphere_from_areas @ area])
    return BrainPopulation(tuple(names), tuple(groups), mean, loadings)


def _regional_loadings(lobes: NDArray[np.str_], cortex: FloatArray) -> FloatArray:
    """Loadings of both sides on cortex, lobe, region and side, with unit variance; (68, 109)."""
    membership = np.equal.outer(lobes, np.unique(lobes))
    common = np.column_stack([cortex, np.sqrt(LOBE_SHARE) * membership])
    remainder = HOMOLOGUE_SHARE - (common**2).sum(axis=1)
    one_side = np.hstack([common, np.diag(np.sqrt(remainder))])
    side_alone = np.sqrt(1 - HOMOLOGUE_SHARE) * np.eye(2 * len(lobes))
    return np.hstack([np.tile(one_side, (2, 1)), side_alone])
