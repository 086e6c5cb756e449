"""The parameters of one layer."""

from typing import NamedTuple

from deeptobit.arrays import FloatArray


class Layer(NamedTuple):
    """Parameters in standard units: U (T, R), Z (r, R) with V = (BZ)ᵀ, intercept and log σ (T,)."""

    U: FloatArray
    Z: FloatArray
    intercept: FloatArray
    log_sigma: FloatArray
