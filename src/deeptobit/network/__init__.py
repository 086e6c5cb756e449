"""The Subspace Network: layers grown one by one (Algorithm 3), and tuned together."""

from deeptobit.network.grow import (
    GrownLayer,
    JointTuning,
    TrainedNetwork,
    calibrate,
    grow,
    newton_history,
    prune,
    train,
)
from deeptobit.network.joint import JointProblem, NetworkProblem
from deeptobit.network.layer import (
    LayerInputs,
    NetworkLayer,
    latents,
    mean_slopes,
    to_standard,
    to_user,
)
from deeptobit.network.online import (
    ContinuedNetwork,
    NetworkStream,
    OnlineInputs,
    grow_online,
    nll_by_depth,
)

__all__ = [
    "ContinuedNetwork",
    "GrownLayer",
    "JointProblem",
    "JointTuning",
    "LayerInputs",
    "NetworkLayer",
    "NetworkProblem",
    "NetworkStream",
    "OnlineInputs",
    "TrainedNetwork",
    "calibrate",
    "grow",
    "grow_online",
    "latents",
    "mean_slopes",
    "newton_history",
    "nll_by_depth",
    "prune",
    "to_standard",
    "to_user",
    "train",
]
