"""Recursive estimation: a fitted layer goes on learning from new rows."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Noise, at_scores
from deeptobit.online.solver import OnlineResult, RawRows, RowBuffer

_SEGMENT_ROWS = 512
_STEPS = 8
_LEAST_CURVATURE = 0.02
_LONGEST = 0.2  # of one step of log σ
_RIDGE = 1e-9


@dataclass(eq=False, repr=False)
class RecursiveTobit:
    r"""Recursive estimation of a layer, in segments of 512 rows.

    Of the rows behind the model only their number n and the second moments C of their inputs
    :math:`\tilde x = [x; 1]` are kept. With curvatures c of the likelihood, a segment minimises

    .. math::
        \sum_i w_i\, \mathrm{nll}(y_{it};\, W_t^\top \tilde x_i, \sigma_t)
        + \frac{n c_t}{2}\, (W_t - W_t^0)^\top C\, (W_t - W_t^0)

    by steps with the matrix :math:`c_t(nC + \sum_i w_i \tilde x_i \tilde x_i^\top)`, one
    factorisation for all tasks. For Gaussian outcomes that are not censored this is least squares
    on all rows, old and new. Of C only the diagonal is known at first, so the old rows are assumed
    to be distributed like the first new ones. W has full rank; the result is its best
    approximation of the given rank.

    Segments depend on the number of rows alone, and memory does not grow with it.

    Parameters
    ----------
    model : OnlineResult
        In the user's units; its ``n_seen`` is n.
    mean_squares : array of shape (D,)
        Of the features in the old rows; 0 if unknown.
    noise : Noise
    fit_intercept, learns_sigma : bool
    """

    model: OnlineResult
    mean_squares: FloatArray
    noise: Noise
    fit_intercept: bool
    learns_sigma: bool

    def __post_init__(self) -> None:
        """Begin at the model."""
        model = self.model
        coef = model.U @ model.V
        # A feature that has left the model stays out of it.
        self._active: BoolArray = np.asarray(coef.any(axis=0))
        self._W = np.column_stack([coef[:, self._active], model.intercept]).T
        self._mean_squares = np.append(self.mean_squares[self._active], 0.0)
        self._sigma = model.sigma.copy()
        self._n = float(model.n_seen)
        self._moments: FloatArray | None = None
        self._buffer = RowBuffer()

    def learn(self, X: Any, low: FloatArray, high: FloatArray, weight: FloatArray) -> None:
        """Learn from some rows; arguments as for :meth:`OnlineSolver.learn`."""
        for rows in self._buffer.blocks(X, low, high, weight, lambda: _SEGMENT_ROWS):
            self._process(rows)

    def result(self) -> OnlineResult:
        """The model so far; the rows of an unfinished segment are learned on a copy."""
        state = self
        if self._buffer.n_rows:
            state = copy.deepcopy(self)
            state._process(state._buffer.take())
        U, V = state._truncated()
        full = np.zeros((V.shape[0], len(self._active)))
        full[:, self._active] = V
        return OnlineResult(U, full, state._W[-1].copy(), state._sigma.copy(), round(state._n))

    def _process(self, rows: RawRows) -> None:
        x = np.column_stack([rows.X[:, self._active], np.ones(len(rows.weight))])
        if not self.fit_intercept:
            x[:, -1] = 0.0
        gram = (x * rows.weight[:, None]).T @ x
        if self._moments is None:
            moments = _shrunk(gram / max(float(rows.weight.sum()), 1e-300), len(x))
            unseen = np.diagonal(moments) == 0.0  # such as a category that the new rows lack
            self._moments = moments + np.diag(np.where(unseen, self._mean_squares, 0.0))
        prior = self._n * self._moments
        if self.learns_sigma:
            self._move_sigma(x, rows)
        self._move(x, rows, prior, gram)
        self._n += float(rows.weight.sum())
        self._moments = (prior + gram) / self._n

    def _move(self, x: FloatArray, rows: RawRows, prior: FloatArray, gram: FloatArray) -> None:
        """Minimise over W, given what the old rows weigh."""
        before, known = self._W.copy(), rows.weight @ ~np.isnan(rows.low)
        matrix = prior + gram
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(matrix), 1e-300))
        rounded = matrix * (scale[:, None] * scale)
        rounded.flat[:: len(rounded) + 1] += _RIDGE
        factor = cho_factor(rounded)
        noise, sigma = at_scores(self.noise, x @ before, self._sigma)
        for step in range(_STEPS + 1):
            at = likelihood.evaluate(noise, rows.low, rows.high, x @ self._W, sigma)
            mean_curvature = rows.weight @ np.abs(at.latent_latent) / np.maximum(known, 1e-300)
            curvature = np.maximum(mean_curvature, _LEAST_CURVATURE / self._sigma**2)
            moved = self._W - before
            held = prior @ moved
            value = rows.weight @ at.nll + 0.5 * curvature * (moved * held).sum(axis=0)
            if step == 0:
                start = value
            if step == _STEPS:
                break
            slope = x.T @ (at.latent * rows.weight[:, None]) / curvature + held
            self._W -= scale[:, None] * cho_solve(factor, scale[:, None] * slope)
        # Steps of a fixed matrix nearly always descend; a task for which they do not stays put.
        self._W = np.where((known > 0.0) & (value <= start), self._W, before)

    def _move_sigma(self, x: FloatArray, rows: RawRows) -> None:
        """One step of log σ, by rows that W has not been fitted to."""
        at = likelihood.evaluate(self.noise, rows.low, rows.high, x @ self._W, self._sigma)
        known = rows.weight @ ~np.isnan(rows.low)
        bend = np.maximum(rows.weight @ at.log_sigma_log_sigma / np.maximum(known, 1.0), 0.5)
        change = -(rows.weight @ at.log_sigma) / (bend * np.maximum(self._n + known, 1e-300))
        self._sigma *= np.exp(np.clip(change, -_LONGEST, _LONGEST))

    def _truncated(self) -> tuple[FloatArray, FloatArray]:
        """U and V of the rank, nearest to W in what they predict in units of σ."""
        W = self._W[:-1]
        moments = np.eye(len(W)) if self._moments is None else self._moments[:-1, :-1]
        values, vectors = np.linalg.eigh(moments)
        root = np.sqrt(np.maximum(values, _RIDGE * max(float(values[-1]), 1e-300)))
        _, _, right = np.linalg.svd((root[:, None] * (vectors.T @ W)) / self._sigma)
        tasks = right[: self.model.U.shape[1]].T  # (T, R), orthonormal
        return self._sigma[:, None] * tasks, ((W / self._sigma) @ tasks).T


def _shrunk(moments: FloatArray, n_rows: int) -> FloatArray:
    """Second moments with off-diagonals shrunk by the share of directions per row."""
    share = len(moments) / (len(moments) + n_rows)
    return np.asarray((1.0 - share) * moments + share * np.diag(np.diagonal(moments)))
