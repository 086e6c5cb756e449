"""Estimators: they validate, choose, call and store."""

from deeptobit.estimators.auto import AutoTobitRegressor
from deeptobit.estimators.checkpoint import Checkpoint
from deeptobit.estimators.network import SubspaceNetworkRegressor
from deeptobit.estimators.networkcv import SubspaceNetworkCV
from deeptobit.estimators.onnx import register_skl2onnx
from deeptobit.estimators.saving import (
    estimator_from_state,
    estimator_state,
    load,
    noise_from_state,
    noise_state,
    save_model,
)
from deeptobit.estimators.subspace import SubspaceTobitRegressor
from deeptobit.estimators.tobit import TobitRegressor

__all__ = [
    "AutoTobitRegressor",
    "Checkpoint",
    "SubspaceNetworkCV",
    "SubspaceNetworkRegressor",
    "SubspaceTobitRegressor",
    "TobitRegressor",
    "estimator_from_state",
    "estimator_state",
    "load",
    "noise_from_state",
    "noise_state",
    "register_skl2onnx",
    "save_model",
]
