"""The online solver: rows in, a model out at any time."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from deeptobit.arrays import FloatArray
from deeptobit.online.adaptive import AdaptiveLearner
from deeptobit.online.gradient import PlainLearner
from deeptobit.online.rows import Block, Iterate, Pending, RawRows, read_rows, rows_of, telling_rows
from deeptobit.online.settings import BlockReport, History, OnlineSettings, Record
from deeptobit.online.start import Units
from deeptobit.targets import CensoredTargets

_BUFFER_ROWS, _BLOCK_ROWS = 512, 64
_SMALLEST_BLOCK, _MOST_BLOCKS = 8, 4


@dataclass(frozen=True)
class OnlineResult:
    """A model in the user's units; ``U @ V`` are coefficients of raw features.

    Parameters
    ----------
    U : array of shape (T, R)
    V : array of shape (R, D)
    intercept, sigma : arrays of shape (T,)
    n_seen : int
        Rows learned from.
    """

    U: FloatArray
    V: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    n_seen: int


class OnlineSolver:
    r"""Low-rank Tobit regression in one pass over the rows, with nothing to tune.

    Minimises, in the paper's online form and with intercepts b and scales σ learned on the way,

    .. math:: \frac1N \sum_i \sum_t nll(y_{it};\, U_t^\top V x_i + b_t, \sigma_t)
        + \frac{\alpha}{2}(\|U\|_F^2 + \|V\|_F^2)

    The first 512 rows are kept until they are complete: they give units, the model without
    features, and a spectral start. Later rows are learned in blocks whose edges depend on the
    number of rows alone, so that ``learn`` in pieces gives exactly what one call gives. Memory
    does not grow with the number of rows.

    Within a block each row (or batch) moves V and then U by a preconditioned implicit step.
    Before that, the averaged model is scored on the block, and this honest evidence decides how
    far the result is drawn from the model without features towards the averaged one.

    Parameters
    ----------
    settings : OnlineSettings
    n_features, n_tasks : int
        D and T; the rank is at most the smaller of them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5))
    >>> Y = X @ rng.normal(size=(5, 3)) + 0.1 * rng.normal(size=(2000, 3))
    >>> solver = OnlineSolver(OnlineSettings(rank=3), n_features=5, n_tasks=3)
    >>> solver.learn(X, Y, Y)
    >>> solver.result().sigma.round(1)
    array([0.1, 0.1, 0.1])
    """

    def __init__(self, settings: OnlineSettings, n_features: int, n_tasks: int) -> None:
        if settings.rank > min(n_features, n_tasks):
            raise ValueError(
                f"rank must be at most min(n_features, n_tasks) = {min(n_features, n_tasks)}; "
                f"got {settings.rank}"
            )
        if settings.sigma is not None and np.shape(settings.sigma) != (n_tasks,):
            raise ValueError(f"sigma must have shape ({n_tasks},); got {np.shape(settings.sigma)}")
        self.settings = settings
        self.n_features, self.n_tasks = n_features, n_tasks
        self.n_seen = 0
        batch = settings.batch_size
        self._block_rows = batch * -(-_BLOCK_ROWS // batch)
        self._n_processed = 0
        self._loss = 0.0
        self._weight = 0.0
        self._pending = Pending()
        self._history = History()
        self._units = Units.plain(n_features, n_tasks)
        self._given: OnlineResult | None = None
        self._learner: AdaptiveLearner | PlainLearner | None = None
        if not _needs_data(settings):
            assert settings.sigma is not None
            self._learner = PlainLearner.random(settings, settings.sigma, n_features)

    @property
    def history(self) -> list[Record]:
        """At most about 200 records, evenly spread over the rows."""
        return self._history.records

    @property
    def n_halvings(self) -> int:
        """How often an iterate ran away, so that its block was repeated with smaller steps."""
        return 0 if self._learner is None else self._learner.n_halvings

    def start_from(self, model: OnlineResult) -> None:
        """Begin with a model, not with what the first rows suggest; before any rows come."""
        if self.n_seen:
            raise ValueError("a start can only be given before the first rows")
        self._given = model
        if self._learner is not None:
            start = self._units.to_standard(_iterate(model))
            self._learner.now.set_to(start)
            self._learner.mean.set_to(start)

    def learn(self, X: Any, low: Any, high: Any, weight: Any = None) -> None:
        """Learn from some rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, D)
        low, high : arrays of shape (n, T)
            Ends of the interval that holds each entry: equal where observed, ∓inf where open,
            NaN where missing.
        weight : array of shape (n,), optional
            Weights of rows; their mean over the first rows is the unit.
        """
        self._check(X, low, high, weight)
        X, low, high, weight = telling_rows(X, low, high, weight)
        first, n_rows = 0, X.shape[0]
        while first < n_rows:
            capacity = self._capacity
            room = slice(first, first + capacity - self._pending.n_rows)
            rows = read_rows(X, low, high, weight, room)
            first += len(rows.weight)
            if len(rows.weight) == capacity:
                self._process(rows)
                continue
            self._pending.add(rows)
            if self._pending.n_rows == capacity:
                self._process(self._pending.take())
        self.n_seen += n_rows

    def result(self) -> OnlineResult:
        """The model so far; the rows of an unfinished block are learned on a copy."""
        solver = self
        if self._pending.n_rows:
            solver = copy.copy(self)
            solver._learner, solver._pending = copy.deepcopy((self._learner, self._pending))
            solver._history = History()
            solver._process(solver._pending.take())
        if solver._learner is None:
            raise ValueError("there is no model yet: call learn with at least one row")
        model = solver._units.to_user(solver._learner.result())
        return OnlineResult(
            np.ascontiguousarray(model.Ut.T), model.V, model.intercept, model.sigma, self.n_seen
        )

    @property
    def _capacity(self) -> int:
        """Rows of the next block: half of those before it, between 64 and 256."""
        block = self._block_rows
        if self._learner is None:
            return block * -(-_BUFFER_ROWS // block)
        doublings = max(self._n_processed // (2 * block), 1).bit_length() - 1
        return block * min(1 << doublings, _MOST_BLOCKS)

    def _first_blocks(self, n_rows: int) -> int:
        """Rows of a block among the first rows: an eighth of them, or two batches if they can be.

        Iterates move far there, so that coordinates and limits have to follow; an implicit step of
        a batch moves them less than its rows would one by one.
        """
        rows = min(_BLOCK_ROWS, n_rows // 8)
        return max(_SMALLEST_BLOCK, rows, min(2 * self.settings.batch_size, n_rows // 4))

    def _process(self, rows: RawRows) -> None:
        n_rows, settings = len(rows.weight), self.settings
        if self._learner is not None:
            block = self._units.block(rows, settings.n_threads)
            self._learn_block(block, fresh=True, in_buffer=False)
            return
        self._units = Units.build(
            rows,
            center=settings.fit_intercept,
            scale_features=settings.standardize,
            # Steps that are given are in the units of the targets; those that are found need none.
            scale_targets=settings.standardize or settings.finds_steps,
        )
        block = self._units.block(rows, settings.n_threads)
        sigma = None if settings.sigma is None else settings.sigma / self._units.target_scale
        learner = AdaptiveLearner if settings.finds_steps else PlainLearner
        start = None if self._given is None else self._units.to_standard(_iterate(self._given))
        self._learner, self._given = learner.begin(settings, sigma, block, start), None
        size = self._first_blocks(n_rows)
        for first in range(0, n_rows, size):
            part = rows_of(block, slice(first, first + size))
            self._learn_block(part, fresh=first >= n_rows // 2, in_buffer=True)

    def _learn_block(self, block: Block, *, fresh: bool, in_buffer: bool) -> None:
        assert self._learner is not None
        report = self._learner.learn(block, fresh=fresh, in_buffer=in_buffer)
        self._n_processed += len(block.X)
        self._record(block, report)

    def _record(self, block: Block, report: BlockReport) -> None:
        """Losses in the user's units: the density of an observed entry has its scale."""
        shift = float(report.exact @ np.log(self._units.target_scale))
        self._loss += report.loss + shift
        self._weight += float(block.weight.sum())
        record = Record(
            n_rows=self._n_processed,
            objective=report.objective + shift / max(report.known, 1e-300),
            subspace_change=report.change,
            online_loss=self._loss / max(self._weight, 1e-300),
        )
        self._history.offer(record)

    def _check(self, X: Any, low: Any, high: Any, weight: Any) -> None:
        n_rows = X.shape[0]
        found = X.shape[1:], np.shape(low), np.shape(high)
        entries = (n_rows, self.n_tasks)
        if found != ((self.n_features,), entries, entries):
            raise ValueError(
                f"expected X of shape (n, {self.n_features}) and low, high of shape "
                f"(n, {self.n_tasks}); got {X.shape}, {np.shape(low)} and {np.shape(high)}"
            )
        if weight is not None and np.shape(weight) != (n_rows,):
            raise ValueError(f"weight must have shape ({n_rows},); got {np.shape(weight)}")
        if weight is not None and not np.all((np.asarray(weight) >= 0) & np.isfinite(weight)):
            raise ValueError("weights must be finite and not negative")
        sparse = bool(issparse(X))
        values = X.data if sparse else X
        if not np.isfinite(values).all():
            raise ValueError("X contains NaN or infinity")


def _iterate(model: OnlineResult) -> Iterate:
    return Iterate(model.V, model.U.T, model.intercept, model.sigma)


def _needs_data(settings: OnlineSettings) -> bool:
    """Whether anything but random numbers is needed to begin."""
    given = not settings.finds_steps and settings.sigma is not None
    return not given or settings.standardize or settings.start == "data"


# Several passes over rows that are all there.

_CHUNK_ROWS = 8192


def learn_passes(
    solver: OnlineSolver, X: Any, targets: CensoredTargets, weight: FloatArray, n_passes: int
) -> Iterator[int]:
    """Learn all rows ``n_passes`` times, in chunks; yields the number of rows learned so far.

    X is anything whose slices are rows, so that the inputs of a layer need not exist at once.
    """
    n_rows = len(targets)
    for turn in range(n_passes):
        for start in range(0, n_rows, _CHUNK_ROWS):
            rows = slice(start, min(start + _CHUNK_ROWS, n_rows))
            solver.learn(X[rows], targets.low[rows], targets.high[rows], weight[rows])
            yield turn * n_rows + rows.stop
