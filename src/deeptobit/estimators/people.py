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
from deeptobit.scale import Block, RowReader, RowSource
from deeptobit.scale.source import S, sum_of

_HEAD_ROWS = 16_384  # of which a fit beyond memory makes its choices, and begins


class VisitRows(NamedTuple):
    """Rows of visits: features, ends of what is known of the outcomes, weights, people, times.

    People and times are as the user gives them, or None.
    """

    X: FloatArray
    low: FloatArray
    high: FloatArray
    weight: FloatArray
    group: Any
    time: Any

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


class PersonRows(NamedTuple):
    """Rows sorted by person, and within one by time.

    ``order`` sorts the rows, ``starts`` are the first rows of people in that order.
    """

    rows: VisitRows
    labels: tuple[Any, ...]
    order: Any
    starts: Any
    time: FloatArray | None

    @classmethod
    def read(cls, rows: VisitRows) -> Self:
        """Check groups, time and weights, and sort."""
        weight = rows.weight
        when = read_time(rows.time, len(weight))
        person, names = pd.factorize(read_groups(rows.group, len(weight)))
        order = np.argsort(person, kind="stable") if when is None else np.lexsort((when, person))
        starts = np.concatenate([[0], np.cumsum(np.bincount(person))])
        first = order[starts[:-1]]
        for row in np.flatnonzero(weight != weight[first][person]).tolist():
            raise ValueError(
                f"person {plain(names[person[row]])!r} has rows of different sample_weight; "
                "it must be constant within a person"
            )
        return cls(rows, tuple(map(plain, names)), order, starts, when)

    @property
    def named(self) -> bool:
        """Whether people have names."""
        return self.rows.group is not None

    @property
    def first(self) -> Any:
        """The first row of every person, (n,)."""
        return self.order[self.starts[:-1]]

    def numbers(self, values: FloatArray) -> Any:
        """Numbers of people, (n,), that depend on what is known of them: twins share theirs."""
        known = np.column_stack([self.rows.X, values])[self.order]
        ends = zip(self.starts[:-1], self.starts[1:], strict=True)
        hashes = np.array([crc32(known[first:last].tobytes()) for first, last in ends])
        counted = self.rows.weight[self.first] > 0.0
        return np.searchsorted(np.unique(hashes[counted]), hashes)

    def in_units(self, units: mixed.MixedUnits, q: int) -> tuple[mixed.Visits, FloatArray]:
        """Visits with q effects and features in standard units, people one after the other."""
        rows, order = self.rows, self.order
        low, high = (
            np.ascontiguousarray(((end - units.location) / units.scale)[order][:, units.active])
            for end in (rows.low, rows.high)
        )
        z = units.z(self.time, len(order), q)[order]
        visits = mixed.Visits(self.starts, low, high, z, rows.weight[self.first])
        return visits, units.rows(rows.X)[order]


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
    task: Callable[[PersonRows], Any]

    def __call__(self, blocks: Iterable[Block]) -> Any:
        """Add up the task's results."""
        return sum_of(self._results(blocks))

    def _results(self, blocks: Iterable[Block]) -> Iterator[Any]:
        rest: list[VisitRows] = []
        for block in blocks:
            rows = joined([*rest, VisitRows.read(self.reader, block)])
            last = rows.group == rows.group[-1:]
            if not last.all():
                yield self.task(PersonRows.read(rows.where(~last)))
            rest = [rows.where(last)]
        yield from (self.task(PersonRows.read(rows)) for rows in rest)


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
    named : bool
        Whether people have names.
    twice, moving, varying : int
        How many people have two visits with an outcome; at different times; and how many visits
        have other features than the first of the person.
    when : array of shape (2,)
        Sums of time, from an origin, and of its square; NaN where times are not known.
    """

    labels: tuple[Any, ...]
    origin: float
    n_people: float
    n_rows: float
    named: bool
    twice: int
    moving: int
    varying: int
    when: FloatArray

    @classmethod
    def of(cls, origin: float, people: PersonRows) -> Self:
        """Those of some rows."""
        rows, order, weight = people.rows, people.order, people.rows.weight
        t = np.full(len(weight), np.nan) if people.time is None else people.time - origin
        when = np.array([weight @ t, weight @ (t * t)])
        person = np.repeat(np.arange(len(people.labels)), np.diff(people.starts))
        known = (~np.isnan(rows.low).all(axis=1) & (weight > 0.0))[order]
        times = pd.Series(t[order][known]).groupby(person[known])
        twice, moving = int((times.size() > 1).sum()), int((times.max() > times.min()).sum())
        varying = int((rows.X[order] != rows.X[people.first[person]]).any(axis=1).sum())
        weights = float(weight[people.first].sum()), float(weight.sum())
        return cls(people.labels, origin, *weights, people.named, twice, moving, varying, when)

    def __add__(self, other: "PeopleSeen") -> "PeopleSeen":
        """Those of both."""
        sums = ("labels", "n_people", "n_rows", "twice", "moving", "varying", "when")
        both: Any = {name: getattr(self, name) + getattr(other, name) for name in sums}
        return replace(self, **both)

    @property
    def timed(self) -> bool:
        """Whether times are known."""
        return not bool(np.isnan(self.when).any())

    def time_units(self) -> FloatArray:
        """Mean and standard deviation of time."""
        if not self.timed:
            return np.array([0.0, 1.0])
        mean, square = self.when / self.n_rows
        return np.array([self.origin + mean, np.sqrt(max(square - mean * mean, 0.0)) or 1.0])


def see_people(source: RowSource, reader: RowReader) -> PeopleSeen:
    """Look at everybody once; nobody may be in two places."""
    first = source.first()
    if first.group is None:
        raise ValueError(
            "a mixed model of rows beyond memory needs their people: ParquetRows(group=…), or "
            "groups partitioned as X is"
        )
    origin = 0.0 if first.time is None else float(first.time[0])
    seen: PeopleSeen = source.total(WholePeople(reader, partial(PeopleSeen.of, origin)))
    names = pd.Series(seen.labels, dtype=object)
    for label in names[names.duplicated()][:1].tolist():
        raise ValueError(
            f"the rows of person {label!r} do not follow each other in one file or partition: "
            "sort the rows by person, and keep each in one"
        )
    return seen


def first_visits(source: RowSource, reader: RowReader) -> VisitRows:
    """The first rows there are."""
    parts: list[VisitRows] = []
    for block in source.heads():
        parts.append(VisitRows.read(reader, block))
        if sum(len(part.weight) for part in parts) >= _HEAD_ROWS:
            break
    return joined(parts)


@dataclass(frozen=True)
class PeopleOfSource:
    """Sums over the people of a source.

    Parameters
    ----------
    source : RowSource
    reader : RowReader
    units : MixedUnits
    n_people, n_rows : float
        Weights of all people, and of all their rows.
    """

    source: RowSource
    reader: RowReader
    units: mixed.MixedUnits
    n_people: float
    n_rows: float

    def total(self, problem: mixed.MixedProblem, task: Callable[[mixed.MixedProblem], S]) -> S:
        """Add up what a task makes of the problem, with the visits of some people in turn."""
        nobody = np.zeros(len(problem.visits.low), dtype=np.bool_)
        empty = replace(problem, beyond=None).where(nobody)
        found: S = self.source.total(
            WholePeople(self.reader, partial(_of_some, self.units, empty, task))
        )
        return found


def _of_some(
    units: mixed.MixedUnits,
    problem: mixed.MixedProblem,
    task: Callable[[mixed.MixedProblem], S],
    people: PersonRows,
) -> S:
    """What a task makes of a problem with these people."""
    visits, features = people.in_units(units, problem.shape[2])
    return task(replace(problem, visits=visits, features=features))
