"""The default model: learned priors, trees, stacking, and an error model from held-out rows.

In the order of their use in ``estimators/auto.py``: ``folds`` holds rows out; ``evidence`` has a
layer under a prior, ``path`` the priors that are tried, ``stack`` their average; ``trees`` go below
it; ``recalibration`` and ``noise`` are the error model.
"""

from deeptobit.auto.folds import MANY_ROWS as MANY_ROWS
from deeptobit.auto.folds import Fold as Fold
from deeptobit.auto.folds import HeldOutFolds as HeldOutFolds
from deeptobit.auto.folds import Scoring as Scoring
from deeptobit.auto.folds import check_folds as check_folds
from deeptobit.auto.folds import make_folds as make_folds
from deeptobit.auto.noise import TAILS as TAILS
from deeptobit.auto.noise import fit_error_model as fit_error_model
from deeptobit.auto.noise import match_quartiles as match_quartiles
from deeptobit.auto.recalibration import HeldOutScores as HeldOutScores
from deeptobit.auto.recalibration import Recalibration as Recalibration
from deeptobit.auto.stack import EvidenceStack as EvidenceStack
from deeptobit.auto.stack import StackDraws as StackDraws
from deeptobit.auto.stack import fit_stack as fit_stack
from deeptobit.auto.trees import Forest as Forest
from deeptobit.auto.trees import TreeTable as TreeTable
