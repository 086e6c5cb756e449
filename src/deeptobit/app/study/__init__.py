"""Studies: a table and a TOML file that says what to predict from what; fit, predict, compare."""

from deeptobit.app.study.columns import FEWEST
from deeptobit.app.study.comparison import summarise, write_summary
from deeptobit.app.study.config import Study, read_study, versions
from deeptobit.app.study.data import StudyData, build_data, open_data, read_data
from deeptobit.app.study.doctor import Finding, diagnose
from deeptobit.app.study.evaluation import (
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
from deeptobit.app.study.external import ExternalValidation, recalibrated, validate
from deeptobit.app.study.fitted import FittedStudy, load_fitted, predict_table, save_fitted
from deeptobit.app.study.fitting import fit_study, make_model
from deeptobit.app.study.formats import convert_table, read_table
from deeptobit.app.study.measures import MEASURES, HeldOut, Measure, Predicted, measure
from deeptobit.app.study.memory import check_memory
from deeptobit.app.study.methods import Baseline, InterceptOnly, Regression, Taskwise, make_methods
from deeptobit.app.study.planning import Plan, plan_of_study
from deeptobit.app.study.propose import propose_study
from deeptobit.app.study.stream import stream_study
from deeptobit.app.study.tables import StudyError, Table, write_table, write_whole

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
    "write_summary",
    "write_table",
    "write_whole",
]
