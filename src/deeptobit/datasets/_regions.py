"""The 34 cortical regions of the Desikan-Killiany atlas, in the order of FreeSurfer's tables."""

from typing import NamedTuple


class Region(NamedTuple):
    """One region, the same in both hemispheres.

    ``thickness`` (mm) and ``area`` (mm² of the white surface) are round figures for an adult.
    """

    name: str
    lobe: str
    thickness: float
    area: float


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
