"""Honest numbers: how well rows are predicted by models that have not seen them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.study._measures import measure
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
    >>> import numpy as np
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

        Bounds, values and shares at the bounds, then those of :func:`measure`; the same with
        ``null_`` before them is of the model without features.
        """
        described = self.targets.describe()
        measured = described[["lower", "upper", "entries", "at_lower", "at_upper"]]
        model = measure(self.targets, self.predictive, self.coverage)
        null = measure(self.targets, self.null, self.coverage)
        return measured.assign(**model, **{f"null_{name}": of for name, of in null.items()})
