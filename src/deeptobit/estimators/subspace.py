"""One layer: many censored outcomes that share a low-rank subspace, W = UV.

What a layer and a network have in common comes first: inputs, settings, and how they learn.
"""

import os
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from deeptobit import layer as batch
from deeptobit import online
from deeptobit.arrays import FloatArray, check_count, in_precision_of
from deeptobit.estimators import diagnosis, inputs
from deeptobit.estimators.inference import InferenceRegressor
from deeptobit.estimators.inputs import Rows, RowsBehind
from deeptobit.estimators.prediction import SubspaceMixin, all_or_nothing
from deeptobit.estimators.resampling import Layers, Refits, ResampledRegressor, refit_layer
from deeptobit.estimators.source import SourceTraining, read_source
from deeptobit.inspection import FittedLayer
from deeptobit.likelihood import Noise, one_family
from deeptobit.network import NetworkLayer, latents
from deeptobit.penalties import Penalty
from deeptobit.runtime import time_left
from deeptobit.scale import DataSummary
from deeptobit.targets import CensoredTargets


class SubspaceEstimator(SubspaceMixin, ResampledRegressor):
    """Stores the layers that share a subspace, and gives the coordinates of rows in it."""

    rank_: int

    def transform(self, X: Any, layer: int = -1) -> FloatArray:
        """Coordinates V[f; x] of the rows in the subspace of a layer, (N, R)."""
        check_is_fitted(self)
        depth = inputs.read_layer(layer, len(self.layers_))
        matrix = self._read_features(X)
        return in_precision_of(X, self.layers_[depth].transform(matrix, self._below(matrix, depth)))

    def _below(self, matrix: Any, depth: int) -> FloatArray | None:
        """What the layer at a depth sees beside x: the outputs of the one below, (N, T)."""
        below = self._tree_scores(matrix)
        for latent in latents(self.layers_[:depth], matrix, self.lower_, self.upper_, below):
            below = np.clip(latent, self.lower_, self.upper_)
        return below

    def _set_layers(self, layers: Layers) -> None:
        first, last = layers[0], layers[-1]
        if "trees_" not in vars(self):  # above them the first layer is not one of features alone
            self.U_, self.V_, self.coef_ = first.U, first.V, first.U @ first.V
        self.intercept_, self.sigma_ = first.intercept, last.sigma

    def _store(self, layers: tuple[NetworkLayer, ...], targets: CensoredTargets) -> None:
        """Keep a network: the coefficients of its first layer, the noise of its last."""
        self._set_layers(layers)
        self._store_targets(targets)
        self._n_features_out = self.rank_


@dataclass(kw_only=True, eq=False, repr=False)
class LowRankParameters(inputs.CommonParameters):
    """Constructor parameters that a layer and a network share."""

    rank: int = field(default=5, kw_only=False)
    alpha: float | Literal["auto"] = "auto"
    penalty: str | Penalty = "ridge"
    feature_sparsity: float = 0.0
    solver: inputs.SolverName = "auto"
    n_passes: int = 1
    batch_size: int = 1
    noise: str | Noise = "gaussian"
    sigma: Any = "mle"
    random_state: Any = None
    n_jobs: int | None = None


class LowRankRegressor(LowRankParameters, SubspaceEstimator):
    """Reads X, Y and the parameters that a layer and a network share, and learns from rows.

    A subclass fits rows in memory (``_fit``) and beyond (``_fit_source``), and says how a stream
    begins (``_begun``), goes on from a fitted model (``_continued``) and is stored
    (``_store_stream``).
    """

    alpha_: float
    n_iter_: int
    _rows_behind: RowsBehind
    _stream: Any  # what learns from rows that are still to come
    _words_for_sigma: tuple[str, ...] = ("mle",)

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        lower: inputs.Limits = None,
        upper: inputs.Limits = None,
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
        started = perf_counter()
        source = read_source(X, y, sample_weight=sample_weight, lower=lower, upper=upper)
        if source is not None:
            summary = self._fit_source(SourceTraining(self, source), checkpoint, resume)
            self._rows_behind = RowsBehind(summary.weight, summary.mean_squares)
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
        unit = "rows" if self.history_["solver"] == "online" else "Newton steps"
        taken = perf_counter() - started
        self._show_progress(f"{self.n_iter_:,} {unit} in {taken:.1f} s", last=True)
        diagnosis.warn_of_layers(self.history_.get("layers", [self.history_]), self.tol)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: inputs.Limits = None,
        upper: inputs.Limits = None,
    ) -> Self:
        """Learn from some more rows, in constant memory.

        Calls on consecutive pieces give the result of one call on the whole. A model that was
        fitted with ``fit`` goes on from there, its rows counting as much as the new ones.

        An unfitted network learns all layers online (``joint_tuning`` and ``early_stopping`` need
        all rows at once and do not act). One that was fitted goes on with its last layer; hidden
        layers stay as they are.

        A call that is interrupted leaves the model as it was; the next one goes on as after
        ``fit``.
        """
        first = not hasattr(self, "_rows_behind")
        matrix, targets, weight = self._read(X, y, sample_weight, lower, upper, reset=first)
        diagnosis.check_reach(self._given_sigma(targets.names), targets)
        if first:
            if not weight @ ~targets.missing.all(axis=1):
                raise ValueError(
                    "no row has both an outcome and a positive weight; start with rows that have"
                )
            inputs.require_ridge(self._read_penalty(), "partial_fit")
            self.history_ = {"solver": "online", "reason": "partial_fit learns row by row"}
        # Taken out: an interrupted one has learned some of the rows.
        stream = self.__dict__.pop("_stream", None)
        stream = stream or (self._begun(targets) if first else self._continued())
        stream.learn(matrix, targets.low, targets.high, weight)
        self._stream = stream
        self._store_stream(targets)
        self.__dict__.pop("_feature_limits", None)  # rows that have passed have no percentiles
        diagnosis.warn_of_layers(self.history_.get("layers", [self.history_]), self.tol)
        before = RowsBehind(0.0, np.zeros(matrix.shape[1])) if first else self._rows_behind
        self._rows_behind = before.more(matrix, weight)
        return self

    def _read(
        self, X: Any, y: Any, sample_weight: Any, lower: Any, upper: Any, *, reset: bool
    ) -> inputs.Rows:
        """Checked inputs; sets ``rank_`` and ``alpha_`` (0 where alpha is automatic)."""
        automatic = isinstance(self.alpha, str)
        if automatic and self.alpha != "auto":
            raise ValueError(f"alpha must be 'auto' or a number; got {self.alpha!r}")
        given = 0.0 if automatic else self.alpha
        inputs.check_settings(vars(self) | {"alpha": given})
        self._read_penalty()
        if reset:
            rows = self._read_rows(X, y, sample_weight, lower, upper)
            check_count("rank", self.rank)
            self.rank_ = min(int(self.rank), self.n_features_in_, len(rows[1].names))
            self.alpha_ = float(given)
            return rows
        # More rows of the same features and targets, whose names and bounds stay as they are.
        matrix, targets = self._read_pair(X, y, lower, upper)
        kept: Any = {"lower": self.lower_, "upper": self.upper_}
        targets = replace(targets, **kept, one_dimensional=self._one_dimensional)
        return matrix, targets, inputs.read_weights(sample_weight, len(targets), may_be_zero=True)

    def _read_penalty(self) -> Penalty:
        """The penalty on V that the user asks for."""
        return inputs.read_penalty(self.penalty, float(self.feature_sparsity))

    def _given_sigma(self, names: tuple[str, ...]) -> FloatArray | None:
        """Noise scales that the user gives, (T,); None if they are estimated."""
        return inputs.read_sigma(self.sigma, names, words=self._words_for_sigma)

    def _online_settings(self, names: tuple[str, ...]) -> online.OnlineSettings:
        """Settings of the online solver for targets of these names."""
        check_count("batch_size", self.batch_size)
        check_count("n_passes", self.n_passes)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        return online.OnlineSettings(
            rank=self.rank_,
            batch_size=self.batch_size,
            alpha=self.alpha_,
            fit_intercept=self.fit_intercept,
            sigma=self._given_sigma(names),
            standardize=self.standardize,
            noise=one_family(self.noise),
            random_state=seed,
            n_threads=inputs.read_threads(self.n_jobs),
        )

    def _recursive(self) -> online.RecursiveTobit:
        """The last layer, ready to learn from more rows as a sequence of Tobit regressions."""
        weight, mean_squares = self._rows_behind
        layer = self.layers_[-1]
        n_new = layer.V.shape[1] - len(mean_squares)
        known = np.pad(mean_squares, (n_new, 0)) if n_new >= 0 else np.zeros(layer.V.shape[1])
        return online.RecursiveTobit(
            online.OnlineResult(layer.U, layer.V, layer.intercept, layer.sigma, round(weight)),
            known,
            self.noise_,
            fit_intercept=self.fit_intercept,
            learns_sigma=isinstance(self.sigma, str),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class SubspaceTobitRegressor(InferenceRegressor, LowRankRegressor):
    r"""Low-rank Tobit :math:`y = \mathrm{clip}(UVx + b + \sigma\varepsilon)`, a layer of the paper.

    Minimises, in standardised features and targets,

    .. math::
        \frac{1}{\sum_i w_i} \sum_{it} w_i\, \mathrm{nll}(y_{it};\, U_t^\top V x_i + b_t, \sigma_t)
        + \frac{\alpha}{2}\left(\|U\|_F^2 + (1 - w)\|V\|_F^2
        + \frac{w}{D}\Big(\sum_d \|V_d\|\Big)^2\right)

    with U of shape (T, R) and V of shape (R, D): the tasks share R directions of the feature space.
    Without ``feature_sparsity`` w is 0, and where R is not binding the penalty is the trace norm of
    UV (eq. 2 of the paper, as a mean).

    Parameters
    ----------
    rank : int
        R; capped at min(D, T). With ``alpha="auto"`` an upper limit.
    alpha : "auto" or float
        ``"auto"`` tries :math:`\frac{\sqrt D + \sqrt T}{2\sqrt n}(1 + 2D/n)`, which keeps noise
        out, and smaller values down to a hundredth of it, as long as the corrected Akaike criterion
        falls, and fewer components where the rank is too large: the rest are then zero
        (:func:`deeptobit.layer.choose_alpha`). ``history_["alphas"]`` has what was tried.
        This is for the ridge and rows in memory. Penalties that choose features, rows beyond
        memory and the layers of a network take the first value. The online solver, which does not
        know the number of rows n, takes 0 and shrinks by its errors on rows not yet learned.
    penalty : {"ridge", "group"} or Penalty
        P(V) beside :math:`\tfrac12\|U\|_F^2`; an object is a :class:`deeptobit.penalties.Penalty`.
        ``"group"`` is the mixture above with s = ½ unless ``feature_sparsity`` says otherwise. All
        but ``"ridge"`` need the batch solver.
    feature_sparsity : float
        s from 0 to 1. Above 0, features whose columns :math:`V_d` are not needed leave the model
        for all tasks, with exact zeros in ``V_`` and ``coef_``: the more, the larger s and
        ``alpha``. :math:`w = s\sqrt D/(1 - s + s\sqrt D)`, so that s = ½ is halfway for about
        :math:`\sqrt D` features. Needs the batch solver and, to have an effect, ``alpha > 0``.
    solver : {"auto", "batch", "online"}
        ``"batch"`` goes to the optimum. ``"online"`` learns row by row in ``n_passes`` over the
        data (Algorithm 1 of the paper). ``"auto"`` takes the batch solver while it is affordable
        and says in ``history_`` what it took and why.
    n_passes, batch_size : int
        Of the online solver, whose steps need no tuning. The paper's own steps are in
        :mod:`deeptobit.published`. Batches are for noise that is not Gaussian: under Gaussian
        noise rows are learned one by one by compiled code, which is faster and more accurate.
    random_state : int, RandomState or None
        Only the online solver uses it, for components that the first rows leave empty.
    n_jobs : int or None
        Threads of the online solver over tasks, all cores if -1; the result does not depend on it.
    verbose : int
        1 shows progress on stderr, on one line updated in place, with the time left if known.
    lower, upper, outside, noise, sigma, fit_intercept, standardize, prediction, max_iter, tol
        As in :class:`TobitRegressor`; ``tol`` is the norm of the gradient (where features have
        left, of the least subgradient: the residual of the optimality conditions) relative to that
        at W = 0.

    Attributes
    ----------
    coef_ : array of shape (T, D)
        ``U_ @ V_``, in the user's units like everything fitted.
    U_ : array of shape (T, R)
    V_ : array of shape (R, D)
    intercept_, sigma_ : arrays of shape (T,)
    layers_ : tuple of NetworkLayer
        U, V, intercept and sigma of the one layer.
    rank_, alpha_, n_layers_, n_iter_ : int, float, int, int
    history_ : dict
        Solver and why; ``course``: records of objective, subspace change and, per Newton step,
        relative gradient norm (batch) or, per block of rows, online loss (online). Of the online
        solver also ``n_halvings``, how often a step diverged and was repeated with half its
        length, and ``n_blocks_left_out``, of which nothing could be learned even so. Of the batch
        solver also where it ended: objective, relative gradient norm, certificate, ``n_restarts``,
        how often components that had vanished were seeded again, the number of features used,
        ``alpha_max``, the smallest alpha without coefficients, and ``alphas``: of every alpha that
        ``"auto"`` tried, the components it might use (``rank``), its criterion (expected negative
        log likelihood of an entry of new rows, in standard units) and degrees of freedom of W; the
        lowest criterion is taken.
    feature_scale_ : array of shape (D,)
        Standard deviations of the features (batch).
    lower_, upper_, target_names_, n_features_in_, feature_names_in_

    Notes
    -----
    After a batch fit there is the inference of :class:`TobitRegressor` for W = UV: ``summary``,
    ``conf_int``, ``wald_test``, ``marginal_effects``, ``predict_mean_interval``. Its covariance is
    that of the matrices of rank R, the same for every rotation of U and V. It holds for a light
    penalty; with a strong one intervals describe the shrunken W. ``rank_test`` asks whether a
    component is missing.

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor, datasets
    >>> X, Y, truth = datasets.make_subspace(1000, 30, 20, 3, random_state=0)
    >>> model = SubspaceTobitRegressor(rank=3).fit(X, Y)
    >>> model.history_["solver"], round(model.score(X, Y), 3)
    ('batch', 0.757)
    >>> model.transform(X).shape
    (1000, 3)
    >>> model.summary().loc["y0"].iloc[:2][["coef", "std_err", "p_value"]].round(3)
           coef  std_err  p_value
    term
    x0   -0.166    0.045    0.000
    x1    0.041    0.042    0.331
    """

    @property
    def layers_(self) -> tuple[NetworkLayer, ...]:
        """The one layer, as networks have several."""
        return (NetworkLayer(self.U_, self.V_, self.intercept_, self.sigma_),)

    @property
    def n_layers_(self) -> int:
        """1."""
        return len(self.layers_)

    def rank_test(self, *, n_draws: int = 1999, random_state: Any = 0) -> pd.Series:
        r"""Test the fitted rank R against R + 1, that is, whether a component is missing.

        A score test. The likelihood's gradient by W, outside of the spaces of U and V and in units
        of its standard deviation, is a matrix of independent standard normal entries if no
        component is missing. Its largest squared singular value, to first order twice the log
        likelihood that one more component would gain, is compared with ``n_draws`` such matrices.
        Meant for a light penalty: what a strong one keeps out of W is in the gradient too.

        Returns
        -------
        Series
            ``rank``, ``statistic``, ``p_value``.

        Examples
        --------
        >>> from deeptobit import SubspaceTobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(500, 10, 8, 3, random_state=1)
        >>> too_small, right = (SubspaceTobitRegressor(R, alpha=0).fit(X, Y) for R in (2, 3))
        >>> too_small.rank_test()["p_value"].item(), right.rank_test()["p_value"].round(2).item()
        (0.0005, 0.18)
        """
        trained: FittedLayer = self._training()
        if not self._read_penalty().rotation_invariant:
            raise ValueError("rank_test needs penalty='ridge' and feature_sparsity=0")
        check_count("n_draws", n_draws)
        statistic, p_value = trained.rank_tail(n_draws, check_random_state(random_state))
        return pd.Series(
            {"rank": trained.layer.U.shape[1], "statistic": statistic, "p_value": p_value}
        )

    def _fit(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> None:
        shape, penalty = matrix.shape, self._read_penalty()
        solver, reason = inputs.choose_solver(self.solver, shape, targets.shape[1], penalty)
        if solver == "batch" and isinstance(self.alpha, str):
            known = weight @ ~targets.missing
            self.alpha_ = inputs.automatic_alpha(known, float(weight.sum()), shape[1])
        needed = 0 if solver == "online" or self.alpha_ > 0.0 else shape[1]
        diagnosis.check_determined(targets, weight, needed, self._given_sigma(targets.names))
        self.history_ = {"solver": solver, "reason": reason}
        if solver == "batch":
            self._fit_batch(matrix, targets, weight)
        else:
            self._fit_online(matrix, targets, weight)

    def _fit_source(self, training: SourceTraining, checkpoint: Any, resume: bool) -> DataSummary:
        summary, _ = training.run(1, checkpoint, resume=resume)
        (course,) = self.history_.pop("layers")
        self.history_ |= course
        return summary

    def _fit_batch(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> None:
        self.feature_scale_ = inputs.feature_scale(matrix, weight)
        null = self._null(matrix, targets, weight)
        given = not isinstance(self.sigma, str)
        diagnosis.warn_of_censoring(null.kinds, targets, given_sigma=given)
        start, most = batch.spectral_start(null), self.max_iter
        if isinstance(self.alpha, str):
            null, start, tried = batch.choose_alpha(null, max_iter=most, watch=self._show_progress)
            self.alpha_, self.history_["alphas"] = null.problem.alpha, tried
        fit = batch.solve_subspace(
            null, start, alpha=self.alpha_, tol=self.tol, max_iter=most, watch=self._show_step
        )
        features, scaling = null.problem.features, null.problem.scaling
        layer = NetworkLayer(*batch.to_user(features, scaling, fit.layer, self.rank_))
        self._store((layer,), targets)
        problem, rows = null.at(self.alpha_).problem, (matrix, targets, weight)
        self._trained = FittedLayer.at(problem, null.kinds, fit.layer, rows)
        self.n_iter_ = max(fit.n_iter, 1)
        self.history_ |= fit.history
        self.history_["alpha_max"] = null.alpha_max
        self.history_["n_features_used"] = int(layer.V.any(axis=0).sum())

    def _redraw(self) -> Refits:
        rows: Rows = self._training().rows
        return Refits(rows, partial(refit_layer, copy(self)))

    def _show_step(self, step: batch.Step) -> None:
        """Progress of the batch solver."""
        self._show_progress(f"{step.text(self.tol)}, alpha {self.alpha_:.2g}")

    def _null(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> batch.NullLayer:
        """The layer without effects, where the batch solver begins."""
        rows, sigma = (matrix, targets, weight), self._given_sigma(targets.names)
        return null_of(self, rows, self._read_penalty(), self.rank_, self.alpha_, sigma)

    def _fit_online(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> None:
        solver = self._stream = self._begun(targets)
        total, started = self.n_passes * len(targets), perf_counter()
        for done in online.learn_passes(solver, matrix, targets, weight, self.n_passes):
            if self.verbose:
                left = time_left(started, done, total)
                self._show_progress(f"{done:,} of {total:,} rows ({done / total:.0%}){left}")
        self._store_stream(targets)

    def _begun(self, targets: CensoredTargets) -> online.OnlineSolver:
        settings, n_tasks = self._online_settings(targets.names), len(targets.names)
        return online.OnlineSolver(settings, self.n_features_in_, n_tasks)

    def _continued(self) -> online.RecursiveTobit:
        self.history_ = {"solver": "online", "reason": "partial_fit goes on"}
        return self._recursive()

    def _store_stream(self, targets: CensoredTargets) -> None:
        found = self._stream.result()
        self._store((NetworkLayer(found.U, found.V, found.intercept, found.sigma),), targets)
        self.n_iter_ = max(found.n_seen, 1)
        if isinstance(self._stream, online.OnlineSolver):
            self.history_ |= self._stream.history


def null_of(
    model: Any, rows: Rows, penalty: Penalty, rank: int, alpha: float, sigma: FloatArray | None
) -> batch.NullLayer:
    """The layer without effects, in standard units, with the noise and the units of a model.

    ``sigma`` is in the user's units, ``None`` if it is estimated.
    """
    matrix, targets, weight = rows
    share, n_tasks, center = weight / weight.sum(), len(targets.names), model.fit_intercept
    design = batch.Design.build(matrix, share, center=center, standardize=model.standardize)
    scaling = batch.TargetScaling.build(targets, share, center=center)
    features = batch.features_for(design, penalty, overwrite=True)
    problem = batch.SubspaceProblem(
        features=features,
        targets=targets,
        scaling=scaling,
        noise=one_family(model.noise),
        rank=min(rank, features.rank),
        alpha=alpha,
        fit_intercept=center,
        free_sigma=np.full(n_tasks, sigma is None),
        total_weight=float(weight.sum()),
        sigma=None if sigma is None else sigma / scaling.scale,
        penalty=penalty,
    )
    return batch.null_layer(problem)
