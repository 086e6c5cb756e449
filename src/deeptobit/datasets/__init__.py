"""Simulated data with known truth, and real cohorts with bounded scores."""

from deeptobit.datasets.adni import load_adni
from deeptobit.datasets.brains import Cohort
from deeptobit.datasets.cohort import ClinicalCohort, make_clinical_cohort
from deeptobit.datasets.help import load_help, packaged_table
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
