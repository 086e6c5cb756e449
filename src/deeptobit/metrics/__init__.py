"""Measures of predictions, of predictive distributions, and of a recovered subspace.

Outcomes are arrays, data frames or :class:`~deeptobit.CensoredTargets`; NaN is missing and is
skipped; a weight of 2 counts a row twice.
"""

from deeptobit.metrics.inputs import read_weights, some_predictive, some_targets
from deeptobit.metrics.point import anmse, centred_anmse
from deeptobit.metrics.probabilistic import (
    BoundCalibration,
    bound_calibration,
    censored_log_score,
    crps,
    crps_scorer,
    log_scorer,
    pit,
)
from deeptobit.metrics.recovery import mutual_coherence, principal_angles, subspace_difference

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
