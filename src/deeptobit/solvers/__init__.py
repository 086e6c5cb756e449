"""Solvers: they iterate, and know nothing of data."""

from deeptobit.solvers._newton import NewtonResult, solve_newton

__all__ = ["NewtonResult", "solve_newton"]
