from . import cluster as cluster
from . import csv as csv
from . import online as online
from . import parquet as parquet
from . import rounds as rounds
from . import source as source
from . import state as state
from . import sums as sums
from .cluster import DaskRows as DaskRows
from .cluster import predict_lazily as predict_lazily
from .csv import TextTable as TextTable
from .csv import csv_to_parquet as csv_to_parquet
from .online import FitOnline as FitOnline
from .parquet import Frame as Frame
from .parquet import ParquetRows as ParquetRows
from .parquet import ParquetTable as ParquetTable
from .rounds import FitByRounds as FitByRounds
from .source import Block as Block
from .source import LocalSource as LocalSource
from .source import RowReader as RowReader
from .source import Rows as Rows
from .source import RowSource as RowSource
from .state import FinishedLayer as FinishedLayer
from .state import OnlineState as OnlineState
from .state import Progress as Progress
from .state import RoundState as RoundState
from .state import Secants as Secants
from .state import Seen as Seen
from .sums import DataSummary as DataSummary
from .sums import Moments as Moments
from .sums import Shift as Shift
from .sums import Standardised as Standardised
from .sums import SumMoments as SumMoments

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
