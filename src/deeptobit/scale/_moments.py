"""What one pass tells of the data: units, second moments, how much is censored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.scale._inputs import LayerInputs
from deeptobit.scale._source import sum_of
from deeptobit.solvers.online import RawRows
from deeptobit.targets import recorded_values

_ROWS = 2048


class Shift(NamedTuple):
    """What is taken off inputs (D,) and outcomes (T,) before they are squared.

    Any numbers near the data do; sums of squares about a far origin would lose their digits.
    """

    X: FloatArray
    Y: FloatArray

    @classmethod
    def near(cls, inputs: FloatArray, Y: FloatArray) -> Shift:
        """The means of some rows; 0 for an outcome that none of them has."""
        known = ~np.isnan(Y)
        count = np.maximum(known.sum(axis=0), 1)
        return cls(inputs.mean(axis=0), np.where(known, Y, 0.0).sum(axis=0) / count)


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows, about a common :class:`Shift`; those of shards add up.

    Parameters
    ----------
    n_rows, weight : float
    x, xx : arrays of shape (D,) and (D, D)
        Inputs and their products.
    known, y, yy : arrays of shape (T,)
        Weights of the entries that are not missing, their recorded values (a bound counts as its
        value) and squares.
    x_known, xy : arrays of shape (D, T)
        Inputs of these entries, and their products with the values.
    left, right : arrays of shape (T,)
        Weights of the entries that are censored at a bound.
    y_inside, yy_inside : arrays of shape (T,)
        Values and squares of those that are not.
    at_lower, at_upper : arrays of shape (2, T)
        Least and largest bound among the left- and the right-censored entries; inf and −inf where
        there are none.
    """

    n_rows: float
    weight: float
    x: FloatArray
    xx: FloatArray
    known: FloatArray
    y: FloatArray
    yy: FloatArray
    x_known: FloatArray
    xy: FloatArray
    left: FloatArray
    right: FloatArray
    y_inside: FloatArray
    yy_inside: FloatArray
    at_lower: FloatArray
    at_upper: FloatArray

    @property
    def inside(self) -> FloatArray:
        """Weights of the entries that are neither missing nor censored at a bound, (T,)."""
        return np.maximum(self.known - self.left - self.right, 0.0)

    def __add__(self, other: Moments) -> Moments:
        """The moments of both."""
        parts = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
        }
        for side in ("at_lower", "at_upper"):
            parts[side] = _extremes(getattr(self, side), getattr(other, side))
        return Moments(**parts)


@dataclass(frozen=True)
class SumMoments:
    """The moments of some rows, as inputs of a layer; a task for a shard."""

    inputs: LayerInputs
    shift: Shift

    def __call__(self, rows: RawRows) -> Moments:
        """Sum over blocks of the rows."""
        return sum_of(self._sum(part) for part in blocks_of(rows, _ROWS))

    def _sum(self, rows: RawRows) -> Moments:
        x = self.inputs(rows.X) - self.shift.X
        values = recorded_values(rows.low, rows.high) - self.shift.Y
        known = np.where(np.isnan(values), 0.0, rows.weight[:, None])
        y = np.nan_to_num(values)
        left, right = np.isneginf(rows.low), np.isposinf(rows.high)
        heavy_y = known * y
        inside = np.where(left | right, 0.0, heavy_y)
        return Moments(
            n_rows=float(len(x)),
            weight=float(rows.weight.sum()),
            x=rows.weight @ x,
            xx=x.T @ (x * rows.weight[:, None]),
            known=known.sum(axis=0),
            y=heavy_y.sum(axis=0),
            yy=(heavy_y * y).sum(axis=0),
            x_known=x.T @ known,
            xy=x.T @ heavy_y,
            left=rows.weight @ left,
            right=rows.weight @ right,
            y_inside=inside.sum(axis=0),
            yy_inside=(inside * y).sum(axis=0),
            at_lower=_range(rows.high, left),
            at_upper=_range(rows.low, right),
        )


def blocks_of(rows: RawRows, size: int) -> Iterator[RawRows]:
    """Consecutive blocks of at most ``size`` rows; one, if there are none."""
    for start in range(0, max(len(rows.weight), 1), size):
        yield rows.part(slice(start, start + size))


def _range(bounds: FloatArray, chosen: np.ndarray) -> FloatArray:
    least = np.where(chosen, bounds, np.inf).min(axis=0, initial=np.inf)
    largest = np.where(chosen, bounds, -np.inf).max(axis=0, initial=-np.inf)
    return np.stack([least, largest])


def _extremes(one: FloatArray, two: FloatArray) -> FloatArray:
    return np.stack([np.minimum(one[0], two[0]), np.maximum(one[1], two[1])])
