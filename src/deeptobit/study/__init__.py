"""Studies: from a table and a study file to features, targets and a model."""

from deeptobit.study._build import StudyData, build_data, read_data, read_ids
from deeptobit.study._diagnose import Finding, diagnose
from deeptobit.study._encoding import EncodedColumn, Encoder
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study, read_study
from deeptobit.study._model import make_model
from deeptobit.study._propose import propose_study
from deeptobit.study._table import Table, read_table
from deeptobit.study._write import write_whole

__all__ = [
    "EncodedColumn",
    "Encoder",
    "Finding",
    "Study",
    "StudyData",
    "StudyError",
    "Table",
    "build_data",
    "diagnose",
    "make_model",
    "propose_study",
    "read_data",
    "read_ids",
    "read_study",
    "read_table",
    "write_whole",
]
