"""Low-rank Tobit regression in one pass over the rows."""

from deeptobit.online.recursive import RecursiveTobit as RecursiveTobit
from deeptobit.online.solver import OnlineResult as OnlineResult
from deeptobit.online.solver import OnlineSolver as OnlineSolver
from deeptobit.online.solver import RawRows as RawRows
from deeptobit.online.solver import Record as Record
from deeptobit.online.solver import RowBuffer as RowBuffer
from deeptobit.online.solver import learn_passes as learn_passes
from deeptobit.online.start import OnlineSettings as OnlineSettings
