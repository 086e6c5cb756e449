"""Estimators: they validate, choose, call and store."""

from deeptobit.estimators._network import SubspaceNetworkRegressor
from deeptobit.estimators._network_cv import SubspaceNetworkCV
from deeptobit.estimators._subspace import SubspaceTobitRegressor
from deeptobit.estimators._tobit import TobitRegressor

__all__ = [
    "SubspaceNetworkCV",
    "SubspaceNetworkRegressor",
    "SubspaceTobitRegressor",
    "TobitRegressor",
]
