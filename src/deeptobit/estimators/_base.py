"""What all censored regressors have in common."""

from __future__ import annotations

from typing import Any

from deeptobit.estimators._formula import FormulaMixin
from deeptobit.estimators._plotting import PlotMixin
from deeptobit.estimators._prediction import PredictionKind

__all__ = ["CensoredRegressor", "PredictionKind"]

# What belongs to one fit, by the attribute that every later fit sets anew: the first with the
# parameters, the second with the features (``partial_fit`` keeps those it began with).
_FORGOTTEN_WITH = {
    "sigma_": ("_calibration",),
    "n_features_in_": ("feature_scale_", "formula_"),
}


class CensoredRegressor(PlotMixin, FormulaMixin):
    """Base of the estimators: predictions, calibrated intervals, explanations, pictures, formulas.

    A subclass sets ``lower_``, ``upper_``, ``sigma_``, ``target_names_`` and
    ``_one_dimensional`` in ``fit``, and computes latent scores. ``feature_scale_`` is set where
    the standard deviations of the features are known.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; one that marks a new fit makes forget what belongs to the old."""
        for stale in _FORGOTTEN_WITH.get(name, ()):
            self.__dict__.pop(stale, None)
        super().__setattr__(name, value)
