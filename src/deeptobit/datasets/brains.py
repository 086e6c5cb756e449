r"""Simulated FreeSurfer measurements of the cortex: 68 thicknesses, 68 areas, 2 hemispheres.

Each of the D = 138 measurements is a sum of independent standard Gaussian sources,

.. math:: x = \mu + L s, \qquad s \sim N(0, I), \qquad \operatorname{Cov}(x) = L L^\top

so that every population moment is known exactly. The sources of a region on one side are one
for the whole cortex (atrophy thins it, head size widens it), one for the lobe, one for the
region on both sides and one for this side alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from deeptobit.arrays import FloatArray


class Region(NamedTuple):
    """One region, the same in both hemispheres.

    ``thickness`` (mm) and ``area`` (mm² of the white surface) are round figures for an adult.
    """

    name: str
    lobe: str
    thickness: float
    area: float


# The 34 cortical regions of the Desikan-Killiany atlas, in the order of FreeSurfer's tables.
REGIONS = (
    Region("bankssts", "temporal", 2.45, 1050),
    Region("caudalanteriorcingulate", "cingulate", 2.55, 650),
    Region("caudalmiddlefrontal", "frontal", 2.50, 2200),
    Region("cuneus", "occipital", 1.85, 1450),
    Region("entorhinal", "temporal", 3.20, 420),
    Region("frontalpole", "frontal", 2.75, 230),
    Region("fusiform", "temporal", 2.65, 3200),
    Region("inferiorparietal", "parietal", 2.42, 4700),
    Region("inferiortemporal", "temporal", 2.75, 3350),
    Region("isthmuscingulate", "cingulate", 2.35, 1050),
    Region("lateraloccipital", "occipital", 2.15, 4700),
    Region("lateralorbitofrontal", "frontal", 2.60, 2600),
    Region("lingual", "occipital", 2.00, 3000),
    Region("medialorbitofrontal", "frontal", 2.40, 1850),
    Region("middletemporal", "temporal", 2.80, 3150),
    Region("paracentral", "frontal", 2.35, 1400),
    Region("parahippocampal", "temporal", 2.65, 700),
    Region("parsopercularis", "frontal", 2.52, 1600),
    Region("parsorbitalis", "frontal", 2.65, 700),
    Region("parstriangularis", "frontal", 2.42, 1350),
    Region("pericalcarine", "occipital", 1.60, 1400),
    Region("postcentral", "parietal", 2.05, 4200),
    Region("posteriorcingulate", "cingulate", 2.45, 1200),
    Region("precentral", "frontal", 2.52, 4850),
    Region("precuneus", "parietal", 2.35, 3800),
    Region("rostralanteriorcingulate", "cingulate", 2.75, 800),
    Region("rostralmiddlefrontal", "frontal", 2.32, 5700),
    Region("superiorfrontal", "frontal", 2.65, 7200),
    Region("superiorparietal", "parietal", 2.18, 5400),
    Region("superiortemporal", "temporal", 2.70, 3750),
    Region("supramarginal", "parietal", 2.50, 3900),
    Region("temporalpole", "temporal", 3.55, 470),
    Region("transversetemporal", "temporal", 2.35, 430),
    Region("insula", "insula", 2.95, 2250),
)


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
        deviation: FloatArray = np.linalg.norm(self.loadings, axis=1)
        return deviation

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
    """Assemble the population from the atlas.

    Examples
    --------
    >>> population = brain_population()
    >>> len(population.names), population.names[0]
    (138, 'lh_bankssts_thickness')
    >>> left, right = (population.names.index(f"{side}_insula_area") for side in ("lh", "rh"))
    >>> print(population.correlation[left, right].round(2))
    0.75
    """
    n_regions = len(REGIONS)
    thickness = np.tile([region.thickness for region in REGIONS], 2)
    area = np.tile([region.area for region in REGIONS], 2)
    # Atrophy has the opposite sign of thickness, head size has that of area.
    atrophy = [-np.sqrt(ATROPHY_SHARE[region.lobe]) for region in REGIONS]
    head_size = [np.sqrt(SIZE_SHARE)] * n_regions
    thickness_loadings = THICKNESS_VARIATION * thickness[:, None] * _regional_loadings(atrophy)
    area_loadings = AREA_VARIATION * area[:, None] * _regional_loadings(head_size)

    hemisphere_from_areas = HEMISPHERE_EXCESS * np.kron(np.eye(2), np.ones(n_regions))
    loadings = block_diag(thickness_loadings, area_loadings, HEMISPHERE_ERROR * np.eye(2))
    loadings[-2:, thickness_loadings.shape[1] : -2] = hemisphere_from_areas @ area_loadings
    names, groups = zip(*_names_and_groups(), strict=True)
    return BrainPopulation(
        names=names,
        groups=groups,
        mean=np.concatenate([thickness, area, hemisphere_from_areas @ area]),
        loadings=loadings,
    )


def _names_and_groups() -> list[tuple[str, str]]:
    regional = [
        (f"{side}_{region.name}_{measure}", f"{region.lobe} {measure}")
        for measure in ("thickness", "area")
        for side in ("lh", "rh")
        for region in REGIONS
    ]
    hemispheres = [(f"{side}_WhiteSurfArea_area", "hemisphere area") for side in ("lh", "rh")]
    return regional + hemispheres


def _regional_loadings(cortex: list[float]) -> FloatArray:
    """Load both sides on cortex, lobe, region and side, with unit variance; (68, 109)."""
    lobes = np.array([region.lobe for region in REGIONS])
    membership = np.equal.outer(lobes, np.unique(lobes))
    common = np.column_stack([cortex, np.sqrt(LOBE_SHARE) * membership])
    remainder = HOMOLOGUE_SHARE - (common**2).sum(axis=1)
    one_side = np.hstack([common, np.diag(np.sqrt(remainder))])
    side_alone = np.sqrt(1 - HOMOLOGUE_SHARE) * np.eye(2 * len(REGIONS))
    return np.hstack([np.tile(one_side, (2, 1)), side_alone])
