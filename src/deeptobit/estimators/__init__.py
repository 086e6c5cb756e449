"""Estimators: they validate, choose, call and store."""

from deeptobit.estimators._error_model import carry_quartiles, fit_errors
from deeptobit.estimators._exporting import register_skl2onnx
from deeptobit.estimators._held_out_scores import HeldOutScores, Line
from deeptobit.estimators._network import SubspaceNetworkRegressor
from deeptobit.estimators._network_cv import SubspaceNetworkCV
from deeptobit.estimators._subspace import SubspaceTobitRegressor
from deeptobit.estimators._tobit import TobitRegressor
from deeptobit.estimators.saving import (
    estimator_from_state,
    estimator_state,
    load,
    noise_from_state,
    noise_state,
)

__all__ = [
    "HeldOutScores",
    "Line",
    "SubspaceNetworkCV",
    "SubspaceNetworkRegressor",
    "SubspaceTobitRegressor",
    "TobitRegressor",
    "carry_quartiles",
    "estimator_from_state",
    "estimator_state",
    "fit_errors",
    "load",
    "noise_from_state",
    "noise_state",
    "register_skl2onnx",
]
