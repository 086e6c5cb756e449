"""Studies: from a table and a study file to features, targets and a model."""

from deeptobit.study._build import StudyData, build_data, read_data, read_ids
from deeptobit.study._codes import find_codes
from deeptobit.study._diagnose import Finding, diagnose
from deeptobit.study._encoding import EncodedColumn, Encoder
from deeptobit.study._errors import StudyError
from deeptobit.study._file import Study, read_study
from deeptobit.study._fit import Progress, fit_study
from deeptobit.study._fitted import FittedStudy
from deeptobit.study._fitted_file import load_fitted, save_fitted
from deeptobit.study._held_out import HeldOut
from deeptobit.study._look import Look, Proposal
from deeptobit.study._measures import measure
from deeptobit.study._model import make_model
from deeptobit.study._predict import predict_table, read_new_data
from deeptobit.study._propose import propose_study
from deeptobit.study._table import Table, read_table
from deeptobit.study._versions import versions
from deeptobit.study._write import write_whole
from deeptobit.study._write_table import check_writable, write_table

__all__ = [
    "EncodedColumn",
    "Encoder",
    "Finding",
    "FittedStudy",
    "HeldOut",
    "Look",
    "Progress",
    "Proposal",
    "Study",
    "StudyData",
    "StudyError",
    "Table",
    "build_data",
    "check_writable",
    "diagnose",
    "find_codes",
    "fit_study",
    "load_fitted",
    "make_model",
    "measure",
    "predict_table",
    "propose_study",
    "read_data",
    "read_ids",
    "read_new_data",
    "read_study",
    "read_table",
    "save_fitted",
    "versions",
    "write_table",
    "write_whole",
]
