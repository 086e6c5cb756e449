"""What names of columns say about the brain: hemisphere, region and measure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from deeptobit.app.report.words import listed
from deeptobit.arrays import FloatArray
from deeptobit.datasets import packaged_table
from deeptobit.inspection.heatmaps import scaled

SIDES = ("left", "right")
NO_CORTEX = 0  # the medial wall; region k of region_names() is k + 1

_HEMISPHERES = {word: side for side in SIDES for word in (f"{side[0]}h", side[0], side)}
_ADNI_MEASURES = {"ta": "thickness", "ts": "thicknessstd", "sa": "area", "cv": "volume"}
# FreeSurfer's words, and what ENIGMA and others write for them.
_SYNONYMS = {
    "thickness": "thickness thick thickavg",
    "thicknessstd": "thicknessstd thickstd",
    "area": "area surfarea surfavg",
    "volume": "volume vol grayvol",
} | {name: name for name in ("meancurv", "gauscurv", "foldind", "curvind", "suvr")}
_MEASURES = {word: name for name, words in _SYNONYMS.items() for word in words.split()}
_UNNAMED = "value"  # ctx-lh-bankssts names a region, but no measure
# What an encoder appends, as in "x (missing)" or "x=level", makes another feature of a column.
_PLAIN = re.compile(r"[\w\s.-]+")
_SEPARATOR = re.compile(r"[\s._-]+")
_ADNI = re.compile(r"st(\d+)(ta|ts|sa|cv|sv)(?:[\s._-]+(.*))?")
_TOTAL = re.compile(
    r"(lh|rh|l|r|left|right)?"
    r"(whitesurfarea|pialsurfarea|surfarea|meanthickness|thickness|cortexvol|numvert"
    r"|brainsegvol\w*|totalgrayvol|etiv|icv|estimatedtotalintracranialvol)"
    r"(area|thickness|volume)?"
)
_ADNI_TOTALS = {"10", "27", "28", "86", "87"}  # intracranial volume, hemispheres


class Place(NamedTuple):
    """Where a feature was measured, and what; ``suffix`` is what follows the measure."""

    hemisphere: str
    region: str
    measure: str
    suffix: str


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of the cortex among some names; every name is in exactly one of four attributes.

    Attributes
    ----------
    table : DataFrame of shape (n, 3)
        A row for each name that is a region: hemisphere ("left" or "right"), region, measure.
        No two rows are the same.
    totals : tuple of str
        Names that measure a hemisphere or the head as a whole.
    repeated : tuple of str
        Names of the same hemisphere, region and measure as an earlier one.
    unknown : tuple of str
        All other names.
    """

    table: pd.DataFrame
    totals: tuple[str, ...]
    repeated: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def measures(self) -> list[str]:
        """Measures, the most frequent first; empty if no feature is a region."""
        counts = self.table["measure"].value_counts(sort=False)
        return [str(name) for name in counts.sort_values(ascending=False, kind="stable").index]

    def not_drawn(self, shown: int | None = None) -> str:
        """A sentence that lists the names that are not on the map; empty if all are.

        Parameters
        ----------
        shown : int, optional
            Names of each kind to list; the rest is counted. All by default.
        """
        kinds = {
            "totals of a hemisphere or the head": self.totals,
            "repetitions": self.repeated,
            "features outside the atlas": self.unknown,
        }
        found = {kind: listed(names, shown or len(names)) for kind, names in kinds.items() if names}
        parts = [f"{kind} ({names})" for kind, names in found.items()]
        return f"Not on the map: {'; '.join(parts)}." if parts else ""


def recognise_regions(names: Iterable[str]) -> Regions:
    """Read hemisphere, region and measure from names of features.

    FreeSurfer's names (``lh_bankssts_thickness``, ``ctx-rh-insula``, ``Left.Insula.Area``;
    separators ``_``, ``.``, ``-`` or blank, any case) and ADNI's (``ST102TA`` and what may follow
    it) are known. A name without a measure has the measure "value". What follows a measure
    (``_bl``, ``_m12``) becomes part of it if columns differ in it.

    Parameters
    ----------
    names : iterable of str

    Returns
    -------
    Regions

    Examples
    --------
    >>> names = ["lh_bankssts_thickness", "ST102TA", "ctx-rh-insula", "age", "rh_WhiteSurfArea"]
    >>> found = recognise_regions([*names, "lh_bankssts_thickness (missing)"])
    >>> found.table
                          hemisphere       region    measure
    lh_bankssts_thickness       left     bankssts  thickness
    ST102TA                    right  paracentral  thickness
    ctx-rh-insula              right       insula      value
    >>> found.measures, found.totals, found.unknown
    (['thickness', 'value'], ('rh_WhiteSurfArea',), ('age', 'lh_bankssts_thickness (missing)'))
    """
    found = [(str(name), read_name(str(name))) for name in names]
    places = [(name, place) for name, place in found if isinstance(place, Place)]
    table = pd.DataFrame(
        [place for _, place in places],
        index=pd.Index([name for name, _ in places], dtype=object),
        columns=list(Place._fields),
    )
    several = table.groupby("measure")["suffix"].transform("nunique") > 1
    longer = (table["measure"] + " " + table["suffix"]).str.strip()
    table["measure"] = table["measure"].where(~several, longer)
    table = table.drop(columns="suffix")
    again = table.duplicated()
    return Regions(
        table=table[~again],
        totals=tuple(name for name, kind in found if kind == "total"),
        repeated=tuple(table.index[again]),
        unknown=tuple(name for name, kind in found if kind == "unknown"),
    )


def regional_values(
    values: pd.DataFrame, regions: Regions, measure: str, *, scale: bool = True
) -> FloatArray:
    """Values of one measure by component, hemisphere and region, scaled to [−1, 1].

    Parameters
    ----------
    values : DataFrame of shape (D, R)
    regions : Regions
        The regions of its rows.
    measure : str
    scale : bool
        False leaves the values as they are.

    Returns
    -------
    array of shape (R, 2, 35)
        Component, hemisphere (left, right) and region, the first of which is no cortex; NaN
        where there is no value.

    Examples
    --------
    >>> import pandas as pd
    >>> v = pd.DataFrame({"1": [2.0, -4.0, 9.0]}, ["lh_bankssts_area", "rh_bankssts_area", "age"])
    >>> regional_values(v, recognise_regions(v.index), "area")[0, :, :3]
    array([[ nan,  0.5,  nan],
           [ nan, -1. ,  nan]])
    """
    first = values[~values.index.duplicated()].loc[regions.table.index].astype(np.float64)
    for row, column in np.argwhere(np.isinf(first.to_numpy()))[:1]:
        raise ValueError(
            f"the value of {first.index[row]} in component {first.columns[column]} is infinite; "
            "a brain map needs finite numbers, or NaN where there is none"
        )
    loadings = scaled(first) if scale else first
    chosen = regions.table[regions.table["measure"] == measure]
    result = np.full((values.shape[1], len(SIDES), len(region_names()) + 1), np.nan)
    side = [SIDES.index(name) for name in chosen["hemisphere"]]
    region = [region_names().index(name) + NO_CORTEX + 1 for name in chosen["region"]]
    result[:, side, region] = loadings.loc[chosen.index].to_numpy().T
    empty = np.isnan(result).all(axis=(1, 2))
    if empty.any():
        what = f"component {values.columns[empty][0]} has no value of {measure} in any region"
        raise ValueError(f"{what}: all are NaN; leave it out")
    return result


# Reading names.


@cache
def atlas() -> dict[str, tuple[str, str]]:
    """ADNI's structure number to hemisphere and region, for the 68 regions of the atlas.

    Examples
    --------
    >>> len(atlas()), atlas()["13"], atlas()["102"]
    (68, ('left', 'bankssts'), ('right', 'paracentral'))
    """
    table = packaged_table("adni_features")
    parts = table["name"].str.split("_")
    numbered = zip(table["column"].str[2:-2], parts, strict=True)
    places = {number: (_HEMISPHERES[side], region) for number, (side, region, _) in numbered}
    return {number: at for number, at in places.items() if number not in _ADNI_TOTALS}


@cache
def region_names() -> tuple[str, ...]:
    """The 34 regions that both hemispheres have.

    Examples
    --------
    >>> len(region_names()), region_names()[:2]
    (34, ('bankssts', 'caudalanteriorcingulate'))
    """
    return tuple(dict.fromkeys(region for _, region in atlas().values()))


def read_name(name: str) -> Place | Literal["total", "unknown"]:
    """Hemisphere, region and measure of a column, if it is one of the 68 regions.

    Otherwise whether it measures a hemisphere or the head as a whole.

    Examples
    --------
    >>> read_name("lh_superiorfrontal_thickness")
    Place(hemisphere='left', region='superiorfrontal', measure='thickness', suffix='')
    >>> read_name("ctx-rh-bankssts")
    Place(hemisphere='right', region='bankssts', measure='value', suffix='')
    >>> read_name("ST102CV_UCSFFSX")
    Place(hemisphere='right', region='paracentral', measure='volume', suffix='ucsffsx')
    >>> [read_name(name) for name in ("lh_WhiteSurfArea_area", "ST87SA", "eTIV", "age")]
    ['total', 'total', 'total', 'unknown']
    """
    if not _PLAIN.fullmatch(name):
        return "unknown"
    if code := _ADNI.fullmatch(name.lower()):
        if code[1] in atlas() and code[2] in _ADNI_MEASURES:
            return Place(*atlas()[code[1]], _ADNI_MEASURES[code[2]], code[3] or "")
        return "total" if code[1] in _ADNI_TOTALS else "unknown"
    words = [word for word in _SEPARATOR.split(name.lower()) if word]
    if place := _freesurfer_place(words):
        return place
    return "total" if _TOTAL.fullmatch("".join(words)) else "unknown"


def _freesurfer_place(words: list[str]) -> Place | None:
    """Read [ctx] hemisphere, region in one or more words, measure.

    A word between hemisphere and region, or a number after the region, is the name of a part in a
    finer atlas (lh_G_cuneus, lh_precentral_2), which is not the region.
    """
    words = words[1:] if words[:1] == ["ctx"] else words
    if not words or words[0] not in _HEMISPHERES:
        return None
    for end in range(len(words), 1, -1):
        region, rest = "".join(words[1:end]), words[end:]
        if region in region_names() and not (rest and rest[0].isdigit()):
            measure, suffix = " ".join(rest) or _UNNAMED, ""
            if rest and rest[0] in _MEASURES:
                measure, suffix = _MEASURES[rest[0]], " ".join(rest[1:])
            return Place(_HEMISPHERES[words[0]], region, measure, suffix)
    return None
