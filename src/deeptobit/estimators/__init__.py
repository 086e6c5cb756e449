"""Estimators: they validate, choose, call and store."""

from deeptobit.estimators._exporting import register_skl2onnx
from deeptobit.estimators._network import SubspaceNetworkRegressor
from deeptobit.estimators._network_cv import SubspaceNetworkCV
from deeptobit.estimators._subspace import SubspaceTobitRegressor
from deeptobit.estimators._tobit import TobitRegressor
from deeptobit.estimators.saving import estimator_from_state, estimator_state, load

__all__ = [
    "SubspaceNetworkCV",
    "SubspaceNetworkRegressor",
    "SubspaceTobitRegressor",
    "TobitRegressor",
    "estimator_from_state",
    "estimator_state",
    "load",
    "register_skl2onnx",
]
