"""Solvers: from a start to an optimum."""

from deeptobit.solvers._newton import NewtonResult, solve_newton
from deeptobit.solvers._subspace_batch import (
    NullModel,
    SubspaceFit,
    fit_null,
    relative_gradient,
    solve_path,
    solve_subspace,
    spectral_start,
)
from deeptobit.solvers._tobit import SIGMA_FLOOR, CensoringKinds, fit_tobit

__all__ = [
    "SIGMA_FLOOR",
    "CensoringKinds",
    "NewtonResult",
    "NullModel",
    "SubspaceFit",
    "fit_null",
    "fit_tobit",
    "relative_gradient",
    "solve_newton",
    "solve_path",
    "solve_subspace",
    "spectral_start",
]
