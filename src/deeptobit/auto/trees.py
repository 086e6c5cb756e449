"""Trees boosted on the censored likelihood, as the layer below the stack.

Features are cut into bins, and trees grown on gradients and curvatures. Held-out rows decide which
outcomes want trees; the stack sees their scores out of fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import delayed
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.auto.evidence import EvidenceProblem
from deeptobit.auto.folds import MANY_ROWS, Fold, HeldOutFolds, make_folds
from deeptobit.auto.stack import EvidenceStack
from deeptobit.layer import SIGMA_FLOOR
from deeptobit.likelihood import Noise, evaluate
from deeptobit.network import Trees
from deeptobit.runtime import run_jobs

Codes = NDArray[np.uint8]
Rows = NDArray[np.intp]

BINS = 63  # of a feature
_LEAST_CURVATURE = 0.01  # of an entry, in units of an observed one: few families are log-concave
_LONGEST_STEP = 0.3  # of log σ
_LARGEST_SIGMA = 100.0  # of a spread: open intervals alone could make it infinite
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
PROBE_ALONE = Growth(leaves=6, rate=0.4, rounds=10, patience=3, least=10.0, ridge=1.0)


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


def tree_memory(n_rows: int, edges: FloatArray, growth: Growth) -> tuple[Any, ...]:
    """Memory in which trees are grown, one after the other; the last two hold the tree."""
    (n_features, n_bins), n_nodes = edges.shape, 2 * growth.leaves - 1
    order, spare = np.empty((2, n_rows), dtype=np.int32)
    histograms = np.empty((growth.leaves, n_features, n_bins + 1, 2))
    return histograms, order, spare, np.zeros((n_nodes, 8), np.int32), np.empty((n_nodes, 4))


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
        Number of rounds with the highest likelihood of the judging rows.
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

    n_tasks, memory = learn.low.shape[1], tree_memory(len(learn.codes), bins.edges, growth)
    scores = np.array(learn.start, order="F")
    known = [np.flatnonzero(~np.isnan(each)).astype(np.int32) for each in learn.low.T]
    grown: list[list[Any]] = [[] for _ in range(n_tasks)]
    judging = None if judge is None else _EarlyStopping(judge, sigma, free, growth, noise)
    given, path = np.zeros(n_tasks, dtype=np.intp) if rounds is None else rounds, []
    for number in range(growth.rounds if rounds is None else int(given.max(initial=0))):
        if judging is None:
            going, here = number < given, sigma[number]
        else:
            going, here = judging.still_gaining(number), judging.sigma
        tasks = np.flatnonzero(going)
        if not len(tasks):
            break
        path.append(here)
        ends = learn.low[:, tasks], learn.high[:, tasks]
        at = evaluate(noise, *ends, scores[:, tasks], here[tasks])
        square = np.square(here[tasks])
        gradient = np.asfortranarray(learn.weight[:, None] * at.latent * square)
        curvature = np.maximum(at.latent_latent * square, _LEAST_CURVATURE)
        curvature = np.asfortranarray(learn.weight[:, None] * curvature)
        for place, task in enumerate(tasks.tolist()):
            slopes = gradient[:, place], curvature[:, place]
            n = grow_tree(learn.codes, bins.n_bins, known[task], *slopes, growth, memory)
            tree = memory[-2][:n].copy(), memory[-1][:n].copy()
            grown[task].append(tree)
            add_tree(learn.codes, bins.n_bins, *tree, growth.rate, scores[:, task])
            if judging is not None:
                judged = judging.scores[:, task]
                add_tree(judging.rows.codes, bins.n_bins, *tree, growth.rate, judged)
    if judging is None:
        return Boosted(grown, given, np.array(path), np.zeros(n_tasks), [])
    sigmas = np.array(path).reshape(-1, n_tasks)
    return Boosted(grown, judging.best, sigmas, judging.least, judging.losses)


class _EarlyStopping:
    """Rows that stop the boosting and estimate σ: trees fit the rows they grew on too well."""

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

    def still_gaining(self, number: int) -> BoolArray:
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
        ends = rows.low[:, tasks], rows.high[:, tasks]
        at = evaluate(self.noise, *ends, self.scores[:, tasks], self.sigma[tasks])
        slope, bend = rows.weight @ at.log_sigma, rows.weight @ at.log_sigma_log_sigma
        floor = 0.1 * (rows.weight @ ~np.isnan(ends[0]))
        step = -slope / np.maximum(np.maximum(bend, floor), np.finfo(np.float64).tiny)
        step = np.where(self.free[tasks], np.clip(step, -_LONGEST_STEP, _LONGEST_STEP), 0.0)
        self.sigma = self.sigma.copy()
        self.sigma[tasks] = np.clip(self.sigma[tasks] * np.exp(step), SIGMA_FLOOR, _LARGEST_SIGMA)
        nll[:, tasks] = at.nll
        return nll


# Which outcomes want trees, and their scores out of fold.

_MORE_BINS = 254  # where rows are many
_ROWS_OF_LARGER = 1000  # from which on larger trees are tried
_PARTS = 3  # of the training rows, where one fold is held out
_WORTH = 0.0  # standard errors that trees must gain on the stack's residuals, in some task
_WORTH_ALONE = 3.0  # the same for trees that do not start from the stack
_SMALL = 50_000  # cells of a table whose trees take little time
_AGAINST = -0.5  # and those that they may lose in others
_WORTH_OF_MANY = 2.0  # the same where rows are many, and trees take their time


class Forest(NamedTuple):
    """Trees of all rows, and out-of-fold scores.

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
    held_out : HeldOutFolds
        Its folds, and the noise of the likelihood.
    groups : array of shape (N,), optional
        Rows with the same label stay together.
    """

    X: Any
    problem: EvidenceProblem
    held_out: HeldOutFolds
    groups: Any = None

    @classmethod
    def build(cls, X: Any, held_out: HeldOutFolds, groups: Any, *, fit_intercept: bool) -> Self:
        """Fit the intercept-only model."""
        data = np.zeros((len(held_out.targets), 1)), held_out.targets, held_out.weight
        problem = EvidenceProblem.build(*data, fit_intercept=fit_intercept)
        return cls(X, problem, held_out, groups)

    @cached_property
    def bins(self) -> Bins:
        """The features of all rows, cut."""
        return Bins.build(self.X, BINS if len(self.problem.weight) <= MANY_ROWS else _MORE_BINS)

    @property
    def is_small(self) -> bool:
        """Whether trees take so little time that they are grown without asking twice."""
        return bool(self.X.shape[0] * self.X.shape[1] <= _SMALL)

    def probe(
        self, latents: Sequence[FloatArray], sigma: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """What a few trees add to held-out scores, in standard errors of that gain, (T,).

        Half of the held-out rows learn, the other half judges, and the other way round; how many
        trees, the one half decides for the other. Trees learn from what the scores leave
        unexplained; in a small table others learn from the outcomes themselves, as the steps of an
        outcome are harder to see once a straight line is subtracted. Their gain is second.

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
        known = problem.low[rows], problem.high[rows], problem.weight[rows]
        settings = sigma / scaling.scale, problem.free_sigma

        def losses(start: FloatArray, growth: Growth) -> tuple[FloatArray, FloatArray]:
            """Those of the start, and after as many trees as the other half says, (N, T)."""
            entries = Entries(bins.codes, *known, start)
            done = [
                boost(
                    bins,
                    entries.of(half != judge),
                    entries.of(half == judge),
                    *settings,
                    growth,
                    self.held_out.noise,
                )
                for judge in (0, 1)
            ]
            before, after = np.zeros((2, *start.shape))
            for judge, (own, other) in enumerate((done, done[::-1])):
                rounds = np.minimum(other.rounds, len(own.losses) - 1)[None, None, :]
                before[half == judge] = own.losses[0]
                after[half == judge] = np.take_along_axis(np.array(own.losses), rounds, axis=0)[0]
            return before, after

        before, after = losses(scaling.apply(np.concatenate(latents)), PROBE)
        weight = known[2][:, None]
        gain = _standard_errors(weight * (before - after))
        if not self.is_small:
            return gain, np.full_like(gain, -np.inf)
        _, alone = losses(np.broadcast_to(problem.intercept, before.shape), PROBE_ALONE)
        return gain, _standard_errors(weight * (before - alone))

    def grow(self, stack: EvidenceStack | None, n_jobs: int | None, what: str) -> Forest | None:
        """Trees for the tasks in which they pay; None if there are none.

        The rows are cut into parts. Those of each part are scored by trees of the others, which
        they also stop; the trees of all rows are as many as those were on average, with their σ.
        The first part also says whether larger trees are better.
        Given a stack, there are trees if they explain held-out residuals of some task (clearly,
        where rows are many) or are far better alone, for all tasks in which they do no clear harm;
        unless, where the table is not small, they add nothing on the first part. ``what`` names the
        fits to the other parts on the progress line; without a name nothing is shown.
        """
        tasks = np.arange(len(self.problem.sigma))
        if stack is not None:
            few = len(self.problem.weight) <= MANY_ROWS
            gain, alone = self.probe(stack.latents, stack.layer.sigma)
            wanted = (gain > (_WORTH if few else _WORTH_OF_MANY)) | (alone > _WORTH_ALONE)
            if not wanted.any():
                return None
            tasks = np.flatnonzero((gain > (_AGAINST if few else 0.0)) | (alone > 0.0))
        first, *others = self._parts()
        sizes = (TREES, LARGER) if len(first.train) > _ROWS_OF_LARGER else (TREES,)
        trials = [(self._boost(tasks, growth, *first), growth) for growth in sizes]
        begun, growth = min(trials, key=lambda trial: trial[0].loss.sum())
        doubted = None if self.is_small else stack
        if doubted is not None and not self._adds(doubted, begun, growth, tasks, first.test):
            return None
        jobs = [delayed(self._boost)(tasks, growth, *part) for part in others]
        done = [begun, *run_jobs(jobs, n_jobs, what, prefer="threads")]
        rounds = np.rint(np.mean([each.rounds for each in done], axis=0)).astype(np.intp)
        if not rounds.any():
            return None
        scores = np.empty((len(self.problem.weight), int((rounds > 0).sum())))
        for part, each in zip((first, *others), done, strict=True):
            scores[part.test] = self._to_trees(each, rounds, tasks, growth)(self.X[part.test])
        steps = np.arange(rounds.max())
        paths = [each.sigma[np.minimum(steps, len(each.sigma) - 1)] for each in done]
        whole = self._boost(tasks, growth, sigma=np.mean(paths, axis=0), rounds=rounds)
        return Forest(self._to_trees(whole, rounds, tasks, growth), scores)

    def _adds(
        self, stack: EvidenceStack, grown: Boosted, growth: Growth, tasks: Rows, judge: Rows
    ) -> bool:
        """Whether trees, averaged with the stack, predict the rows that judge better.

        The weight of the average is that of the other half of these rows.
        """
        held_out = self.held_out.folds[0].test
        rows, _, places = np.intersect1d(judge, held_out, return_indices=True)
        old = stack.latents[0][places]
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

    def _boost(
        self,
        tasks: Rows,
        growth: Growth,
        learn: Any = slice(None),
        judge: Rows | None = None,
        sigma: FloatArray | None = None,
        rounds: Rows | None = None,
    ) -> Boosted:
        """Boost some tasks on rows that learn; σ starts at that of the intercept-only model."""
        problem = self.problem
        ends = problem.low[:, tasks], problem.high[:, tasks]
        start = np.broadcast_to(problem.intercept[tasks], ends[0].shape)
        entries = Entries(self.bins.codes, *ends, problem.weight, start)
        judges = None if judge is None else entries.of(judge)
        sigma = problem.sigma[tasks] if sigma is None else sigma
        free, noise = problem.free_sigma[tasks], self.held_out.noise
        return boost(self.bins, entries.of(learn), judges, sigma, free, growth, noise, rounds)

    def _to_trees(self, boosted: Boosted, rounds: Rows, tasks: Rows, growth: Growth) -> Trees:
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
