"""Solvers: from a start to an optimum."""

from deeptobit.solvers._course import Step
from deeptobit.solvers._newton import NewtonResult, solve_newton
from deeptobit.solvers._recursive import RecursiveTobit
from deeptobit.solvers._subspace_batch import (
    SubspaceFit,
    relative_gradient,
    solve_path,
    solve_subspace,
)
from deeptobit.solvers._subspace_null import NullModel, fit_null, spectral_start
from deeptobit.solvers._tobit import SIGMA_FLOOR, CensoringKinds, fit_tobit

__all__ = [
    "SIGMA_FLOOR",
    "CensoringKinds",
    "NewtonResult",
    "NullModel",
    "RecursiveTobit",
    "Step",
    "SubspaceFit",
    "fit_null",
    "fit_tobit",
    "relative_gradient",
    "solve_newton",
    "solve_path",
    "solve_subspace",
    "spectral_start",
]
