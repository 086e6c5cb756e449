"""What all censored regressors have in common."""

from __future__ import annotations

import os
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to one file, which :func:`deeptobit.load` reads: arrays and JSON, no pickle.

        Parameters, everything fitted, and what ``partial_fit`` needs to go on are stored, training
        data are not: inference such as ``summary`` looks back at them and is not available after
        loading. But in the middle of a stream (``partial_fit``) some hundred rows wait for their
        block to be full, and they wait in the file too. A file that was there is replaced once
        the new one is complete.

        A function as ``step_size``, noise of your own, or another object that would have to be
        executed on loading is a ``TypeError`` that names it.

        Parameters
        ----------
        path : str or Path
        """
        from deeptobit.estimators.saving import save_model

        save_model(self, path)
