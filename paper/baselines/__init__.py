"""The methods that the paper compares with, beside those of ``deeptobit evaluate``."""

from paper.baselines.networks import MLPBaseline
from paper.baselines.penalised import GroupLassoBaseline, PenalisedBaseline, TraceNormBaseline
from paper.baselines.unpenalised import FixedRegression, LeastSquaresBaseline, TobitBaseline

__all__ = [
    "FixedRegression",
    "GroupLassoBaseline",
    "LeastSquaresBaseline",
    "MLPBaseline",
    "PenalisedBaseline",
    "TobitBaseline",
    "TraceNormBaseline",
]
