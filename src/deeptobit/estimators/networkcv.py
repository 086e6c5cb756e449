"""The Subspace Network that needs no tuning: prior, rank and depth by cross-validation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray
from deeptobit.auto import (
    TAILS,
    EvidenceStack,
    HeldOut,
    Scoring,
    check_folds,
    fit_stack,
    read_folds,
)
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.estimators.diagnosis import check_determined, warn_of_censoring
from deeptobit.estimators.effects import LayerEffects
from deeptobit.estimators.formula import FormulaDesign
from deeptobit.estimators.inputs import (
    check_count,
    check_lengths,
    check_settings,
    check_switches,
    feature_scale,
    read_features,
    read_targets,
    read_weights,
)
from deeptobit.estimators.network import SubspaceNetworkRegressor
from deeptobit.estimators.prediction import PredictionKind
from deeptobit.estimators.search import Candidate, Search, best_of, tabulate
from deeptobit.likelihood import Noise, NoiseByTask, Predictive
from deeptobit.network import NetworkLayer
from deeptobit.targets import BoundsLike, CensoredTargets


class SubspaceNetworkCV(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CensoredRegressor):
    r"""Censored low-rank layers whose prior, rank and depth are chosen by cross-validation.

    By default the prior of the layer is learned from the data (empirical Bayes),

    .. math::
        y = \mathrm{clip}\left(Wx + b + \sigma e\right),\quad e \sim N(0, R),\quad
        W/\sigma \sim \text{matrix normal}\left(0,\, (1-\rho)K + \rho R,\, c\,\mathrm{diag}\,\omega
        \right)

    where ω are variances of the features, K the covariance of the effects and R that of the noise
    between tasks. Layers under a path of ρ and c, with one ω for all features and with one for
    each, with R learned and with R = I, are averaged with the weights that predict held-out rows
    best. Slope, level and noise of every task are then refitted on held-out rows, and W is cut to
    its rank: U and V.

    Give ``alphas``, ``ranks`` or ``feature_sparsities`` and the penalised layer of
    :class:`SubspaceTobitRegressor` is searched on that grid instead. In both cases deeper
    networks are tried, and taken only where they predict held-out rows better; one that is behind
    on each of the first two folds is given up. Slope, level and noise scale of their last layer
    are refitted on held-out rows as well.

    Learning a variance for every feature takes 35 eigendecompositions of size min(N, D) per fold:
    seconds for 200 features, minutes for 1000 of both. Search a grid beyond that.

    Parameters
    ----------
    ranks : sequence of int, optional
        Ranks of the grid; (2, 5, 10) if only the others are given.
    alphas : int or sequence of float, optional
        Penalties of the grid, or how many between no effect at all and a hundredth of that.
    feature_sparsities : sequence of float, optional
        From 0 to 1, of the grid.
    max_layers : int
        Depths from 2 to this number are tried after the best layer is known; 1 tries none.
    cv : int, splitter or iterable
        A number means shuffled folds, or folds of whole ``groups``.
    scoring : {"r2", "log"}
        What candidates are compared by on held-out rows: 1 − squared error of E[y|x] over the
        variance of the task, or the log density. Stacking weights always go by the former.
    n_jobs : int or None
        Folds (and ranks) side by side; the result does not depend on it.
    random_state : int, RandomState or None
        Shuffles the folds.
    verbose : int
        1 tells how the candidates did.
    noise : {"auto", "gaussian", "logistic", "student_t"} or Noise
        ``"auto"``: layers are fitted with Gaussian noise; for predictions every task takes the
        tails and the skew under which its held-out rows are most likely, and a σ that grows with
        the score where it does (:class:`~deeptobit.likelihood.Spread`); where all outcomes of a
        task are whole scores, or multiples of a step, so are its predictive distributions
        (:class:`~deeptobit.likelihood.ScoreGrid`). A single layer of the grid of settings keeps
        the noise it was fitted with. A family of your own choice has one σ for every task and
        continuous outcomes; that of a ``NoiseByTask`` with a spread grows too, as these rows ask
        for, and one with a grid has its scores.
    lower, upper, outside, fit_intercept, standardize, prediction, max_iter, tol
        As in :class:`SubspaceNetworkRegressor`.

    Attributes
    ----------
    best_estimator_ : SubspaceNetworkRegressor
        The chosen network, fitted to all rows.
    best_params_ : dict
    best_score_ : float
        Mean over folds.
    cv_results_ : dict of arrays
        As in scikit-learn's ``GridSearchCV``; ``weight`` is a member's share in the stack. A
        network that was given up has NaN for folds that it did not see, and the last rank.
    noise_ : Noise
        The family of the noise; a ``NoiseByTask`` where tasks differ, whose ``spread`` says how σ
        changes with the score, and whose ``grid`` which scores there are.
    layers_, coef_, intercept_, sigma_, U_, V_, rank_, alpha_, n_layers_, n_iter_, history_
        Those of ``best_estimator_``. ``alpha_`` of a learned prior is its ridge on W/σ, 1/(n ω);
        ``sigma_`` is the noise scale at the middle of a task's scores.
    lower_, upper_, feature_scale_, target_names_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from deeptobit import SubspaceNetworkCV, datasets
    >>> X, Y, truth = datasets.make_subspace(300, 20, 8, 2, random_state=0)
    >>> model = SubspaceNetworkCV(random_state=0).fit(X[:200], Y[:200])
    >>> model.best_params_
    {'prior': 'stacked', 'n_layers': 1}
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.55
    """

    def __init__(
        self,
        *,
        ranks: Any = None,
        alphas: Any = None,
        feature_sparsities: Any = None,
        max_layers: int = 2,
        cv: Any = 5,
        scoring: Scoring = "r2",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        lower: BoundsLike = 0.0,
        upper: BoundsLike = None,
        outside: Literal["raise", "clip"] = "raise",
        noise: str | Noise = "auto",
        fit_intercept: bool = True,
        standardize: bool = True,
        prediction: PredictionKind = "mean",
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.ranks = ranks
        self.alphas = alphas
        self.feature_sparsities = feature_sparsities
        self.max_layers = max_layers
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.lower = lower
        self.upper = upper
        self.outside = outside
        self.noise = noise
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.prediction = prediction
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> SubspaceNetworkCV:
        """Choose by cross-validation, and fit the choice to all rows.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing.
        sample_weight : array of shape (N,), optional
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry.
        groups : array of shape (N,), optional
            Rows with the same label are never split between training and held-out rows.
        """
        self._check()
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
        check_determined(targets, weight, 0, 1.0)
        self._check_noise(targets)
        folds = read_folds(self.cv, len(targets), groups, self.random_state)
        check_folds(targets, weight, folds)
        held_out = HeldOut(targets, weight, folds, self._families())
        candidates = self._candidates(matrix, held_out)
        self._tell(candidates)
        self.cv_results_ = tabulate(candidates)
        best = best_of(candidates)
        assert best.finish is not None
        self.feature_scale_ = feature_scale(matrix, weight)
        self.best_params_, self.best_score_ = best.params, float(best.scores.mean())
        self._store(best.finish())
        return self

    def _candidates(self, matrix: Any, held_out: HeldOut) -> list[Candidate]:
        """Layers under learned priors or on a grid, then deeper networks."""
        search = Search(matrix, held_out, self.scoring, self.n_jobs, self._network())
        params: dict[str, Any] = {}
        if self.ranks is None and self.alphas is None and self.feature_sparsities is None:
            candidates = self._stack(matrix, held_out)
        else:
            candidates = search.one_layer(self.ranks, self.alphas, self.feature_sparsities)
            best = best_of(candidates).params
            params = {name: best[name] for name in ("rank", "alpha", "feature_sparsity")}
        bounded = np.isfinite(held_out.targets.lower) | np.isfinite(held_out.targets.upper)
        if self.max_layers > 1 and bounded.any():  # without bounds any depth is linear
            candidates += search.deeper(int(self.max_layers), params, best_of(candidates).scores)
        return candidates

    def _stack(self, matrix: Any, held_out: HeldOut) -> list[Candidate]:
        stack = fit_stack(
            matrix,
            held_out,
            fit_intercept=self.fit_intercept,
            standardize=self.standardize,
            scoring=self.scoring,
            n_jobs=self.n_jobs,
        )
        warn_of_censoring(stack.kinds, held_out.targets)
        members = [
            Candidate({"prior": "learned", **settings}, scores, stack.fit_times, None, weight)
            for settings, scores, weight in zip(
                stack.settings, stack.member_scores, stack.weights.tolist(), strict=True
            )
        ]
        params = {"prior": "stacked", "n_layers": 1}
        stacked = Candidate(
            params,
            stack.stack_scores,
            stack.fit_times,
            lambda: self._as_network(stack, matrix, held_out),
        )
        return [stacked, *members]

    def _families(self) -> tuple[Noise, ...]:
        if isinstance(self.noise, str) and self.noise == "auto":
            return TAILS
        return super()._families()

    @property
    def noise_(self) -> Noise:
        """The family of the noise, chosen or given."""
        return self.best_estimator_.noise_

    @property
    def layers_(self) -> tuple[NetworkLayer, ...]:
        """Layers of the chosen network."""
        return self.best_estimator_.layers_

    @property
    def history_(self) -> dict[str, Any]:
        """How the chosen network was found."""
        return self.best_estimator_.history_

    def transform(self, X: Any, layer: int = -1) -> FloatArray:
        """Coordinates of the rows in the subspace of a layer, (N, R)."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X, layer)

    def staged_predict(
        self,
        X: Any,
        kind: PredictionKind | None = None,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Iterator[FloatArray]:
        """The prediction of every layer in turn, the last being that of ``predict``."""
        check_is_fitted(self)
        return self.best_estimator_.staged_predict(X, kind, lower=lower, upper=upper)

    def __sklearn_tags__(self) -> Any:
        """Coordinates in single precision for features in single precision."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Whether ``fit`` came to its end."""
        return hasattr(self, "best_estimator_")

    def _check(self) -> None:
        check_settings(0.0, self.tol, self.max_iter, self.prediction)
        check_switches(self.get_params(deep=False))
        check_count("max_layers", self.max_layers)
        if self.scoring not in ("r2", "log"):
            raise ValueError(f"scoring must be 'r2' or 'log'; got {self.scoring!r}")

    def _check_noise(self, targets: CensoredTargets) -> None:
        n_tasks = len(targets.names)
        if isinstance(self.noise, NoiseByTask) and len(self.noise.families) != n_tasks:
            raise ValueError(
                f"noise is that of {len(self.noise.families)} target(s), but y has {n_tasks}"
            )

    def _tell(self, candidates: list[Candidate]) -> None:
        for candidate in candidates if self.verbose else ():
            print(f"{candidate.params}: {candidate}", file=sys.stderr)

    def _network(self) -> SubspaceNetworkRegressor:
        """A network with the settings of this search."""
        names = (
            "lower",
            "upper",
            "outside",
            "fit_intercept",
            "standardize",
            "prediction",
            "max_iter",
            "tol",
        )
        settings = {name: getattr(self, name) for name in names}
        fits_gaussian = self.noise == "auto" or isinstance(self.noise, NoiseByTask)
        noise = "gaussian" if fits_gaussian else self.noise
        return SubspaceNetworkRegressor(n_layers=1, noise=noise, **settings)

    def _as_network(
        self, stack: EvidenceStack, matrix: Any, held_out: HeldOut
    ) -> SubspaceNetworkRegressor:
        """The stacked layer as a network of one layer."""
        rank = stack.layer.U.shape[1]
        network = self._network()
        network.set_params(rank=rank)
        network.n_features_in_, network.rank_ = self.n_features_in_, rank
        network.alpha_, network.n_iter_ = stack.alpha, 1
        network.history_ = {
            "solver": "evidence",
            "reason": "the prior was learned and held-out rows chose its width",
            "weights": stack.weights,
        }
        network._store((stack.layer,), held_out.targets)
        network._remember_rows(matrix, held_out.weight)
        network._chosen_noise = stack.noise
        return network

    def _store(self, network: SubspaceNetworkRegressor) -> None:
        if hasattr(self, "feature_names_in_"):
            network.feature_names_in_ = self.feature_names_in_
        self.best_estimator_ = network
        self.coef_, self.intercept_ = network.coef_, network.intercept_
        self.U_, self.V_, self.sigma_ = network.U_, network.V_, network.sigma_
        self.rank_, self.alpha_ = network.rank_, network.alpha_
        self.n_layers_, self.n_iter_ = network.n_layers_, network.n_iter_
        self.target_names_ = network.target_names_
        self.lower_, self.upper_ = network.lower_, network.upper_
        self._one_dimensional = network._one_dimensional
        self._n_features_out = self.rank_

    def _keep_formula(self, design: FormulaDesign) -> None:
        super()._keep_formula(design)
        self.best_estimator_._keep_formula(design)

    def _latent(self, X: Any) -> FloatArray:
        return self.best_estimator_._latent(X)

    def _predictive_by_layer(self, *rows: Any) -> Iterator[Predictive]:
        return self.best_estimator_._predictive_by_layer(*rows)

    def _effects_per_deviation(self, X: Any) -> FloatArray:
        if self.n_layers_ == 1:  # a line has the same slopes everywhere
            return super()._effects_per_deviation(X)
        return self.best_estimator_._effects_per_deviation(X)

    def _layer_effects(self, layer: int, X: Any) -> LayerEffects:
        if self.n_layers_ == 1:
            return super()._layer_effects(layer, X)
        return self.best_estimator_._layer_effects(layer, X)
