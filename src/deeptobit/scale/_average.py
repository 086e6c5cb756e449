"""Online learning on a cluster: learners of their own for groups of partitions, then their mean."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.scale._blocks import Block, RowReader
from deeptobit.scale._dask import DaskRows
from deeptobit.scale._state import Seen
from deeptobit.solvers.online import OnlineResult, OnlineSolver

_ROWS_PER_LEARNER = 50_000  # a learner with fewer has not yet forgotten where it began


@dataclass(frozen=True)
class Learner:
    """An online solver and what it has seen.

    Parameters
    ----------
    solver : OnlineSolver
    seen : Seen
    sums : array of shape (3, D_k)
        Weight, weighted sums and sums of squares of its inputs.
    """

    solver: OnlineSolver
    seen: Seen
    sums: FloatArray


@dataclass(frozen=True)
class LearnMore:
    """A step of a learner: the rows of a partition.

    Parameters
    ----------
    reader : RowReader
    inputs : function
        From features to what the layer sees.
    stride : int
        Every so many rows are kept as a sample; 0 keeps what was seen as it is.
    """

    reader: RowReader
    inputs: Callable[[FloatArray], FloatArray]
    stride: int

    def __call__(self, learner: Learner, blocks: Iterable[Block]) -> Learner:
        """The learner after these rows; the one before is left alone, for it may be asked again."""
        solver, seen = copy.deepcopy(learner.solver), learner.seen
        sums = learner.sums.copy()
        for block in blocks:
            rows = self.reader(block)
            x = self.inputs(rows.X)
            solver.learn(x, rows.low, rows.high, rows.weight)
            sums += [np.full(x.shape[1], rows.weight.sum()), rows.weight @ x, rows.weight @ x**2]
            seen = seen.more(rows, self.stride) if self.stride else seen
        return Learner(solver, seen, sums)


def learn_on_cluster(
    source: DaskRows, step: LearnMore, solver: OnlineSolver, seen: Seen, n_passes: int
) -> list[Learner]:
    """Learn a layer on groups of partitions, each on its own.

    The number of groups depends on the number of rows alone, so that the result does not depend on
    the cluster.
    """
    n_groups = int(np.clip(source.n_rows // _ROWS_PER_LEARNER, 1, source.n_partitions))
    learners = [Learner(solver, seen, np.zeros((3, solver.n_features)))] * n_groups
    for turn in range(n_passes):
        first = step if turn == 0 else LearnMore(step.reader, step.inputs, 0)
        learners = source.fold(first, learners)
    return learners


def average(learners: Sequence[Learner]) -> OnlineResult:
    r"""The mean of the learners' W = UV, intercepts and log σ, truncated to their rank.

    U and V themselves cannot be averaged: they are determined up to U → UA, V → A⁻¹V. The
    truncation is the best one in what is predicted, in units of σ, for uncorrelated inputs.
    """
    models = [learner.solver.result() for learner in learners]
    shares = np.array([learner.sums[0, 0] for learner in learners])
    shares = shares / shares.sum()
    W = np.tensordot(shares, [model.U @ model.V for model in models], axes=1)
    log_sigma = shares @ np.log([model.sigma for model in models])
    intercept, sigma = shares @ [model.intercept for model in models], np.exp(log_sigma)
    weight, total, squares = np.sum([learner.sums for learner in learners], axis=0)
    variance = squares / weight - (total / weight) ** 2
    spread = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    left, singular, right = np.linalg.svd(W * spread / sigma[:, None], full_matrices=False)
    rank = models[0].U.shape[1]
    root = np.sqrt(singular[:rank])
    n_seen = sum(model.n_seen for model in models)
    return OnlineResult(
        sigma[:, None] * left[:, :rank] * root,
        (root[:, None] * right[:rank]) / spread,
        intercept,
        sigma,
        n_seen,
    )
