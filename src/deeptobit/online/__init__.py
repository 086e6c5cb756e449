"""Low-rank Tobit regression in one pass over the rows."""

from deeptobit.online.recursive import RecursiveTobit
from deeptobit.online.solver import (
    OnlineResult,
    OnlineSolver,
    RawRows,
    Record,
    RowBuffer,
    learn_passes,
)
from deeptobit.online.start import OnlineSettings

__all__ = [
    "OnlineResult",
    "OnlineSettings",
    "OnlineSolver",
    "RawRows",
    "Record",
    "RecursiveTobit",
    "RowBuffer",
    "learn_passes",
]
