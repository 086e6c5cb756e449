"""Rows beyond memory: sources that are read again for every pass, and sums over them."""

from deeptobit.scale.cluster import DaskRows, predict_lazily
from deeptobit.scale.csv import TextTable, csv_to_parquet
from deeptobit.scale.online import FitOnline
from deeptobit.scale.parquet import Frame, ParquetRows, ParquetTable
from deeptobit.scale.rounds import FitByRounds
from deeptobit.scale.source import Block, LocalSource, RowReader, Rows, RowSource
from deeptobit.scale.state import FinishedLayer, OnlineState, Progress, RoundState, Secants, Seen
from deeptobit.scale.sums import DataSummary, Moments, Shift, Standardised, SumMoments

__all__ = [
    "Block",
    "DaskRows",
    "DataSummary",
    "FinishedLayer",
    "FitByRounds",
    "FitOnline",
    "Frame",
    "LocalSource",
    "Moments",
    "OnlineState",
    "ParquetRows",
    "ParquetTable",
    "Progress",
    "RoundState",
    "RowReader",
    "RowSource",
    "Rows",
    "Secants",
    "Seen",
    "Shift",
    "Standardised",
    "SumMoments",
    "TextTable",
    "csv_to_parquet",
    "predict_lazily",
]
