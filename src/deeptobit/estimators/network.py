"""The Subspace Network: censored low-rank layers, grown one by one and tuned together."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray, in_precision_of
from deeptobit.estimators.diagnosis import (
    check_determined,
    check_reach,
    check_sigma,
    check_telling,
    warn_of_censoring,
)
from deeptobit.estimators.effects import LayerEffects, feature_scale
from deeptobit.estimators.inputs import (
    NEEDS_BATCH,
    SolverName,
    check_count,
    check_kind,
    feature_names,
    read_layer,
    read_sigma,
)
from deeptobit.estimators.lowrank import LowRankRegressor, SubspaceEstimator, refuse_checkpoint
from deeptobit.estimators.prediction import PredictionKind, of_kind
from deeptobit.estimators.source import SourceTraining, refuse_in_source
from deeptobit.estimators.training import FittedNetwork, NetworkTraining, validated_depth
from deeptobit.likelihood import Noise
from deeptobit.network import (
    ContinuedNetwork,
    JointTuning,
    NetworkLayer,
    NetworkStream,
    latents,
    mean_slopes,
)
from deeptobit.online import OnlineResult, RecursiveTobit
from deeptobit.scale import RowSource
from deeptobit.targets import BoundsLike, CensoredTargets

_CHUNK_ROWS = 8192


class LayeredRegressor(SubspaceEstimator):
    """Predictions, stages, coordinates and effects of censored layers, ``layers_``."""

    layers_: tuple[NetworkLayer, ...]

    def staged_predict(
        self,
        X: Any,
        kind: PredictionKind | None = None,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Iterator[FloatArray]:
        """The prediction of every layer in turn, the last being that of ``predict``.

        In a network that was tuned, hidden layers serve the last one, and predict less well
        than they did when they were grown. They have the noise that the network was fitted with.
        """
        check_is_fitted(self)
        kind = self.prediction if kind is None else kind
        check_kind(kind)
        matrix = self._read_features(X)
        for predictive in self._predictive_by_layer(self.layers_, matrix, lower, upper):
            yield self._drop_task_axis(of_kind(predictive, kind), X)

    def transform(self, X: Any, layer: int = -1) -> FloatArray:
        """Coordinates V[f; x] of the rows in the subspace of a layer, (N, R)."""
        check_is_fitted(self)
        depth = read_layer(layer, len(self.layers_))
        matrix = self._read_features(X)
        return in_precision_of(X, self.layers_[depth].sketch(matrix, self._below(matrix, depth)))

    def _effects_per_deviation(self, X: Any) -> FloatArray:
        """Mean effect of one standard deviation of each feature on the last score, (T, D)."""
        if len(self.layers_) == 1:  # a linear score has the same slopes everywhere
            return super()._effects_per_deviation(X)
        matrix = self._read_rows_to_explain(X)
        slopes = mean_slopes(self.layers_, matrix, self.lower_, self.upper_)
        return slopes * feature_scale(matrix)

    def _layer_effects(self, layer: int, X: Any) -> LayerEffects:
        """Effects of a layer's inputs: the outputs below, which have the targets' names, and x."""
        if len(self.layers_) == 1:
            return super()._layer_effects(layer, X)
        matrix = self._read_rows_to_explain(X)
        depth = read_layer(layer, len(self.layers_))
        chosen, below = self.layers_[depth], self._below(matrix, depth)
        names, scale = [], np.zeros(0)
        if below is not None:
            names = [f"{name} (layer {depth})" for name in self.target_names_]
            scale = below.std(axis=0)
        if chosen.V.shape[1] > len(scale):
            names = names + feature_names(self)
            scale = np.append(scale, feature_scale(matrix))
        return LayerEffects(tuple(names), chosen.coef * scale / chosen.sigma[:, None])

    def _below(self, matrix: Any, depth: int) -> FloatArray | None:
        """What the layer at a depth sees beside x: the outputs of the one below, (N, T)."""
        below = None
        for latent in latents(self.layers_[:depth], matrix, self.lower_, self.upper_):
            below = np.clip(latent, self.lower_, self.upper_)
        return below

    def _read_rows_to_explain(self, X: Any) -> Any:
        if X is None:
            raise ValueError(
                "the effects of features in a network depend on where one looks; pass X, for "
                "example the rows it was fitted to"
            )
        return self._read_features(X)

    def _store(self, layers: tuple[NetworkLayer, ...], targets: CensoredTargets) -> None:
        first, last = layers[0], layers[-1]
        self.layers_, self.n_layers_ = layers, len(layers)
        self.U_, self.V_, self.coef_ = first.U, first.V, first.coef
        self.intercept_, self.sigma_ = first.intercept, last.sigma
        self._name_targets(targets)

    def _latent(self, X: Any) -> FloatArray:
        result = np.empty((X.shape[0], len(self.sigma_)))
        for start in range(0, X.shape[0], _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            *_, result[rows] = latents(self.layers_, X[rows], self.lower_, self.upper_)
        return result


class SubspaceNetworkRegressor(LayeredRegressor, LowRankRegressor):
    r"""The Subspace Network of Sun et al. 2018, a stack of censored low-rank layers.

    .. math::
        f_k(x) = \mathrm{clip}\left(U_k V_k [f_{k-1}(x);\, x] + b_k\right), \qquad
        y = \mathrm{clip}\left(U_K V_K [f_{K-1}(x);\, x] + b_K + \sigma\varepsilon\right)

    Layers are grown one by one: each is a :class:`SubspaceTobitRegressor` of the outcomes on
    the censored output of the layer below beside x (Algorithm 3 of the paper). Then all layers are
    tuned together by back-propagation through the censored likelihood. Depth that does not pay
    (Akaike's criterion) is undone: the network then computes what the shallower one does.

    Parameters
    ----------
    rank : int
        R of every layer; capped at min(D, T).
    n_layers : int
        K. Depth helps where the outcomes are not linear in x before censoring.
    alpha : "auto" or float
        The penalty of every layer, as in :class:`SubspaceTobitRegressor`. ``"auto"`` is its
        rule for the inputs of the layer; in joint tuning the K layers share it, α/K each.
    feature_sparsity : float
        From 0 to 1; lets features leave the model. See :class:`SubspaceTobitRegressor`.
    skip_connection : bool
        False is the paper's naive stacking: layers see the outputs below alone.
    joint_tuning : "auto" or bool
        ``"auto"`` tunes where the batch solver is used, and keeps the result if it gains more
        log likelihood than it sets parameters free. True always keeps it.
    early_stopping : bool
        Let ``validation_fraction`` of the rows choose the depth, up to ``n_layers``; the chosen
        depth is then trained on all rows. The split is random: results depend on
        ``random_state``, and a weight of 2 is not the same as a row twice.
    solver, n_passes, batch_size, step_size, averaging, start
        As in :class:`SubspaceTobitRegressor`, for each layer.
    random_state, n_jobs, verbose
        As in :class:`SubspaceTobitRegressor`.
    sigma : {"mle", "calibrate"}, float, array of shape (T,) or dict
        ``"mle"``: noise scales by likelihood. ``"calibrate"``: from the residuals before
        censoring of each layer, as in the paper.
    lower, upper, outside, noise, fit_intercept, standardize, prediction, max_iter, tol
        As in :class:`TobitRegressor`.

    Attributes
    ----------
    layers_ : tuple of NetworkLayer
        U, V, intercept and sigma of every layer, in the user's units.
    coef_, intercept_, U_, V_ : arrays
        Those of the first layer.
    sigma_ : array of shape (T,)
        Noise scales of the last layer, which are those of predictions.
    rank_, alpha_, n_layers_, n_iter_ : int, float, int, int
    history_ : dict
        Solver and why; how each layer was grown; up to which depth growth paid; the course of
        joint tuning and whether it was kept.
    lower_, upper_, target_names_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from deeptobit import SubspaceNetworkRegressor, datasets
    >>> X, Y, truth = datasets.make_subspace(1000, 20, 10, 3, n_layers=2, skip_connection=True,
    ...     sigma=1.0, latent_sd=3.0, random_state=0)
    >>> one = SubspaceNetworkRegressor(rank=3, n_layers=1).fit(X[:800], Y[:800])
    >>> two = SubspaceNetworkRegressor(rank=3, n_layers=2).fit(X[:800], Y[:800])
    >>> two.score(X[800:], Y[800:]) > one.score(X[800:], Y[800:])
    True
    """

    _stream: NetworkStream | ContinuedNetwork

    def __init__(
        self,
        rank: int = 5,
        n_layers: int = 3,
        *,
        alpha: float | Literal["auto"] = "auto",
        feature_sparsity: float = 0.0,
        skip_connection: bool = True,
        joint_tuning: JointTuning = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        solver: SolverName = "auto",
        n_passes: int = 1,
        batch_size: int = 1,
        step_size: Any = "auto",
        averaging: bool = True,
        start: Literal["auto", "data", "random"] = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        lower: BoundsLike = 0.0,
        upper: BoundsLike = None,
        outside: Literal["raise", "clip"] = "raise",
        noise: str | Noise = "gaussian",
        sigma: Any = "mle",
        fit_intercept: bool = True,
        standardize: bool = True,
        prediction: PredictionKind = "mean",
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.rank = rank
        self.n_layers = n_layers
        self.alpha = alpha
        self.feature_sparsity = feature_sparsity
        self.skip_connection = skip_connection
        self.joint_tuning = joint_tuning
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.solver = solver
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.step_size = step_size
        self.averaging = averaging
        self.start = start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.lower = lower
        self.upper = upper
        self.outside = outside
        self.noise = noise
        self.sigma = sigma
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.prediction = prediction
        self.max_iter = max_iter
        self.tol = tol

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
    ) -> SubspaceNetworkRegressor:
        """Grow and tune the network.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D), or rows beyond memory
            See :meth:`SubspaceTobitRegressor.fit`. A network beyond memory is grown, not tuned.
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing.
        sample_weight : array of shape (N,), optional
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry. Hidden layers are censored at the bounds of the tasks.
        checkpoint, resume
            As in :meth:`SubspaceTobitRegressor.fit`.
        """
        source = self._source(X, y, sample_weight, lower, upper)
        if source is not None:
            return self._fit_source(source, checkpoint, resume)
        refuse_checkpoint(checkpoint, resume)
        matrix, targets, weight = self._read(X, y, sample_weight, lower, upper, reset=True)
        training = self._training(targets)
        penalised = self.alpha != 0.0
        check_determined(targets, weight, 0 if penalised else self.n_features_in_, self.alpha_)
        check_sigma(training.online.sigma, targets, weight)
        n_layers, validation = int(self.n_layers), None
        if self.early_stopping:
            n_layers, validation = validated_depth(
                training,
                matrix,
                targets,
                weight,
                n_layers=n_layers,
                fraction=self.validation_fraction,
                random_state=self.random_state,
            )
        network = training.run(matrix, targets, weight, n_layers)
        self.history_: dict[str, Any] = network.history | {"validation": validation}
        self._warn(network, targets)
        self.alpha_, self.n_iter_ = network.alphas[0], max(network.n_iter, 1)
        self._store(network.layers, targets)
        self._remember_rows(matrix, weight)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> SubspaceNetworkRegressor:
        """Learn from some more rows, in constant memory.

        An unfitted network learns all layers online (``joint_tuning`` and ``early_stopping`` need
        all rows at once and do not act). A network that was fitted goes on with its last layer,
        its rows counting as much as the new ones; hidden layers stay as they are. Calls on
        consecutive pieces give the result of one call on the whole.
        """
        fitted = hasattr(self, "_rows_behind")
        first = not fitted and not hasattr(self, "_stream")
        matrix, targets, weight = self._read(X, y, sample_weight, lower, upper, reset=first)
        check_reach(self._given_sigma(targets), targets)
        if first:
            check_telling(targets, weight)
        if not hasattr(self, "_stream"):
            self._stream = self._continued() if fitted else self._begun(targets)
        self._stream.learn(matrix, targets.low, targets.high, weight)
        if isinstance(self._stream, NetworkStream):
            self.history_["layers"] = [{"course": course} for course in self._stream.courses]
            self.history_["paying_depth"] = self._stream.depth
        self.n_iter_ = self._stream.n_seen
        self._store(self._stream.layers(), targets)
        return self

    def _fit_source(
        self, source: RowSource, checkpoint: str | os.PathLike[str] | None, resume: bool
    ) -> SubspaceNetworkRegressor:
        training = SourceTraining(self, source, self.n_layers, skip_connection=self.skip_connection)
        self._training(training.targets)
        refuse_in_source(self)
        fit = training.run(checkpoint, resume=resume)
        self.history_ = fit.history
        self._store(fit.layers, fit.targets)
        self._remember_source(fit)
        return self

    def _begun(self, targets: CensoredTargets) -> NetworkStream:
        """A stream for an unfitted network."""
        training = self._training(targets)
        if training.calibrate:
            raise ValueError("sigma='calibrate' needs all rows at once; call fit, or use 'mle'")
        if training.feature_sparsity > 0.0:
            raise ValueError(NEEDS_BATCH.format("partial_fit learns online"))
        self.history_ = {"solver": "online", "reason": "partial_fit learns row by row"}
        return NetworkStream(
            training.online,
            targets.lower,
            targets.upper,
            n_features=self.n_features_in_,
            n_layers=int(self.n_layers),
            skip_connection=self.skip_connection,
        )

    def _continued(self) -> ContinuedNetwork:
        """A stream that goes on from the fitted network."""
        weight, mean_squares = self._rows_behind
        layer = self.layers_[-1]
        n_new = layer.V.shape[1] - len(mean_squares)
        known = np.pad(mean_squares, (n_new, 0)) if n_new >= 0 else np.zeros(layer.V.shape[1])
        last = RecursiveTobit(
            OnlineResult(layer.U, layer.V, layer.intercept, layer.sigma, round(weight)),
            known,
            self.noise_,
            fit_intercept=self.fit_intercept,
            learns_sigma=isinstance(self.sigma, str),
        )
        self.history_ = self.history_ | {"continued": True}
        return ContinuedNetwork(self.layers_, last, self.lower_, self.upper_)

    def _given_sigma(self, targets: CensoredTargets) -> FloatArray | None:
        return read_sigma(self.sigma, targets.names, words=("mle", "calibrate"))

    def _training(self, targets: CensoredTargets) -> NetworkTraining:
        """The settings, checked."""
        check_count("n_layers", self.n_layers)
        if self.joint_tuning not in ("auto", True, False):
            raise ValueError(f"joint_tuning must be 'auto' or a bool; got {self.joint_tuning!r}")
        tuning = (
            self.joint_tuning if isinstance(self.joint_tuning, str) else bool(self.joint_tuning)
        )
        bounded = np.isfinite(targets.lower) | np.isfinite(targets.upper)
        if self.n_layers > 1 and not bounded.any():
            warnings.warn(
                "no target has a bound, so that the network is linear and layers above the first "
                "add nothing; set lower or upper, or n_layers=1",
                UserWarning,
                stacklevel=3,
            )
        return NetworkTraining(
            online=self._online_settings(self._given_sigma(targets)),
            alpha=None if isinstance(self.alpha, str) else float(self.alpha),
            feature_sparsity=float(self.feature_sparsity),
            skip_connection=self.skip_connection,
            joint_tuning=tuning,
            solver=self.solver,
            n_passes=self.n_passes,
            calibrate=isinstance(self.sigma, str) and self.sigma == "calibrate",
            max_iter=self.max_iter,
            tol=self.tol,
            verbose=self.verbose,
        )

    def _warn(self, network: FittedNetwork, targets: CensoredTargets) -> None:
        if network.kinds is not None:
            given = not isinstance(self.sigma, str)
            warn_of_censoring(network.kinds, targets, given_sigma=given)
        stuck = [
            str(depth + 1)
            for depth, layer in enumerate(network.history["layers"])
            if not layer.get("converged", True)
        ]
        if stuck:
            warnings.warn(
                f"layer {', '.join(stuck)} did not converge after {self.max_iter} Newton steps; "
                "increase max_iter, loosen tol, or set a larger alpha",
                ConvergenceWarning,
                stacklevel=3,
            )
