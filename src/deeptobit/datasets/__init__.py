"""Simulated data with known truth, and real cohorts with bounded scores."""

from deeptobit.datasets.adni import load_adni
from deeptobit.datasets.clinical import ClinicalCohort, make_clinical_cohort
from deeptobit.datasets.common import Cohort, packaged_table
from deeptobit.datasets.help import load_help
from deeptobit.datasets.subspace import LayerTruth, SubspaceTruth, make_subspace

__all__ = [
    "ClinicalCohort",
    "Cohort",
    "LayerTruth",
    "SubspaceTruth",
    "load_adni",
    "load_help",
    "make_clinical_cohort",
    "make_subspace",
    "packaged_table",
]
