"""The Subspace Network: layers grown one by one (Algorithm 3), and tuned together."""

from deeptobit.network.grow import (
    GrownLayer,
    JointTuning,
    TrainedNetwork,
    calibrate,
    deepened,
    grow,
    prune,
    retrain,
    standard_start,
    train,
)
from deeptobit.network.joint import NetworkProblem
from deeptobit.network.layer import (
    LayerInputs,
    NetworkLayer,
    concatenate,
    latents,
    mean_slopes,
    to_standard,
    to_user,
)
from deeptobit.network.online import ContinuedNetwork, NetworkStream, grow_online
from deeptobit.network.trees import Trees

__all__ = [
    "ContinuedNetwork",
    "GrownLayer",
    "JointTuning",
    "LayerInputs",
    "NetworkLayer",
    "NetworkProblem",
    "NetworkStream",
    "TrainedNetwork",
    "Trees",
    "calibrate",
    "concatenate",
    "deepened",
    "grow",
    "grow_online",
    "latents",
    "mean_slopes",
    "prune",
    "retrain",
    "standard_start",
    "to_standard",
    "to_user",
    "train",
]
