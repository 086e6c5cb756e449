"""What is known of people: their posterior, without a new fit, and what follows at other visits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from deeptobit.arrays import FloatArray, IntArray
from deeptobit.mixed.evidence import Effects, Sites, Visits, evidence
from deeptobit.targets import recorded_values


@dataclass(frozen=True)
class KnownPeople:
    """Visits of people in standard units, with the sites of their entries.

    Parameters
    ----------
    labels : tuple
        Names of the n people.
    starts : array of shape (n + 1,)
        The first row of every person, and the number of rows N.
    low, high, mean : arrays of shape (N, T)
        Ends of what is known of the entries, and their fixed effects.
    z : array of shape (N, q)
    time : array of shape (N,)
        In the user's unit, NaN where it was not given.
    tau, nu : arrays of shape (N, T)
        Sites.
    """

    labels: tuple[Any, ...]
    starts: IntArray
    low: FloatArray
    high: FloatArray
    mean: FloatArray
    z: FloatArray
    time: FloatArray
    tau: FloatArray
    nu: FloatArray

    @classmethod
    def nobody(cls, n_tasks: int, q: int) -> KnownPeople:
        """Nothing is known of anybody."""
        entries = np.empty((0, n_tasks))
        z, time = np.empty((0, q)), np.empty(0)
        starts = np.zeros(1, dtype=np.int64)
        return cls((), starts, entries, entries, entries, z, time, entries, entries)

    def places(self) -> dict[Any, int]:
        """The number of every person by name."""
        return {label: place for place, label in enumerate(self.labels)}

    def rows(self, person: int) -> slice:
        """The rows of a person."""
        return slice(int(self.starts[person]), int(self.starts[person + 1]))

    def with_visits(self, others: KnownPeople, effects: Effects) -> KnownPeople:
        """These people with further visits, others too; sites of those concerned are found."""
        places = self.places()
        added = {label: rows for rows, label in zip(others._slices(), others.labels, strict=True)}
        new = [label for label in others.labels if label not in places]
        parts: list[tuple[KnownPeople, slice]] = []
        counts, touched = [], []
        for label in (*self.labels, *new):
            own = [(self, self.rows(places[label]))] if label in places else []
            further = [(others, added[label])] if label in added else []
            parts += own + further
            counts.append(sum(rows.stop - rows.start for _, rows in own + further))
            touched.append(bool(further))

        def joined(name: str) -> FloatArray:
            return np.concatenate([getattr(source, name)[rows] for source, rows in parts])

        fields = {name: joined(name) for name in ("low", "high", "mean", "z", "time", "tau", "nu")}
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        (chosen,) = np.nonzero(np.array(touched))
        at = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in chosen])
        some = np.concatenate([[0], np.cumsum(np.asarray(counts)[chosen])]).astype(np.int64)
        low, high, z = (np.ascontiguousarray(fields[name][at]) for name in ("low", "high", "z"))
        visits, sites = Visits(some, low, high, z, np.ones(len(chosen))), Sites((0, 0))
        sites.tau, sites.nu = fields["tau"][at], fields["nu"][at]
        evidence(visits, fields["mean"][at], effects, sites)
        fields["tau"][at], fields["nu"][at] = sites.tau, sites.nu
        return KnownPeople(labels=(*self.labels, *new), starts=starts, **fields)

    def _slices(self) -> list[slice]:
        return [self.rows(person) for person in range(len(self.labels))]

    def posterior(self, person: int, effects: Effects) -> Posterior:
        """Of the effects that a person keeps."""
        rows = self.rows(person)
        return posterior(self.z[rows], self.tau[rows], self.nu[rows], effects)

    def last_recorded(self, names: Any, location: FloatArray, scale: FloatArray) -> FloatArray:
        """The latest known scores of people in the user's units, NaN where none is, (N, T)."""
        values = recorded_values(self.low, self.high) * scale + location
        places = self.places()
        last = np.full((len(names), values.shape[1]), np.nan)
        for name, rows in by_person(names):
            if name in places:
                last[rows] = self.last_values(places[name], values)
        return last

    def last_values(self, person: int, values: FloatArray) -> FloatArray:
        """The latest of the values (N, T) that is known of every outcome, NaN if none is."""
        rows = self.rows(person)
        order = np.argsort(self.time[rows], kind="stable")
        ordered = values[rows][order]
        last = np.full(values.shape[1], np.nan)
        for row in ordered:
            last = np.where(np.isnan(row), last, row)
        return last


@dataclass(frozen=True)
class Posterior:
    """Mean (k,) of a person's standard normal effects u, and R (k, k) with covariance RRᵀ."""

    mean: FloatArray
    root: FloatArray

    def at(self, loads: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of loads (..., k) times u."""
        return loads @ self.mean, np.square(loads @ self.root).sum(axis=-1)


def person_loads(z: FloatArray, effects: Effects) -> FloatArray:
    """Loadings of the scores of rows on what a person keeps: own effects, then factors.

    Of shape (N, T, Tq + R).
    """
    n_tasks, q = effects.own.shape[:2]
    loads = np.zeros((len(z), n_tasks, n_tasks * q + effects.shared.shape[2]))
    own = np.einsum("nq,tqk->ntk", z, effects.own)
    for task in range(n_tasks):
        loads[:, task, task * q : (task + 1) * q] = own[:, task]
    loads[..., n_tasks * q :] = np.einsum("nq,tqk->ntk", z, effects.shared)
    return loads


def posterior(z: FloatArray, tau: FloatArray, nu: FloatArray, effects: Effects) -> Posterior:
    """The posterior of a person from the sites of visits, in whose factors it is integrated."""
    loads = person_loads(z, effects)
    size, n_visit = loads.shape[2], effects.visit.shape[1]
    precision = np.eye(size)
    right = np.zeros(size)
    for a, weight, push in zip(loads, tau, nu, strict=True):
        weighted = weight[:, None] * a
        precision += a.T @ weighted
        right += a.T @ push
        if n_visit:
            # The visit's factors given the person, eliminated.
            inner = np.eye(n_visit) + effects.visit.T @ (weight[:, None] * effects.visit)
            cross = effects.visit.T @ weighted
            solved = np.linalg.solve(inner, np.column_stack([cross, effects.visit.T @ push]))
            precision -= cross.T @ solved[:, :-1]
            right -= cross.T @ solved[:, -1]
    lower = cholesky(precision, lower=True)
    root = solve_triangular(lower, np.eye(size), lower=True).T
    return Posterior(root @ (root.T @ right), root)


def by_person(labels: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Names in the order of their first row, each with its rows."""
    import pandas as pd

    codes, names = pd.factorize(np.asarray(labels), use_na_sentinel=True)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    yield from zip(names, np.split(order, ends[:-1]), strict=True)
