"""Solvers: from a start to an optimum."""

from deeptobit.solvers._newton import NewtonResult, solve_newton
from deeptobit.solvers._tobit import SIGMA_FLOOR, CensoringKinds, fit_tobit

__all__ = ["SIGMA_FLOOR", "CensoringKinds", "NewtonResult", "fit_tobit", "solve_newton"]
