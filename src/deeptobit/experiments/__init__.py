"""Experiments: the claims of the paper, and methods compared on real data."""

from deeptobit.experiments._evaluate import Evaluation, evaluate
from deeptobit.experiments._evaluation_data import EvaluationData, data_of_cohort, data_of_study
from deeptobit.experiments._methods import METHODS, make_methods
from deeptobit.experiments._splits import Protocol, Split, draw_splits
from deeptobit.experiments._store import ResultStore, open_store
from deeptobit.experiments._summary import summarise, verdict
from deeptobit.experiments._summary_files import write_summary
from deeptobit.experiments._summary_tables import (
    TextTable,
    notes,
    table_by_share,
    table_of_measures,
    table_of_targets,
)
from deeptobit.experiments._theory import Course, Regret, Settling, follow, stationarity
from deeptobit.experiments._usable import Skipped

__all__ = [
    "METHODS",
    "Course",
    "Evaluation",
    "EvaluationData",
    "Protocol",
    "Regret",
    "ResultStore",
    "Settling",
    "Skipped",
    "Split",
    "TextTable",
    "data_of_cohort",
    "data_of_study",
    "draw_splits",
    "evaluate",
    "follow",
    "make_methods",
    "notes",
    "open_store",
    "stationarity",
    "summarise",
    "table_by_share",
    "table_of_measures",
    "table_of_targets",
    "verdict",
    "write_summary",
]
