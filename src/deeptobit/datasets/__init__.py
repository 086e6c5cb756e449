"""Simulated data with known truth, and real cohorts with bounded scores."""

from deeptobit.datasets._adni import load_adni
from deeptobit.datasets._clinical_cohort import ClinicalCohort, make_clinical_cohort
from deeptobit.datasets._cohort import Cohort
from deeptobit.datasets._help import load_help
from deeptobit.datasets._packaged import packaged_table as packaged_table  # for rooms above
from deeptobit.datasets._subspace import make_subspace
from deeptobit.datasets._subspace_truth import LayerTruth, SubspaceTruth

__all__ = [
    "ClinicalCohort",
    "Cohort",
    "LayerTruth",
    "SubspaceTruth",
    "load_adni",
    "load_help",
    "make_clinical_cohort",
    "make_subspace",
]
