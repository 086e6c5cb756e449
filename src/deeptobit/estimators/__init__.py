"""Estimators: they validate, choose, call and store."""

from deeptobit.estimators._subspace import SubspaceTobitRegressor
from deeptobit.estimators._tobit import TobitRegressor

__all__ = ["SubspaceTobitRegressor", "TobitRegressor"]
