"""Measures of predictions, of predictive distributions, and of a recovered subspace.

Outcomes are arrays, data frames or :class:`~deeptobit.CensoredTargets`; NaN is missing and is
skipped; a weight of 2 counts a row twice.
"""

from deeptobit.metrics._calibration import bound_calibration
from deeptobit.metrics._pit import pit
from deeptobit.metrics._point import anmse, centred_anmse
from deeptobit.metrics._probabilistic import censored_log_score, crps
from deeptobit.metrics._recovery import mutual_coherence, principal_angles, subspace_difference

__all__ = [
    "anmse",
    "bound_calibration",
    "censored_log_score",
    "centred_anmse",
    "crps",
    "mutual_coherence",
    "pit",
    "principal_angles",
    "subspace_difference",
]
