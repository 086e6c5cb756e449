"""A noise family for every task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray
from deeptobit.likelihood.noise import Derivatives, Noise, SymmetricNoise
from deeptobit.likelihood.normal import piecewise
from deeptobit.likelihood.spread import ScoreGrid, Spread


def _of_each_family(name: str) -> Any:
    """A method of :class:`Noise` that calls itself on the tasks of every family."""

    def method(self: NoiseByTask, z: FloatArray) -> FloatArray:
        return self.each(lambda noise, part: getattr(noise, name)(part), z)

    method.__name__, method.__doc__ = name, getattr(Noise, name).__doc__
    return method


class NoiseByTask(Noise):
    """Noise whose family differs from task to task: the last axis of every array is the tasks'.

    It serves predictions. Models are fitted with one family for all tasks.

    Parameters
    ----------
    families : sequence of Noise
        One for every task.
    spread : Spread, optional
        How the scale of the noise changes with the score; by default it does not. The functions
        below are those of the standardised noise, whose scale :func:`at_scores` gives.
    grid : ScoreGrid, optional
        The possible scores; by default outcomes are continuous. Predictive distributions know the
        grid, the functions below do not.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian, Logistic
    >>> noise = NoiseByTask([Gaussian(), Logistic(), Gaussian()])
    >>> noise.variance().round(2)
    array([1.  , 3.29, 1.  ])
    >>> noise
    NoiseByTask([Gaussian(), Logistic(), Gaussian()])
    """

    name = "task-wise"

    def __init__(
        self, families: Sequence[Noise], spread: Spread | None = None, grid: ScoreGrid | None = None
    ) -> None:
        if any(isinstance(family, NoiseByTask) for family in families):
            raise TypeError("families must be those of single tasks, not a NoiseByTask")
        for name, values in (("spread", spread), ("grid", grid)):
            if values is not None and len(values) != len(families):
                raise ValueError(
                    f"{name} is that of {len(values)} task(s), but there are "
                    f"{len(families)} families"
                )
        self._distinct: list[Noise] = []
        for family in families:
            if family not in self._distinct:
                self._distinct.append(family)
        self._which = np.array([self._distinct.index(each) for each in families], dtype=np.intp)
        self.spread, self.grid = spread, grid

    @property
    def families(self) -> tuple[Noise, ...]:
        """The family of every task."""
        return tuple(self._distinct[place] for place in self._which.tolist())

    def at(self, places: NDArray[np.intp]) -> NoiseByTask:
        """The noise of some places along the last axis, such as the tasks of single entries."""
        some = copy(self)
        some._which = self._which[places]
        some.spread = None if self.spread is None else self.spread.of(places)
        some.grid = None if self.grid is None else self.grid.of(places)
        return some

    log_pdf = _of_each_family("log_pdf")
    score = _of_each_family("score")
    score_slope = _of_each_family("score_slope")
    log_cdf = _of_each_family("log_cdf")
    log_sf = _of_each_family("log_sf")
    upper_mean = _of_each_family("upper_mean")
    lower_mean = _of_each_family("lower_mean")
    upper_crps = _of_each_family("upper_crps")
    lower_crps = _of_each_family("lower_crps")

    def ppf(self, q: FloatArray) -> FloatArray:
        """Quantile function F⁻¹(q); one q for all tasks is that of each."""
        q = np.asarray(q, dtype=np.float64)
        every = np.broadcast_to(q, np.broadcast_shapes(q.shape, self._which.shape))
        return self.each(lambda noise, part: noise.ppf(part), every)

    def interval(self, a: FloatArray, b: FloatArray) -> Derivatives:
        """−log(F(b) − F(a)) and its derivatives."""
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        self.check_tasks(a.shape)
        out = np.empty((len(Derivatives._fields), *a.shape))
        for noise, tasks in self._groups():
            out[..., tasks] = noise.interval(a[..., tasks], b[..., tasks])
        return Derivatives(*out)

    def mean(self) -> FloatArray:
        """E[ε] of every task, (T,)."""
        return np.array([noise.mean() for noise in self._distinct])[self._which]

    def variance(self) -> FloatArray:
        """Var[ε] of every task, (T,)."""
        return np.array([noise.variance() for noise in self._distinct])[self._which]

    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Independent draws of ε, whose last axis is the tasks'."""
        return self.each(lambda noise, part: noise.sample(rng, part.shape), np.empty(shape))

    def each(
        self, function: Callable[[Noise, FloatArray], FloatArray], z: FloatArray
    ) -> FloatArray:
        """Apply a function to the tasks of every family."""
        z = np.asarray(z, dtype=np.float64)
        self.check_tasks(z.shape)
        out = np.empty(z.shape)
        for noise, tasks in self._groups():
            out[..., tasks] = function(noise, z[..., tasks])
        return out

    def check_tasks(self, shape: tuple[int, ...]) -> None:
        """Check the number of tasks: broadcasting would give all of them the noise of the first."""
        if shape[-1:] != self._which.shape:
            raise ValueError(
                f"the noise is that of {len(self._which)} task(s), but the array has shape "
                f"{shape}; pass all tasks in their order, or the noise of some "
                "(likelihood.of_tasks)"
            )

    def _groups(self) -> list[tuple[Noise, NDArray[np.intp]]]:
        found = [np.flatnonzero(self._which == place) for place in range(len(self._distinct))]
        return [(n, tasks) for n, tasks in zip(self._distinct, found, strict=True) if tasks.size]

    def __repr__(self) -> str:
        """Name the family of every task."""
        growth = "" if self.spread is None else f", growth={self.spread.growth.round(2).tolist()}"
        step = "" if self.grid is None else f", step={self.grid.step.round(4).tolist()}"
        return f"NoiseByTask({list(self.families)!r}{growth}{step})"

    def __eq__(self, other: object) -> bool:
        """Whether all tasks have the same families, spreads and scores."""
        return isinstance(other, NoiseByTask) and self._state == other._state

    def __hash__(self) -> int:
        """By the families."""
        return hash(self.families)

    @property
    def _state(self) -> tuple[object, ...]:
        return self.families, self.spread, self.grid


# The noise of some tasks or entries, its spread and its score grid.


def of_task(noise: Noise, task: int) -> Noise:
    """The family of one task.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian, Logistic
    >>> of_task(NoiseByTask([Gaussian(), Logistic()]), 1), of_task(Gaussian(), 1)
    (Logistic(), Gaussian())
    """
    return noise.families[task] if isinstance(noise, NoiseByTask) else noise


def of_tasks(noise: Noise, tasks: Sequence[int]) -> Noise:
    """The noise of some tasks, in their order.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian, Logistic
    >>> of_tasks(NoiseByTask([Gaussian(), Logistic(), Gaussian()]), [1, 0])
    NoiseByTask([Logistic(), Gaussian()])
    """
    return noise.at(np.array(tasks, dtype=np.intp)) if isinstance(noise, NoiseByTask) else noise


def at_scores(noise: Noise, latent: FloatArray, sigma: FloatArray) -> tuple[Noise, FloatArray]:
    """The standardised noise, and its scale at the scores: σ, or (..., T) where it changes.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> grows = Spread(np.array([0.5]), np.zeros(1), np.ones(1))
    >>> noise, sigma = at_scores(NoiseByTask([Gaussian()], grows), np.array([[0.0], [1.0]]), 2.0)
    >>> noise, sigma.ravel().round(2)
    (NoiseByTask([Gaussian()]), array([2.  , 3.21]))
    """
    if not isinstance(noise, NoiseByTask) or noise.spread is None:
        return noise, sigma
    noise.check_tasks(np.shape(latent))
    return with_one_spread(noise), np.asarray(sigma * noise.spread.factor(latent))


def beyond(noise: Noise, z: FloatArray) -> FloatArray:
    """E[(ε − z)₊] where z > 0, E[(z − ε)₊] elsewhere: never the larger part of the noise.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> beyond(Gaussian(), np.array([-1.0, 1.0])).round(3)
    array([0.083, 0.083])
    """
    if isinstance(noise, SymmetricNoise):
        return noise.upper_mean(np.abs(z))
    if isinstance(noise, NoiseByTask):
        return noise.each(beyond, z)
    return piecewise(z, z > 0.0, noise.upper_mean, noise.lower_mean)


def with_one_spread(noise: Noise) -> Noise:
    """The noise with the same spread at all scores.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> with_one_spread(Gaussian())
    Gaussian()
    """
    if not isinstance(noise, NoiseByTask) or noise.spread is None:
        return noise
    noise = copy(noise)
    noise.spread = None
    return noise


def with_spread(noise: Noise, spread: Spread) -> Noise:
    """The noise of all tasks with a spread that changes with the score, if it does.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> with_spread(Gaussian(), Spread(np.array([0.0, 0.5]), np.zeros(2), np.ones(2)))
    NoiseByTask([Gaussian(), Gaussian()], growth=[0.0, 0.5])
    """
    if not spread.growth.any():
        return noise
    return NoiseByTask(_families(noise, len(spread)), spread, grid_of(noise))


def grid_of(noise: Noise) -> ScoreGrid | None:
    """The score grid of the noise; None if outcomes of all tasks are continuous.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> grid_of(Gaussian())
    """
    return noise.grid if isinstance(noise, NoiseByTask) else None


def with_grid(noise: Noise, grid: ScoreGrid | None) -> Noise:
    """The noise of all tasks with a grid of possible scores, if any task has one.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> with_grid(Gaussian(), ScoreGrid(np.array([0.0, 1.0]), np.zeros(2)))
    NoiseByTask([Gaussian(), Gaussian()], step=[0.0, 1.0])
    """
    if grid is None or not grid.step.any():
        return noise
    spread = noise.spread if isinstance(noise, NoiseByTask) else None
    return NoiseByTask(_families(noise, len(grid)), spread, grid)


def join_families(families: Sequence[Noise]) -> Noise:
    """One family for all tasks where they agree, otherwise one for each.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian, Logistic
    >>> join_families([Gaussian(), Gaussian()])
    Gaussian()
    """
    noise = NoiseByTask(families)
    return noise.families[0] if len(noise._distinct) == 1 else noise


def _families(noise: Noise, n_tasks: int) -> list[Noise]:
    return [of_task(noise, task) for task in range(n_tasks)]
