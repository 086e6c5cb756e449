"""Low-rank Tobit regression in one pass over the rows."""

from deeptobit.online.recursive import RecursiveTobit
from deeptobit.online.rows import RawRows, RowBuffer
from deeptobit.online.settings import OnlineSettings, Record, Schedule
from deeptobit.online.solver import OnlineResult, OnlineSolver, learn_passes

__all__ = [
    "OnlineResult",
    "OnlineSettings",
    "OnlineSolver",
    "RawRows",
    "Record",
    "RecursiveTobit",
    "RowBuffer",
    "Schedule",
    "learn_passes",
]
