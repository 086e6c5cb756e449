"""Files: models saved without pickle, their format, and ONNX."""

from deeptobit.files.container import read_state as read_state
from deeptobit.files.container import write_state as write_state
from deeptobit.files.container import write_whole as write_whole
from deeptobit.files.models import estimator_from_state as estimator_from_state
from deeptobit.files.models import estimator_state as estimator_state
from deeptobit.files.models import load as load
