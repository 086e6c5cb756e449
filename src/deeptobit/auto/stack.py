"""The default of cross-validation: layers under learned priors, stacked and recalibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import nnls

from deeptobit.arrays import FloatArray
from deeptobit.auto.evidence import EvidenceProblem
from deeptobit.auto.folds import Fold, HeldOut, Scoring
from deeptobit.auto.noise import held_out_errors
from deeptobit.auto.path import EvidenceMember, evidence_path
from deeptobit.layer import CensoringKinds
from deeptobit.likelihood import Gaussian, Noise
from deeptobit.network import NetworkLayer
from deeptobit.runtime import one_blas_thread
from deeptobit.targets import CensoredTargets

# Many layers into one: weights that predict held-out rows best.

_ROWS = 512  # whose errors are multiplied at a time
_EVENNESS = 1e-4  # of the mean error, on Σw²: members that do the same share their weight


def simplex_weights(moments: FloatArray) -> FloatArray:
    r"""Minimise :math:`w^\top M w` over :math:`w \ge 0,\ \sum_k w_k = 1`, evenly among equals.

    M holds the products of the members' held-out errors, so that the minimum is the squared error
    of the weighted mean. Its conditions are those of :math:`\min \tfrac12 v^\top M v - 1^\top v`
    over v ≥ 0, a non-negative least-squares problem, with w = v/Σv.

    Parameters
    ----------
    moments : array of shape (K, K)

    Examples
    --------
    >>> simplex_weights(np.array([[1.0, 0.0], [0.0, 3.0]])).round(3)
    array([0.75, 0.25])
    """
    n_members = len(moments)
    level = max(float(np.trace(moments)) / n_members, np.finfo(np.float64).tiny)
    factor = np.linalg.cholesky(moments / level + _EVENNESS * np.eye(n_members))
    weights, _ = nnls(factor.T, np.linalg.solve(factor, np.ones(n_members)))
    return np.asarray(weights / weights.sum())


def error_moments(
    held_out: HeldOut, fold: Fold, X: FloatArray, members: Sequence[EvidenceMember]
) -> FloatArray:
    """Products of the errors of all pairs of members on one fold, (K, K)."""
    sigma = np.stack([member.sigma for member in members])[:, None, :]
    moments = np.zeros((len(members), len(members)))
    for start in range(0, len(fold.test), _ROWS):  # all members on all rows would fill the memory
        rows = slice(start, start + _ROWS)
        latent = np.stack([layer_scores(X[rows], member) for member in members])
        errors = held_out.errors(Fold(fold.train, fold.test[rows]), latent, sigma)
        errors = errors.reshape(len(members), -1)
        moments += errors @ errors.T
    return moments


def average(members: Sequence[EvidenceMember], weights: FloatArray) -> EvidenceMember:
    """The layer with averaged parameters."""
    used = np.flatnonzero(weights > 0.0)

    def mean(values: list[FloatArray]) -> FloatArray:
        return np.asarray(np.tensordot(weights[used], np.stack(values), axes=1))

    chosen = [members[index] for index in used.tolist()]
    return EvidenceMember(
        coef=mean([member.coef for member in chosen]),
        intercept=mean([member.intercept for member in chosen]),
        sigma=mean([member.sigma for member in chosen]),
        alpha=float(np.exp(weights[used] @ np.log([member.alpha for member in chosen]))),
        settings={},
    )


def layer_scores(X: FloatArray, member: EvidenceMember) -> FloatArray:
    """Scores before censoring, (N, T)."""
    return np.asarray(X @ member.coef.T + member.intercept)


_KEPT_VARIANCE = 0.999  # of the fitted scores: the rest is not worth a component


@dataclass(frozen=True)
class EvidenceStack:
    """One layer from many, and what each was worth on the rows held out.

    Parameters
    ----------
    layer : NetworkLayer
        In the user's units, recalibrated.
    alpha : float
        Ridge of the learned prior, averaged.
    weights : array of shape (K,)
    settings : list of dict
        The prior of each of the K members.
    member_scores : array of shape (K, n_folds)
    stack_scores : array of shape (n_folds,)
    fit_times : array of shape (n_folds,)
        Seconds for all members of a fold.
    kinds : CensoringKinds
    noise : Noise
        The family under which held-out rows are most likely.
    """

    layer: NetworkLayer
    alpha: float
    weights: FloatArray
    settings: list[dict[str, Any]]
    member_scores: FloatArray
    stack_scores: FloatArray
    fit_times: FloatArray
    kinds: CensoringKinds
    noise: Noise


@dataclass(frozen=True)
class _Path:
    """All members from one set of rows."""

    members: list[EvidenceMember]
    kinds: CensoringKinds
    seconds: float


def fit_stack(
    X: Any,
    held_out: HeldOut,
    *,
    fit_intercept: bool,
    standardize: bool,
    scoring: Scoring,
    n_jobs: int | None,
) -> EvidenceStack:
    """Fit the path on all rows and on those of every fold, weigh, average, recalibrate.

    Parameters
    ----------
    X : array or CSR matrix of shape (N, D)
    held_out : HeldOut
        The outcomes, their weights, the folds and the families of the noise. The path itself takes
        the noise for Gaussian; the recalibration does not.
    """
    targets, weight, folds = held_out.targets, held_out.weight, held_out.folds
    jobs = [np.arange(len(targets)), *(fold.train for fold in folds)]
    whole, *paths = Parallel(n_jobs=n_jobs)(
        delayed(_fit_path)(X[rows], targets[rows], weight[rows], fit_intercept, standardize)
        for rows in jobs
    )
    gaussian = replace(held_out, families=(Gaussian(),))
    moments = [
        error_moments(gaussian, fold, X[fold.test], path.members)
        for fold, path in zip(folds, paths, strict=True)
    ]
    weights = simplex_weights(np.sum(moments, axis=0))
    layers = [average(path.members, weights) for path in paths]
    layer, noise = _recalibrate(
        X, held_out, layers, average(whole.members, weights), whole.kinds, fit_intercept
    )
    return EvidenceStack(
        layer=cut_rank(layer, X, weight, held_out.scaling.scale, fit_intercept=fit_intercept),
        alpha=layer.alpha,
        weights=weights,
        settings=[member.settings for member in whole.members],
        member_scores=_member_scores(gaussian, X, paths, moments, scoring),
        stack_scores=np.array(
            [
                gaussian.score(fold, layer_scores(X[fold.test], mean), mean.sigma, scoring)
                for fold, mean in zip(folds, layers, strict=True)
            ]
        ),
        fit_times=np.array([path.seconds for path in paths]),
        kinds=whole.kinds,
        noise=noise,
    )


def _fit_path(
    X: Any, targets: CensoredTargets, weight: FloatArray, fit_intercept: bool, standardize: bool
) -> _Path:
    started = perf_counter()
    with one_blas_thread():
        problem = EvidenceProblem.build(
            X, targets, weight, fit_intercept=fit_intercept, standardize=standardize
        )
        members = list(evidence_path(problem))
    return _Path(members, problem.kinds, perf_counter() - started)


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
                held_out.score(fold, layer_scores(X[fold.test], member), member.sigma, scoring)
                for member in path.members
            ]
        columns.append(column)
    return np.array(columns).T


def _recalibrate(
    X: Any,
    held_out: HeldOut,
    layers: list[EvidenceMember],
    whole: EvidenceMember,
    kinds: CensoringKinds,
    fit_intercept: bool,
) -> tuple[EvidenceMember, Noise]:
    """Slopes, levels and noise from the held-out rows, given to the layer of all rows."""
    latents = [
        layer_scores(X[fold.test], layer)
        for fold, layer in zip(held_out.folds, layers, strict=True)
    ]
    line, noise = held_out_errors(
        held_out, latents, whole.sigma, kinds, fit_intercept=fit_intercept
    )
    layer = replace(
        whole,
        coef=line.slope[:, None] * whole.coef,
        intercept=line.level + line.slope * whole.intercept,
        sigma=line.sigma,
    )
    return layer, noise


def cut_rank(
    member: EvidenceMember,
    X: Any,
    weight: FloatArray,
    scale: FloatArray,
    *,
    fit_intercept: bool,
) -> NetworkLayer:
    r"""W = UV, with the task directions that carry 99.9 % of the variance of the fitted scores.

    U is orthonormal in units of the tasks' scales. The scores of the mean row stay as they are.
    """
    coef = member.coef / scale[:, None]
    centre = np.asarray(weight @ X / weight.sum()) * float(fit_intercept)
    fitted = np.asarray(X @ coef.T) - coef @ centre
    variances, directions = np.linalg.eigh(fitted.T @ (weight[:, None] * fitted))
    variances, directions = np.maximum(variances[::-1], 0.0), directions[:, ::-1]
    below = np.cumsum(variances) < _KEPT_VARIANCE * variances.sum()
    rank = min(int(below.sum()) + 1, *coef.shape)
    axes = directions[:, :rank]
    U, V = axes * scale[:, None], axes.T @ coef
    intercept = member.intercept + (member.coef - U @ V) @ centre
    return NetworkLayer(U, V, intercept, member.sigma)
