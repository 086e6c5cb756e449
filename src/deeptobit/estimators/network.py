"""The Subspace Network: censored low-rank layers, grown one by one and tuned together."""

import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from deeptobit import network as networks
from deeptobit.arrays import FloatArray, check_count
from deeptobit.estimators import diagnosis, inputs
from deeptobit.estimators.inputs import Limits, PredictionKind, Rows
from deeptobit.estimators.prediction import of_kind
from deeptobit.estimators.resampling import EffectsRegressor, Layers, Refits
from deeptobit.estimators.source import SourceTraining
from deeptobit.estimators.subspace import LowRankRegressor, SubspaceEstimator
from deeptobit.exceptions import warn
from deeptobit.layer import Design, TargetScaling
from deeptobit.likelihood import one_family
from deeptobit.network import NetworkLayer, NetworkProblem, NetworkStream, TrainedNetwork, Trees
from deeptobit.online import OnlineSettings
from deeptobit.runtime import time_left
from deeptobit.scale import DataSummary
from deeptobit.targets import CensoredTargets

_CHUNK_ROWS = 8192
_ROWS_OF_SLOPES = 500  # over which slopes of trees are averaged


class LayeredRegressor(EffectsRegressor, SubspaceEstimator):
    """Predictions, stages, coordinates and effects of censored layers, ``layers_``."""

    layers_: tuple[NetworkLayer, ...]
    undone_layers_: tuple[NetworkLayer, ...]
    trees_: Trees
    feature_mean_: FloatArray
    mean_slopes_: FloatArray

    def staged_predict(
        self,
        X: Any,
        kind: PredictionKind | None = None,
        *,
        lower: Limits = None,
        upper: Limits = None,
    ) -> Iterator[FloatArray]:
        """The prediction of every layer in turn, the last being that of ``predict``.

        In a network that was tuned, hidden layers serve the last one, and predict less well
        than they did when they were grown. They have the noise that the network was fitted with.
        """
        check_is_fitted(self)
        kind = self.prediction if kind is None else kind
        inputs.check_choice("kind", kind, inputs.KINDS)
        matrix = self._read_features(X)
        for predictive in self._predictive_by_layer(self.layers_, matrix, lower, upper):
            yield self._drop_task_axis(of_kind(predictive, kind), X)

    def contributions(self, X: Any) -> tuple[FloatArray, FloatArray]:
        r"""What every feature adds to the latent score of a row: exact, and they sum to it.

        :math:`\eta_t(x) = base_t + \sum_d part_{td}`, in units of the target. In a linear layer
        the part of a feature is :math:`w_{td}(x_d - \bar x_d)`. Where trees are below the layer,
        their Shapley values times the weight of each output come to it (tree SHAP of the
        path-dependent kind, which averages over training rows; features that hang together share
        what they say).

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)

        Returns
        -------
        base : array of shape (T,)
            The score of a row of which no feature is known.
        parts : array of shape (N, T, D)

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import AutoTobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(300, 5, 3, 1, random_state=0)
        >>> model = AutoTobitRegressor(members=("stack", "trees"), random_state=0).fit(X, Y)
        >>> base, parts = model.contributions(X[:2])
        >>> bool(np.allclose(base + parts.sum(axis=2), model.predict(X[:2], kind="latent")))
        True
        """
        check_is_fitted(self)
        if len(self.layers_) > 1 or not hasattr(self, "feature_mean_"):
            raise ValueError(
                "contributions add up for one layer with known means of its features, as "
                "AutoTobitRegressor has where it chose no deeper network; use "
                "feature_importance(X, y, kind='permutation') for others"
            )
        rows, layer = inputs.dense(self._read_features(X)), self.layers_[0]
        coef, base, trees = layer.coef, layer.intercept, vars(self).get("trees_")
        n_below = 0 if trees is None else len(trees.start)
        linear = coef[:, n_below:]
        parts = linear * (rows - self.feature_mean_)[:, None, :]
        base = base + linear @ self.feature_mean_
        if trees is not None:
            parts = parts + np.einsum("tk,nkd->ntd", coef[:, :n_below], trees.contributions(rows))
            base = base + coef[:, :n_below] @ trees.means()
        return base, parts

    def _score_slopes(self, matrix: Any) -> FloatArray:
        """Mean over rows of the change of the score per unit of each feature, (T, D).

        Trees have no slope: theirs is that between half a standard deviation on either side.
        """
        trees, changes = vars(self).get("trees_"), None
        if trees is not None:
            scale = inputs.feature_scale(matrix)
            matrix = matrix[:: -(-matrix.shape[0] // _ROWS_OF_SLOPES)]
            changes = trees.changes(matrix, scale)
        return self._mean_slopes(matrix, np.ones((matrix.shape[0], len(self.sigma_))), changes)

    def _effects_per_deviation(self, X: Any) -> FloatArray:
        """Mean effect of one standard deviation of each feature on the last score, (T, D)."""
        if X is None and hasattr(self, "mean_slopes_"):
            return np.asarray(self.mean_slopes_ * self.feature_scale_)
        # A linear score has the same slopes everywhere.
        if len(self.layers_) == 1 and "trees_" not in vars(self):
            return super()._effects_per_deviation(X)
        matrix = self._read_rows_to_explain(X)
        return self._score_slopes(matrix) * inputs.feature_scale(matrix)

    def _layer_effects(self, layer: int, X: Any) -> tuple[list[str], FloatArray]:
        """Effects of a layer's inputs: the outputs below, which have the targets' names, and x."""
        if len(self.layers_) == 1 and (X is None or "trees_" not in vars(self)):
            return super()._layer_effects(layer, X)
        matrix = self._read_rows_to_explain(X)
        depth = inputs.read_layer(layer, len(self.layers_))
        chosen, below = self.layers_[depth], self._below(matrix, depth)
        names, scale = [], np.zeros(0)
        if below is not None:
            names = [f"{name} (layer {depth})" for name in self.target_names_]
            if not depth:
                names = [f"{self.target_names_[task]} (trees)" for task in self.trees_.tasks]
            scale = below.std(axis=0)
        if chosen.V.shape[1] > len(scale):
            names = names + inputs.feature_names(self)
            scale = np.append(scale, inputs.feature_scale(matrix))
        return names, chosen.coef * scale / chosen.sigma[:, None]

    def _read_rows_to_explain(self, X: Any) -> Any:
        if X is None:
            raise ValueError(
                "the effects of features in a network depend on where one looks; pass X, for "
                "example the rows it was fitted to"
            )
        return self._read_features(X)

    def _set_layers(self, layers: Layers) -> None:
        self.layers_, self.n_layers_ = layers, len(layers)
        super()._set_layers(layers)

    def _latent(self, X: Any) -> FloatArray:
        result = np.empty((X.shape[0], len(self.sigma_)))
        for start in range(0, X.shape[0], _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            below = self._tree_scores(X[rows])
            scores = networks.latents(self.layers_, X[rows], self.lower_, self.upper_, below)
            *_, result[rows] = scores
        return result


@dataclass(kw_only=True, eq=False, repr=False)
class SubspaceNetworkRegressor(LayeredRegressor, LowRankRegressor):
    r"""The Subspace Network of Sun et al. 2018, a stack of censored low-rank layers.

    .. math::
        f_k(x) = \mathrm{clip}\left(U_k V_k [f_{k-1}(x);\, x] + b_k\right), \qquad
        y = \mathrm{clip}\left(U_K V_K [f_{K-1}(x);\, x] + b_K + \sigma\varepsilon\right)

    Layers are grown one by one: each is a :class:`SubspaceTobitRegressor` of the outcomes on
    the censored output of the layer below beside x (Algorithm 3 of the paper). Then all layers are
    tuned together by back-propagation through the censored likelihood. Depth that does not pay
    (Akaike's criterion) is undone: the network then computes what the shallower one does. The
    algorithm as printed is :class:`deeptobit.published.PublishedSubspaceNetwork`.

    Parameters
    ----------
    rank : int
        R of every layer; capped at min(D, T).
    n_layers : int
        K. Depth helps where the outcomes are not linear in x before censoring.
    alpha : "auto" or float
        The penalty of every layer, as in :class:`SubspaceTobitRegressor`. ``"auto"`` is the
        largest that it tries for the inputs of the layer; in joint tuning the K layers share it,
        α/K each. Layers do not choose a smaller one: three of them would predict worse.
    penalty : {"ridge", "group"} or Penalty
        On V of every layer; layers above the first see T outputs in front of the D features. See
        :class:`SubspaceTobitRegressor`.
    feature_sparsity : float
        From 0 to 1; lets features leave the model. See :class:`SubspaceTobitRegressor`.
    skip_connection : bool
        False is the paper's naive stacking: layers see the outputs below alone.
    joint_tuning : "auto" or bool
        ``"auto"`` tunes where the batch solver is used, and keeps the result if it gains more
        log likelihood than it sets parameters free. True always keeps it.
    prune_layers : bool
        Undo layers that do not pay; False keeps all that were grown. A network that was tuned, or
        has no skip connection, keeps all of them.
    early_stopping : bool
        Let ``validation_fraction`` of the rows choose the depth, up to ``n_layers``; the chosen
        depth is then trained on all rows. The split is random: results depend on
        ``random_state``, and a weight of 2 is not the same as a row twice.
    solver, n_passes, batch_size
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
    undone_layers_ : tuple of NetworkLayer
        Layers that were grown and did not pay, on top of those that did.
    history_ : dict
        Solver and why; how each layer was grown (``layers``, as in
        :class:`SubspaceTobitRegressor`); up to which depth growth paid; the course of joint tuning
        and whether it was kept.
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

    _words_for_sigma = ("mle", "calibrate")

    n_layers: int = field(default=3, kw_only=False)
    skip_connection: bool = True
    joint_tuning: networks.JointTuning = "auto"
    prune_layers: bool = True
    early_stopping: bool = False
    validation_fraction: float = 0.1

    def _fit(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> None:
        online = self._check_network(targets)
        needed = self.n_features_in_ if self.alpha == 0.0 else 0
        diagnosis.check_determined(targets, weight, needed, self._given_sigma(targets.names))
        n_layers, validation, rows = int(self.n_layers), None, (matrix, targets, weight)
        if self.early_stopping:
            n_layers, validation = validated_depth(self, rows)
        network, alphas, history = train_network(self, online, rows, n_layers)
        self.history_ = history | {"validation": validation}
        if network.kinds is not None:
            given = not isinstance(self.sigma, str)
            diagnosis.warn_of_censoring(network.kinds, targets, given_sigma=given)
        self.alpha_ = alphas[0]
        n_steps = sum(layer.n_iter for layer in network.grown) + len(network.tuning)
        self.n_iter_ = max(n_steps, 1)
        self._store(network.layers, targets)
        grown = tuple(found.layer for found in network.grown)
        self.undone_layers_ = () if network.tuned else self._undone(grown)
        if self.history_["solver"] == "batch":
            self._trained = Refits(rows, partial(refit_network, copy(self)))

    def _fit_source(self, training: SourceTraining, checkpoint: Any, resume: bool) -> DataSummary:
        self._check_network(training.targets)
        wanted = {
            "joint_tuning=True": self.joint_tuning is True,
            "early_stopping=True": bool(self.early_stopping),
            "sigma='calibrate'": self._calibrates,
        }
        for setting, asked_for in wanted.items():
            if asked_for:
                raise ValueError(f"{setting} needs all rows in memory; leave it at its default")
        summary, grown = training.run(self.n_layers, checkpoint, resume=resume)
        self.undone_layers_ = self._undone(grown)
        return summary

    def _begun(self, targets: CensoredTargets) -> NetworkStream:
        online = self._check_network(targets)
        if self._calibrates:
            raise ValueError("sigma='calibrate' needs all rows at once; call fit, or use 'mle'")
        return NetworkStream(
            online,
            targets.lower,
            targets.upper,
            n_features=self.n_features_in_,
            n_layers=int(self.n_layers),
            skip_connection=self.skip_connection,
        )

    def _continued(self) -> networks.ContinuedNetwork:
        self.history_ = self.history_ | {"continued": True}
        return networks.ContinuedNetwork(self.layers_, self._recursive(), self.lower_, self.upper_)

    def _store_stream(self, targets: CensoredTargets) -> None:
        if isinstance(self._stream, NetworkStream):
            grown, depth = self._stream.grown()
            self.history_ |= {"layers": self._stream.histories, "paying_depth": depth}
            self.undone_layers_ = self._undone(grown)
            pruned = networks.deepened(grown[:depth], len(grown))
            self._store(pruned if self.prune_layers else grown, targets)
        else:
            self._store(self._stream.layers(), targets)
        self.n_iter_ = self._stream.n_seen

    def _undone(self, grown: tuple[NetworkLayer, ...]) -> tuple[NetworkLayer, ...]:
        """Layers that were grown and did not pay."""
        return grown[self.history_["paying_depth"] :] if self.prune_layers else ()

    @property
    def _calibrates(self) -> bool:
        """Whether σ comes from the residuals of each layer."""
        return isinstance(self.sigma, str) and self.sigma == "calibrate"

    def _check_network(self, targets: CensoredTargets) -> OnlineSettings:
        """Check the settings that a single layer does not have; returns the online solver's."""
        check_count("n_layers", self.n_layers)
        if self.joint_tuning not in ("auto", True, False):
            raise ValueError(f"joint_tuning must be 'auto' or a bool; got {self.joint_tuning!r}")
        bounded = np.isfinite(targets.lower) | np.isfinite(targets.upper)
        if self.n_layers > 1 and not bounded.any():
            warn(
                "no target has a bound, so that the network is linear and layers above the first "
                "add nothing; set lower or upper, or n_layers=1",
                UserWarning,
            )
        return self._online_settings(targets.names)


def train_network(
    model: Any, online: OnlineSettings, rows: Rows, n_layers: int
) -> tuple[TrainedNetwork, tuple[float, ...], dict[str, Any]]:
    """Train a network of ``n_layers`` with the settings of a :class:`SubspaceNetworkRegressor`.

    Returns
    -------
    network : TrainedNetwork
        In the user's units.
    alphas : tuple of float
        The penalty of each layer while it was grown.
    history : dict
    """
    X, targets, weight = rows
    penalty, given = model._read_penalty(), model.joint_tuning
    tuning: networks.JointTuning = "auto" if isinstance(given, str) else bool(given)
    solver, reason = inputs.choose_solver(model.solver, X.shape, targets.shape[1], penalty)
    alphas = _alphas(model, solver, rows, n_layers)
    history: dict[str, Any] = {"solver": solver, "reason": reason}
    grown: tuple[networks.GrownLayer, ...] = ()
    if solver == "online":
        known = (weight > 0.0) & ~targets.missing.all(axis=1)
        if not known.all():
            rows = X[known], targets[known], weight[known]
        total, started = model.n_passes * len(rows[1]), perf_counter()
        network = networks.grow_online(
            *rows,
            online,
            n_layers=n_layers,
            skip_connection=model.skip_connection,
            n_passes=model.n_passes,
            calibrated=model._calibrates,
            progress=lambda layer, done: model._show_progress(
                f"layer {layer + 1} of {n_layers}, {done:,} of {total:,} rows"
                + time_left(started, layer * total + done, n_layers * total)
            ),
        )
        grown = network.grown
    if solver == "batch" or tuning is True:
        problem = _pose(model, rows, alphas)
        units = problem.design, problem.scaling
        network = networks.train(
            problem,
            networks.to_standard([found.layer for found in grown], *units),
            joint_tuning=tuning,
            tol=model.tol,
            max_iter=model.max_iter,
            progress=model._show_progress,
        )
        network = replace(network, layers=networks.to_user(network.layers, *units))
        if not grown:
            layers = networks.to_user([found.layer for found in network.grown], *units)
            pairs = zip(network.grown, layers, strict=True)
            grown = tuple(replace(found, layer=layer) for found, layer in pairs)
        history["alphas"] = alphas
    if not (model.prune_layers or network.tuned):
        network = replace(network, layers=tuple(found.layer for found in grown))
    history |= {
        "layers": [found.history for found in grown],
        "nll": network.nlls,
        "paying_depth": network.depth,
        "tuning": {"kept": network.tuned, "objective": network.tuning},
    }
    return replace(network, grown=grown), alphas, history


def refit_network(model: Any, rows: Rows, penalty: float = 1.0) -> Layers:
    """The layers of a fitted network for other rows, or other weights, started from what they are.

    Depth, and whether layers are tuned together, stay as they are; penalties are multiplied.
    """
    history = model.history_
    problem = _pose(model, rows, tuple(penalty * alpha for alpha in history["alphas"]))
    units = problem.design, problem.scaling
    depth = history["paying_depth"] if model.prune_layers else len(model.layers_)
    layers = networks.retrain(
        problem,
        networks.to_standard(model.layers_, *units),
        n_layers=len(model.layers_) if history["tuning"]["kept"] else depth,
        tuned=history["tuning"]["kept"],
        tol=model.tol,
        max_iter=model.max_iter,
    )
    return networks.to_user(layers, *units)


def _alphas(model: Any, solver: str, rows: Rows, n_layers: int) -> tuple[float, ...]:
    """The penalty of each layer while it is grown."""
    if not isinstance(model.alpha, str):
        return (float(model.alpha),) * n_layers
    if solver == "online":
        return (0.0,) * n_layers
    X, targets, weight = rows
    known, n_rows = weight @ ~targets.missing, float(weight.sum())
    above = targets.shape[1] + (X.shape[1] if model.skip_connection else 0)
    widths = [X.shape[1], *[above] * (n_layers - 1)]
    return tuple(inputs.automatic_alpha(known, n_rows, width) for width in widths)


def _pose(model: Any, rows: Rows, alphas: tuple[float, ...]) -> NetworkProblem:
    """The problem in standard units."""
    X, targets, weight = rows
    share, center = weight / weight.sum(), model.fit_intercept
    scaling = TargetScaling.build(targets, share, center=center)
    sigma = model._given_sigma(targets.names)
    return NetworkProblem(
        design=Design.build(X, share, center=center, standardize=model.standardize),
        targets=targets,
        scaling=scaling,
        noise=one_family(model.noise),
        rank=model.rank_,
        alphas=alphas,
        penalty=model._read_penalty(),
        skip_connection=model.skip_connection,
        fit_intercept=center,
        sigma=None if sigma is None else sigma / scaling.scale,
        calibrate=model._calibrates,
        total_weight=float(weight.sum()),
        # Layers that are tuned together share one budget, unless the user set the penalty.
        tuning_share=1.0 / len(alphas) if isinstance(model.alpha, str) else 1.0,
    )


def validated_depth(model: Any, rows: Rows) -> tuple[int, list[float]]:
    """The depth up to which the prediction of held-out rows improves (early stopping).

    Returns
    -------
    depth : int
        At most ``n_layers``.
    scores : list of float
        Negative log likelihood of the held-out rows, for every depth that was tried.
    """
    (matrix, targets, weight), fraction = rows, model.validation_fraction
    if not (isinstance(fraction, Real) and 0.0 < float(fraction) < 1.0):
        raise ValueError(f"validation_fraction must lie between 0 and 1; got {fraction!r}")
    order = check_random_state(model.random_state).permutation(np.flatnonzero(weight))
    n_held_out = max(1, round(float(fraction) * len(order)))
    held_out, rest = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    diagnosis.check_determined(targets[rest], weight[rest])
    scores: list[float] = []
    for depth in range(1, model.n_layers + 1):
        model._show_progress(f"depth {depth} of at most {model.n_layers}, on {len(rest):,} rows")
        network = clone(model).set_params(n_layers=depth, early_stopping=False, verbose=0)
        with warnings.catch_warnings(action="ignore"):  # the fit to all rows warns
            network.fit(matrix[rest], targets[rest], sample_weight=weight[rest])
        scores.append(-network.score_log(matrix[held_out], targets[held_out], weight[held_out]))
        if depth > 1 and scores[-1] >= scores[-2]:
            return depth - 1, scores
    return int(model.n_layers), scores
