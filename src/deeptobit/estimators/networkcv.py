"""Rank, penalty, feature sparsity and depth of a Subspace Network by cross-validation."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import compress, islice, product
from numbers import Integral, Real
from time import perf_counter
from typing import Any, Self

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import check_random_state

from deeptobit.arrays import FloatArray, check_count
from deeptobit.auto import Fold, HeldOutFolds, Recalibration, Scoring, check_folds, make_folds
from deeptobit.estimators import diagnosis, inputs
from deeptobit.estimators.network import LayeredRegressor, SubspaceNetworkRegressor
from deeptobit.estimators.prediction import all_or_nothing
from deeptobit.estimators.subspace import null_of
from deeptobit.layer import NullLayer, solve_path, to_user
from deeptobit.likelihood import Noise, one_family
from deeptobit.network import latents
from deeptobit.runtime import one_blas_thread, run_jobs, show_line

RANKS = (2, 5, 10)
N_ALPHAS = 10
_SMALLEST_ALPHA = 0.01  # of the one that leaves no effect
_FAR_BEHIND = 1.5  # standard errors of the difference of two scores
_TINY, _MOST = np.nextafter(0.0, 1.0), inputs.MOST_ALPHA
_GRID: dict[str, tuple[str, Any, float, float]] = {
    "ranks": ("whole numbers, at least 1", Integral, 1, np.inf),
    "alphas": (f"above 0 and at most {_MOST:g}", Real, _TINY, _MOST),
    "feature_sparsities": ("numbers from 0 to 1", Real, 0.0, 1.0),
}
_SHARED = {each.name for each in fields(inputs.CommonParameters)} - {"verbose"}


@dataclass(kw_only=True, eq=False, repr=False)
class SearchRegressor(LayeredRegressor):
    """Layers that are chosen on held-out rows.

    A subclass compares candidates, and stores the best one, fitted to all rows (``_choose``).
    """

    cv: Any = 5
    scoring: Scoring = "r2"
    noise: str | Noise = "gaussian"
    n_jobs: int | None = None
    random_state: Any = None

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: inputs.Limits = None,
        upper: inputs.Limits = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Compare the candidates on held-out rows, and fit the best one to all rows.

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
        inputs.check_settings(self.get_params(deep=False))
        inputs.check_choice("scoring", self.scoring, ("r2", "log"))
        noise = self._layer_noise()
        matrix, targets, weight = self._read_rows(X, y, sample_weight, lower, upper)
        diagnosis.check_determined(targets, weight)
        folds = make_folds(len(targets), self.cv, groups, self.random_state)
        check_folds(targets, weight, folds)
        template = SubspaceNetworkRegressor(
            n_layers=1,
            noise=self.noise if isinstance(self.noise, str) and self.noise != "auto" else noise,
            **{name: getattr(self, name) for name in _SHARED},
        )
        held_out = HeldOutFolds(targets, weight, folds, noise)
        settings = self.scoring, self.n_jobs, template, self.verbose, groups
        self._choose(Search(matrix, held_out, *settings))
        self.feature_scale_ = inputs.feature_scale(matrix, weight)
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class SubspaceNetworkCV(SearchRegressor):
    r"""A Subspace Network whose rank, penalty, sparsity and depth are chosen on held-out rows.

    Layers of every rank, penalty and feature sparsity of a grid are compared first. Networks of
    2 … ``max_layers`` layers with the best of these settings come next, each layer with the
    penalty divided by the depth; one that is behind the single layer on each of the first two folds
    is abandoned. The best candidate is fitted to all rows.

    :class:`AutoTobitRegressor` needs no grid, and mostly predicts better.

    Parameters
    ----------
    ranks : sequence of int, optional
        (2, 5, 10) by default.
    alphas : int or sequence of float, optional
        Penalties, or how many of them between the one that leaves no effect and a hundredth of it;
        10 by default.
    feature_sparsities : sequence of float, optional
        From 0 to 1; (0,) by default.
    max_layers : int
        The largest depth; 1 compares single layers only.
    cv : int, splitter or iterable
        A number means shuffled folds, or folds of whole ``groups``.
    scoring : {"r2", "log"}
        What candidates are compared by on held-out rows: 1 − squared error of E[y|x] over the
        variance of the task, or the log density.
    n_jobs : int or None
        Folds and ranks side by side; the result does not depend on it.
    random_state : int, RandomState or None
        Shuffles the folds.
    verbose : int
        1 shows progress on stderr, on one line updated in place, with the time left if known.
    lower, upper, outside, noise, fit_intercept, standardize, prediction, max_iter, tol
        As in :class:`SubspaceNetworkRegressor`.

    Attributes
    ----------
    best_estimator_ : SubspaceNetworkRegressor
        The best network, fitted to all rows.
    best_params_ : dict
    best_score_ : float
        Mean over folds.
    cv_results_ : dict of arrays
        As in scikit-learn's ``GridSearchCV``. A network that was abandoned has NaN for folds that
        it was not fitted on, and the last rank.
    layers_, coef_, intercept_, sigma_, U_, V_, rank_, alpha_, n_layers_, n_iter_, history_
        Those of ``best_estimator_``.
    lower_, upper_, feature_scale_, target_names_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from deeptobit import SubspaceNetworkCV, datasets
    >>> X, Y, truth = datasets.make_subspace(300, 20, 8, 2, random_state=0)
    >>> model = SubspaceNetworkCV(ranks=(1, 2, 4), alphas=3, cv=2, random_state=0)
    >>> model.fit(X[:200], Y[:200]).best_params_["rank"]
    2
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.55
    """

    ranks: Any = None
    alphas: Any = None
    feature_sparsities: Any = None
    max_layers: int = 2

    def _choose(self, search: "Search") -> None:
        """Compare the candidates, and fit the best one to all rows."""
        check_count("max_layers", self.max_layers)
        candidates = search.one_layer(self.ranks, self.alphas, self.feature_sparsities)
        if self.max_layers > 1 and search.bounded:
            layer = best_of(candidates)
            candidates += search.deeper(range(2, self.max_layers + 1), layer.params, layer.scores)
        best = best_of(candidates)
        network = search.refit(best.network)
        if hasattr(self, "feature_names_in_"):
            network.feature_names_in_ = self.feature_names_in_
        self.cv_results_ = tabulate(candidates)
        self.best_params_, self.best_score_ = best.params, float(best.scores.mean())
        self.best_estimator_, self.history_ = network, network.history_
        self.rank_, self.alpha_, self.n_iter_ = network.rank_, network.alpha_, network.n_iter_
        self._store(network.layers_, search.held_out.targets)
        self._trained = network._trained
        self.coef_ = network.coef_  # the same array, which a saved file then has once
        if hasattr(network, "_feature_limits"):
            self._feature_limits = network._feature_limits
        found = f"{best.params}: {self.best_score_:.4f} ({len(best.scores)} folds)"
        self._show_progress(f"best of {len(candidates)} candidates: {found}", last=True)

    def _layer_noise(self) -> Noise:
        if isinstance(self.noise, str) and self.noise == "auto":
            raise ValueError(
                "noise='auto' is a setting of AutoTobitRegressor; SubspaceNetworkCV needs one "
                "family, such as noise='gaussian'"
            )
        return one_family(self.noise)

    def _apply(self, change: Recalibration) -> None:
        super()._apply(change)
        self.best_estimator_ = self.best_estimator_._with_layers(self.layers_)


# Candidates, fitted on folds and scored on held-out rows.


@dataclass(frozen=True)
class Candidate:
    """An unfitted network with its scores on held-out rows.

    Parameters
    ----------
    network : SubspaceNetworkRegressor
    scores, fit_times : arrays of shape (n_folds,)
        NaN for folds that were not tried, because the network was behind on those before.
    latents, row_scores : lists of arrays
        Scores before censoring of the rows that each fold holds out, and what these rows add to
        the score, if they were kept.
    """

    network: SubspaceNetworkRegressor
    scores: FloatArray
    fit_times: FloatArray
    latents: list[FloatArray] = field(default_factory=list)
    row_scores: list[FloatArray] = field(default_factory=list)

    @property
    def params(self) -> dict[str, Any]:
        """What distinguishes the candidates."""
        names = ("rank", "alpha", "feature_sparsity", "n_layers")
        return {name: getattr(self.network, name) for name in names}


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate with the best mean score, the first of equals."""
    return candidates[int(np.nanargmax([candidate.scores.mean() for candidate in candidates]))]


def tabulate(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """``cv_results_`` in the form of scikit-learn's ``GridSearchCV``."""
    scores = np.array([candidate.scores for candidate in candidates])
    times = np.array([candidate.fit_times for candidate in candidates])
    params = [candidate.params for candidate in candidates]
    table: dict[str, Any] = {"params": params}
    for name in sorted(params[0]):
        table[f"param_{name}"] = np.array([each[name] for each in params], dtype=object)
    for fold, column in enumerate(scores.T):
        table[f"split{fold}_test_score"] = column
    table["mean_test_score"] = scores.mean(axis=1)
    size = np.maximum(np.abs(scores).max(axis=1, keepdims=True), 1.0)  # squares would overflow
    table["std_test_score"] = np.ravel(size) * (scores / size).std(axis=1)
    means = np.nan_to_num(table["mean_test_score"], nan=-np.inf)
    table["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    table["mean_fit_time"] = np.nanmean(times, axis=1)
    table["std_fit_time"] = np.nanstd(times, axis=1)
    return table


@dataclass(frozen=True)
class Search:
    """Rows, folds and settings that all candidates have in common.

    Parameters
    ----------
    X : array or CSR matrix of shape (N, D)
    held_out : HeldOutFolds
    scoring : {"r2", "log"}
    n_jobs : int or None
    template : SubspaceNetworkRegressor
    verbose : int
    groups : array of shape (N,), optional
    """

    X: Any
    held_out: HeldOutFolds
    scoring: Scoring
    n_jobs: int | None
    template: SubspaceNetworkRegressor
    verbose: int = 0
    groups: Any = None

    @property
    def bounded(self) -> bool:
        """Whether any target has a bound; without bounds any depth is linear."""
        targets = self.held_out.targets
        return bool((np.isfinite(targets.lower) | np.isfinite(targets.upper)).any())

    def one_layer(self, ranks: Any, alphas: Any, sparsities: Any) -> list[Candidate]:
        """Every point of the grid; along the alphas each fit starts from the one before."""
        ranks = _read_values("ranks", RANKS if ranks is None else ranks)
        sparsities = _read_values("feature_sparsities", 0.0 if sparsities is None else sparsities)
        if alphas is None or isinstance(alphas, Integral):
            largest = self.null(slice(None), 1, 0.0).alpha_max or 1.0  # 0 if no feature varies
            n_alphas = N_ALPHAS if alphas is None else int(alphas)
            alphas = np.geomspace(largest, _SMALLEST_ALPHA * largest, n_alphas)
        alphas = np.sort(np.array(_read_values("alphas", alphas), dtype=np.float64))[::-1]
        paths, folds = list(product(ranks, sparsities)), self.held_out.folds
        jobs = [
            delayed(_score_path)(self, fold, rank, sparsity, alphas)
            for (rank, sparsity), fold in product(paths, folds)
        ]
        done = run_jobs(jobs, self.n_jobs, "grid of one layer" if self.verbose else "")
        table = np.array(done).reshape(len(paths), len(folds), len(alphas), 2)
        points = product(paths, alphas.tolist())
        found = zip(points, np.concatenate(table.transpose(0, 2, 3, 1)), strict=True)
        return [
            Candidate(self._network(rank=rank, feature_sparsity=sparsity, alpha=alpha), *scores)
            for ((rank, sparsity), alpha), scores in found
        ]

    def deeper(
        self,
        depths: Iterable[int],
        params: dict[str, Any],
        rival: Sequence[FloatArray] | FloatArray,
    ) -> list[Candidate]:
        """Networks of several layers, which share one penalty.

        One that is far behind the ``rival`` on the first fold, or behind on the first two, is
        abandoned, and has no score on the others. The rival is a single layer: its score on every
        fold, or what each held-out row adds to it, without which nothing is known to be far.
        """
        networks = [self._network(**params | {"n_layers": depth}) for depth in depths]
        for network in networks:
            if not isinstance(network.alpha, str):
                network.set_params(alpha=network.alpha / network.n_layers)
        folds = self.held_out.folds
        trials: list[list[Any]] = [[] for _ in networks]
        for stage in (folds[:1], folds[1:2], folds[2:]):
            going = [_may_win([rows for rows, *_ in done], rival) for done in trials]
            found = self._try(list(compress(networks, going)), stage)
            for done, more in zip(compress(trials, going), found, strict=True):
                done += more
        candidates = []
        for network, done in zip(networks, trials, strict=True):
            rows, seconds, latent = zip(*done, strict=True)
            table = np.full((2, len(folds)), np.nan)
            table[:, : len(done)] = [each.sum() for each in rows], seconds
            candidates.append(Candidate(network, table[0], table[1], list(latent), list(rows)))
        return candidates

    def _try(self, networks: list[SubspaceNetworkRegressor], folds: list[Fold]) -> list[list[Any]]:
        """Scores of rows, seconds and held-out latent scores of every network on every fold."""
        jobs = [
            delayed(_score_network)(self, fold, network)
            for network, fold in product(networks, folds)
        ]
        trials = iter(run_jobs(jobs, self.n_jobs, "deeper networks" if self.verbose else ""))
        return [list(islice(trials, len(folds))) for _ in networks]

    def is_promising(self, depth: int, n_rows: int, rival: float) -> bool:
        """Whether a network learned from some of the rows beats a score on the first fold."""
        train, test = self.held_out.folds[0]
        some = np.sort(check_random_state(0).permutation(train)[:n_rows])
        ((rows, *_),) = self._try([self._network(n_layers=depth)], [Fold(some, test)])[0]
        return bool(rows.sum() >= rival)

    def given_up(self, depth: int) -> Candidate:
        """A network that was not fitted on any fold."""
        table = np.full((2, len(self.held_out.folds)), np.nan)
        return Candidate(self._network(n_layers=depth), table[0], table[1])

    def refit(self, network: SubspaceNetworkRegressor) -> SubspaceNetworkRegressor:
        """The network fitted to all rows."""
        if self.verbose:
            show_line("the best network, fitted to all rows")
        return network.fit(self.X, self.held_out.targets, sample_weight=self.held_out.weight)

    def null(self, rows: Any, rank: int, sparsity: float) -> NullLayer:
        """The layer without effects on some rows, where paths of alphas begin."""
        X, targets, weight = self.X[rows], self.held_out.targets[rows], self.held_out.weight[rows]
        penalty = inputs.read_penalty("ridge", sparsity)
        rank = min(rank, X.shape[1], targets.shape[1])
        return null_of(self.template, (X, targets, weight), penalty, rank, 1.0, None)

    def _network(self, **params: Any) -> Any:
        return clone(self.template).set_params(**params)


def _score_path(
    search: Search, fold: Fold, rank: int, sparsity: float, alphas: FloatArray
) -> list[tuple[float, float]]:
    """Score and seconds of one layer for every alpha."""
    template, result = search.template, []
    started = perf_counter()
    with one_blas_thread():
        null = search.null(fold.train, rank, sparsity)
        units = null.problem.features, null.problem.scaling
        path = solve_path(null, alphas, tol=template.tol, max_iter=template.max_iter)
        for fit in path:
            U, V, intercept, sigma = to_user(*units, fit.layer, null.problem.rank)
            seconds = perf_counter() - started
            latent = np.asarray(search.X[fold.test] @ V.T) @ U.T + intercept
            result.append((search.held_out.score(fold, latent, sigma, search.scoring), seconds))
            started = perf_counter()
    return result


def is_ahead(gain: FloatArray, standard_errors: float) -> bool:
    """Whether the mean of what rows gain is positive by more than so many standard errors."""
    _, unit = np.frexp(np.abs(gain).max(initial=0.0))
    gain = np.ldexp(gain, -unit)  # squares of scores far out overflow
    return bool(gain.sum() > standard_errors * np.sqrt(len(gain)) * gain.std())


def _may_win(found: Sequence[FloatArray], rival: Sequence[FloatArray] | FloatArray) -> bool:
    """Whether a network is neither far behind on the first fold nor behind on the first two."""
    if found and np.ndim(rival[0]) and is_ahead(rival[0] - found[0], _FAR_BEHIND):
        return False
    pairs = zip(found, rival, strict=False)
    return len(found) < 2 or any(rows.sum() >= np.sum(other) for rows, other in pairs)


def _score_network(
    search: Search, fold: Fold, network: SubspaceNetworkRegressor
) -> tuple[FloatArray, float, FloatArray]:
    """What each held-out row adds to the score, seconds, and latent scores of these rows."""
    held_out, started = search.held_out, perf_counter()
    # The fit to all rows warns of what holds for all rows.
    with one_blas_thread(), warnings.catch_warnings(action="ignore"):
        fitted = clone(network).fit(
            search.X[fold.train],
            held_out.targets[fold.train],
            sample_weight=held_out.weight[fold.train],
        )
        seconds = perf_counter() - started
        *_, latent = latents(fitted.layers_, search.X[fold.test], fitted.lower_, fitted.upper_)
    return held_out.row_scores(fold, latent, fitted.sigma_, search.scoring), seconds, latent


def _read_values(name: str, values: Any) -> list[Any]:
    """The values of a grid, one or several."""
    found = [values] if isinstance(values, Real) else list(values)
    if not found:
        raise ValueError(f"{name} is empty: there is nothing to choose from")
    expected, kind, least, most = _GRID[name]
    for value in found:
        if not (isinstance(value, kind) and least <= float(value) <= most):
            raise ValueError(f"{name} must be {expected}; got {value!r}")
    return found
