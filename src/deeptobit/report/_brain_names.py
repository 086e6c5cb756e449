"""What names of columns say about the brain: hemisphere, region and measure."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from deeptobit.datasets import packaged_table

_HEMISPHERES = {
    "lh": "left",
    "l": "left",
    "left": "left",
    "rh": "right",
    "r": "right",
    "right": "right",
}
_ADNI_MEASURES = {"ta": "thickness", "ts": "thicknessstd", "sa": "area", "cv": "volume"}
# FreeSurfer's words, and what ENIGMA and others write for them.
_MEASURES = {
    "thickness": "thickness",
    "thick": "thickness",
    "thickavg": "thickness",
    "thicknessstd": "thicknessstd",
    "thickstd": "thicknessstd",
    "area": "area",
    "surfarea": "area",
    "surfavg": "area",
    "volume": "volume",
    "vol": "volume",
    "grayvol": "volume",
    "meancurv": "meancurv",
    "gauscurv": "gauscurv",
    "foldind": "foldind",
    "curvind": "curvind",
    "suvr": "suvr",
}
_UNNAMED = "value"  # ctx-lh-bankssts says where, not what
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


@cache
def atlas() -> dict[str, tuple[str, str]]:
    """ADNI's structure number to hemisphere and region, for the 68 regions of the atlas.

    Examples
    --------
    >>> len(atlas()), atlas()["13"], atlas()["102"]
    (68, ('left', 'bankssts'), ('right', 'paracentral'))
    """
    table = packaged_table("adni_features")
    places = {}
    for column, name in zip(table["column"], table["name"], strict=True):
        hemisphere, region, _ = name.split("_")
        if (number := _number(column)) not in _ADNI_TOTALS:
            places[number] = (_HEMISPHERES[hemisphere], region)
    return places


@cache
def region_names() -> tuple[str, ...]:
    """The 34 regions that both hemispheres have.

    Examples
    --------
    >>> len(region_names()), region_names()[:2]
    (34, ('bankssts', 'caudalanteriorcingulate'))
    """
    return tuple(dict.fromkeys(region for _, region in atlas().values()))


def read_place(name: str) -> Place | None:
    """Hemisphere, region and measure of a column; None if it is not one of the 68 regions.

    Examples
    --------
    >>> read_place("lh_superiorfrontal_thickness")
    Place(hemisphere='left', region='superiorfrontal', measure='thickness', suffix='')
    >>> read_place("ctx-rh-bankssts")
    Place(hemisphere='right', region='bankssts', measure='value', suffix='')
    >>> read_place("ST102CV_UCSFFSX")
    Place(hemisphere='right', region='paracentral', measure='volume', suffix='ucsffsx')
    >>> read_place("lh_insula_area (missing)")
    """
    if not _PLAIN.fullmatch(name):
        return None
    return _adni_place(name.lower()) or _freesurfer_place(_words(name))


def is_total(name: str) -> bool:
    """Whether a column measures a hemisphere or the head as a whole.

    Examples
    --------
    >>> names = "lh_WhiteSurfArea_area", "ST87SA", "eTIV", "lh_insula_area", "age"
    >>> [is_total(name) for name in names]
    [True, True, True, False, False]
    """
    if not _PLAIN.fullmatch(name):
        return False
    code = _ADNI.fullmatch(name.lower())
    if code:
        return code[1] in _ADNI_TOTALS
    return _TOTAL.fullmatch("".join(_words(name))) is not None


def _words(name: str) -> list[str]:
    return [word for word in _SEPARATOR.split(name.lower()) if word]


def _number(column: str) -> str:
    return column[2:-2]


def _adni_place(name: str) -> Place | None:
    code = _ADNI.fullmatch(name)
    if not code or code[1] not in atlas() or code[2] not in _ADNI_MEASURES:
        return None
    hemisphere, region = atlas()[code[1]]
    return Place(hemisphere, region, _ADNI_MEASURES[code[2]], code[3] or "")


def _freesurfer_place(words: list[str]) -> Place | None:
    """[ctx] hemisphere, region in one or more words, measure.

    Nothing may stand between hemisphere and region, nor a number follow it: those are names of
    finer atlases (lh_G_cuneus, lh_precentral_2), whose parts are not the region.
    """
    if words[:1] == ["ctx"]:
        words = words[1:]
    if not words or words[0] not in _HEMISPHERES:
        return None
    for end in range(len(words), 1, -1):
        region, rest = "".join(words[1:end]), words[end:]
        if region in region_names() and not (rest and rest[0].isdigit()):
            return Place(_HEMISPHERES[words[0]], region, *_measure(rest))
    return None


def _measure(words: list[str]) -> tuple[str, str]:
    if words and words[0] in _MEASURES:
        return _MEASURES[words[0]], " ".join(words[1:])
    return " ".join(words) or _UNNAMED, ""
