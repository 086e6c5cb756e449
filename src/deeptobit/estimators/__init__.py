"""Estimators: they validate, choose, call and store."""

import deeptobit.estimators.saving  # noqa: F401  (registers what model files may hold)
from deeptobit.estimators.auto import AutoTobitRegressor
from deeptobit.estimators.mixed import MixedTobitRegressor
from deeptobit.estimators.network import SubspaceNetworkRegressor
from deeptobit.estimators.networkcv import SubspaceNetworkCV
from deeptobit.estimators.subspace import SubspaceTobitRegressor
from deeptobit.estimators.tobit import TobitRegressor
from deeptobit.files import estimator_from_state, estimator_state, load

__all__ = [
    "AutoTobitRegressor",
    "MixedTobitRegressor",
    "SubspaceNetworkCV",
    "SubspaceNetworkRegressor",
    "SubspaceTobitRegressor",
    "TobitRegressor",
    "estimator_from_state",
    "estimator_state",
    "load",
]
