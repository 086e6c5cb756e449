"""The Subspace Network: layers grown one by one, and tuned together."""

from deeptobit.network._depth import deepened, paying_depth
from deeptobit.network._growth import grow
from deeptobit.network._innovation import Innovation
from deeptobit.network._inputs import layer_inputs
from deeptobit.network._joint import JointProblem
from deeptobit.network._layer import NetworkLayer, latents
from deeptobit.network._online import grow_online, layer_of, on_top, result_of
from deeptobit.network._problem import NetworkProblem
from deeptobit.network._slopes import mean_slopes
from deeptobit.network._stream import ContinuedNetwork, NetworkStream
from deeptobit.network._training import JointTuning, TrainedNetwork, finish, train
from deeptobit.network._units import Units

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
