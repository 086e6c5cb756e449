"""TODO."""

from deeptobit.online.adaptive import AdaptiveLearner, Evidence
from deeptobit.online.dispatch import add_squares
from deeptobit.online.gradient import PlainLearner
from deeptobit.online.recursive import RecursiveTobit
from deeptobit.online.rows import Iterate, Pending, RawRows, read_rows, telling_rows
from deeptobit.online.settings import History, OnlineSettings, Record, Schedule
from deeptobit.online.solver import OnlineResult, OnlineSolver, learn_passes
from deeptobit.online.start import FeatureMetric, NullModel, Units

__all__ = [
    "AdaptiveLearner",
    "Evidence",
    "FeatureMetric",
    "History",
    "Iterate",
    "NullModel",
    "OnlineResult",
    "OnlineSettings",
    "OnlineSolver",
    "Pending",
    "PlainLearner",
    "RawRows",
    "Record",
    "RecursiveTobit",
    "Schedule",
    "Units",
    "add_squares",
    "learn_passes",
    "read_rows",
    "telling_rows",
]
