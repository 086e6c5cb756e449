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
from .columns import FEWEST
from .comparison import summarise
from .config import Study, read_study, versions
from .data import StudyData, build_data, open_data, read_data
from .doctor.registry import Finding, diagnose
from .evaluation import (
    EvaluationData,
    Folds,
    Job,
    Protocol,
    ResultStore,
    Split,
    data_of_cohort,
    data_of_study,
    draw_splits,
    evaluate,
    find_usable,
    inner_folds,
    open_results,
    open_store,
    run_jobs,
)
from .external import ExternalValidation, recalibrated, validate
from .fitted import FittedStudy, load_fitted, predict_table, save_fitted
from .fitting import fit_study, make_model
from .formats import convert_table, read_table
from .measures import MEASURES, HeldOut, Measure, Predicted, measure
from .methods import Baseline, InterceptOnly, Regression, Taskwise, make_methods
from .planning import Plan, plan_of_study
from .propose import propose_study
from .stream import check_memory, stream_study
from .tables import StudyError, Table, write_table, write_whole

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
