"""Compiled twins of the NumPy likelihood; each has a parity test against its reference."""

from deeptobit.kernels._evaluate import evaluate, evaluate_olsen

__all__ = ["evaluate", "evaluate_olsen"]
