"""Estimators as plain state, and back: what may be stored, by which names, and its checks."""

from deeptobit.estimators.saving._checkpoint import Checkpoint
from deeptobit.estimators.saving._state import (
    estimator_from_state,
    estimator_state,
    load,
    noise_from_state,
    noise_state,
    save_model,
)

__all__ = [
    "Checkpoint",
    "estimator_from_state",
    "estimator_state",
    "load",
    "noise_from_state",
    "noise_state",
    "save_model",
]
