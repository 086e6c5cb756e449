"""Trees as the layer below the stack: which outcomes want them, and their scores out of fold."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from deeptobit.arrays import FloatArray
from deeptobit.auto.boosting import (
    BINS,
    LARGER,
    PROBE,
    TREES,
    Bins,
    Boosted,
    Entries,
    Growth,
    Rows,
    boost,
)
from deeptobit.auto.evidence import EvidenceProblem
from deeptobit.auto.folds import MANY_ROWS, Fold, HeldOut, make_folds
from deeptobit.auto.stack import EvidenceStack
from deeptobit.network import Trees

_MORE_BINS = 254  # where rows are many
_ROWS_OF_LARGER = 1000  # from which on larger trees are tried
_PARTS = 3  # of the training rows, where one fold is held out
_WORTH = 0.0  # standard errors that trees must gain on the stack's residuals, in some task
_AGAINST = -0.5  # and those that they may lose in others
_WORTH_OF_MANY = 2.0  # the same where rows are many, and trees take their time


class Forest(NamedTuple):
    """Trees of all rows, and what trees that had not seen a row say of it.

    Parameters
    ----------
    trees : Trees
    scores : array of shape (N, K)
        f out of fold, in the user's units.
    """

    trees: Trees
    scores: FloatArray


@dataclass(frozen=True)
class TreeTable:
    """What all trees of a table have in common: bins of its features, units of its outcomes.

    Parameters
    ----------
    X : array or CSR matrix of shape (N, D)
    problem : EvidenceProblem
        Intervals in standard units and the intercept-only model, without features.
    held_out : HeldOut
        Its folds, and the noise of the likelihood.
    groups : array of shape (N,), optional
        Rows with the same label stay together.
    """

    X: Any
    problem: EvidenceProblem
    held_out: HeldOut
    groups: Any = None

    @classmethod
    def build(cls, X: Any, held_out: HeldOut, groups: Any, *, fit_intercept: bool) -> "TreeTable":
        """Fit the intercept-only model."""
        data = np.zeros((len(held_out.targets), 1)), held_out.targets, held_out.weight
        problem = EvidenceProblem.build(*data, fit_intercept=fit_intercept)
        return cls(X, problem, held_out, groups)

    @cached_property
    def bins(self) -> Bins:
        """The features of all rows, cut."""
        return Bins.build(self.X, BINS if len(self.problem.weight) <= MANY_ROWS else _MORE_BINS)

    def probe(self, latents: Sequence[FloatArray], sigma: FloatArray) -> FloatArray:
        """What a few trees add to held-out scores, in standard errors of that gain, (T,).

        Half of the held-out rows learn from what the scores leave unexplained, the other half
        judges, and the other way round; how many trees, the one half decides for the other.

        Parameters
        ----------
        latents : sequence of arrays
            Scores of the rows that each fold holds out, in the user's units.
        sigma : array of shape (T,)
        """
        folds, scaling = self.held_out.folds, self.problem.scaling
        rows = np.concatenate([fold.test for fold in folds])
        half = np.repeat(np.arange(len(folds)) % 2, [len(fold.test) for fold in folds])
        if len(folds) == 1:
            half[self._split(rows, 2)[0].test] = 1
        bins, problem = Bins.build(self.X[rows]), self.problem
        start = scaling.apply(np.concatenate(latents))
        known = problem.low[rows], problem.high[rows], problem.weight[rows]
        entries, free = Entries(bins.codes, *known, start), problem.free_sigma
        settings = sigma / scaling.scale, free, PROBE, self.held_out.noise
        done = [
            boost(bins, entries.of(~judge), entries.of(judge), *settings)
            for judge in (half == 0, half == 1)
        ]
        gains = np.zeros_like(entries.low)
        for place, (own, other) in enumerate((done, done[::-1])):
            rounds = np.minimum(other.rounds, len(own.losses) - 1)
            best = np.take_along_axis(np.array(own.losses), rounds[None, None, :], axis=0)[0]
            gains[half == place] = own.losses[0] - best
        return _standard_errors(entries.weight[:, None] * gains)

    def grow(self, stack: EvidenceStack | None, n_jobs: int | None = None) -> Forest | None:
        """Trees for the tasks in which they pay; None if there are none.

        The rows are cut into parts. Those of each part are scored by trees of the others, which
        they also stop; the trees of all rows are as many as those were on average, with their σ.
        The first part also says whether larger trees are better.
        Given a stack, there are trees if they explain held-out residuals of some task (clearly,
        where rows are many), for all tasks that do not speak against them, unless they add nothing
        on the first part.
        """
        tasks = np.arange(len(self.problem.sigma))
        if stack is not None:
            few = len(self.problem.weight) <= MANY_ROWS
            gain = self.probe(stack.latents, stack.layer.sigma)
            if not gain.max() > (_WORTH if few else _WORTH_OF_MANY):
                return None
            tasks = np.flatnonzero(gain > (_AGAINST if few else 0.0))
        first, *others = self._parts()
        sizes = (TREES, LARGER) if len(first.train) > _ROWS_OF_LARGER else (TREES,)
        trials = [(self._grow_part(tasks, *first, growth), growth) for growth in sizes]
        begun, growth = min(trials, key=lambda trial: trial[0].loss.sum())
        if stack is not None and not self._adds(stack, begun, growth, tasks, first.test):
            return None
        jobs = [delayed(self._grow_part)(tasks, *part, growth) for part in others]
        done = [begun, *Parallel(n_jobs=n_jobs, prefer="threads")(jobs)]
        rounds = np.rint(np.mean([each.rounds for each in done], axis=0)).astype(np.intp)
        if not rounds.any():
            return None
        scores = np.empty((len(self.problem.weight), int((rounds > 0).sum())))
        for part, each in zip((first, *others), done, strict=True):
            scores[part.test] = self._to_trees(each, rounds, tasks, growth)(self.X[part.test])
        steps = np.arange(rounds.max())
        paths = [each.sigma[np.minimum(steps, len(each.sigma) - 1)] for each in done]
        entries, sigma = self._entries(tasks), np.mean(paths, axis=0)
        whole = self._boost(entries, None, sigma, tasks, growth, rounds)
        return Forest(self._to_trees(whole, rounds, tasks, growth), scores)

    def _adds(
        self, stack: EvidenceStack, grown: Boosted, growth: Growth, tasks: Rows, judge: Rows
    ) -> bool:
        """Whether trees, averaged with the stack, predict the rows that judge better.

        The weight of the average is that of the other half of these rows.
        """
        at = {row: place for place, row in enumerate(self.held_out.folds[0].test.tolist())}
        rows = np.array([row for row in judge.tolist() if row in at], dtype=np.intp)
        old = stack.latents[0][[at[row] for row in rows.tolist()]]
        new, sigma = old.copy(), stack.layer.sigma.copy()
        trees = self._to_trees(grown, grown.rounds, tasks, growth)
        new[:, trees.tasks] = trees(self.X[rows])
        last = np.clip(grown.rounds - 1, 0, len(grown.sigma) - 1)
        sigma[tasks] = grown.sigma[last, np.arange(len(tasks))] * self.problem.scaling.scale[tasks]
        before = self.held_out.errors(rows, old, stack.layer.sigma)[:, tasks]
        change = self.held_out.errors(rows, new, sigma)[:, tasks] - before
        gains = np.zeros_like(before)
        half = np.arange(len(rows)) % 2 == 0
        for judged in (half, ~half):
            square = np.square(change[~judged]).sum(axis=0)
            weight = -(before * change)[~judged].sum(axis=0) / np.where(square > 0.0, square, 1.0)
            after = before[judged] + np.clip(weight, 0.0, 1.0) * change[judged]
            gains[judged] = np.square(before[judged]) - np.square(after)
        return bool(gains.sum() > 0.0)

    def _parts(self) -> list[Fold]:
        """Rows that learn and rows that judge, so that every row judges once.

        The folds, if they do that. Else the rows of the first fold are scored by trees of the
        others, and these in parts by trees of those, so that nothing is learned from held-out rows.
        """
        folds, n_rows = self.held_out.folds, len(self.problem.weight)
        times = np.bincount(np.concatenate([fold.test for fold in folds]), minlength=n_rows)
        if (times == 1).all():
            return folds
        test = np.unique(folds[0].test)
        rest = np.setdiff1d(np.arange(n_rows), test)
        inner = [Fold(rest[part.train], rest[part.test]) for part in self._split(rest, _PARTS)]
        return [Fold(rest, test), *inner]

    def _split(self, rows: Rows, number: int) -> list[Fold]:
        groups = None if self.groups is None else np.asarray(self.groups)[rows]
        return make_folds(len(rows), number, groups, 0)

    def _entries(self, tasks: Rows) -> Entries:
        problem = self.problem
        ends = problem.low[:, tasks], problem.high[:, tasks]
        start = np.broadcast_to(problem.intercept[tasks], ends[0].shape)
        return Entries(self.bins.codes, *ends, problem.weight, start)

    def _grow_part(self, tasks: Rows, learn: Rows, judge: Rows, growth: Growth = TREES) -> Boosted:
        entries, sigma = self._entries(tasks), self.problem.sigma[tasks]
        return self._boost(entries.of(learn), entries.of(judge), sigma, tasks, growth)

    def _boost(
        self,
        learn: Entries,
        judge: Entries | None,
        sigma: FloatArray,
        tasks: Rows,
        growth: Growth,
        rounds: Rows | None = None,
    ) -> Boosted:
        free, noise = self.problem.free_sigma[tasks], self.held_out.noise
        return boost(self.bins, learn, judge, sigma, free, growth, noise, rounds)

    def _to_trees(
        self, boosted: Boosted, rounds: Rows, tasks: Rows, growth: Growth = TREES
    ) -> Trees:
        """The first trees of every task that has any, in the user's units."""
        used, scaling = np.flatnonzero(rounds), self.problem.scaling
        grown, output = [], []
        for place, column in enumerate(used.tolist()):
            unit = growth.rate * scaling.scale[tasks[column]]
            for node, number in boosted.grown[column][: rounds[column]]:
                feature, left, right = node[:, 0], node[:, 3], node[:, 4]
                value, cover = unit * number[:, 3], number[:, 1]
                for at in range(len(node) - 1, -1, -1):  # children are behind their parents
                    if feature[at] >= 0:
                        pair = [left[at], right[at]]
                        value[at] = cover[pair] @ value[pair] / cover[pair].sum()
                threshold = np.where(feature >= 0, self.bins.edges[feature, node[:, 1]], 0.0)
                grown.append((feature, threshold, left, right, node[:, 2] == 1, value, cover))
                output.append(place)
        start = scaling.location + scaling.scale * self.problem.intercept
        return Trees.join(grown, output=output, start=start[tasks[used]], tasks=tasks[used])


def _standard_errors(gains: FloatArray) -> FloatArray:
    """Sums of the columns over their standard errors, (T,)."""
    largest = np.abs(gains).max(axis=0)
    gains = gains / np.where(largest > 0.0, largest, 1.0)  # squares would overflow
    error = np.sqrt(len(gains)) * gains.std(axis=0)
    return np.asarray(gains.sum(axis=0) / np.where(error > 0.0, error, 1.0))
