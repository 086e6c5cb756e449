"""Subspace Tobit regression in one pass over a stream of rows."""

from deeptobit.solvers.online._history import Record
from deeptobit.solvers.online._passes import learn_passes
from deeptobit.solvers.online._pending import Pending, RawRows, read_rows, telling_rows
from deeptobit.solvers.online._settings import OnlineSettings, Schedule
from deeptobit.solvers.online._solver import OnlineResult, OnlineSolver

__all__ = [
    "OnlineResult",
    "OnlineSettings",
    "OnlineSolver",
    "Pending",
    "RawRows",
    "Record",
    "Schedule",
    "learn_passes",
    "read_rows",
    "telling_rows",
]
