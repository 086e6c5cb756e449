"""Networks fitted on folds and scored on held-out rows."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice, product
from numbers import Integral, Real
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.base import clone

from deeptobit.arrays import FloatArray
from deeptobit.auto import Fold, HeldOut, Scoring, check_folds, make_folds
from deeptobit.estimators import diagnosis, inputs
from deeptobit.estimators.network import SubspaceNetworkRegressor
from deeptobit.estimators.subspace import null_of
from deeptobit.layer import NullLayer, solve_path, to_user
from deeptobit.network import latents
from deeptobit.runtime import one_blas_thread

RANKS = (2, 5, 10)
N_ALPHAS = 10
_SMALLEST_ALPHA = 0.01  # of the one that leaves no effect
_PROBATION = 2  # folds on which a deeper network must be better once
_SHARED = (
    *("lower", "upper", "outside", "fit_intercept", "standardize", "prediction"),
    *("max_iter", "tol"),
)


@dataclass(frozen=True)
class Candidate:
    """An unfitted network with its scores on held-out rows.

    Parameters
    ----------
    network : SubspaceNetworkRegressor
    scores, fit_times : arrays of shape (n_folds,)
        NaN for folds that were not tried, because the network was behind on the first two.
    latents : list of arrays
        Scores before censoring of the rows that each fold holds out, if they were kept.
    """

    network: SubspaceNetworkRegressor
    scores: FloatArray
    fit_times: FloatArray
    latents: list[FloatArray] = field(default_factory=list)

    @property
    def params(self) -> dict[str, Any]:
        """What distinguishes the candidates."""
        names = ("rank", "alpha", "feature_sparsity", "n_layers")
        return {name: getattr(self.network, name) for name in names}

    def __str__(self) -> str:
        """Parameters, mean score and number of folds."""
        n_folds = int((~np.isnan(self.scores)).sum())
        return f"{self.params}: {np.nanmean(self.scores):.4f} ({n_folds} folds)"


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate with the best mean score, the first of equals."""
    means = [float(candidate.scores.mean()) for candidate in candidates]
    return candidates[int(np.nanargmax(means))]


def tabulate(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """``cv_results_`` in the form of scikit-learn's ``GridSearchCV``."""
    scores = np.array([candidate.scores for candidate in candidates])
    times = np.array([candidate.fit_times for candidate in candidates])
    params = [candidate.params for candidate in candidates]
    table: dict[str, Any] = {"params": params}
    for name in sorted(params[0]):
        values = np.empty(len(params), dtype=object)
        values[:] = [each[name] for each in params]
        table[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.zeros(len(params), dtype=bool))
    for fold, column in enumerate(scores.T):
        table[f"split{fold}_test_score"] = column
    table["mean_test_score"] = scores.mean(axis=1)
    table["std_test_score"] = np.array([_deviation(row) for row in scores])
    means = np.nan_to_num(table["mean_test_score"], nan=-np.inf)
    table["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    table["mean_fit_time"] = np.nanmean(times, axis=1)
    table["std_fit_time"] = np.nanstd(times, axis=1)
    return table


def _deviation(scores: FloatArray) -> float:
    """Standard deviation of scores that may be so low that their squares overflow."""
    size = max(float(np.abs(scores).max()), 1.0)
    return size * float((scores / size).std())


@dataclass(frozen=True)
class Search:
    """Rows, folds and settings that all candidates have in common.

    Parameters
    ----------
    X : array or CSR matrix of shape (N, D)
    held_out : HeldOut
    scoring : {"r2", "log"}
    n_jobs : int or None
    template : SubspaceNetworkRegressor
    """

    X: Any
    held_out: HeldOut
    scoring: Scoring
    n_jobs: int | None
    template: SubspaceNetworkRegressor

    @classmethod
    def of(
        cls, model: Any, X: Any, y: Any, sample_weight: Any, lower: Any, upper: Any, groups: Any
    ) -> Self:
        """Check the settings and the data of an estimator that searches."""
        inputs.check_settings(model.get_params(deep=False))
        if model.scoring not in ("r2", "log"):
            raise ValueError(f"scoring must be 'r2' or 'log'; got {model.scoring!r}")
        noise = model._layer_noise()
        matrix, targets, weight = model._read_rows(X, y, sample_weight, lower, upper)
        diagnosis.check_determined(targets, weight, 0, 1.0)
        folds = make_folds(len(targets), model.cv, groups, model.random_state)
        check_folds(targets, weight, folds)
        template = SubspaceNetworkRegressor(
            n_layers=1,
            noise=model.noise if isinstance(model.noise, str) and model.noise != "auto" else noise,
            **{name: getattr(model, name) for name in _SHARED},
        )
        held_out = HeldOut(targets, weight, folds, noise)
        return cls(matrix, held_out, model.scoring, model.n_jobs, template)

    @property
    def bounded(self) -> bool:
        """Whether any target has a bound; without bounds any depth is linear."""
        targets = self.held_out.targets
        return bool((np.isfinite(targets.lower) | np.isfinite(targets.upper)).any())

    def one_layer(self, ranks: Any, alphas: Any, sparsities: Any) -> list[Candidate]:
        """Every point of the grid; along the alphas each fit starts from the one before."""
        ranks = _read_values(
            RANKS if ranks is None else ranks,
            "ranks",
            "whole numbers, at least 1",
            lambda rank: isinstance(rank, Integral) and int(rank) >= 1,
        )
        sparsities = _read_values(
            0.0 if sparsities is None else sparsities,
            "feature_sparsities",
            "numbers from 0 to 1",
            lambda sparsity: isinstance(sparsity, Real) and 0.0 <= float(sparsity) <= 1.0,
        )
        if alphas is None or isinstance(alphas, Integral):
            largest = self.null(slice(None), 1, 0.0).alpha_max or 1.0  # 0 if no feature varies
            n_alphas = N_ALPHAS if alphas is None else int(alphas)
            alphas = np.geomspace(largest, _SMALLEST_ALPHA * largest, n_alphas)
        alphas = _read_values(
            alphas,
            "alphas",
            "positive and finite",
            lambda alpha: isinstance(alpha, Real) and 0.0 < float(alpha) < np.inf,
        )
        alphas = np.sort(np.array(alphas, dtype=np.float64))[::-1]
        paths, folds = list(product(ranks, sparsities)), self.held_out.folds
        jobs = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_path)(self, fold, rank, sparsity, alphas)
            for (rank, sparsity), fold in product(paths, folds)
        )
        table = np.array(jobs).reshape(len(paths), len(folds), len(alphas), 2)
        points = product(paths, alphas.tolist())
        return [
            Candidate(
                self._network(rank=rank, feature_sparsity=sparsity, alpha=alpha), scores, times
            )
            for ((rank, sparsity), alpha), (scores, times) in zip(
                points, np.concatenate(table.transpose(0, 2, 3, 1)), strict=True
            )
        ]

    def deeper(
        self, depths: Iterable[int], params: dict[str, Any], rival: FloatArray
    ) -> list[Candidate]:
        """Networks of several layers, which share one penalty.

        One that is behind the ``rival`` scores of a single layer on both of the first two folds is
        abandoned, and has no score on the others.
        """
        networks = []
        for depth in depths:
            network = self._network(n_layers=depth, **params)
            if not isinstance(network.alpha, str):
                network.set_params(alpha=network.alpha / depth)
            networks.append(network)
        folds = self.held_out.folds
        trials = self._try(networks, folds[:_PROBATION])
        promising = [
            any(trial.score >= score for trial, score in zip(done, rival, strict=False))
            for done in trials
        ]
        rest = iter(self._try(list(compress(networks, promising)), folds[_PROBATION:]))
        candidates = []
        for network, done, keep in zip(networks, trials, promising, strict=True):
            tried = done + next(rest) if keep else done
            scores, seconds = np.full((2, len(folds)), np.nan)
            scores[: len(tried)] = [trial.score for trial in tried]
            seconds[: len(tried)] = [trial.seconds for trial in tried]
            candidates.append(
                Candidate(network, scores, seconds, [trial.latent for trial in tried])
            )
        return candidates

    def _try(
        self, networks: list[SubspaceNetworkRegressor], folds: list[Fold]
    ) -> list[list["_Trial"]]:
        """Every network on every fold."""
        jobs = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_network)(self, fold, network)
            for network, fold in product(networks, folds)
        )
        trials = iter(jobs)
        return [list(islice(trials, len(folds))) for _ in networks]

    def refit(self, network: SubspaceNetworkRegressor) -> SubspaceNetworkRegressor:
        """The network fitted to all rows."""
        return network.fit(self.X, self.held_out.targets, sample_weight=self.held_out.weight)

    def null(self, rows: Any, rank: int, sparsity: float) -> NullLayer:
        """The layer without effects on some rows, where paths of alphas begin."""
        X, targets = self.X[rows], self.held_out.targets[rows]
        weight, penalty = self.held_out.weight[rows], inputs.read_penalty("ridge", sparsity)
        rank = min(rank, X.shape[1], targets.shape[1])
        return null_of(self.template, X, targets, weight, penalty, rank=rank, alpha=1.0)

    def _network(self, **params: Any) -> SubspaceNetworkRegressor:
        network: SubspaceNetworkRegressor = clone(self.template)
        network.set_params(**params)
        return network


class _Trial(NamedTuple):
    """How a network did on a fold, and its latent scores of the held-out rows."""

    score: float
    seconds: float
    latent: FloatArray


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


def _score_network(search: Search, fold: Fold, network: SubspaceNetworkRegressor) -> _Trial:
    held_out, started = search.held_out, perf_counter()
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all rows warns of what holds for all rows
        fitted = clone(network).fit(
            search.X[fold.train],
            held_out.targets[fold.train],
            sample_weight=held_out.weight[fold.train],
        )
        seconds = perf_counter() - started
        *_, latent = latents(fitted.layers_, search.X[fold.test], fitted.lower_, fitted.upper_)
    score = held_out.score(fold, latent, fitted.sigma_, search.scoring)
    return _Trial(score, seconds, latent)


def _read_values(values: Any, name: str, expected: str, holds: Callable[[Any], bool]) -> list[Any]:
    """The values of a grid, one or several."""
    found = [values] if isinstance(values, Real) else list(values)
    if not found:
        raise ValueError(f"{name} is empty: there is nothing to choose from")
    for value in found:
        if not holds(value):
            raise ValueError(f"{name} must be {expected}; got {value!r}")
    return found
