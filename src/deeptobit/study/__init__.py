"""Studies: from a table and a study file to features, targets and a model."""

from deeptobit.study._build import StudyData, build_data, read_data, read_ids
from deeptobit.study._chunks import Passes
from deeptobit.study._codes import find_codes
from deeptobit.study._convert import convert_table
from deeptobit.study._diagnose import diagnose
from deeptobit.study._encoding import EncodedColumn, Encoder
from deeptobit.study._errors import StudyError
from deeptobit.study._few import FEWEST, tells_few
from deeptobit.study._file import Study, read_study
from deeptobit.study._finding import Finding
from deeptobit.study._fit import Progress, fit_study
from deeptobit.study._fitted import FittedStudy
from deeptobit.study._fitted_file import load_fitted, save_fitted
from deeptobit.study._held_out import HeldOut
from deeptobit.study._look import Look, Proposal
from deeptobit.study._measures import measure
from deeptobit.study._memory import available_memory, read_bytes
from deeptobit.study._model import make_model, make_network
from deeptobit.study._predict import predict_table, read_new_data
from deeptobit.study._propose import propose_study
from deeptobit.study._room import Room, look_for_room
from deeptobit.study._stream import stream_study
from deeptobit.study._table import Table, read_table
from deeptobit.study._versions import versions
from deeptobit.study._write import write_whole
from deeptobit.study._write_table import check_writable, write_table

__all__ = [
    "FEWEST",
    "EncodedColumn",
    "Encoder",
    "Finding",
    "FittedStudy",
    "HeldOut",
    "Look",
    "Passes",
    "Progress",
    "Proposal",
    "Room",
    "Study",
    "StudyData",
    "StudyError",
    "Table",
    "available_memory",
    "build_data",
    "check_writable",
    "convert_table",
    "diagnose",
    "find_codes",
    "fit_study",
    "load_fitted",
    "look_for_room",
    "make_model",
    "make_network",
    "measure",
    "predict_table",
    "propose_study",
    "read_bytes",
    "read_data",
    "read_ids",
    "read_new_data",
    "read_study",
    "read_table",
    "save_fitted",
    "stream_study",
    "tells_few",
    "versions",
    "write_table",
    "write_whole",
]
