from . import inputs as inputs
from . import point as point
from . import probabilistic as probabilistic
from . import recovery as recovery
from .inputs import read_weights as read_weights
from .inputs import some_predictive as some_predictive
from .inputs import some_targets as some_targets
from .point import anmse as anmse
from .point import centred_anmse as centred_anmse
from .probabilistic import BoundCalibration as BoundCalibration
from .probabilistic import bound_calibration as bound_calibration
from .probabilistic import censored_log_score as censored_log_score
from .probabilistic import crps as crps
from .probabilistic import crps_scorer as crps_scorer
from .probabilistic import log_scorer as log_scorer
from .probabilistic import pit as pit
from .recovery import mutual_coherence as mutual_coherence
from .recovery import principal_angles as principal_angles
from .recovery import subspace_difference as subspace_difference

__all__ = [
    "BoundCalibration",
    "anmse",
    "bound_calibration",
    "censored_log_score",
    "centred_anmse",
    "crps",
    "crps_scorer",
    "log_scorer",
    "mutual_coherence",
    "pit",
    "principal_angles",
    "read_weights",
    "some_predictive",
    "some_targets",
    "subspace_difference",
]
