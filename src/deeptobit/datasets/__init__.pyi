from . import adni as adni
from . import brains as brains
from . import clinical as clinical
from . import common as common
from . import help as help
from . import subspace as subspace
from .adni import load_adni as load_adni
from .clinical import ClinicalCohort as ClinicalCohort
from .clinical import make_clinical_cohort as make_clinical_cohort
from .common import Cohort as Cohort
from .common import packaged_table as packaged_table
from .help import load_help as load_help
from .subspace import LayerTruth as LayerTruth
from .subspace import SubspaceTruth as SubspaceTruth
from .subspace import make_subspace as make_subspace

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
