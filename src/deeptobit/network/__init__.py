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
    latents,
    mean_slopes,
    to_standard,
    to_user,
)
from deeptobit.network.online import ContinuedNetwork, NetworkStream, grow_online

__all__ = [
    "ContinuedNetwork",
    "GrownLayer",
    "JointTuning",
    "LayerInputs",
    "NetworkLayer",
    "NetworkProblem",
    "NetworkStream",
    "TrainedNetwork",
    "calibrate",
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
