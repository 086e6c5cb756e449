"""What a layer and a network of low rank have in common: inputs, settings, and how they learn."""

import os
from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from deeptobit.arrays import FloatArray, is_dask
from deeptobit.estimators import diagnosis, inputs
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.estimators.prediction import SubspaceMixin
from deeptobit.estimators.source import SourceFit, SourceTraining
from deeptobit.likelihood import one_family
from deeptobit.network import ContinuedNetwork, NetworkLayer, NetworkStream
from deeptobit.online import OnlineResult, OnlineSettings, OnlineSolver, RecursiveTobit
from deeptobit.penalties import Penalty
from deeptobit.scale import DaskRows, RowSource
from deeptobit.targets import CensoredTargets


class RowsBehind(NamedTuple):
    """How much a model has learned from: total weight, and mean squares of the features (D,)."""

    weight: float
    mean_squares: FloatArray

    def more(self, matrix: Any, weight: FloatArray) -> "RowsBehind":
        """With the rows of another chunk."""
        added = float(weight.sum())
        if added == 0.0:
            return self
        share = weight / weight.max()  # large weights would overflow
        sparse = bool(issparse(matrix))
        if sparse:
            squares = matrix.multiply(matrix).T @ share
        else:
            squares = np.einsum("ij,ij,i->j", matrix, matrix, share, dtype=np.float64)
        total = self.weight + added
        change = (added / total) * (squares / share.sum() - self.mean_squares)
        return RowsBehind(total, self.mean_squares + change)


class SubspaceEstimator(SubspaceMixin, CensoredRegressor):
    """Stores the layers that share a subspace."""

    rank_: int

    def _store(self, layers: tuple[NetworkLayer, ...], targets: CensoredTargets) -> None:
        """Keep a network: the coefficients of its first layer, the noise of its last."""
        first, last = layers[0], layers[-1]
        self.U_, self.V_, self.coef_ = first.U, first.V, first.U @ first.V
        self.intercept_, self.sigma_ = first.intercept, last.sigma
        self._store_targets(targets)
        self._n_features_out = self.rank_


class LowRankRegressor(SubspaceEstimator):
    """Reads X, Y and the parameters that a layer and a network share, and learns from rows.

    A subclass fits rows in memory (``_fit``) and beyond (``_fit_source``), and says how a stream
    begins, goes on and is stored.
    """

    alpha_: float
    n_features_in_: int
    n_iter_: int
    history_: dict[str, Any]
    _rows_behind: RowsBehind
    _stream: OnlineSolver | RecursiveTobit | NetworkStream | ContinuedNetwork
    _words_for_sigma: tuple[str, ...] = ("mle",)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> Self:
        """Fit all tasks together; a network is grown layer by layer, and tuned.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D), or rows beyond memory
            :class:`deeptobit.scale.ParquetRows` is read again for every pass and brings its own y.
            A network beyond memory is grown, not tuned.
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing.
        sample_weight : array of shape (N,), optional
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry. Hidden layers of a network are censored at the bounds of the tasks.
        checkpoint : path, optional
            For rows beyond memory: a file that records after every round where the fit stands.
        resume : bool
            Go on from the checkpoint of an earlier fit that was interrupted.
        """
        source = self._source(X, y, sample_weight, lower, upper)
        if source is not None:
            fit = self._fit_source(SourceTraining(self, source), checkpoint, resume)
            self.alpha_, self.n_iter_ = fit.alpha, max(fit.n_iter, 1)
            self._store(fit.layers, fit.targets)
            self.feature_scale_ = fit.summary.scale
            self._rows_behind = RowsBehind(fit.summary.weight, fit.summary.mean_squares)
        elif checkpoint is not None or resume:
            raise ValueError(
                "checkpoint and resume are for rows beyond memory, deeptobit.scale.ParquetRows or "
                "Dask collections; X is in memory"
            )
        else:
            matrix, targets, weight = self._read(X, y, sample_weight, lower, upper, reset=True)
            self._fit(matrix, targets, weight)
            self._rows_behind = RowsBehind(0.0, np.zeros(matrix.shape[1])).more(matrix, weight)
        self.__dict__.pop("_stream", None)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Self:
        """Learn from some more rows, in constant memory.

        Calls on consecutive pieces give the result of one call on the whole. A model that was
        fitted with ``fit`` goes on from there, its rows counting as much as the new ones.

        An unfitted network learns all layers online (``joint_tuning`` and ``early_stopping`` need
        all rows at once and do not act). One that was fitted goes on with its last layer; hidden
        layers stay as they are.
        """
        first = not hasattr(self, "_rows_behind")
        matrix, targets, weight = self._read(X, y, sample_weight, lower, upper, reset=first)
        diagnosis.check_reach(self._given_sigma(targets.names), targets)
        if first:
            diagnosis.check_first_rows(targets, weight)
            inputs.require_ridge(self._read_penalty(), "partial_fit")
        if not hasattr(self, "_stream"):
            self._stream = self._begun(targets) if first else self._continued()
        self._stream.learn(matrix, targets.low, targets.high, weight)
        self._store_stream(targets)
        before = RowsBehind(0.0, np.zeros(matrix.shape[1])) if first else self._rows_behind
        self._rows_behind = before.more(matrix, weight)
        return self

    @abstractmethod
    def _fit(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> None:
        """Fit to rows in memory."""

    @abstractmethod
    def _fit_source(self, training: SourceTraining, checkpoint: Any, resume: bool) -> SourceFit:
        """Fit to rows beyond memory, and set ``history_``."""

    @abstractmethod
    def _begun(self, targets: CensoredTargets) -> Any:
        """A stream for an unfitted model."""

    @abstractmethod
    def _continued(self) -> Any:
        """A stream that goes on from the fitted model."""

    @abstractmethod
    def _store_stream(self, targets: CensoredTargets) -> None:
        """Keep what the stream has learned."""

    def _read(
        self, X: Any, y: Any, sample_weight: Any, lower: Any, upper: Any, *, reset: bool
    ) -> tuple[Any, CensoredTargets, FloatArray]:
        """Checked inputs; sets ``rank_`` and ``alpha_`` (0 where alpha is automatic)."""
        automatic = isinstance(self.alpha, str)
        if automatic and self.alpha != "auto":
            raise ValueError(f"alpha must be 'auto' or a number; got {self.alpha!r}")
        given = 0.0 if automatic else self.alpha
        inputs.check_settings(self.get_params(deep=False) | {"alpha": given})
        self._read_penalty()
        if not reset:
            return self._read_more(X, y, sample_weight, lower, upper)
        rows = self._read_rows(X, y, sample_weight, lower, upper)
        inputs.check_count("rank", self.rank)
        self.rank_ = min(int(self.rank), self.n_features_in_, len(rows[1].names))
        self.alpha_ = float(given)
        return rows

    def _read_more(
        self, X: Any, y: Any, sample_weight: Any, lower: Any, upper: Any
    ) -> tuple[Any, CensoredTargets, FloatArray]:
        """More rows of the same features and targets, whose names and bounds stay as they are."""
        matrix = self._read_features(X)
        targets = replace(
            self._read_again(y, lower, upper),
            lower=self.lower_,
            upper=self.upper_,
            one_dimensional=self._one_dimensional,
        )
        inputs.check_lengths(matrix, targets)
        return matrix, targets, inputs.read_weights(sample_weight, len(targets), may_be_zero=True)

    def _read_penalty(self) -> Penalty:
        """The penalty on V that the user asks for."""
        return inputs.read_penalty(self.penalty, float(self.feature_sparsity))

    def _given_sigma(self, names: tuple[str, ...]) -> FloatArray | None:
        """Noise scales that the user gives, (T,); None if they are estimated."""
        return inputs.read_sigma(self.sigma, names, words=self._words_for_sigma)

    def _online_settings(self, names: tuple[str, ...], **others: Any) -> OnlineSettings:
        """Settings of the online solver for targets of these names."""
        inputs.check_count("batch_size", self.batch_size)
        inputs.check_count("n_passes", self.n_passes)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        automatic: Any = "data" if isinstance(self.step_size, str) else "random"
        return OnlineSettings(
            rank=self.rank_,
            batch_size=self.batch_size,
            step_size=self.step_size,
            averaging=self.averaging,
            alpha=self.alpha_,
            fit_intercept=self.fit_intercept,
            sigma=self._given_sigma(names),
            standardize=self.standardize,
            start=automatic if self.start == "auto" else self.start,
            noise=one_family(self.noise),
            random_state=seed,
            n_threads=inputs.read_threads(self.n_jobs),
            **others,
        )

    def _source(
        self, X: Any, y: Any, sample_weight: Any, lower: Any, upper: Any
    ) -> RowSource | None:
        """X as rows beyond memory, or None if X is in memory."""
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

    def _recursive(self) -> RecursiveTobit:
        """The last layer, ready to learn from more rows as a sequence of Tobit regressions."""
        weight, mean_squares = self._rows_behind
        layer = self.layers_[-1]
        n_new = layer.V.shape[1] - len(mean_squares)
        known = np.pad(mean_squares, (n_new, 0)) if n_new >= 0 else np.zeros(layer.V.shape[1])
        return RecursiveTobit(
            OnlineResult(layer.U, layer.V, layer.intercept, layer.sigma, round(weight)),
            known,
            self.noise_,
            fit_intercept=self.fit_intercept,
            learns_sigma=isinstance(self.sigma, str),
        )
