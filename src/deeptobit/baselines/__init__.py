"""What a censored network must beat: regressions that know nothing of bounds, and simple Tobits.

Every baseline is an estimator of scikit-learn with the conventions of :mod:`deeptobit.estimators`:
outcomes are arrays with NaN or :class:`~deeptobit.CensoredTargets`, ``predict`` takes a ``kind``,
and ``sigma_`` is an honest noise scale, so that predictive distributions compare.
"""

from deeptobit.baselines._base import Baseline
from deeptobit.baselines._censored import InterceptOnly, RidgeTobit
from deeptobit.baselines._deep import DeepBaseline, FactorisedMLPBaseline, MLPBaseline
from deeptobit.baselines._folds import Folds, inner_folds
from deeptobit.baselines._least_squares import (
    ForestBaseline,
    LassoBaseline,
    LeastSquaresBaseline,
    MultiTaskLassoBaseline,
    RidgeBaseline,
    UncensoredBaseline,
)
from deeptobit.baselines._networks import NetworkBaseline
from deeptobit.baselines._penalised import (
    GroupLassoBaseline,
    PenalisedBaseline,
    TraceNormBaseline,
)
from deeptobit.baselines._tobit import TobitBaseline
from deeptobit.baselines._tuning import (
    predict_held_out,
    tune_forest,
    tune_lasso,
    tune_multi_task_lasso,
    tune_ridge,
)

__all__ = [
    "Baseline",
    "DeepBaseline",
    "FactorisedMLPBaseline",
    "Folds",
    "ForestBaseline",
    "GroupLassoBaseline",
    "InterceptOnly",
    "LassoBaseline",
    "LeastSquaresBaseline",
    "MLPBaseline",
    "MultiTaskLassoBaseline",
    "NetworkBaseline",
    "PenalisedBaseline",
    "RidgeBaseline",
    "RidgeTobit",
    "TobitBaseline",
    "TraceNormBaseline",
    "UncensoredBaseline",
    "inner_folds",
    "predict_held_out",
    "tune_forest",
    "tune_lasso",
    "tune_multi_task_lasso",
    "tune_ridge",
]
