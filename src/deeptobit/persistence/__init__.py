"""Plain state to files and back: arrays and JSON, no pickle, nothing executed on reading."""

from deeptobit.persistence._file import read_state, write_state
from deeptobit.persistence._whole import write_whole

__all__ = ["read_state", "write_state", "write_whole"]
