"""Compiled twins of the NumPy likelihood; each has a parity test against its reference."""

from deeptobit.kernels._evaluate import evaluate
from deeptobit.kernels._missing import missing_noise, reference_missing_noise
from deeptobit.kernels._olsen import OlsenRows, olsen_rows, reference_olsen_rows
from deeptobit.kernels._truncated import truncated_moments

__all__ = [
    "OlsenRows",
    "evaluate",
    "missing_noise",
    "olsen_rows",
    "reference_missing_noise",
    "reference_olsen_rows",
    "truncated_moments",
]
