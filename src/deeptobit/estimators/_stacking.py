"""Many layers into one: weights that predict held-out rows best."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import nnls

from deeptobit.arrays import FloatArray
from deeptobit.estimators._folds import Fold, HeldOut
from deeptobit.solvers.evidence import EvidenceMember

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
