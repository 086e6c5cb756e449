"""Honest numbers: how well rows are predicted by models that have not seen them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.metrics import anmse, centred_anmse, crps
from deeptobit.plots import some_predictive, some_targets
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class HeldOut:
    r"""Every row of a study, predicted by a model that was fitted without it and its group.

    Attributes
    ----------
    targets : CensoredTargets of shape (N, T)
    predictive : Predictive of shape (N, T)
        Of the model; σ is that of the fold, (N, T).
    null : Predictive of shape (N, T)
        Of the censored model that has intercepts alone.
    stages : tuple of arrays of shape (N, T)
        E[y|x] after every layer, the last being the mean of ``predictive``. Where a fold chose
        fewer layers than another, its last one is repeated.
    coverage : float
        That prediction intervals promise, between 0 and 1.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[30.0], [21.0], [27.0]], 0, 30, names=["MMSE"])
    >>> latent, sigma = np.array([[31.0], [22.0], [26.0]]), np.full((3, 1), 2.0)
    >>> model = Predictive(Gaussian(), latent, sigma, targets.lower, targets.upper)
    >>> null = Predictive(Gaussian(), np.full((3, 1), 26.0), sigma, targets.lower, targets.upper)
    >>> held_out = HeldOut(targets, model, null, (model.mean(),), coverage=0.9)
    >>> held_out.table()[["entries", "at_upper", "r2", "crps", "null_crps", "coverage"]].round(2)
            entries  at_upper    r2  crps  null_crps  coverage
    target
    MMSE          3      0.33  0.95  0.46       2.48       1.0
    """

    targets: CensoredTargets
    predictive: Predictive
    null: Predictive
    stages: tuple[FloatArray, ...]
    coverage: float

    def table(self) -> pd.DataFrame:
        r"""Measures of the model and of the one without features, one row per target.

        ``r2`` is 1 − squared error of E[y|x] over that of the target's mean, ``anmse`` the squared
        error over the mean square of the target, ``crps`` the continuous ranked probability score
        in units of the target, ``coverage`` the share of values inside their central interval.
        The same with ``null_`` before them is of the model without features. What a target does
        not determine (no values, or all the same) is NaN.
        """
        described = self.targets.describe()
        measured = described[["lower", "upper", "entries", "at_lower", "at_upper"]]
        model, null = self._measures(self.predictive), self._measures(self.null)
        return measured.assign(**model, **{f"null_{name}": of for name, of in null.items()})

    def _measures(self, predictive: Predictive) -> dict[str, FloatArray]:
        recorded = has_value(self.targets)
        values = np.where(recorded, self.targets.values, np.nan)
        some = np.asarray(recorded.any(axis=0))
        least, largest = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
        varied = np.asarray(least < largest)
        not_zero = np.asarray(some & (varied | (largest != 0.0)))
        inside = _inside(values, predictive, self.coverage)
        return {
            "r2": 1.0 - self._where(varied, predictive, _centred_error),
            "anmse": self._where(not_zero, predictive, _error),
            "crps": self._where(some, predictive, _crps),
            "coverage": np.where(
                some, inside.sum(axis=0) / np.fmax(recorded.sum(axis=0), 1), np.nan
            ),
        }

    def _where(
        self,
        usable: BoolArray,
        predictive: Predictive,
        measure: Callable[[CensoredTargets, Predictive], Any],
    ) -> FloatArray:
        """A measure of the targets that determine it, NaN for the others, (T,)."""
        result = np.full(len(usable), np.nan)
        tasks = np.flatnonzero(usable).tolist()
        if tasks:
            targets = some_targets(self.targets, tasks)
            result[tasks] = measure(targets, some_predictive(predictive, tasks))
        return result


def has_value(targets: CensoredTargets) -> BoolArray:
    """(N, T): observed or at a bound, so that a prediction can be compared with it."""
    return np.asarray(targets.observed | targets.at_lower | targets.at_upper)


def _centred_error(targets: CensoredTargets, predictive: Predictive) -> Any:
    return centred_anmse(targets, predictive.mean(), multioutput="raw_values")


def _error(targets: CensoredTargets, predictive: Predictive) -> Any:
    return anmse(targets, predictive.mean(), multioutput="raw_values")


def _crps(targets: CensoredTargets, predictive: Predictive) -> Any:
    return crps(
        targets,
        predictive.latent,
        predictive.sigma,
        noise=predictive.noise,
        multioutput="raw_values",
    )


def _inside(values: FloatArray, predictive: Predictive, coverage: float) -> BoolArray:
    """Where a value lies in its central interval; nowhere if there is none."""
    tail = 0.5 * (1.0 - coverage)
    low, high = predictive.quantile([tail, 1.0 - tail])
    return np.asarray((low <= values) & (values <= high))
