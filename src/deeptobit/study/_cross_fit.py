"""A model for every fold, and what the models say about the rows they have not seen."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray
from deeptobit.estimators import SubspaceNetworkCV
from deeptobit.likelihood import Predictive
from deeptobit.study._folds import Fold
from deeptobit.study._held_out import HeldOut
from deeptobit.study._null import predict_null
from deeptobit.study._predictive import predict_rows
from deeptobit.targets import CensoredTargets
from deeptobit.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class FoldPrediction:
    """Rows of a table, and what models that were fitted without them predict."""

    rows: NDArray[np.intp]
    predictive: Predictive
    null: Predictive
    stages: list[FloatArray]


def hold_out(
    model: SubspaceNetworkCV,
    X: pd.DataFrame,
    targets: CensoredTargets,
    groups: NDArray[Any] | None,
    fold: Fold,
) -> FoldPrediction:
    """Fit the model, and the one without features, outside a fold; predict the rows inside."""
    train, test = targets[fold.train], targets[fold.test]
    limits = test.lower_bounds, test.upper_bounds
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what holds for all rows is said when all rows are fitted
        labels = None if groups is None else groups[fold.train]
        model.fit(X.iloc[fold.train], train, groups=labels)
        unseen = X.iloc[fold.test]
        stages = model.best_estimator_.staged_predict(
            unseen, lower=test.entry_lower, upper=test.entry_upper
        )
        return FoldPrediction(
            rows=fold.test,
            predictive=predict_rows(model, unseen, *limits),
            null=predict_null(model.noise_, train, test),
            stages=list(stages),
        )


def assemble(targets: CensoredTargets, parts: Iterable[FoldPrediction], coverage: float) -> HeldOut:
    """All rows in the order of the table, whatever the order of the folds."""
    parts = sorted(parts, key=lambda part: int(part.rows[0]))
    rows = np.concatenate([part.rows for part in parts])
    depth = max(len(part.stages) for part in parts)

    def whole(pieces: Iterable[FloatArray]) -> FloatArray:
        entries = np.empty(targets.shape)
        entries[rows] = np.concatenate(list(pieces))
        return entries

    def joined(predictives: list[Predictive]) -> Predictive:
        return replace(
            predictives[0],
            latent=whole(predictive.latent for predictive in predictives),
            sigma=whole(predictive.sigma for predictive in predictives),
            lower=targets.lower_bounds,
            upper=targets.upper_bounds,
        )

    return HeldOut(
        targets=targets,
        predictive=joined([part.predictive for part in parts]),
        null=joined([part.null for part in parts]),
        stages=tuple(
            whole(part.stages[min(layer, len(part.stages) - 1)] for part in parts)
            for layer in range(depth)
        ),
        coverage=coverage,
    )
