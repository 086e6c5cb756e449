"""The Subspace Network: layers grown one by one, and tuned together."""

from deeptobit.network.grow import (
    JointTuning,
    TrainedNetwork,
    deepened,
    finish,
    grow,
    paying_depth,
    train,
)
from deeptobit.network.joint import JointProblem, NetworkProblem
from deeptobit.network.layer import NetworkLayer, Units, latents, layer_inputs, mean_slopes
from deeptobit.network.online import (
    ContinuedNetwork,
    Innovation,
    NetworkStream,
    grow_online,
    layer_of,
    on_top,
    result_of,
)

__all__ = [
    "ContinuedNetwork",
    "Innovation",
    "JointProblem",
    "JointTuning",
    "NetworkLayer",
    "NetworkProblem",
    "NetworkStream",
    "TrainedNetwork",
    "Units",
    "deepened",
    "finish",
    "grow",
    "grow_online",
    "latents",
    "layer_inputs",
    "layer_of",
    "mean_slopes",
    "on_top",
    "paying_depth",
    "result_of",
    "train",
]
