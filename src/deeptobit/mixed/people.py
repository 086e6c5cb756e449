"""What is known of people: their posterior, without a new fit, and what follows at other visits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, solve_triangular

from deeptobit.arrays import FloatArray, IntArray
from deeptobit.mixed.evidence import Effects, Visits, evidence
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

    def with_visits(self, others: KnownPeople, effects: Effects) -> KnownPeople:
        """These people with further visits, and new people; sites of ``others`` are computed."""
        labels = tuple(dict.fromkeys((*self.labels, *others.labels)))
        places = {label: place for place, label in enumerate(labels)}
        person = np.concatenate([part._person(places) for part in (self, others)])
        order = np.argsort(person, kind="stable")
        fields = {
            name: np.concatenate([getattr(self, name), getattr(others, name)])[order]
            for name in ("low", "high", "mean", "z", "time", "tau", "nu")
        }
        starts = np.concatenate([[0], np.cumsum(np.bincount(person))])
        concerned = np.isin(person, person[len(self.time) :])[order]
        known = fields["low"], fields["high"], fields["z"]
        visits = Visits(starts, *known, np.ones(len(labels))).where(concerned)
        found = evidence(visits, fields["mean"][concerned], effects)
        fields["tau"][concerned], fields["nu"][concerned] = found.tau, found.nu
        return KnownPeople(labels=labels, starts=starts, **fields)

    def _person(self, places: dict[Any, int]) -> IntArray:
        """The place of the person of every row, (N,)."""
        found = np.array([places[label] for label in self.labels], dtype=np.int64)
        return np.repeat(found, np.diff(self.starts))

    def posterior(self, person: int, effects: Effects) -> PersonPosterior:
        """Of the effects that a person keeps."""
        rows = slice(self.starts[person], self.starts[person + 1])
        return posterior(self.z[rows], self.tau[rows], self.nu[rows], effects)

    def last_recorded(self, names: Any, location: FloatArray, scale: FloatArray) -> FloatArray:
        """The latest known scores of people in the user's units, NaN where none is, (N, T)."""
        values = recorded_values(self.low, self.high) * scale + location
        places, order = self.places(), np.argsort(self.time, kind="stable")
        by_person = pd.DataFrame(values[order]).groupby(self._person(places)[order])
        found = by_person.last().reindex([places.get(name, -1) for name in names])
        return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True)
class PersonPosterior:
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
    own, tasks = np.zeros((len(z), n_tasks, n_tasks, q)), np.arange(n_tasks)
    own[:, tasks, tasks] = np.einsum("nq,tqk->ntk", z, effects.own)
    shared = np.einsum("nq,tqk->ntk", z, effects.shared)
    return np.concatenate([own.reshape(len(z), n_tasks, n_tasks * q), shared], axis=2)


def posterior(z: FloatArray, tau: FloatArray, nu: FloatArray, effects: Effects) -> PersonPosterior:
    """The posterior of a person from the sites of visits, in whose factors it is integrated."""
    loads, visit = person_loads(z, effects), effects.visit
    size, weighted = loads.shape[2], tau[..., None] * loads
    precision = np.eye(size) + np.einsum("vti,vtj->ij", loads, weighted)
    right = np.einsum("vti,vt->i", loads, nu)
    # The factors of every visit given the person, eliminated.
    inner = np.eye(visit.shape[1]) + np.einsum("tg,vt,th->vgh", visit, tau, visit)
    cross = np.einsum("tg,vti->vgi", visit, weighted)
    solved = np.linalg.solve(inner, np.concatenate([cross, (nu @ visit)[..., None]], axis=2))
    precision -= np.einsum("vgi,vgj->ij", cross, solved[..., :-1])
    right -= np.einsum("vgi,vg->i", cross, solved[..., -1])
    lower = cholesky(precision, lower=True)
    root = solve_triangular(lower, np.eye(size), lower=True).T
    return PersonPosterior(root @ (root.T @ right), root)


def by_person(labels: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Names in the order of their first row, each with its rows."""
    codes, names = pd.factorize(np.asarray(labels), use_na_sentinel=True)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    yield from zip(names, np.split(order, ends[:-1]), strict=True)
