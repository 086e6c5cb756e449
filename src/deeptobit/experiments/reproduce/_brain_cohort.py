"""The cohort whose features are regions of the brain."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deeptobit.datasets import load_adni, make_clinical_cohort
from deeptobit.experiments.reproduce._context import Context

if TYPE_CHECKING:
    import pandas as pd


class BrainCohort(NamedTuple):
    """Features, scores and bounds, and what to call them."""

    name: str
    X: pd.DataFrame
    Y: pd.DataFrame
    lower: dict[str, float]
    upper: dict[str, float]


def brain_cohort(context: Context) -> BrainCohort:
    """ADNI where its folder is named, a simulated cohort of the same shape elsewhere."""
    if context.path is None:
        cohort = make_clinical_cohort(random_state=context.seed)
        name = "a simulated clinical cohort"
        return BrainCohort(name, cohort.X, cohort.Y, cohort.lower, cohort.upper)
    adni = load_adni(context.path)
    return BrainCohort("ADNI", adni.X, adni.Y, adni.lower, adni.upper)
