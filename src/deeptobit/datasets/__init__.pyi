from . import adni as adni
from . import brains as brains
from . import clinical as clinical
from . import common as common
from . import help as help
from . import subspace as subspace
from .adni import load_adni
from .clinical import ClinicalCohort, make_clinical_cohort
from .common import Cohort, packaged_table
from .help import load_help
from .subspace import LayerTruth, SubspaceTruth, make_subspace

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
