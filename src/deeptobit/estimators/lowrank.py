"""What estimators with shared subspaces have in common: their inputs and their settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from deeptobit.arrays import FloatArray
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.estimators.inputs import (
    SolverName,
    check_count,
    check_lengths,
    check_settings,
    check_sparsity,
    check_switches,
    read_features,
    read_targets,
    read_threads,
    read_weights,
)
from deeptobit.estimators.source import SourceFit
from deeptobit.likelihood import one_family
from deeptobit.online import OnlineSettings, add_squares
from deeptobit.scale import DaskRows, RowSource, is_dask
from deeptobit.targets import CensoredTargets


class SubspaceEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CensoredRegressor):
    """An estimator whose tasks share a subspace, in which ``transform`` gives R coordinates."""

    rank_: int

    def __sklearn_tags__(self) -> Any:
        """Coordinates in single precision for features in single precision."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _name_targets(self, targets: CensoredTargets) -> None:
        self.target_names_ = list(targets.names)
        self.lower_, self.upper_ = targets.lower, targets.upper
        self._one_dimensional = targets.one_dimensional
        self._n_features_out = self.rank_


class LowRankRegressor(SubspaceEstimator):
    """Reads X, Y and the parameters that a layer and a network share."""

    rank: int
    alpha: float | Literal["auto"]
    feature_sparsity: float
    solver: SolverName
    n_passes: int
    batch_size: int
    step_size: Any
    averaging: bool
    start: Literal["auto", "data", "random"]
    random_state: Any
    n_jobs: int | None
    verbose: int
    sigma: Any
    fit_intercept: bool
    standardize: bool
    max_iter: int
    tol: float

    alpha_: float
    n_features_in_: int
    _rows_behind: RowsBehind

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        *,
        reset: bool,
    ) -> tuple[Any, CensoredTargets, FloatArray]:
        """Checked inputs; sets ``rank_`` and ``alpha_`` (0 where alpha is automatic)."""
        automatic = isinstance(self.alpha, str)
        if automatic and self.alpha != "auto":
            raise ValueError(f"alpha must be 'auto' or a number; got {self.alpha!r}")
        given = 0.0 if automatic else self.alpha
        check_settings(given, self.tol, self.max_iter, self.prediction)
        check_switches(self.get_params(deep=False))
        check_sparsity(self.feature_sparsity)
        if not reset:
            return self._read_more(X, y, sample_weight, lower, upper)
        matrix = read_features(self, X, reset=True)
        targets = read_targets(
            y,
            self.lower,
            self.upper,
            entry_lower=lower,
            entry_upper=upper,
            outside=self.outside,
        )
        check_lengths(matrix, targets)
        weight = read_weights(sample_weight, len(targets))
        check_count("rank", self.rank)
        n_features, n_tasks = self.n_features_in_, len(targets.names)
        self.rank_ = min(int(self.rank), n_features, n_tasks)
        self.alpha_ = float(given)
        return matrix, targets, weight

    def _read_more(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
    ) -> tuple[Any, CensoredTargets, FloatArray]:
        """More rows of the same features and targets, whose names and bounds stay as they are."""
        matrix = self._read_features(X)
        targets = replace(
            self._read_again(y, lower, upper),
            lower=self.lower_,
            upper=self.upper_,
            one_dimensional=self._one_dimensional,
        )
        check_lengths(matrix, targets)
        return matrix, targets, read_weights(sample_weight, len(targets), may_be_zero=True)

    def _online_settings(self, sigma: FloatArray | None, **others: Any) -> OnlineSettings:
        """The online solver's settings, for given noise scales or learned ones."""
        check_count("batch_size", self.batch_size)
        check_count("n_passes", self.n_passes)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        automatic: Literal["data", "random"] = (
            "data" if isinstance(self.step_size, str) else "random"
        )
        return OnlineSettings(
            rank=self.rank_,
            batch_size=self.batch_size,
            step_size=self.step_size,
            averaging=self.averaging,
            alpha=self.alpha_,
            fit_intercept=self.fit_intercept,
            sigma=sigma,
            standardize=self.standardize,
            start=automatic if self.start == "auto" else self.start,
            noise=one_family(self.noise),
            random_state=seed,
            n_threads=read_threads(self.n_jobs),
            **others,
        )

    def _source(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
    ) -> RowSource | None:
        """Rows that are not in memory, if that is what X is."""
        if is_dask(X):
            return DaskRows.of_collections(X, y, sample_weight, lower, upper)
        if not isinstance(X, RowSource):
            return None
        given = {"y": y, "sample_weight": sample_weight, "lower": lower, "upper": upper}
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{type(X).__name__} brings its own columns; name those of {name} there"
                )
        return X

    def _remember_source(self, fit: SourceFit) -> None:
        """What ``fit`` leaves behind for later, beside the layers."""
        summary = fit.summary
        self.alpha_, self.n_iter_ = fit.alpha, max(fit.n_iter, 1)
        self._name_targets(fit.targets)
        self.feature_scale_ = summary.scale
        self._rows_behind = RowsBehind(summary.weight, summary.mean_squares)
        self.__dict__.pop("_stream", None)

    def _remember_rows(self, matrix: Any, weight: FloatArray) -> None:
        """What ``partial_fit`` must know of the rows behind a fitted model."""
        relative = weight / weight.max()  # large weights would overflow
        self._rows_behind = RowsBehind(float(weight.sum()), _mean_squares(matrix, relative))
        self.__dict__.pop("_stream", None)


class RowsBehind(NamedTuple):
    """How much a fitted model has seen: total weight, and mean squares of the features (D,)."""

    weight: float
    mean_squares: FloatArray


def refuse_checkpoint(checkpoint: Any, resume: bool) -> None:
    """Rows in memory are fitted in one go."""
    if checkpoint is not None or resume:
        raise ValueError(
            "checkpoint and resume are for rows beyond memory, deeptobit.scale.ParquetRows or Dask "
            "collections; X is in memory"
        )


def _mean_squares(matrix: Any, weight: FloatArray) -> FloatArray:
    sparse = bool(issparse(matrix))
    if sparse:
        return np.asarray(matrix.multiply(matrix).T @ weight / weight.sum())
    squares = np.zeros(matrix.shape[1])
    add_squares(matrix, weight, squares)
    return np.asarray(squares / weight.sum())
