"""The 138 cortical measurements of a scan: 68 thicknesses, 68 areas, 2 hemispheres."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from deeptobit.datasets._packaged import packaged_table

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.datasets._adni_table import AdniTable


def read_features(scans: AdniTable, visit: str) -> pd.DataFrame:
    """Return the latest run of each person's scan at a visit, (n, 138), named by FreeSurfer.

    Of a scan that was processed more than once the run with the latest RUNDATE counts, as a
    whole: runs are not mixed. A scan without all 138 measurements is left out, with a warning.
    Columns that are not cortex in every version (ST22, ST64, ST81, ST123: corpus callosum and
    unknown) are never read.
    """
    import pandas as pd

    regions = packaged_table("adni_features").fillna({"newer_column": ""})
    measured = pd.DataFrame(
        {
            name: _measurement(scans, column, newer)
            for name, column, newer in zip(
                regions["name"], regions["column"], regions["newer_column"], strict=True
            )
        }
    )
    latest = measured[~measured.index.duplicated(keep="last")]
    visits = latest.index.get_level_values("VISIT")
    if visit not in visits:
        there = ", ".join(f"{code} ({n})" for code, n in visits.value_counts().items())
        raise ValueError(f"{scans.file} has no scan at visit {visit!r}; it has {there}")
    return _complete(latest[visits == visit].droplevel("VISIT").sort_index(), scans.file)


def _measurement(scans: AdniTable, column: str, newer: str) -> pd.Series[float]:
    """A column of the scans; newer tables keep both hemispheres under another name."""
    if newer and newer in scans.rows.columns and not _is_filled(scans, column):
        column = newer
    return scans.numbers(column, lower=0)


def _is_filled(scans: AdniTable, column: str) -> bool:
    return column in scans.rows.columns and bool(scans.numbers(column, lower=0).notna().any())


def _complete(features: pd.DataFrame, file: str) -> pd.DataFrame:
    gaps = features.isna()
    incomplete = gaps.any(axis=1)
    if incomplete.all():
        raise ValueError(
            f"no scan of {file} has all 138 measurements; {gaps.sum().idxmax()} is missing in "
            f"{gaps.sum().max()} of {len(features)}"
        )
    if incomplete.any():
        first = features.index[incomplete][0]
        warnings.warn(
            f"{incomplete.sum()} of {len(features)} scans of {file} are left out because they "
            f"lack a measurement (RID {first}: {gaps.columns[gaps.loc[first]][0]})",
            stacklevel=4,
        )
    return features[~incomplete]
