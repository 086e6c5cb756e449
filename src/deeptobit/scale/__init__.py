"""Rows beyond memory: sources that are read again for every pass, and sums over them."""

from deeptobit.scale._blocks import Block, RowReader
from deeptobit.scale._csv import csv_to_parquet
from deeptobit.scale._dask import DaskRows, is_dask
from deeptobit.scale._dask_predict import predict_lazily
from deeptobit.scale._growth import grow_by_rounds
from deeptobit.scale._moments import Moments, Shift
from deeptobit.scale._online import OnlineFit
from deeptobit.scale._parquet import ParquetRows
from deeptobit.scale._parquet_table import Frame, ParquetTable
from deeptobit.scale._rounds import RoundSettings
from deeptobit.scale._rows import Rows
from deeptobit.scale._secants import Secants
from deeptobit.scale._source import LocalSource, RowSource
from deeptobit.scale._state import (
    DataSummary,
    FinishedLayer,
    OnlineState,
    Progress,
    RoundState,
    Seen,
)

__all__ = [
    "Block",
    "DaskRows",
    "DataSummary",
    "FinishedLayer",
    "Frame",
    "LocalSource",
    "Moments",
    "OnlineFit",
    "OnlineState",
    "ParquetRows",
    "ParquetTable",
    "Progress",
    "RoundSettings",
    "RoundState",
    "RowReader",
    "RowSource",
    "Rows",
    "Secants",
    "Seen",
    "Shift",
    "csv_to_parquet",
    "grow_by_rounds",
    "is_dask",
    "predict_lazily",
]
