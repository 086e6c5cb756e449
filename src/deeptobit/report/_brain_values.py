"""From loadings by feature to values by component, hemisphere and region, between −1 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.report._brain_names import region_names
from deeptobit.report._brain_surface import NO_CORTEX

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.report._brain_regions import Regions

SIDES = ("left", "right")


def regional_values(values: pd.DataFrame, regions: Regions, measure: str) -> FloatArray:
    """Scaled values of one measure at their places, NaN elsewhere.

    Parameters
    ----------
    values : DataFrame of shape (D, R)
    regions : Regions
        Of the names of its rows.
    measure : str

    Returns
    -------
    array of shape (R, 2, 35)
        By component, hemisphere (left, right) and region, the first being no cortex.

    Examples
    --------
    >>> import pandas as pd
    >>> from deeptobit.report._brain_regions import recognise_regions
    >>> v = pd.DataFrame({"1": [2.0, -4.0, 9.0]}, ["lh_bankssts_area", "rh_bankssts_area", "age"])
    >>> regional_values(v, recognise_regions(v.index), "area")[0, :, :3]
    array([[ nan,  0.5,  nan],
           [ nan, -1. ,  nan]])
    """
    first = values[~values.index.duplicated()]
    scaled = _scaled(first.loc[regions.table.index])
    chosen = regions.table[regions.table["measure"] == measure]
    result = np.full((values.shape[1], len(SIDES), len(region_names()) + 1), np.nan)
    side = [SIDES.index(name) for name in chosen["hemisphere"]]
    region = [region_names().index(name) + NO_CORTEX + 1 for name in chosen["region"]]
    result[:, side, region] = scaled.loc[chosen.index].to_numpy().T
    empty = np.isnan(result).all(axis=(1, 2))
    if empty.any():
        raise ValueError(
            f"component {values.columns[empty][0]} has no value of {measure} in any region: all "
            "are NaN; leave it out"
        )
    return result


def _scaled(values: pd.DataFrame) -> pd.DataFrame:
    """Components divided by their largest absolute value in any region and measure."""
    numbers = values.to_numpy(dtype=np.float64)
    if np.isinf(numbers).any():
        row, column = np.argwhere(np.isinf(numbers))[0]
        raise ValueError(
            f"the value of {values.index[row]} in component {values.columns[column]} is infinite; "
            "a brain map needs finite numbers, or NaN where there is none"
        )
    largest = np.fmax.reduce(np.abs(numbers), axis=0, initial=0.0)  # NaN does not count
    return values.astype(np.float64).div(np.where(largest > 0.0, largest, 1.0), axis="columns")
