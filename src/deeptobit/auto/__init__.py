"""The default model: learned priors, trees, stacking, and an error model from held-out rows.

In the order of their use in ``estimators/auto.py``: ``folds`` holds rows out; ``evidence`` has a
layer under a prior, ``path`` the priors that are tried, ``stack`` their average; ``trees`` go below
it; ``recalibration`` and ``noise`` are the error model.
"""

from deeptobit.auto.folds import MANY_ROWS, Fold, HeldOut, Scoring, check_folds, make_folds
from deeptobit.auto.noise import TAILS, fit_error_model, match_quartiles
from deeptobit.auto.recalibration import HeldOutScores, Recalibration
from deeptobit.auto.stack import EvidenceStack, StackDraws, fit_stack
from deeptobit.auto.trees import Forest, TreeTable

__all__ = [
    "MANY_ROWS",
    "TAILS",
    "EvidenceStack",
    "Fold",
    "Forest",
    "HeldOut",
    "HeldOutScores",
    "Recalibration",
    "Scoring",
    "StackDraws",
    "TreeTable",
    "check_folds",
    "fit_error_model",
    "fit_stack",
    "make_folds",
    "match_quartiles",
]
