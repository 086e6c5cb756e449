"""A noise family for every task."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood.noise import Derivatives, Noise, SymmetricNoise
from deeptobit.likelihood.normal import piecewise
from deeptobit.likelihood.spread import ScoreGrid, Spread


class NoiseOfEntries:
    """Noise whose family differs along the last axis of every array.

    Parameters
    ----------
    distinct : tuple of Noise
    which : int array of shape (K,)
        The family of each place along the last axis.
    spread : Spread, optional
        Of each place, where the scale of the noise changes with the score. The functions below are
        those of the standardised noise, whose scale :func:`at_scores` gives.
    grid : ScoreGrid, optional
        Of each place, where outcomes are scores on a grid. It is their noise that is continuous:
        predictive distributions know the grid, the functions below do not.
    """

    name = "task-wise"

    def __init__(
        self,
        distinct: tuple[Noise, ...],
        which: NDArray[np.intp],
        spread: Spread | None = None,
        grid: ScoreGrid | None = None,
    ) -> None:
        self._distinct, self._which, self.spread, self.grid = distinct, which, spread, grid

    def at(self, places: NDArray[np.intp]) -> NoiseOfEntries:
        """The noise of some places along the last axis, such as the tasks of single entries."""
        spread = None if self.spread is None else self.spread.of(places)
        grid = None if self.grid is None else self.grid.of(places)
        return NoiseOfEntries(self._distinct, self._which[places], spread, grid)

    def with_one_spread(self) -> NoiseOfEntries:
        """The same families, with the same spread at all scores."""
        return NoiseOfEntries(self._distinct, self._which, None, self.grid)

    def log_pdf(self, z: FloatArray) -> FloatArray:
        """Log density log f(z)."""
        return self.each(lambda noise, part: noise.log_pdf(part), z)

    def score(self, z: FloatArray) -> FloatArray:
        """−f'(z)/f(z)."""
        return self.each(lambda noise, part: noise.score(part), z)

    def score_slope(self, z: FloatArray) -> FloatArray:
        """Derivative of the score."""
        return self.each(lambda noise, part: noise.score_slope(part), z)

    def log_cdf(self, z: FloatArray) -> FloatArray:
        """Log F(z)."""
        return self.each(lambda noise, part: noise.log_cdf(part), z)

    def log_sf(self, z: FloatArray) -> FloatArray:
        """Log (1 − F(z))."""
        return self.each(lambda noise, part: noise.log_sf(part), z)

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

    def upper_mean(self, z: FloatArray) -> FloatArray:
        """E[(ε − z)₊]."""
        return self.each(lambda noise, part: noise.upper_mean(part), z)

    def lower_mean(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊]."""
        return self.each(lambda noise, part: noise.lower_mean(part), z)

    def upper_square(self, z: FloatArray) -> FloatArray:
        """E[(ε − z)₊²]."""
        return self.each(lambda noise, part: noise.upper_square(part), z)

    def lower_square(self, z: FloatArray) -> FloatArray:
        """E[(z − ε)₊²]."""
        return self.each(lambda noise, part: noise.lower_square(part), z)

    def upper_crps(self, z: FloatArray) -> FloatArray:
        """Integral of (1 − F)² above z."""
        return self.each(lambda noise, part: noise.upper_crps(part), z)

    def lower_crps(self, z: FloatArray) -> FloatArray:
        """Integral of F² below z."""
        return self.each(lambda noise, part: noise.lower_crps(part), z)

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


class NoiseByTask(NoiseOfEntries):
    """Noise whose family differs from task to task: the last axis of every array is the tasks'.

    It serves predictions. Models are fitted with one family for all tasks.

    Parameters
    ----------
    families : sequence of Noise
        One for every task.
    spread : Spread, optional
        How the scale of the noise changes with the score; by default it does not.
    grid : ScoreGrid, optional
        The possible scores; by default outcomes are continuous.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian, Logistic
    >>> noise = NoiseByTask([Gaussian(), Logistic(), Gaussian()])
    >>> noise.variance().round(2)
    array([1.  , 3.29, 1.  ])
    >>> noise
    NoiseByTask([Gaussian(), Logistic(), Gaussian()])
    """

    def __init__(
        self, families: Sequence[Noise], spread: Spread | None = None, grid: ScoreGrid | None = None
    ) -> None:
        self.families = tuple(families)
        if any(isinstance(family, NoiseByTask) for family in self.families):
            raise TypeError("families must be those of single tasks, not a NoiseByTask")
        distinct: list[Noise] = []
        for family in self.families:
            if family not in distinct:
                distinct.append(family)
        which = [distinct.index(family) for family in self.families]
        super().__init__(tuple(distinct), np.array(which, dtype=np.intp), spread, grid)
        for name, values in (("spread", spread), ("grid", grid)):
            if values is not None and len(values) != len(self.families):
                raise ValueError(
                    f"{name} is that of {len(values)} task(s), but there are "
                    f"{len(self.families)} families"
                )

    def with_one_spread(self) -> NoiseByTask:
        """The same families, with the same spread at all scores."""
        return NoiseByTask(self.families, None, self.grid)

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


def at_entries(noise: Noise, where: BoolArray) -> Noise:
    """The noise of the entries of (..., T) at which a mask is true, as they come out of indexing.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian, Logistic
    >>> noise = NoiseByTask([Gaussian(), Logistic()])
    >>> where = np.array([[True, False], [True, True]])
    >>> at_entries(noise, where).variance().round(2)
    array([1.  , 1.  , 3.29])
    """
    return noise.at(np.nonzero(where)[-1]) if isinstance(noise, NoiseOfEntries) else noise


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
    if not isinstance(noise, NoiseByTask):
        return noise
    some = noise.at(np.array(tasks, dtype=np.intp))
    return NoiseByTask([noise.families[task] for task in tasks], some.spread, some.grid)


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
    if not isinstance(noise, NoiseOfEntries) or noise.spread is None:
        return noise, sigma
    noise.check_tasks(np.shape(latent))
    return noise.with_one_spread(), np.asarray(sigma * noise.spread.factor(latent))


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
    if isinstance(noise, NoiseOfEntries):
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
    if isinstance(noise, NoiseOfEntries) and noise.spread is not None:
        return noise.with_one_spread()
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
    return noise.grid if isinstance(noise, NoiseOfEntries) else None


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
