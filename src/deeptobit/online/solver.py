"""The online solver: learns from rows as they come, and gives a model at any time."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from deeptobit.arrays import FloatArray
from deeptobit.online.adaptive import AdaptiveLearner
from deeptobit.online.gradient import GradientLearner
from deeptobit.online.rows import Block, Iterate, RawRows, RowBuffer, rows_of
from deeptobit.online.settings import History, OnlineSettings, Record
from deeptobit.online.start import Standardization
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

    The first 512 rows are collected: they give units, the null model (intercepts only) and a
    spectral start. Later rows are learned in blocks whose edges depend on the number of rows
    alone, so that ``learn`` in pieces gives exactly what one call gives. Memory does not grow with
    the number of rows.

    Within a block each row (or batch) moves V (:func:`deeptobit.online.reference.sketch`) and then
    U (:func:`deeptobit.online.reference.refine`). Before that, the averaged model is scored on the
    block. This progressive validation decides how far the result is shrunk from the averaged model
    towards the null model.

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
        batch = settings.batch_size
        self._block_rows = batch * -(-_BLOCK_ROWS // batch)
        self._n_processed = 0
        self._loss = 0.0
        self._weight = 0.0
        self._buffer = RowBuffer()
        self._history = History()
        self._units = Standardization.identity(n_features, n_tasks)
        self._given: OnlineResult | None = None
        self._learner: AdaptiveLearner | GradientLearner | None = None
        if not _needs_data(settings):
            assert settings.sigma is not None
            self._learner = GradientLearner.random(settings, settings.sigma, n_features)

    @property
    def n_seen(self) -> int:
        """Rows so far."""
        return self._buffer.n_total

    @property
    def history(self) -> list[Record]:
        """At most about 200 records, evenly spread over the rows."""
        return self._history.records

    @property
    def n_halvings(self) -> int:
        """How often the iterate diverged, so that its block was repeated with half the step."""
        return 0 if self._learner is None else self._learner.n_halvings

    def start_from(self, model: OnlineResult) -> None:
        """Start from a given model instead of the first rows; must come before them."""
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
        for rows in self._buffer.blocks(X, low, high, weight, self._next_block):
            self._process(rows)

    def result(self) -> OnlineResult:
        """The model so far; the rows of an unfinished block are learned on a copy."""
        solver = self
        if self._buffer.n_rows:
            solver = copy.copy(self)
            solver._learner, solver._buffer = copy.deepcopy((self._learner, self._buffer))
            solver._history = History()
            solver._process(solver._buffer.take())
        if solver._learner is None:
            raise ValueError("there is no model yet: call learn with at least one row")
        model = solver._units.to_user(solver._learner.result())
        return OnlineResult(
            np.ascontiguousarray(model.Ut.T), model.V, model.intercept, model.sigma, self.n_seen
        )

    def _next_block(self) -> int:
        """Rows of the next block: half of those before it, between 64 and 256."""
        block = self._block_rows
        if self._learner is None:
            return block * -(-_BUFFER_ROWS // block)
        doublings = max(self._n_processed // (2 * block), 1).bit_length() - 1
        return block * min(1 << doublings, _MOST_BLOCKS)

    def _first_blocks(self, n_rows: int) -> int:
        """Rows of a block among the first rows: an eighth of them, or two batches if possible.

        Iterates move far there, so that coordinates and limits have to follow often. A batch moves
        them less than its rows would one by one.
        """
        rows = min(_BLOCK_ROWS, n_rows // 8)
        return max(_SMALLEST_BLOCK, rows, min(2 * self.settings.batch_size, n_rows // 4))

    def _process(self, rows: RawRows) -> None:
        n_rows, settings = len(rows.weight), self.settings
        if self._learner is not None:
            block = self._units.block(rows, settings.n_threads)
            self._learn_block(block, fresh=True, in_buffer=False)
            return
        self._units = Standardization.build(
            rows,
            center=settings.fit_intercept,
            scale_features=settings.standardize,
            # Given steps are in the units of the targets.
            scale_targets=settings.standardize or settings.finds_steps,
        )
        block = self._units.block(rows, settings.n_threads)
        sigma = None if settings.sigma is None else settings.sigma / self._units.target_scale
        learner = AdaptiveLearner if settings.finds_steps else GradientLearner
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
        # Losses in the user's units: the density of an observed entry has its scale.
        shift = float(report.exact @ np.log(self._units.target_scale))
        self._loss += report.loss + shift
        self._weight += float(block.weight.sum())
        self._history.offer(
            Record(
                n_rows=self._n_processed,
                objective=report.objective + shift / max(report.known, 1e-300),
                subspace_change=report.change,
                online_loss=self._loss / max(self._weight, 1e-300),
            )
        )

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
        if not np.isfinite(X.data if sparse else X).all():
            raise ValueError("X contains NaN or infinity")


def _iterate(model: OnlineResult) -> Iterate:
    return Iterate(model.V, model.U.T, model.intercept, model.sigma)


def _needs_data(settings: OnlineSettings) -> bool:
    """Whether anything but random numbers is needed to begin."""
    given = not settings.finds_steps and settings.sigma is not None
    return not given or settings.standardize or settings.start == "data"


_CHUNK_ROWS = 8192


def learn_passes(
    solver: OnlineSolver, X: Any, targets: CensoredTargets, weight: FloatArray, n_passes: int
) -> Iterator[int]:
    """Learn all rows ``n_passes`` times, in chunks; yields the number of rows learned so far.

    X needs only slices of rows, so that the inputs of a layer need not be in memory at once.
    """
    n_rows = len(targets)
    for done in range(n_passes):
        for start in range(0, n_rows, _CHUNK_ROWS):
            rows = slice(start, min(start + _CHUNK_ROWS, n_rows))
            solver.learn(X[rows], targets.low[rows], targets.high[rows], weight[rows])
            yield done * n_rows + rows.stop
