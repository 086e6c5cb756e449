"""The Subspace Network: layers grown one by one (Algorithm 3), and tuned together."""

from deeptobit.network.grow import GrownLayer as GrownLayer
from deeptobit.network.grow import JointTuning as JointTuning
from deeptobit.network.grow import TrainedNetwork as TrainedNetwork
from deeptobit.network.grow import calibrate as calibrate
from deeptobit.network.grow import deepened as deepened
from deeptobit.network.grow import grow as grow
from deeptobit.network.grow import prune as prune
from deeptobit.network.grow import retrain as retrain
from deeptobit.network.grow import standard_start as standard_start
from deeptobit.network.grow import train as train
from deeptobit.network.joint import NetworkProblem as NetworkProblem
from deeptobit.network.layer import LayerInputs as LayerInputs
from deeptobit.network.layer import NetworkLayer as NetworkLayer
from deeptobit.network.layer import concatenate as concatenate
from deeptobit.network.layer import latents as latents
from deeptobit.network.layer import mean_slopes as mean_slopes
from deeptobit.network.layer import to_standard as to_standard
from deeptobit.network.layer import to_user as to_user
from deeptobit.network.online import ContinuedNetwork as ContinuedNetwork
from deeptobit.network.online import NetworkStream as NetworkStream
from deeptobit.network.online import grow_online as grow_online
from deeptobit.network.trees import Trees as Trees
