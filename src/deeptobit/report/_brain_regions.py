"""Which features of a study are regions of the cortex, and which are not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deeptobit.report._brain_names import is_total, read_place

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ["hemisphere", "region", "measure"]


@dataclass(frozen=True, eq=False)
class Regions:
    """Every name that was asked for is in exactly one of four places.

    Attributes
    ----------
    table : DataFrame of shape (n, 3)
        A row for each name that is a region: hemisphere ("left" or "right"), region, measure.
        No two rows are the same.
    totals : tuple of str
        Names that measure a hemisphere or the head as a whole.
    repeated : tuple of str
        Names that say the same as an earlier one.
    unknown : tuple of str
        All other names.
    """

    table: pd.DataFrame
    totals: tuple[str, ...]
    repeated: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def measures(self) -> list[str]:
        """Measures, the one of most regions first; empty if no feature is a region."""
        counts = self.table["measure"].value_counts(sort=False)
        return [str(name) for name in counts.sort_values(ascending=False, kind="stable").index]

    def not_drawn(self, shown: int | None = None) -> str:
        """A sentence that lists what has no place on the map, or nothing if all have one.

        Parameters
        ----------
        shown : int, optional
            So many names of each kind; the rest is counted. All by default.
        """
        kinds = {
            "totals of a hemisphere or the head": self.totals,
            "repetitions": self.repeated,
            "features outside the atlas": self.unknown,
        }
        parts = [f"{kind} ({_listed(names, shown)})" for kind, names in kinds.items() if names]
        return f"Not on the map: {'; '.join(parts)}." if parts else ""


def recognise_regions(names: Iterable[str]) -> Regions:
    """Read hemisphere, region and measure from names of features.

    FreeSurfer's names (``lh_bankssts_thickness``, ``ctx-rh-insula``, ``Left.Insula.Area``;
    separators ``_``, ``.``, ``-`` or blank, any case) and ADNI's (``ST102TA`` and what may follow
    it) are known. A name that carries no measure has the measure "value". What follows a measure
    (``_bl``, ``_m12``) becomes part of it where that tells columns apart.

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
    import pandas as pd

    places = [(str(name), read_place(str(name))) for name in names]
    found = [(name, place) for name, place in places if place]
    others = [name for name, place in places if not place]
    table = pd.DataFrame(
        [place for _, place in found],
        index=pd.Index([name for name, _ in found], dtype=object),
        columns=[*_COLUMNS, "suffix"],
    )
    table = _tell_apart(table)[_COLUMNS]
    again = table.duplicated()
    return Regions(
        table=table[~again],
        totals=tuple(name for name in others if is_total(name)),
        repeated=tuple(table.index[again]),
        unknown=tuple(name for name in others if not is_total(name)),
    )


def _tell_apart(table: pd.DataFrame) -> pd.DataFrame:
    """Add the suffix to the measure where columns of one measure have different ones."""
    several = table.groupby("measure")["suffix"].transform("nunique") > 1
    longer = (table["measure"] + " " + table["suffix"]).str.strip()
    return table.assign(measure=table["measure"].where(~several, longer))


def _listed(names: tuple[str, ...], shown: int | None) -> str:
    if shown is None or len(names) <= shown:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"
