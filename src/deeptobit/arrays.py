"""The array types that signatures speak of."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
SingleArray: TypeAlias = NDArray[np.float32]
