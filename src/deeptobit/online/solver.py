"""The online solver: learns from rows as they come, and gives a model at any time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.online.adaptive import AdaptiveLearner
from deeptobit.online.reference import Block, Iterate, rows_of
from deeptobit.online.start import OnlineSettings, first_gram
from deeptobit.targets import CensoredTargets, recorded_values

_BUFFER_ROWS, _BLOCK_ROWS = 512, 64
_SMALLEST_BLOCK, _MOST_BLOCKS = 8, 4


class RawRows(NamedTuple):
    """Rows as the user gave them, dense and in double precision; NaN marks a missing entry."""

    X: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray


def rows_with_outcomes(X: Any, low: Any, high: Any, weight: Any) -> tuple[Any, Any, Any, Any]:
    """The rows that have a positive weight and at least one known outcome.

    Examples
    --------
    >>> Y = np.array([[1.0], [np.nan], [3.0]])
    >>> X, low, high, weight = rows_with_outcomes(np.eye(3), Y, Y, np.array([1.0, 1.0, 0.0]))
    >>> X, low, weight
    (array([[1., 0., 0.]]), array([[1.]]), array([1.]))
    """
    empty = np.isnan(low[:, 0])
    empty[empty] = np.isnan(low[empty]).all(axis=1)
    empty |= weight == 0.0
    if not empty.any():
        return X, low, high, weight
    return X[~empty], low[~empty], high[~empty], weight[~empty]


@dataclass
class RowBuffer:
    """Rows that wait until their block is full.

    Blocks depend on the number of rows alone, not on how many come at a time.

    Parameters
    ----------
    parts : list of RawRows
        The rows of the unfinished block.
    n_rows : int
        Their number.
    n_total : int
        Number of rows so far, those in finished blocks included.

    Examples
    --------
    >>> buffer, Y = RowBuffer(), np.ones((5, 1))
    >>> [len(rows.weight) for rows in buffer.blocks(Y, Y, Y, None, lambda: 2)], buffer.n_rows
    ([2, 2], 1)
    """

    parts: list[RawRows] = field(default_factory=list)
    n_rows: int = 0
    n_total: int = 0

    def blocks(
        self, X: Any, low: Any, high: Any, weight: Any, size: Callable[[], int]
    ) -> Iterator[RawRows]:
        """Add rows, and yield each block as soon as it is full.

        Rows without weight or without any outcome are skipped.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, D)
        low, high : arrays of shape (n, T)
        weight : array of shape (n,), optional
        size : callable
            Number of rows of the block that is being filled.
        """
        weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight)
        X, low, high, weight = rows_with_outcomes(X, low, high, weight)
        first, n_rows = 0, X.shape[0]
        self.n_total += n_rows
        while first < n_rows:
            wanted = size()
            rows = _dense_rows(X, low, high, weight, slice(first, first + wanted - self.n_rows))
            first += len(rows.weight)
            if len(rows.weight) == wanted:
                yield rows
                continue
            # A copy, because the caller may reuse its arrays.
            self.parts.append(RawRows(*(np.array(array) for array in rows)))
            self.n_rows += len(rows.weight)
            if self.n_rows == wanted:
                yield self.take()

    def take(self) -> RawRows:
        """Remove the rows of the unfinished block and return them."""
        parts, self.parts, self.n_rows = self.parts, [], 0
        if len(parts) == 1:
            return parts[0]
        columns = zip(*parts, strict=True)
        return RawRows(*(np.concatenate(column) for column in columns))


def _dense_rows(X: Any, low: Any, high: Any, weight: Any, rows: slice) -> RawRows:
    x = X[rows]
    x = x.toarray() if hasattr(x, "toarray") else x
    parts = (x, low[rows], high[rows], weight[rows])
    return RawRows(*(np.ascontiguousarray(part, dtype=np.float64) for part in parts))


# Standard units of features, targets and weights, from the first rows.

_VANISHING = 1e-140  # columns without a larger number are taken for zeros: squares would vanish
_ROUNDING = 64.0 * np.finfo(np.float64).eps  # of a mean: what differs less from it is equal to it


@dataclass(frozen=True)
class Standardization:
    """Location and scale of features and targets, and the mean weight of a row.

    Parameters
    ----------
    feature_mean, feature_scale : arrays of shape (D,)
    target_mean, target_scale : arrays of shape (T,)
    weight : float
    """

    feature_mean: FloatArray
    feature_scale: FloatArray
    target_mean: FloatArray
    target_scale: FloatArray
    weight: float

    @classmethod
    def build(cls, rows: RawRows, settings: OnlineSettings) -> Standardization:
        """Mean and spread of the first rows; a bound counts as its value."""
        unit = float(rows.weight.mean())
        share = rows.weight / unit
        feature_mean, feature_scale = _moments(rows.X, share)
        values = recorded_values(rows.low, rows.high)
        known = np.isfinite(values)
        if not known.all():
            values, share = np.where(known, values, 0.0), share[:, None] * known
        target_mean, target_scale = _moments(values, share)
        if not settings.fit_intercept:
            feature_scale = np.hypot(feature_scale, feature_mean)
            target_scale = np.hypot(target_scale, target_mean)
            feature_mean, target_mean = np.zeros_like(feature_mean), np.zeros_like(target_mean)
        if not settings.standardize:
            feature_scale = np.ones_like(feature_scale)
        return cls(feature_mean, feature_scale, target_mean, target_scale, unit)

    def block(self, rows: RawRows) -> Block:
        """Rows in these units."""
        X = rows.X - self.feature_mean
        X[np.abs(X) <= _ROUNDING * np.abs(self.feature_mean)] = 0.0  # else it would be learned from
        X *= 1.0 / self.feature_scale
        precision = 1.0 / self.target_scale
        low, high = rows.low - self.target_mean, rows.high - self.target_mean
        low *= precision
        high *= precision
        return Block(X, low, high, rows.weight / self.weight)

    def with_units_of(self, rows: RawRows, unseen: BoolArray) -> Standardization:
        """The same with units of features that were constant so far, where they vary now."""
        away = np.abs(rows.X[:, unseen] - self.feature_mean[unseen])
        away[away <= _ROUNDING * np.abs(self.feature_mean[unseen])] = 0.0
        size = np.maximum(away.max(axis=0), _VANISHING)
        share = rows.weight / max(float(rows.weight.sum()), 1e-300)
        spread = size * np.sqrt(share @ np.square(away / size))
        scale = self.feature_scale.copy()
        scale[unseen] = np.where(spread > _VANISHING, spread, scale[unseen])
        return replace(self, feature_scale=scale)

    def to_user(self, model: Iterate, n_seen: int) -> OnlineResult:
        """Parameters for raw X and raw targets."""
        V, U = model.V / self.feature_scale, (model.Ut * self.target_scale).T
        shift = self.target_mean + model.intercept * self.target_scale
        intercept, sigma = shift - U @ (V @ self.feature_mean), model.sigma * self.target_scale
        return OnlineResult(np.ascontiguousarray(U), V, intercept, sigma, n_seen)

    def to_standard(self, model: OnlineResult) -> Iterate:
        """The inverse of :meth:`to_user`."""
        shift = model.intercept + model.U @ (model.V @ self.feature_mean) - self.target_mean
        Ut, sigma = model.U.T / self.target_scale, model.sigma / self.target_scale
        return Iterate(model.V * self.feature_scale, Ut, shift / self.target_scale, sigma)


def _moments(values: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and spread of columns; what has no spread gets its own size, or 1.

    ``share`` (n,) or (n, columns) are the weights.
    """
    total = np.maximum(share.sum(axis=0), 1e-300)
    # In units of its largest value no square of a column overflows.
    size = np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))
    size = np.where(size > _VANISHING, size, 1.0)
    scaled = values / size
    mean = _column_sums(share, scaled) / total
    scaled -= mean
    spread = np.sqrt(_column_sums(share, np.square(scaled, out=scaled)) / total)
    scale = np.where(spread > _ROUNDING, spread, 1.0)
    return mean * size, scale * size


def _column_sums(share: FloatArray, values: FloatArray) -> FloatArray:
    """Weighted sums of columns, by weights of rows or of entries."""
    return np.asarray(share @ values if share.ndim == 1 else np.einsum("ij,ij->j", share, values))


# A record of the run, of bounded length.

_MAX_RECORDS = 200


@dataclass(frozen=True)
class Record:
    """The state of the solver after some rows.

    Parameters
    ----------
    n_rows : int
        Rows seen.
    objective : float
        Mean nll per known entry of the last block, by the model as it was before that block.
    subspace_change : float
        Root mean square of ‖U_i − U_{i−1}‖/‖U‖ over the updates of the last block.
    online_loss : float
        Mean nll per row of every row so far, each by the iterate before it was learned: the C̄ of
        the paper's regret.
    """

    n_rows: int
    objective: float
    subspace_change: float
    online_loss: float


@dataclass
class History:
    """At most 200 records, evenly thinned."""

    records: list[Record] = field(default_factory=list)
    spacing: int = 1
    offered: int = 0

    def offer(self, record: Record) -> None:
        """Keep every ``spacing``-th record, and double the spacing when there are too many."""
        if self.offered % self.spacing == 0:
            self.records.append(record)
        self.offered += 1
        if len(self.records) > _MAX_RECORDS:
            self.records = self.records[::2]
            self.spacing *= 2


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


@dataclass(eq=False, repr=False)
class OnlineSolver:
    r"""Low-rank Tobit regression in one pass over the rows, with nothing to tune.

    Minimises, in the paper's online form and with intercepts b and scales σ learned on the way,

    .. math:: \frac1N \sum_i \sum_t nll(y_{it};\, U_t^\top V x_i + b_t, \sigma_t)
        + \frac{\alpha}{2}(\|U\|_F^2 + \|V\|_F^2)

    The first 512 rows are collected: they give units, the null model (intercepts only) and a
    spectral start, and are fitted once more after they were learned. Later rows are learned in
    blocks whose edges depend on the number of rows alone, so that ``learn`` in pieces gives exactly
    what one call gives. Memory does not grow with the number of rows.

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

    settings: OnlineSettings
    n_features: int
    n_tasks: int
    _n_processed: int = 0
    _loss: float = 0.0
    _buffer: RowBuffer = field(default_factory=RowBuffer)
    _history: History = field(default_factory=History)
    _given: OnlineResult | None = None
    _units: Standardization | None = None  # units and learner come with the first rows
    _learner: AdaptiveLearner | None = None

    @property
    def n_seen(self) -> int:
        """Rows so far."""
        return self._buffer.n_total

    @property
    def history(self) -> dict[str, Any]:
        """``course``: at most about 200 records, evenly spread over the rows.

        ``n_halvings``: how often the iterate diverged, so that its block was repeated with half
        the step. ``n_blocks_left_out``: blocks of which nothing could be learned even so.
        """
        learner, course = self._learner, self._history.records
        halved, left_out = (learner.n_halvings, learner.n_left_out) if learner else (0, 0)
        return {"course": course, "n_halvings": halved, "n_blocks_left_out": left_out}

    def start_from(self, model: OnlineResult) -> None:
        """Start from a given model instead of the first rows; must come before them."""
        self._given = model

    def learn(self, X: Any, low: Any, high: Any, weight: Any = None) -> None:
        """Learn from some rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, D)
        low, high : arrays of shape (n, T)
            Ends of the interval that holds each entry: equal where observed, ∓inf where open (not
            both), NaN where missing.
        weight : array of shape (n,), optional
            Weights of rows; their mean over the first rows is the unit.
        """
        for rows in self._buffer.blocks(X, low, high, weight, self._next_block):
            self._process(rows)

    def result(self) -> OnlineResult:
        """The model so far; the rows of an unfinished block are learned on a copy."""
        solver = self
        if self._buffer.n_rows:
            solver = copy.copy(self)
            solver._learner, solver._history = copy.deepcopy(self._learner), History()
            solver._buffer = replace(self._buffer)  # its arrays are only read
            solver._process(solver._buffer.take())
        if solver._learner is None or solver._units is None:
            raise ValueError("there is no model yet: call learn with at least one row")
        return solver._units.to_user(solver._learner.result(), self.n_seen)

    def _next_block(self) -> int:
        """Rows of the next block: half of those before it, between 64 and 256."""
        batch = self.settings.rows_per_update
        block = batch * -(-_BLOCK_ROWS // batch)
        if self._learner is None:
            return block * -(-_BUFFER_ROWS // block)
        doublings = max(self._n_processed // (2 * block), 1).bit_length() - 1
        return block * min(1 << doublings, _MOST_BLOCKS)

    def _process(self, rows: RawRows) -> None:
        n_rows, settings = len(rows.weight), self.settings
        if self._units is not None:
            self._find_units(rows)
            block = self._units.block(rows)
            self._learn_block(block, fresh=True, in_buffer=False)
            return
        units = Standardization.build(rows, settings)
        self._units, block = units, units.block(rows)
        if settings.sigma is not None:
            settings = replace(settings, sigma=settings.sigma / units.target_scale)
        given, self._given = self._given, None
        begin = None if given is None else units.to_standard(given)
        gram = first_gram(block.X, block.weight)
        self._learner = AdaptiveLearner.begin(settings, block, gram, begin)
        # A quarter each: iterates move far there, so that coordinates and limits have to follow.
        size = max(_SMALLEST_BLOCK, -(-n_rows // 4))
        for first in range(0, n_rows, size):
            part = rows_of(block, slice(first, first + size))
            self._learn_block(part, fresh=first >= n_rows // 2, in_buffer=True)
        self._learner.refit(block, gram)

    def _find_units(self, rows: RawRows) -> None:
        """Units of features that vary for the first time; their coefficients stay the same."""
        assert self._learner is not None
        assert self._units is not None
        unseen = self._learner.metric.unseen
        if not (self.settings.standardize and unseen.any()):
            return
        units = self._units.with_units_of(rows, unseen)
        for model in (self._learner.now, self._learner.mean):
            model.V[...] *= units.feature_scale / self._units.feature_scale
        self._units = units

    def _learn_block(self, block: Block, *, fresh: bool, in_buffer: bool) -> None:
        assert self._learner is not None
        assert self._units is not None
        log_scale = np.log(self._units.target_scale)
        objective, loss, change = self._learner.learn(
            block, log_scale, fresh=fresh, in_buffer=in_buffer
        )
        self._n_processed += len(block.X)
        self._loss += loss
        mean_loss = self._loss / max(self._learner.n, 1e-300)
        self._history.offer(Record(self._n_processed, objective, change, mean_loss))


_CHUNK_ROWS = 8192


def learn_passes(
    solver: OnlineSolver,
    X: Any,
    targets: CensoredTargets,
    weight: FloatArray,
    n_passes: int,
    inputs: Callable[[Any], Any] = lambda rows: rows,
) -> Iterator[int]:
    """Learn all rows ``n_passes`` times, in chunks; yields the number of rows learned so far.

    ``inputs`` gives what the solver sees of a chunk of X: the inputs of a layer above the first
    are never all in memory.
    """
    n_rows = len(targets)
    for done in range(n_passes):
        for start in range(0, n_rows, _CHUNK_ROWS):
            rows = slice(start, min(start + _CHUNK_ROWS, n_rows))
            solver.learn(inputs(X[rows]), targets.low[rows], targets.high[rows], weight[rows])
            yield done * n_rows + rows.stop
