"""Simulated data with known truth: the paper's generator and a cohort of patients."""

from deeptobit.datasets._clinical_cohort import ClinicalCohort, make_clinical_cohort
from deeptobit.datasets._subspace import make_subspace
from deeptobit.datasets._subspace_truth import LayerTruth, SubspaceTruth

__all__ = [
    "ClinicalCohort",
    "LayerTruth",
    "SubspaceTruth",
    "make_clinical_cohort",
    "make_subspace",
]
