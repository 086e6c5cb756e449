"""Penalised networks on a grid, scored on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, islice, product
from numbers import Integral, Real
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.base import clone

from deeptobit.arrays import FloatArray
from deeptobit.auto import Fold, HeldOut, Scoring, held_out_errors
from deeptobit.estimators.inputs import check_sparsity
from deeptobit.estimators.network import SubspaceNetworkRegressor
from deeptobit.estimators.subspace import pose_layer, user_units
from deeptobit.layer import NullLayer, null_layer, solve_path
from deeptobit.likelihood import NoiseByTask
from deeptobit.network import latents
from deeptobit.penalties import resolve_penalty
from deeptobit.runtime import one_blas_thread

# What cross-validation compares, and the table it leaves.


@dataclass(frozen=True)
class Candidate:
    """A model with its scores on held-out rows.

    Parameters
    ----------
    params : dict
    scores, fit_times : arrays of shape (n_folds,)
    finish : callable or None
        Fits the model to all rows. None for a member of a stack, because the stack is the
        candidate, and for a network that was given up: its scores end with NaN.
    weight : float
        Share in the stack, NaN outside of it.
    """

    params: dict[str, Any]
    scores: FloatArray
    fit_times: FloatArray
    finish: Callable[[], SubspaceNetworkRegressor] | None
    weight: float = np.nan

    def __str__(self) -> str:
        """How it did, for people who watch."""
        seen = self.scores[~np.isnan(self.scores)]
        if seen.size < self.scores.size:
            return f"{seen.mean():.4f}, given up after {seen.size} folds"
        return f"{self.scores.mean():.4f} (sd {_deviation(self.scores):.4f})"


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate with the best mean score, the first of them where several are equal.

    Examples
    --------
    >>> one, two = (Candidate({"n_layers": k}, np.array([0.3, 0.1 * k]), np.ones(2), lambda: None)
    ...             for k in (1, 2))
    >>> best_of([one, two]).params
    {'n_layers': 2}
    """
    eligible = [candidate for candidate in candidates if candidate.finish is not None]
    return max(eligible, key=lambda candidate: float(candidate.scores.mean()))


def tabulate(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """``cv_results_`` in the form of scikit-learn's ``GridSearchCV``."""
    scores = np.array([candidate.scores for candidate in candidates])
    times = np.array([candidate.fit_times for candidate in candidates])
    names = sorted({name for candidate in candidates for name in candidate.params})
    table: dict[str, Any] = {"params": [candidate.params for candidate in candidates]}
    for name in names:
        given = [name in candidate.params for candidate in candidates]
        values = np.empty(len(candidates), dtype=object)
        values[:] = [candidate.params.get(name) for candidate in candidates]
        table[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.logical_not(given))
    for fold, column in enumerate(scores.T):
        table[f"split{fold}_test_score"] = column
    table["mean_test_score"] = scores.mean(axis=1)
    table["std_test_score"] = np.array([_deviation(row) for row in scores])
    means = np.nan_to_num(table["mean_test_score"], nan=-np.inf)
    table["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    table["mean_fit_time"] = np.nanmean(times, axis=1)
    table["std_fit_time"] = np.nanstd(times, axis=1)
    table["weight"] = np.array([candidate.weight for candidate in candidates])
    return table


def _deviation(scores: FloatArray) -> float:
    """Standard deviation; on rows that nothing is like, scores are so low that squares overflow."""
    size = max(float(np.abs(scores).max()), 1.0)
    return size * float((scores / size).std())


RANKS = (2, 5, 10)
N_ALPHAS = 10
_SMALLEST_ALPHA = 0.01  # of the one that leaves no effect
_PROBATION = 2  # folds


@dataclass(frozen=True)
class Search:
    """Where networks are fitted and scored.

    Parameters
    ----------
    X : array or CSR matrix of shape (N, D)
    held_out : HeldOut
    scoring : {"r2", "log"}
    n_jobs : int or None
    template : SubspaceNetworkRegressor
        What all candidates have in common.
    """

    X: Any
    held_out: HeldOut
    scoring: Scoring
    n_jobs: int | None
    template: SubspaceNetworkRegressor

    def one_layer(self, ranks: Any, alphas: Any, sparsities: Any) -> list[Candidate]:
        """Every point of the grid; along the alphas each fit starts from the one before."""
        rows = np.arange(len(self.held_out.targets))
        ranks = [_read_rank(rank) for rank in _read_values(ranks, "ranks", RANKS)]
        sparsities = _read_values(sparsities, "feature_sparsities", (0.0,))
        for sparsity in sparsities:
            check_sparsity(sparsity)
        if alphas is None or isinstance(alphas, Integral):
            largest = self.null(rows, 1, 0.0).alpha_max or 1.0  # 0 where no feature varies
            n_alphas = N_ALPHAS if alphas is None else int(alphas)
            alphas = np.geomspace(largest, _SMALLEST_ALPHA * largest, n_alphas)
        alphas = np.sort([_read_alpha(alpha) for alpha in _read_values(alphas, "alphas", ())])[::-1]
        lines = list(product(ranks, sparsities))
        jobs = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_path)(self, fold, rank, sparsity, alphas)
            for (rank, sparsity), fold in product(lines, self.held_out.folds)
        )
        table = np.array(jobs).reshape(len(lines), len(self.held_out.folds), len(alphas), 2)
        networks = [
            self._network(rank=rank, feature_sparsity=sparsity, alpha=alpha)
            for (rank, sparsity), alpha in product(lines, alphas.tolist())
        ]
        return self._candidates(networks, np.concatenate(table.transpose(0, 2, 3, 1)))

    def deeper(self, max_layers: int, params: dict[str, Any], rival: FloatArray) -> list[Candidate]:
        """Networks of 2 … ``max_layers`` layers, which share one budget of penalty.

        One that is behind the ``rival`` scores of a single layer on both of the first two folds is
        given up, and has no score on the others.
        """
        networks = []
        for depth in range(2, max_layers + 1):
            network = self._network(n_layers=depth, **params)
            if not isinstance(network.alpha, str):
                network.set_params(alpha=network.alpha / depth)
            networks.append(network)
        trials = self._try(networks, self.held_out.folds[:_PROBATION])
        promising = [
            any(trial.score >= score for trial, score in zip(done, rival, strict=False))
            for done in trials
        ]
        kept = list(compress(networks, promising))
        rest = iter(self._try(kept, self.held_out.folds[_PROBATION:]))
        return [
            self._finished(network, done + next(rest)) if keep else self._given_up(network, done)
            for network, done, keep in zip(networks, trials, promising, strict=True)
        ]

    def _try(
        self, networks: list[SubspaceNetworkRegressor], folds: list[Fold]
    ) -> list[list[_Trial]]:
        """Every network on every fold."""
        jobs = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_network)(self, fold, network)
            for network, fold in product(networks, folds)
        )
        trials = iter(jobs)
        return [list(islice(trials, len(folds))) for _ in networks]

    def _finished(self, network: SubspaceNetworkRegressor, trials: list[_Trial]) -> Candidate:
        latents = [trial.latent for trial in trials]
        finish = partial(self.refit_recalibrated, network, latents)
        return replace(self._given_up(network, trials), finish=finish)

    def _given_up(self, network: SubspaceNetworkRegressor, trials: list[_Trial]) -> Candidate:
        scores, seconds = np.full((2, len(self.held_out.folds)), np.nan)
        scores[: len(trials)] = [trial.score for trial in trials]
        seconds[: len(trials)] = [trial.seconds for trial in trials]
        return Candidate(_params(network), scores, seconds, None)

    def finish(self, network: SubspaceNetworkRegressor) -> SubspaceNetworkRegressor:
        """A network fitted to all rows; a noise by task is that of rows it has not seen."""
        if not isinstance(self.held_out.families[0], NoiseByTask):
            return self.refit(network)
        (trials,) = self._try([network], self.held_out.folds)
        return self.refit_recalibrated(network, [trial.latent for trial in trials])

    def refit(self, network: SubspaceNetworkRegressor) -> SubspaceNetworkRegressor:
        """A network fitted to all rows."""
        return network.fit(self.X, self.held_out.targets, sample_weight=self.held_out.weight)

    def refit_recalibrated(
        self, network: SubspaceNetworkRegressor, latents: list[FloatArray]
    ) -> SubspaceNetworkRegressor:
        """The same, with slopes, levels and σ of its last layer from the rows held out.

        A tuned network fits its own rows better than others: with few of them, σ is far too small.
        """
        self.refit(network)
        kinds = self.null(np.arange(len(self.held_out.targets)), 1, 0.0).kinds
        line, noise = held_out_errors(
            self.held_out,
            latents,
            network.sigma_,
            kinds,
            fit_intercept=self.template.fit_intercept,
        )
        *below, last = network.layers_
        last = replace(
            last,
            U=line.slope[:, None] * last.U,
            intercept=line.level + line.slope * last.intercept,
            sigma=line.sigma,
        )
        network._store((*below, last), self.held_out.targets)
        network._chosen_noise = noise
        return network

    def null(self, rows: Any, rank: int, sparsity: float) -> NullLayer:
        """The layer without effects on some rows, where paths of alphas begin."""
        targets = self.held_out.targets
        return null_layer(
            pose_layer(
                self.X[rows],
                targets[rows],
                self.held_out.weight[rows],
                rank=min(rank, self.X.shape[1], targets.shape[1]),
                alpha=1.0,
                penalty=resolve_penalty("ridge", sparsity),
                noise=self.held_out.noise,
                sigma=None,
                fit_intercept=self.template.fit_intercept,
                standardize=self.template.standardize,
            )
        )

    def _network(self, **params: Any) -> SubspaceNetworkRegressor:
        network: SubspaceNetworkRegressor = clone(self.template)
        network.set_params(**params)
        return network

    def _candidates(
        self, networks: list[SubspaceNetworkRegressor], table: FloatArray
    ) -> list[Candidate]:
        """From scores and seconds, (n_networks, 2, n_folds)."""
        return [
            Candidate(_params(network), scores, seconds, partial(self.finish, network))
            for network, (scores, seconds) in zip(networks, table, strict=True)
        ]


class _Trial(NamedTuple):
    """How a network did on a fold, and its scores before censoring of the rows held out."""

    score: float
    seconds: float
    latent: FloatArray


def _params(network: SubspaceNetworkRegressor) -> dict[str, Any]:
    names = ("rank", "alpha", "feature_sparsity", "n_layers")
    return {"prior": "penalty"} | {name: getattr(network, name) for name in names}


def _score_path(
    search: Search, fold: Fold, rank: int, sparsity: float, alphas: FloatArray
) -> list[tuple[float, float]]:
    """Score and seconds of one layer for every alpha."""
    template, result = search.template, []
    started = perf_counter()
    with one_blas_thread():
        null = search.null(fold.train, rank, sparsity)
        path = solve_path(null, alphas, tol=template.tol, max_iter=template.max_iter)
        for fit in path:
            U, V, intercept, sigma = user_units(null, fit.layer, null.problem.rank)
            seconds = perf_counter() - started
            latent = np.asarray(search.X[fold.test] @ V.T) @ U.T + intercept
            result.append((search.held_out.score(fold, latent, sigma, search.scoring), seconds))
            started = perf_counter()
    return result


def _score_network(search: Search, fold: Fold, network: SubspaceNetworkRegressor) -> _Trial:
    held_out, started = search.held_out, perf_counter()
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what holds for all rows is said when all rows are fitted
        fitted = clone(network).fit(
            search.X[fold.train],
            held_out.targets[fold.train],
            sample_weight=held_out.weight[fold.train],
        )
        seconds = perf_counter() - started
        *_, latent = latents(fitted.layers_, search.X[fold.test], fitted.lower_, fitted.upper_)
    score = held_out.score(fold, latent, fitted.sigma_, search.scoring)
    return _Trial(score, seconds, latent)


def _read_values(values: Any, name: str, default: Sequence[Any]) -> list[Any]:
    if values is None:
        return list(default)
    found = [values] if isinstance(values, Real) else list(values)
    if not found:
        raise ValueError(f"{name} is empty: there is nothing to choose from")
    return found


def _read_rank(rank: Any) -> int:
    if not (isinstance(rank, Integral) and int(rank) >= 1):
        raise ValueError(f"ranks must be whole numbers, at least 1; got {rank!r}")
    return int(rank)


def _read_alpha(alpha: Any) -> float:
    if not (isinstance(alpha, Real) and 0.0 < float(alpha) < np.inf):
        raise ValueError(f"alphas must be positive and finite; got {alpha!r}")
    return float(alpha)
