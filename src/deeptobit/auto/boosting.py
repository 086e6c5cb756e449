"""Boosting on the censored likelihood: features in bins, trees on gradients and curvatures."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer import SIGMA_FLOOR
from deeptobit.likelihood import Noise, evaluate

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
LARGER = Growth(leaves=24, rate=0.1, rounds=1000, least=20.0, ridge=5.0)
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
    loss : array of shape (T,)
        Their negative log likelihood there.
    losses : list of arrays of shape (n, T)
        Negative log likelihood of the judging rows at every round, if it was kept.
    """

    grown: list[list[tuple[NDArray[np.int32], FloatArray]]]
    rounds: Rows
    sigma: FloatArray
    loss: FloatArray
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
    from deeptobit.auto.kernels import add_tree, grow_tree

    n_tasks = learn.low.shape[1]
    scores, room = (
        np.array(learn.start, order="F"),
        Room.build(len(learn.codes), bins.edges, growth),
    )
    known = [np.flatnonzero(~np.isnan(each)).astype(np.int32) for each in learn.low.T]
    grown: list[list[Any]] = [[] for _ in range(n_tasks)]
    judging = None if judge is None else _Judge(judge, sigma, free, growth, noise)
    given, path = np.zeros(n_tasks, dtype=np.intp) if rounds is None else rounds, []
    for number in range(growth.rounds if rounds is None else int(given.max(initial=0))):
        if judging is None:
            going, here = number < given, sigma[number]
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
            n = grow_tree(
                learn.codes,
                bins.n_bins,
                known[task],
                gradient[:, place],
                curvature[:, place],
                growth.least,
                growth.ridge,
                growth.leaves,
                *room,
            )
            tree = room.node[:n].copy(), room.number[:n].copy()
            grown[task].append(tree)
            add_tree(learn.codes, bins.n_bins, *tree, growth.rate, scores[:, task])
            if judging is not None:
                add_tree(
                    judging.rows.codes, bins.n_bins, *tree, growth.rate, judging.scores[:, task]
                )
    if judging is None:
        return Boosted(grown, given, np.array(path), np.zeros(n_tasks), [])
    sigmas = np.array(path).reshape(-1, n_tasks)
    return Boosted(grown, judging.best, sigmas, judging.least, judging.losses)


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
