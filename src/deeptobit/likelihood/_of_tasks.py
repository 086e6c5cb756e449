"""The noise of some tasks or entries, its spread and the scores that there are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood._by_task import NoiseByTask, NoiseOfEntries
from deeptobit.likelihood._protocol import Noise
from deeptobit.likelihood._score_grid import ScoreGrid
from deeptobit.likelihood._spread import Spread


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
    places = np.array(tasks, dtype=np.intp)
    spread = None if noise.spread is None else noise.spread.of(places)
    grid = None if noise.grid is None else noise.grid.of(places)
    return NoiseByTask([noise.families[task] for task in tasks], spread, grid)


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
    """The scores that there are, None if outcomes of all tasks are continuous.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> grid_of(Gaussian())
    """
    return noise.grid if isinstance(noise, NoiseOfEntries) else None


def with_grid(noise: Noise, grid: ScoreGrid | None) -> Noise:
    """The noise of all tasks with the scores that there are, if they are on a grid.

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
