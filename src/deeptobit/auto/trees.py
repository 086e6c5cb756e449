"""Trees boosted on the censored likelihood, out of fold: the layer below the stack."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.auto.evidence import EvidenceProblem
from deeptobit.auto.folds import Fold, HeldOut, make_folds
from deeptobit.auto.stack import EvidenceStack
from deeptobit.layer import SIGMA_FLOOR
from deeptobit.likelihood import Noise, evaluate
from deeptobit.likelihood.kernels import jit
from deeptobit.network import Trees

Codes = NDArray[np.uint8]
Rows = NDArray[np.intp]

_BINS = 63  # of a feature; where rows are many, _MORE_BINS
_MORE_BINS = 254
_MANY_ROWS = 10_000
_LEAST_CURVATURE = 0.01  # of an entry, in units of an observed one: few families are log-concave
_LONGEST_STEP = 0.3  # of log σ
_FIRST_STEPS = 5
_LARGEST = np.finfo(np.float64).max  # a threshold that only missing values exceed
_PARTS = 3  # of the training rows, where one fold is held out
_WORTH = 1.0  # standard errors that trees must gain on the stack's residuals, in a task


class Growth(NamedTuple):
    """How trees are grown: their size, their number, and when to stop.

    Parameters
    ----------
    leaves : int
        Of a tree at most.
    rate : float
        By which a tree's values are multiplied.
    rounds, patience : int
        Trees of a task at most, and without gain on the rows that judge.
    least : float
        Weight of the rows of a leaf at least, observed ones counting 1 and censored ones less.
    ridge : float
        Rows with value 0 that every leaf has beside its own.
    """

    leaves: int = 8
    rate: float = 0.08
    rounds: int = 600
    patience: int = 30
    least: float = 10.0
    ridge: float = 1.0


TREES = Growth()
PROBE = Growth(leaves=6, rate=0.15, rounds=60, patience=8, least=10.0, ridge=10.0)


# Features in bins.


class Bins(NamedTuple):
    """Features by the quantile they lie in.

    Parameters
    ----------
    codes : array of shape (N, D)
        Bin of every value, the number of edges below it; ``n_bins`` where it is missing.
    n_bins : array of shape (D,)
        Bins of known values.
    edges : array of shape (D, B)
        A value lies in bin b or below if it is at most edge b.
    """

    codes: Codes
    n_bins: NDArray[np.int32]
    edges: FloatArray

    @classmethod
    def build(cls, X: Any, most: int = _BINS) -> "Bins":
        """Cut every feature between its values, at quantiles where these are many.

        Examples
        --------
        >>> bins = Bins.build(np.array([[0.0], [1.0], [np.nan], [1.0], [5.0]]))
        >>> bins.codes.ravel(), bins.n_bins, bins.edges[0, :2]
        (array([0, 1, 3, 1, 2], dtype=uint8), array([3], dtype=int32), array([0.5, 3. ]))
        """
        n_rows, n_features = X.shape
        codes = np.empty((n_rows, n_features), dtype=np.uint8)
        n_bins, edges = np.empty(n_features, np.int32), np.full((n_features, most), _LARGEST)
        shares = np.linspace(0.0, 1.0, most + 1)[1:-1]
        for feature in range(n_features):
            column = X[:, [feature]].toarray() if hasattr(X, "toarray") else X[:, feature]
            column = np.asarray(column, dtype=np.float64).ravel()
            known = np.sort(column[~np.isnan(column)])
            values = known[np.append(True, known[1:] > known[:-1])[: len(known)]]
            if len(values) > most:
                values = np.unique(known[(shares * len(known)).astype(np.intp)])
            else:
                values = values[:-1]
            above = known[np.minimum(np.searchsorted(known, values, "right"), len(known) - 1)]
            cuts = 0.5 * values + 0.5 * above
            cuts = np.where(cuts < above, cuts, values)[values < above]  # as rounding may have it
            n_bins[feature], edges[feature, : len(cuts)] = len(cuts) + 1, cuts
            place = np.searchsorted(cuts, column, "left")
            codes[:, feature] = np.where(np.isnan(column), len(cuts) + 1, place)
        return cls(codes, n_bins, edges)


# One tree on gradients and curvatures: the leaf whose split gains most is split first.
#
# A node is a row of integers: feature, last bin on the left, whether missing values go left, left
# and right child (0 in a leaf), first and last place of its rows, slot of its histogram; and a row
# of numbers: gradient G, curvature H, gain of its best split, value −G/(H + ridge).


class Room(NamedTuple):
    """Memory in which trees are grown, one after the other."""

    histograms: FloatArray
    order: NDArray[np.int32]
    spare: NDArray[np.int32]
    node: NDArray[np.int32]
    number: FloatArray

    @classmethod
    def build(cls, n_rows: int, edges: FloatArray, growth: Growth) -> "Room":
        """For so many rows."""
        leaves = growth.leaves
        n_features, n_bins = edges.shape
        return cls(
            np.empty((leaves, n_features, n_bins + 1, 2)),
            np.empty(n_rows, dtype=np.int32),
            np.empty(n_rows, dtype=np.int32),
            np.zeros((2 * leaves - 1, 8), dtype=np.int32),
            np.empty((2 * leaves - 1, 4)),
        )


@jit
def _fill(codes: Any, rows: Any, gradient: Any, curvature: Any, sums: Any) -> Any:
    """Sums of gradients and curvatures of some rows, in every bin of the features and in all."""
    sums[:] = 0.0
    n_features, total_g, total_h = codes.shape[1], 0.0, 0.0
    for row in rows:
        g, h = gradient[row], curvature[row]
        total_g += g
        total_h += h
        for feature in range(n_features):
            cell = codes[row, feature]
            sums[feature, cell, 0] += g
            sums[feature, cell, 1] += h
    return total_g, total_h


@jit
def _find(
    sums: Any, n_bins: Any, gradient: float, curvature: float, least: float, ridge: float
) -> Any:
    """The best split of a leaf: gain, feature, last bin on the left, side of missing values."""
    best, feature, cut, missing_left = 0.0, -1, 0, 0
    whole = gradient * gradient / (curvature + ridge)
    for column in range(len(n_bins)):
        table, n = sums[column], n_bins[column]
        lost_g, lost_h = table[n, 0], table[n, 1]
        for side in range(2 if lost_h > 0.0 else 1):
            g, h = (lost_g, lost_h) if side == 1 else (0.0, 0.0)
            for b in range(n if lost_h > 0.0 and side == 0 else n - 1):
                g += table[b, 0]
                h += table[b, 1]
                if h < least:
                    continue
                rest_g, rest_h = gradient - g, curvature - h
                if rest_h < least:
                    break
                a, c = h + ridge, rest_h + ridge
                gain = (g * g * c + rest_g * rest_g * a) / (a * c) - whole
                if gain > best:
                    best, feature, cut, missing_left = gain, column, b, side
    return best, feature, cut, missing_left


@jit
def grow_tree(
    codes: Any,
    n_bins: Any,
    rows: Any,
    gradient: Any,
    curvature: Any,
    least: float,
    ridge: float,
    leaves: int,
    histograms: Any,
    order: Any,
    spare: Any,
    node: Any,
    number: Any,
) -> int:
    """Grow a tree for some rows into ``node`` and ``number``; returns its number of nodes."""
    n_nodes, n_leaves = 1, 1
    order[: len(rows)] = rows
    node[0, 3], node[0, 5], node[0, 6], node[0, 7] = 0, 0, len(rows), 0
    number[0, 0], number[0, 1] = _fill(codes, rows, gradient, curvature, histograms[0])
    number[0, 2], node[0, 0], node[0, 1], node[0, 2] = _find(
        histograms[0], n_bins, number[0, 0], number[0, 1], least, ridge
    )
    while n_leaves < leaves:
        parent, best = -1, 1e-12
        for at in range(n_nodes):
            if node[at, 3] == 0 and number[at, 2] > best:
                parent, best = at, number[at, 2]
        if parent < 0:
            break
        feature, cut, side = node[parent, 0], node[parent, 1], node[parent, 2]
        begin, end, lost = node[parent, 5], node[parent, 6], n_bins[feature]
        middle, n_right = begin, 0
        for place in range(begin, end):
            row = order[place]
            cell = codes[row, feature]
            if (side == 1) if cell == lost else (cell <= cut):
                order[middle] = row
                middle += 1
            else:
                spare[n_right] = row
                n_right += 1
        order[middle:end] = spare[:n_right]
        left, right, slot = n_nodes, n_nodes + 1, node[parent, 7]
        node[parent, 3], node[parent, 4] = left, right
        node[left, 5], node[left, 6], node[right, 5], node[right, 6] = begin, middle, middle, end
        # The histogram of the smaller child is summed, that of the larger one is the rest.
        small, large = (left, right) if middle - begin <= end - middle else (right, left)
        node[small, 7], node[large, 7] = n_leaves, slot
        part = order[node[small, 5] : node[small, 6]]
        g, h = _fill(codes, part, gradient, curvature, histograms[n_leaves])
        number[small, 0], number[small, 1] = g, h
        number[large, 0], number[large, 1] = number[parent, 0] - g, number[parent, 1] - h
        histograms[slot] -= histograms[n_leaves]
        n_leaves, n_nodes = n_leaves + 1, n_nodes + 2
        for child in (left, right):
            node[child, 3], number[child, 2] = 0, 0.0
            if n_leaves < leaves:
                number[child, 2], node[child, 0], node[child, 1], node[child, 2] = _find(
                    histograms[node[child, 7]],
                    n_bins,
                    number[child, 0],
                    number[child, 1],
                    least,
                    ridge,
                )
    for at in range(n_nodes):
        number[at, 3] = -number[at, 0] / (number[at, 1] + ridge)
        if node[at, 3] == 0:
            node[at, 0], node[at, 4] = -1, 0
    return n_nodes


@jit
def add_tree(codes: Any, n_bins: Any, node: Any, number: Any, rate: float, scores: Any) -> None:
    """Add a tree's values to the scores of all rows."""
    for row in range(len(codes)):
        at = 0
        while node[at, 0] >= 0:
            feature = node[at, 0]
            cell = codes[row, feature]
            left = (node[at, 2] == 1) if cell == n_bins[feature] else (cell <= node[at, 1])
            at = node[at, 3] if left else node[at, 4]
        scores[row] += rate * number[at, 3]


# Boosting: one tree after the other for every task, on the likelihood's derivatives at the score.


class Entries(NamedTuple):
    """Some rows: bins of their features, intervals and first scores in standard units."""

    codes: Codes
    low: FloatArray
    high: FloatArray
    weight: FloatArray
    start: FloatArray

    def of(self, rows: Any) -> "Entries":
        """Some of the rows."""
        return Entries(*(np.ascontiguousarray(part[rows]) for part in self))


class Boosted(NamedTuple):
    """Trees of every task, and how they did on the rows that judge.

    Parameters
    ----------
    grown : list of lists
        Of every task: ``node`` and ``number`` of its trees.
    rounds : int array of shape (T,)
        With how many of them the judging rows are most likely.
    sigma : array of shape (rounds, T)
        σ at every round.
    gain : array of shape (n, T)
        What the best round gains on the first, in log likelihood of every judging row.
    """

    grown: list[list[tuple[NDArray[np.int32], FloatArray]]]
    rounds: Rows
    sigma: FloatArray
    gain: FloatArray


def boost(
    bins: Bins,
    learn: Entries,
    judge: Entries | None,
    sigma: FloatArray,
    free: BoolArray,
    growth: Growth,
    noise: Noise,
    rounds: Rows | None = None,
) -> Boosted:
    r"""Trees that lower the negative log likelihood, each fitted to its derivatives at the score.

    With gradients g and curvatures h of the entries, a tree splits where
    :math:`G_l^2/(H_l + \lambda) + G_r^2/(H_r + \lambda)` is largest, and a leaf adds
    :math:`-\mathrm{rate} \cdot G/(H + \lambda)`. A missing entry has no part in it.

    Parameters
    ----------
    bins : Bins
        Whose codes are not used: ``learn`` and ``judge`` have those of their rows.
    learn, judge : Entries
        Rows to grow trees on, and to stop by: σ and the number of trees are estimated there, as
        trees fit the rows they were grown on too well. Without ``judge`` both are given.
    sigma : array of shape (T,), or (rounds, T) without ``judge``
    free : bool array of shape (T,)
        Tasks whose σ is estimated.
    rounds : int array of shape (T,), optional
        How many trees each task gets, without ``judge``.
    """
    n_tasks = learn.low.shape[1]
    scores, room = (
        np.array(learn.start, order="F"),
        Room.build(len(learn.codes), bins.edges, growth),
    )
    known = [np.flatnonzero(~np.isnan(each)).astype(np.int32) for each in learn.low.T]
    grown: list[list[Any]] = [[] for _ in range(n_tasks)]
    judging = None if judge is None else _Judge(judge, sigma, free, growth, noise)
    path = []
    for number in range(growth.rounds if rounds is None else int(rounds.max(initial=0))):
        if judging is None:
            going, here = number < rounds, sigma[number]
        else:
            going, here = judging.look(number), judging.sigma
        tasks = np.flatnonzero(going)
        if not len(tasks):
            break
        path.append(here)
        at = evaluate(
            noise, learn.low[:, tasks], learn.high[:, tasks], scores[:, tasks], here[tasks]
        )
        square = np.square(here[tasks])
        gradient = np.asfortranarray(learn.weight[:, None] * at.latent * square)
        curvature = np.maximum(at.latent_latent * square, _LEAST_CURVATURE)
        curvature = np.asfortranarray(learn.weight[:, None] * curvature)
        for place, task in enumerate(tasks.tolist()):
            slopes = gradient[:, place], curvature[:, place]
            settings = growth.least, growth.ridge, growth.leaves
            n = grow_tree(learn.codes, bins.n_bins, known[task], *slopes, *settings, *room)
            tree = room.node[:n].copy(), room.number[:n].copy()
            grown[task].append(tree)
            add_tree(learn.codes, bins.n_bins, *tree, growth.rate, scores[:, task])
            if judging is not None:
                add_tree(
                    judging.rows.codes, bins.n_bins, *tree, growth.rate, judging.scores[:, task]
                )
    if judging is None:
        return Boosted(grown, rounds, np.array(path), np.zeros((0, n_tasks)))
    return Boosted(grown, judging.best, np.array(path).reshape(-1, n_tasks), judging.gain)


class _Judge:
    """Rows that stop the boosting, and tell σ: trees fit the rows they were grown on too well."""

    def __init__(
        self, rows: Entries, sigma: FloatArray, free: BoolArray, growth: Growth, noise: Noise
    ) -> None:
        self.rows, self.noise, self.patience = rows, noise, growth.patience
        self.scores, self.sigma, self.free = np.array(rows.start, order="F"), sigma, free
        self.going = np.ones(len(sigma), dtype=np.bool_)
        for _ in range(_FIRST_STEPS):
            self._evaluate()
        self.first = self._evaluate()
        self.best, self.least = np.zeros(len(sigma), dtype=np.intp), rows.weight @ self.first
        self.gain = np.zeros_like(self.first)

    def look(self, number: int) -> BoolArray:
        """Tasks that may still gain after so many rounds."""
        nll = self._evaluate()
        loss = self.rows.weight @ nll
        better = self.going & (loss < self.least)
        self.gain[:, better] = (self.first - nll)[:, better]
        self.least = np.where(better, loss, self.least)
        self.best = np.where(better, number, self.best)
        self.going = self.going & (number - self.best < self.patience)
        return self.going

    def _evaluate(self) -> FloatArray:
        """Negative log likelihood of the entries, and a Newton step in log σ after it."""
        rows, tasks = self.rows, np.flatnonzero(self.going)
        nll = np.zeros_like(rows.low)
        if not len(tasks):
            return nll
        ends = rows.low[:, tasks], rows.high[:, tasks]
        at = evaluate(self.noise, *ends, self.scores[:, tasks], self.sigma[tasks])
        slope, bend = rows.weight @ at.log_sigma, rows.weight @ at.log_sigma_log_sigma
        floor = 0.1 * (rows.weight @ ~np.isnan(ends[0]))
        step = -slope / np.maximum(np.maximum(bend, floor), np.finfo(np.float64).tiny)
        step = np.where(self.free[tasks], np.clip(step, -_LONGEST_STEP, _LONGEST_STEP), 0.0)
        self.sigma = self.sigma.copy()
        self.sigma[tasks] = np.maximum(self.sigma[tasks] * np.exp(step), SIGMA_FLOOR)
        nll[:, tasks] = at.nll
        return nll


# Trees of parts of the rows, for the rest of them.


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
    bins : Bins
    problem : EvidenceProblem
        Intervals in standard units and the intercept-only model, without features.
    held_out : HeldOut
        Its folds, and the noise of the likelihood.
    groups : array of shape (N,), optional
        Rows with the same label stay together.
    """

    X: Any
    bins: Bins
    problem: EvidenceProblem
    held_out: HeldOut
    groups: Any = None

    @classmethod
    def build(cls, X: Any, held_out: HeldOut, groups: Any, *, fit_intercept: bool) -> "TreeTable":
        """Cut the features, and fit the intercept-only model."""
        n_rows = len(held_out.targets)
        bins = Bins.build(X, _BINS if n_rows < _MANY_ROWS else _MORE_BINS)
        data = np.zeros((n_rows, 1)), held_out.targets, held_out.weight
        problem = EvidenceProblem.build(*data, fit_intercept=fit_intercept)
        return cls(X, bins, problem, held_out, groups)

    def probe(self, latents: Sequence[FloatArray], sigma: FloatArray) -> FloatArray:
        """What a few trees add to held-out scores, in standard errors of that gain, (T,).

        Half of the held-out rows learn from what the scores leave unexplained, the other half
        judges, and the other way round. Where trees add nothing, all others can be spared.

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
        tasks = np.arange(len(sigma))
        entries = self._entries(tasks).of(rows)
        entries = entries._replace(start=scaling.apply(np.concatenate(latents)))
        gains = np.zeros_like(entries.low)
        for judge in (half == 1, half == 0):
            pair, units = (entries.of(~judge), entries.of(judge)), sigma / scaling.scale
            gains[judge] = self._boost(*pair, units, tasks, PROBE).gain
        gains *= entries.weight[:, None]
        error = np.sqrt(np.square(gains).sum(axis=0))
        return np.asarray(gains.sum(axis=0) / np.where(error > 0.0, error, 1.0))

    def promising(self, stack: EvidenceStack) -> Rows:
        """Tasks in which trees explain something that the stack leaves."""
        return np.flatnonzero(self.probe(stack.latents, stack.layer.sigma) > _WORTH)

    def grow(self, tasks: Rows, n_jobs: int | None = None) -> Forest | None:
        """Trees for some tasks; None if the rows that judge want none.

        The rows are cut into parts. Those of each part are scored by trees of the others, which
        they also stop; the trees of all rows are as many as those were on average, with their σ.
        """
        parts = self._parts()
        jobs = [delayed(self._grow_part)(tasks, *rows) for rows in parts]
        done = Parallel(n_jobs=n_jobs, prefer="threads")(jobs)
        rounds = np.rint(np.mean([each.rounds for each in done], axis=0)).astype(np.intp)
        if not rounds.any():
            return None
        scores = np.empty((len(self.problem.weight), int((rounds > 0).sum())))
        for (_, judge), each in zip(parts, done, strict=True):
            scores[judge] = self._to_trees(each, rounds, tasks)(self.X[judge])
        paths = [
            each.sigma[np.minimum(np.arange(rounds.max()), len(each.sigma) - 1)] for each in done
        ]
        whole = self._boost(
            self._entries(tasks), None, np.mean(paths, axis=0), tasks, TREES, rounds
        )
        return Forest(self._to_trees(whole, rounds, tasks), scores)

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

    def _grow_part(self, tasks: Rows, learn: Rows, judge: Rows) -> Boosted:
        entries, sigma = self._entries(tasks), self.problem.sigma[tasks]
        return self._boost(entries.of(learn), entries.of(judge), sigma, tasks, TREES)

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

    def _to_trees(self, boosted: Boosted, rounds: Rows, tasks: Rows) -> Trees:
        """The first trees of every task that has any, in the user's units."""
        used, scaling = np.flatnonzero(rounds), self.problem.scaling
        grown, output = [], []
        for place, column in enumerate(used.tolist()):
            unit = TREES.rate * scaling.scale[tasks[column]]
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
