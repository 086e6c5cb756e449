from . import columns as columns
from . import comparison as comparison
from . import config as config
from . import data as data
from . import doctor as doctor
from . import effects as effects
from . import evaluation as evaluation
from . import external as external
from . import fitted as fitted
from . import fitting as fitting
from . import formats as formats
from . import layout as layout
from . import measures as measures
from . import methods as methods
from . import planning as planning
from . import propose as propose
from . import stream as stream
from . import tables as tables
from . import visits as visits
from .columns import FEWEST as FEWEST
from .comparison import summarise as summarise
from .config import Study as Study
from .config import read_study as read_study
from .config import versions as versions
from .data import StudyData as StudyData
from .data import build_data as build_data
from .data import open_data as open_data
from .data import read_data as read_data
from .doctor.registry import Finding as Finding
from .doctor.registry import diagnose as diagnose
from .evaluation import EvaluationData as EvaluationData
from .evaluation import Folds as Folds
from .evaluation import Job as Job
from .evaluation import Protocol as Protocol
from .evaluation import ResultStore as ResultStore
from .evaluation import Split as Split
from .evaluation import data_of_cohort as data_of_cohort
from .evaluation import data_of_study as data_of_study
from .evaluation import draw_splits as draw_splits
from .evaluation import evaluate as evaluate
from .evaluation import find_usable as find_usable
from .evaluation import inner_folds as inner_folds
from .evaluation import open_results as open_results
from .evaluation import open_store as open_store
from .evaluation import run_jobs as run_jobs
from .external import ExternalValidation as ExternalValidation
from .external import recalibrated as recalibrated
from .external import validate as validate
from .fitted import FittedStudy as FittedStudy
from .fitted import load_fitted as load_fitted
from .fitted import predict_table as predict_table
from .fitted import save_fitted as save_fitted
from .fitting import fit_study as fit_study
from .fitting import make_model as make_model
from .formats import convert_table as convert_table
from .formats import read_table as read_table
from .measures import MEASURES as MEASURES
from .measures import HeldOut as HeldOut
from .measures import Measure as Measure
from .measures import Predicted as Predicted
from .measures import measure as measure
from .methods import Baseline as Baseline
from .methods import InterceptOnly as InterceptOnly
from .methods import Regression as Regression
from .methods import Taskwise as Taskwise
from .methods import make_methods as make_methods
from .planning import Plan as Plan
from .planning import plan_of_study as plan_of_study
from .propose import propose_study as propose_study
from .stream import check_memory as check_memory
from .stream import stream_study as stream_study
from .tables import StudyError as StudyError
from .tables import Table as Table
from .tables import write_table as write_table
from .tables import write_whole as write_whole

__all__ = [
    "FEWEST",
    "MEASURES",
    "Baseline",
    "EvaluationData",
    "ExternalValidation",
    "Finding",
    "FittedStudy",
    "Folds",
    "HeldOut",
    "InterceptOnly",
    "Job",
    "Measure",
    "Plan",
    "Predicted",
    "Protocol",
    "Regression",
    "ResultStore",
    "Split",
    "Study",
    "StudyData",
    "StudyError",
    "Table",
    "Taskwise",
    "build_data",
    "check_memory",
    "convert_table",
    "data_of_cohort",
    "data_of_study",
    "diagnose",
    "draw_splits",
    "evaluate",
    "find_usable",
    "fit_study",
    "inner_folds",
    "load_fitted",
    "make_methods",
    "make_model",
    "measure",
    "open_data",
    "open_results",
    "open_store",
    "plan_of_study",
    "predict_table",
    "propose_study",
    "read_data",
    "read_study",
    "read_table",
    "recalibrated",
    "run_jobs",
    "save_fitted",
    "stream_study",
    "summarise",
    "validate",
    "versions",
    "write_table",
    "write_whole",
]
