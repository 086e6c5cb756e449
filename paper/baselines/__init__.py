"""The methods that the paper compares with."""

from paper.baselines.base import Baseline, Folds, inner_folds
from paper.baselines.leastsquares import (
    ForestBaseline,
    LassoBaseline,
    LeastSquaresBaseline,
    MultiTaskLassoBaseline,
    RidgeBaseline,
    UncensoredBaseline,
    predict_held_out,
    tune_forest,
    tune_lasso,
    tune_multi_task_lasso,
    tune_ridge,
)
from paper.baselines.networks import (
    DeepBaseline,
    FactorisedMLPBaseline,
    MLPBaseline,
    NetworkBaseline,
)
from paper.baselines.penalised import (
    GroupLassoBaseline,
    PenalisedBaseline,
    TraceNormBaseline,
)
from paper.baselines.tobit import InterceptOnly, RidgeTobit, TobitBaseline

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
