"""The scores that there are, where outcomes are whole numbers or multiples of a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood._task_values import TaskValues
from deeptobit.targets import OFF_GRID


@dataclass(frozen=True, eq=False)
class ScoreGrid(TaskValues):
    """Scores origin + k·step of every task, k whole.

    Parameters
    ----------
    step : array of shape (T,)
        Distance between neighbouring scores, 0 where outcomes are continuous.
    origin : array of shape (T,)
        One of the scores.

    Examples
    --------
    >>> grid = ScoreGrid(np.array([1.0, 0.0]), np.zeros(2))
    >>> grid.nearest(np.array([[2.6, 2.6]]), grid.step)
    array([[3. , 2.6]])
    """

    step: FloatArray
    origin: FloatArray

    def __post_init__(self) -> None:
        """Refuse steps that lead nowhere."""
        super().__post_init__()
        if (self.step < 0.0).any():
            raise ValueError("the step of a ScoreGrid must not be negative")

    def within(self, lower: FloatArray | float, upper: FloatArray | float) -> FloatArray:
        """The steps between bounds that are scores, with another between them; elsewhere 0.

        Examples
        --------
        >>> lower, upper = np.array([0, 0, 0, 0.5]), np.array([9, 2, 1, 9])
        >>> ScoreGrid(np.ones(4), np.zeros(4)).within(lower, upper)
        array([1., 1., 0., 0.])
        """
        room = np.asarray(upper) - lower >= 2.0 * (1.0 - OFF_GRID) * self.step
        holds = room & self._is_score(lower) & self._is_score(upper)
        return np.where(holds, self.step, 0.0)

    def nearest(self, y: FloatArray, step: FloatArray) -> FloatArray:
        """The score that is nearest to y; y itself where the step is 0."""
        return self._moved(y, step, np.round)

    def at_or_below(self, y: FloatArray, step: FloatArray) -> FloatArray:
        """The largest score that y reaches; y itself where the step is 0.

        Examples
        --------
        >>> ScoreGrid(np.ones(1), np.zeros(1)).at_or_below(np.array([2.9, 2.999, 3.0]), np.ones(1))
        array([2., 3., 3.])
        """
        return self._moved(y, step, lambda places: np.floor(places + OFF_GRID))

    def below(self, y: FloatArray, step: FloatArray) -> FloatArray:
        """The largest score below y; y itself where the step is 0.

        Examples
        --------
        >>> ScoreGrid(np.ones(1), np.zeros(1)).below(np.array([2.9, 3.0, 3.001]), np.ones(1))
        array([2., 2., 2.])
        """
        return self._moved(y, step, lambda places: np.ceil(places - OFF_GRID) - 1.0)

    def _moved(
        self, y: FloatArray, step: FloatArray, to_whole: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        width = np.where(step > 0.0, step, 1.0)
        score = self.origin + width * to_whole((y - self.origin) / width)
        return np.where(step > 0.0, score, y)

    def _is_score(self, bound: FloatArray | float) -> BoolArray:
        """Whether bounds lie on the grid; open ones do."""
        step = np.where(self.step > 0.0, self.step, 1.0)
        places = np.where(np.isfinite(bound), (bound - self.origin) / step, 0.0)
        return np.asarray(np.abs(places - np.round(places)) <= OFF_GRID)
