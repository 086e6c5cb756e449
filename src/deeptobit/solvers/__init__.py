"""Solvers: from a start to an optimum."""

from deeptobit.solvers._course import Course, Step
from deeptobit.solvers._newton import NewtonResult, solve_newton
from deeptobit.solvers._recursive import RecursiveTobit
from deeptobit.solvers._subspace_batch import (
    SubspaceFit,
    relative_gradient,
    solve_layer,
    solve_path,
    solve_subspace,
)
from deeptobit.solvers._subspace_null import NullModel, fit_null, floors_for, spectral_start
from deeptobit.solvers._tobit import SIGMA_FLOOR, CensoringKinds, fit_tobit

__all__ = [
    "SIGMA_FLOOR",
    "CensoringKinds",
    "Course",
    "NewtonResult",
    "NullModel",
    "RecursiveTobit",
    "Step",
    "SubspaceFit",
    "fit_null",
    "fit_tobit",
    "floors_for",
    "relative_gradient",
    "solve_layer",
    "solve_newton",
    "solve_path",
    "solve_subspace",
    "spectral_start",
]
