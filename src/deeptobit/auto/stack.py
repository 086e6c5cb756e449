"""Stacking: layers under learned priors, averaged and recalibrated by held-out rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.optimize import nnls

from deeptobit.arrays import FloatArray
from deeptobit.auto.evidence import EvidenceProblem
from deeptobit.auto.folds import MANY_ROWS, Fold, HeldOut, Scoring
from deeptobit.auto.noise import fit_error_model
from deeptobit.auto.path import (
    PATH,
    EvidenceMember,
    EvidenceState,
    fit_members,
    learn_path,
    mean_state,
)
from deeptobit.auto.recalibration import HeldOutScores
from deeptobit.auto.redraw import StackDraws, WeighedPrior
from deeptobit.layer import CensoringKinds
from deeptobit.likelihood import Gaussian, Noise
from deeptobit.network import NetworkLayer
from deeptobit.runtime import one_blas_thread

STRENGTHS = (0.3, 0.6, 1.2)  # c, the widths of priors relative to the one learned
_PER_FEATURE = 50  # rows beyond which the width of the prior does not matter, if they are many
_ROWS = 512  # whose errors are multiplied at a time: all members on all rows would fill the memory
_EVENNESS = 1e-4  # of the mean error, on Σw²: equal members share their weight
_EXPLAINED_VARIANCE = 0.999  # of the fitted scores of all tasks, that the rank must keep
_EXPLAINED_OF_TASK = 0.99  # and of those of every single task


@dataclass(frozen=True)
class EvidenceStack:
    """One layer averaged from many, and the held-out score of each.

    Parameters
    ----------
    layer : NetworkLayer
        In the user's units, recalibrated.
    noise : Noise
        The family under which held-out rows are most likely.
    alpha : float
        Ridge of the learned prior, averaged.
    weights : array of shape (K,)
    settings : list of dict
        The prior of each of the K members.
    member_scores : array of shape (K, n_folds)
    row_scores : list of arrays
        What each held-out row adds to the score of the average, fold by fold.
    fit_times : array of shape (n_folds,)
        Seconds for all members of a fold.
    kinds : CensoringKinds
    latents : list of arrays
        Scores before censoring of the rows that each fold holds out.
    draws : StackDraws
        How the layer may differ from the truth, and from that of other rows.
    """

    layer: NetworkLayer
    noise: Noise
    alpha: float
    weights: FloatArray
    settings: list[dict[str, Any]]
    member_scores: FloatArray
    row_scores: list[FloatArray]
    fit_times: FloatArray
    kinds: CensoringKinds
    latents: list[FloatArray]
    draws: StackDraws

    @property
    def scores(self) -> FloatArray:
        """Held-out scores of the average, (n_folds,)."""
        return np.array([rows.sum() for rows in self.row_scores])


def fit_stack(
    X: Any,
    held_out: HeldOut,
    families: Sequence[Noise],
    *,
    fit_intercept: bool,
    standardize: bool,
    scoring: Scoring,
    n_jobs: int | None,
    watch: Callable[[int, int], None] | None = None,
) -> EvidenceStack:
    """Fit the path to the training rows of every fold, weigh, fit to all rows, recalibrate.

    Layers are fitted and scored with Gaussian noise.

    Parameters
    ----------
    X : array or CSR matrix of shape (N, D)
    held_out : HeldOut
    families : sequence of Noise
        Candidates for the error model, as in :func:`fit_error_model`.
    watch : function, optional
        Called with the number of priors learned so far and in all, if folds do not run in parallel.
    """
    held_out = replace(held_out, noise=Gaussian())
    targets, weight, folds = held_out.targets, held_out.weight, held_out.folds
    strengths = (1.0,) if len(targets) > max(MANY_ROWS, _PER_FEATURE * X.shape[1]) else STRENGTHS
    units = {"fit_intercept": fit_intercept, "standardize": standardize}
    total = len(folds) * len(PATH)
    watches: list[Any] = [None] * len(folds)
    if watch is not None and effective_n_jobs(n_jobs) == 1:
        starts = range(0, total, len(PATH))
        watches = [lambda done, start=start: watch(start + done, total) for start in starts]
    paths = Parallel(n_jobs=n_jobs)(
        delayed(_fit_path)(X, held_out, fold, strengths, units, each)
        for fold, each in zip(folds, watches, strict=True)
    )
    moments = [
        error_moments(held_out, fold, X[fold.test], path.members)
        for fold, path in zip(folds, paths, strict=True)
    ]
    weights = stacking_weights(np.sum(moments, axis=0))
    layers = [average(path.members, weights) for path in paths]
    latents = [layer.latent(X[fold.test]) for fold, layer in zip(folds, layers, strict=True)]
    problem = EvidenceProblem.build(X, targets, weight, **units)
    layer, priors = _fit_again(problem, paths, weights, strengths)
    scores = HeldOutScores.of_folds(
        held_out, latents, layer.sigma, problem.kinds, fit_intercept=fit_intercept
    )
    low_rank = truncate_rank(layer, X, weight, fit_intercept=fit_intercept)
    held = np.concatenate([low_rank.latent(X[fold.test]) for fold in folds])
    recalibration, noise = fit_error_model(scores, families, held)
    U, intercept = recalibration.apply(low_rank.U, low_rank.intercept)
    scored = zip(folds, latents, layers, strict=True)
    return EvidenceStack(
        layer=NetworkLayer(U, low_rank.V, intercept, recalibration.sigma),
        noise=noise,
        alpha=layer.alpha,
        weights=weights,
        settings=[member.settings for member in paths[0].members],
        member_scores=_member_scores(held_out, X, paths, moments, scoring),
        row_scores=[held_out.row_scores(f, z, mean.sigma, scoring) for f, z, mean in scored],
        fit_times=np.array([path.seconds for path in paths]),
        kinds=problem.kinds,
        latents=latents,
        draws=StackDraws((X, targets, weight), priors, recalibration, **units),
    )


class _Path(NamedTuple):
    """All members fitted to the training rows of one fold, and the states behind them."""

    states: list[EvidenceState]
    members: list[EvidenceMember]
    seconds: float


def _fit_path(
    X: Any,
    held_out: HeldOut,
    fold: Fold,
    strengths: tuple[float, ...],
    units: dict[str, bool],
    watch: Callable[[int], None] | None,
) -> _Path:
    started = perf_counter()
    with one_blas_thread():
        rows = fold.train
        problem = EvidenceProblem.build(
            X[rows], held_out.targets[rows], held_out.weight[rows], **units, overwrite=True
        )
        states = learn_path(problem, watch)
        members = [
            fit_members(problem, state, prior, strengths)
            for prior, state in zip(PATH, states, strict=True)
        ]
    return _Path(states, list(chain.from_iterable(members)), perf_counter() - started)


def _fit_again(
    problem: EvidenceProblem,
    paths: list[_Path],
    weights: FloatArray,
    strengths: tuple[float, ...],
) -> tuple[EvidenceMember, list[WeighedPrior]]:
    """The average of the members that have weight, fitted to all rows, and their priors.

    Their priors are those of the folds, averaged.
    """
    members, priors = [], []
    table = weights.reshape(len(PATH), len(strengths))
    with one_blas_thread():
        for prior, row, states in zip(
            PATH, table, zip(*(path.states for path in paths), strict=True), strict=True
        ):
            wanted = list(compress(strengths, row > 0.0))
            if wanted:
                state = mean_state(problem, states)
                members += fit_members(problem, state, prior, wanted)
                state = replace(state, spectrum=state.spectrum.without_directions())
                shares = compress(row.tolist(), row > 0.0)
                found = zip(wanted, shares, strict=True)
                priors += [WeighedPrior(prior, each, share, state) for each, share in found]
    return average(members, weights[weights > 0.0]), priors


def stacking_weights(moments: FloatArray) -> FloatArray:
    r"""Minimise :math:`w^\top M w` over :math:`w \ge 0,\ \sum_k w_k = 1`, evenly among equals.

    M holds the products of the members' held-out errors, so that the minimum is the squared error
    of the weighted mean. Its conditions are those of :math:`\min \tfrac12 v^\top M v - 1^\top v`
    over v ≥ 0, a non-negative least-squares problem, with w = v/Σv.

    Parameters
    ----------
    moments : array of shape (K, K)

    Examples
    --------
    >>> stacking_weights(np.array([[1.0, 0.0], [0.0, 3.0]])).round(3)
    array([0.75, 0.25])
    """
    n_members = len(moments)
    scale = max(float(np.trace(moments)) / n_members, np.finfo(np.float64).tiny)
    factor = np.linalg.cholesky(moments / scale + _EVENNESS * np.eye(n_members))
    weights, _ = nnls(factor.T, np.linalg.solve(factor, np.ones(n_members)))
    return np.asarray(weights / weights.sum())


def error_moments(
    held_out: HeldOut, fold: Fold, X: FloatArray, members: Sequence[EvidenceMember]
) -> FloatArray:
    """Products of the errors of all pairs of members on one fold, (K, K)."""
    sigma = np.stack([member.sigma for member in members])[:, None, :]
    moments = np.zeros((len(members), len(members)))
    for start in range(0, len(fold.test), _ROWS):
        rows = slice(start, start + _ROWS)
        latent = np.stack([member.latent(X[rows]) for member in members])
        errors = held_out.errors(fold.test[rows], latent, sigma).reshape(len(members), -1)
        moments += errors @ errors.T
    return moments


def average(members: Sequence[EvidenceMember], weights: FloatArray) -> EvidenceMember:
    """The layer with averaged parameters."""
    used = np.flatnonzero(weights > 0.0)
    chosen, weights = [members[index] for index in used.tolist()], weights[used]

    mean = {
        name: np.tensordot(weights, np.stack([getattr(one, name) for one in chosen]), axes=1)
        for name in ("coef", "intercept", "sigma")
    }
    alpha = float(np.exp(weights @ np.log([member.alpha for member in chosen])))
    return EvidenceMember(**mean, alpha=alpha, settings={})


def _member_scores(
    held_out: HeldOut, X: Any, paths: list[_Path], moments: list[FloatArray], scoring: Scoring
) -> FloatArray:
    """Scores of every member on every fold, (K, n_folds)."""
    columns = []
    for fold, path, products in zip(held_out.folds, paths, moments, strict=True):
        if scoring == "r2":
            column = [held_out.r2(fold, error) for error in np.diag(products).tolist()]
        else:
            column = [
                held_out.score(fold, member.latent(X[fold.test]), member.sigma, scoring)
                for member in path.members
            ]
        columns.append(column)
    return np.array(columns).T


def truncate_rank(
    member: EvidenceMember, X: Any, weight: FloatArray, *, fit_intercept: bool
) -> NetworkLayer:
    r"""W ≈ UV, with the fewest task directions that explain the fitted scores.

    They keep 99.9 % of the variance of all scores and 99 % of that of every task, each task in
    units of its own fitted variance: a task with weak effects keeps its direction. U is orthonormal
    in these units. The scores of the mean row do not change.
    """
    centre = np.asarray(weight @ X / weight.sum()) * float(fit_intercept)
    fitted = np.asarray(X @ member.coef.T) - member.coef @ centre
    scale = np.abs(fitted).max(axis=0)  # whose squares may overflow
    fitted /= np.where(scale > 0.0, scale, 1.0)
    spread = np.sqrt(weight @ np.square(fitted))
    fitted /= np.where(spread > 0.0, spread, 1.0)
    scale = np.where(scale * spread > 0.0, scale * spread, 1.0)
    variances, directions = np.linalg.eigh(fitted.T @ (weight[:, None] * fitted))
    variances, directions = np.maximum(variances[::-1], 0.0), directions[:, ::-1]
    explained = np.cumsum(np.square(directions) * variances, axis=1)  # of every task, (T, T)
    total = explained.sum(axis=0)
    enough = (total >= _EXPLAINED_VARIANCE * total[-1]) & (
        explained >= _EXPLAINED_OF_TASK * explained[:, -1:]
    ).all(axis=0)
    rank = min(int(np.argmax(enough)) + 1, *member.coef.shape)
    axes = directions[:, :rank]
    U, V = axes * scale[:, None], axes.T @ (member.coef / scale[:, None])
    intercept = member.intercept + (member.coef - U @ V) @ centre
    return NetworkLayer(U, V, intercept, member.sigma)
