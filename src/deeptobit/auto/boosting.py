"""Boosting on the censored likelihood: features in bins, trees on gradients and curvatures."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer import SIGMA_FLOOR
from deeptobit.likelihood import Noise, evaluate
from deeptobit.likelihood.kernels import jit

Codes = NDArray[np.uint8]
Rows = NDArray[np.intp]

BINS = 63  # of a feature
_LEAST_CURVATURE = 0.01  # of an entry, in units of an observed one: few families are log-concave
_LONGEST_STEP = 0.3  # of log σ
_FIRST_STEPS = 5
_LARGEST = np.finfo(np.float64).max  # a threshold that only missing values exceed


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
    def build(cls, X: Any, most: int = BINS) -> "Bins":
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
    losses : list of arrays of shape (n, T)
        Negative log likelihood of the judging rows at every round, if it was kept.
    """

    grown: list[list[tuple[NDArray[np.int32], FloatArray]]]
    rounds: Rows
    sigma: FloatArray
    losses: list[FloatArray]


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
        return Boosted(grown, rounds, np.array(path), [])
    return Boosted(grown, judging.best, np.array(path).reshape(-1, n_tasks), judging.losses)


class _Judge:
    """Rows that stop the boosting, and tell σ: trees fit the rows they were grown on too well."""

    def __init__(
        self, rows: Entries, sigma: FloatArray, free: BoolArray, growth: Growth, noise: Noise
    ) -> None:
        self.rows, self.noise, self.patience = rows, noise, growth.patience
        self.scores, self.sigma, self.free = np.array(rows.start, order="F"), sigma, free
        self.going = np.ones(len(sigma), dtype=np.bool_)
        self.losses: list[FloatArray] = []
        self.keep = growth.rounds <= PROBE.rounds
        for _ in range(_FIRST_STEPS):
            self._evaluate()
        self.best, self.least = np.zeros(len(sigma), dtype=np.intp), np.full(len(sigma), np.inf)

    def look(self, number: int) -> BoolArray:
        """Tasks that may still gain after so many rounds."""
        nll = self._evaluate()
        loss = self.rows.weight @ nll
        better = self.going & (loss < self.least)
        if self.keep:
            self.losses.append(nll)
        self.least = np.where(better, loss, self.least)
        self.best = np.where(better, number, self.best)
        self.going = self.going & (number - self.best < self.patience)
        return self.going

    def _evaluate(self) -> FloatArray:
        """Negative log likelihood of the entries, and a Newton step in log σ after it."""
        rows, tasks = self.rows, np.flatnonzero(self.going)
        nll = self.losses[-1].copy() if self.losses else np.zeros_like(rows.low)
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
