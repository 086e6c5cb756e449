"""Rows of people: sorted in memory, and beyond it read as whole people, block by block."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self
from zlib import crc32

import numpy as np
import pandas as pd

from deeptobit import mixed
from deeptobit.arrays import FloatArray, read_groups, refuse_dates
from deeptobit.estimators import inputs
from deeptobit.network import LayerInputs
from deeptobit.scale import Block, Moments, RowReader, Rows, RowSource, Shift, SumMoments
from deeptobit.scale.source import S, sum_of

_HEAD_ROWS = 16_384  # of which a fit beyond memory makes its choices, and begins


class PersonRows(NamedTuple):
    """Rows sorted by person, and within one by time.

    ``order`` sorts the rows, ``starts`` are the first rows of people in that order, ``n_people`` is
    the total weight of people. ``twice``: somebody has two visits with an outcome; ``moving``: at
    different times.
    """

    labels: tuple[Any, ...]
    order: Any
    starts: Any
    time: FloatArray | None
    n_people: float
    named: bool
    twice: bool
    moving: bool

    @classmethod
    def read(cls, groups: Any, time: Any, missing: Any, weight: FloatArray) -> Self:
        """Check groups, time and weights, and sort; outcomes are ``missing``, (N, T)."""
        when = read_time(time, len(missing))
        person, names = pd.factorize(read_groups(groups, len(missing)))
        order = np.argsort(person, kind="stable") if when is None else np.lexsort((when, person))
        starts = np.concatenate([[0], np.cumsum(np.bincount(person))])
        first = order[starts[:-1]]
        for row in np.flatnonzero(weight != weight[first][person]).tolist():
            raise ValueError(
                f"person {plain(names[person[row]])!r} has rows of different sample_weight; "
                "weights are those of people, the same in all rows of one"
            )
        known = ~missing.all(axis=1) & (weight > 0.0)
        twice, moving = bool((np.bincount(person[known]) > 1).any()), False
        if when is not None:
            times = pd.Series(when[known]).groupby(person[known])
            moving = bool((times.max() > times.min()).any())
        labels, n_people = tuple(map(plain, names)), float(weight[first].sum())
        return cls(labels, order, starts, when, n_people, groups is not None, twice, moving)

    def numbers(self, matrix: Any, values: FloatArray, weight: FloatArray) -> Any:
        """Numbers of people, (n,), that depend on what is known of them: twins share theirs."""
        known = np.column_stack([matrix, values])[self.order]
        ends = zip(self.starts[:-1], self.starts[1:], strict=True)
        hashes = np.array([crc32(known[first:last].tobytes()) for first, last in ends])
        counted = weight[self.order[self.starts[:-1]]] > 0.0
        return np.searchsorted(np.unique(hashes[counted]), hashes)

    def vary(self, matrix: Any) -> bool:
        """Whether some feature differs between visits of one person."""
        first = np.repeat(self.order[self.starts[:-1]], np.diff(self.starts))
        return bool((matrix[self.order] != matrix[first]).any())

    def time_units(self, weight: FloatArray) -> FloatArray:
        """Mean and standard deviation of time."""
        if self.time is None:
            return np.array([0.0, 1.0])
        (spread,) = inputs.feature_scale(self.time[:, None], weight)
        return np.array([np.average(self.time, weights=weight), spread or 1.0])

    def visits(
        self, units: mixed.MixedUnits, low: FloatArray, high: FloatArray, weight: FloatArray, q: int
    ) -> mixed.Visits:
        """Active outcomes in standard units, people one after the other, with q effects each."""
        order = self.order
        low, high = (
            np.ascontiguousarray(((end - units.location) / units.scale)[order][:, units.active])
            for end in (low, high)
        )
        z = units.z(self.time, len(order), q)[order]
        return mixed.Visits(self.starts, low, high, z, weight[order[self.starts[:-1]]])


def plain(label: Any) -> Any:
    """A label without NumPy around it."""
    return label.item() if isinstance(label, np.generic) else label


def read_time(time: Any, n_rows: int) -> FloatArray | None:
    """Times of visits, one per row."""
    if time is None:
        return None
    refuse_dates(time, "time")
    when = np.asarray(time, dtype=np.float64)
    if when.shape != (n_rows,):
        raise ValueError(f"time must hold a number per row ({n_rows}); got shape {when.shape}")
    wrong = ~np.isfinite(when)
    if wrong.any():
        raise ValueError(f"time is missing or infinite in row {int(wrong.argmax())}")
    return when


# Beyond memory.


class VisitRows(NamedTuple):
    """Rows of visits: features, ends of what is known of the outcomes, weights, people, times."""

    X: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray
    group: Any
    time: FloatArray | None

    @classmethod
    def read(cls, reader: RowReader, block: Block) -> Self:
        """Those of positive weight in a block."""
        try:
            read_groups(block.group, len(block.X))
            read_time(block.time, len(block.X))
        except ValueError as error:
            raise ValueError(f"{block.where}: {error}") from None
        kept = slice(None) if block.weight is None else block.weight > 0.0
        time = None if block.time is None else block.time[kept]
        return cls(*reader(block), block.group[kept], time)

    def where(self, rows: Any) -> "VisitRows":
        """Some of them."""
        return VisitRows._make(None if part is None else part[rows] for part in self)

    def people(self) -> PersonRows:
        """The same by person."""
        return PersonRows.read(self.group, self.time, np.isnan(self.low), self.weight)


def joined(parts: list[VisitRows]) -> VisitRows:
    """Rows one after the other."""
    columns = zip(*parts, strict=True)
    return VisitRows._make(None if part[0] is None else np.concatenate(part) for part in columns)


@dataclass(frozen=True)
class WholePeople:
    """Sums over the people of a shard, chunk by chunk, each person in one; a task for a source.

    The rows of a person follow each other: the last one of a block waits for the next block.
    """

    reader: RowReader
    task: Callable[[VisitRows, PersonRows], Any]

    def __call__(self, blocks: Iterable[Block]) -> Any:
        """Add up the task's results."""
        return sum_of(self._results(blocks))

    def _results(self, blocks: Iterable[Block]) -> Iterator[Any]:
        rest: list[VisitRows] = []
        for block in blocks:
            rows = joined([*rest, VisitRows.read(self.reader, block)])
            last = rows.group == rows.group[-1:]
            if not last.all():
                ended = rows.where(~last)
                yield self.task(ended, ended.people())
            rest = [rows.where(last)]
        yield from (self.task(rows, rows.people()) for rows in rest)


@dataclass(frozen=True)
class PeopleSeen:
    """What a fit needs to know of everybody; shards add up.

    Parameters
    ----------
    labels : tuple
    origin : float
        Of time.
    n_people, n_rows : float
        Weights.
    twice, moving, varying : bool
        Somebody has two visits with an outcome, at different times, of different features.
    when : array of shape (2,), optional
        Sums of time, from an origin, and of its square.
    """

    labels: tuple[Any, ...]
    origin: float
    n_people: float
    n_rows: float
    twice: bool
    moving: bool
    varying: bool
    when: Any
    named: bool = True

    @classmethod
    def of(cls, origin: float, rows: VisitRows, people: PersonRows) -> Self:
        """Those of some rows."""
        when = None
        if rows.time is not None:
            t = rows.time - origin
            when = np.array([rows.weight @ t, rows.weight @ (t * t)])
        n_rows, varying = float(rows.weight.sum()), people.vary(rows.X)
        seen = people.twice, people.moving, varying
        return cls(people.labels, origin, people.n_people, n_rows, *seen, when)

    def __add__(self, other: "PeopleSeen") -> "PeopleSeen":
        """Those of both."""
        return PeopleSeen(
            self.labels + other.labels,
            self.origin,
            self.n_people + other.n_people,
            self.n_rows + other.n_rows,
            self.twice or other.twice,
            self.moving or other.moving,
            self.varying or other.varying,
            None if self.when is None else self.when + other.when,
        )

    def time_units(self) -> FloatArray:
        """Mean and standard deviation of time."""
        if self.when is None:
            return np.array([0.0, 1.0])
        mean, square = self.when / self.n_rows
        return np.array([self.origin + mean, np.sqrt(max(square - mean * mean, 0.0)) or 1.0])


@dataclass(frozen=True)
class PeopleOfSource:
    """The people of a source: what is known of them all, and sums over them.

    Parameters
    ----------
    source : RowSource
    reader : RowReader
    seen : PeopleSeen
    units : MixedUnits, optional
        Once they are known.
    """

    source: RowSource
    reader: RowReader
    seen: PeopleSeen
    units: mixed.MixedUnits | None = None

    @classmethod
    def read(cls, source: RowSource, reader: RowReader) -> Self:
        """Look at everybody once; nobody may be in two places."""
        first = source.first()
        if first.group is None:
            raise ValueError(
                "a mixed model of rows beyond memory needs their people: ParquetRows(group=…), or "
                "groups partitioned as X is"
            )
        origin = 0.0 if first.time is None else float(first.time[0])
        seen = source.total(WholePeople(reader, partial(PeopleSeen.of, origin)))
        names = pd.Series(seen.labels, dtype=object)
        for label in names[names.duplicated()][:1].tolist():
            raise ValueError(
                f"the rows of person {label!r} do not follow each other in one file or partition: "
                "sort the rows by person, and keep each in one"
            )
        return cls(source, reader, seen)

    @property
    def n_people(self) -> float:
        """Weight of all people."""
        return self.seen.n_people

    @property
    def n_rows(self) -> float:
        """Weight of all their rows."""
        return self.seen.n_rows

    def moments(self) -> tuple[Moments, Shift]:
        """Moments of all rows."""
        first, reader = self.source.first(), self.reader
        shift = Shift.near(first.X, first.Y)
        inputs_of = LayerInputs(reader.lower, reader.upper)
        return Rows(self.source, reader).total(SumMoments(inputs_of, shift)), shift

    def head(self) -> VisitRows:
        """The first rows there are."""
        parts: list[VisitRows] = []
        for block in self.source.heads():
            parts.append(VisitRows.read(self.reader, block))
            if sum(len(part.weight) for part in parts) >= _HEAD_ROWS:
                break
        return joined(parts)

    def total(self, problem: mixed.MixedProblem, task: Callable[[mixed.MixedProblem], S]) -> S:
        """Add up what a task makes of the problem, with the visits of some people in turn."""
        nobody = np.zeros(len(problem.visits.low), dtype=np.bool_)
        empty = replace(problem, beyond=None).where(nobody)
        assert self.units is not None
        each = partial(_of_some, self.units, empty, task)
        found: S = self.source.total(WholePeople(self.reader, each))
        return found


def _of_some(
    units: mixed.MixedUnits,
    problem: mixed.MixedProblem,
    task: Callable[[mixed.MixedProblem], S],
    rows: VisitRows,
    people: PersonRows,
) -> S:
    """What a task makes of a problem with these people."""
    visits = people.visits(units, rows.low, rows.high, rows.weight, problem.shape[2])
    return task(replace(problem, visits=visits, features=units.rows(rows.X)[people.order]))
