"""Noise whose spread changes with the score."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.targets import OFF_GRID

# Parameters with one number per task.


@dataclass(frozen=True, eq=False)
class TaskValues:
    """Fields that are arrays of shape (T,) each; equal if all their numbers are."""

    def __post_init__(self) -> None:
        """Check that there is one finite number per task."""
        kind, names = type(self).__name__, ", ".join(field.name for field in fields(self))
        for field in fields(self):
            values = np.asarray(getattr(self, field.name), dtype=np.float64)
            object.__setattr__(self, field.name, values)
        if len({part.shape for part in self._parts()}) != 1 or self._parts()[0].ndim != 1:
            raise ValueError(f"{names} of a {kind} must be arrays with one number per task")
        if not all(np.isfinite(part).all() for part in self._parts()):
            raise ValueError(f"{names} of a {kind} must be finite")

    def __len__(self) -> int:
        """Count the tasks."""
        return len(self._parts()[0])

    def of(self, places: NDArray[np.intp]) -> Self:
        """The numbers of some tasks, or of the tasks of single entries."""
        return type(self)(*(part[places] for part in self._parts()))

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are the same."""
        return type(other) is type(self) and self._bytes() == other._bytes()

    def __hash__(self) -> int:
        """By the numbers."""
        return hash(self._bytes())

    def _parts(self) -> tuple[FloatArray, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def _bytes(self) -> tuple[bytes, ...]:
        return tuple(part.tobytes() for part in self._parts())


_LARGEST_GROWTH = 100.0  # whose factors are numbers still
_REACH = 3.0  # standard deviations of the scores, beyond which the spread hardly changes


@dataclass(frozen=True, eq=False)
class Spread(TaskValues):
    r"""How the noise scale of every task changes with the score.

    .. math:: \sigma_t(\eta) = \sigma_t \exp\left(g_t\, h\left(\frac{\eta - c_t}{w_t}\right)\right),
        \qquad h(u) = u / \sqrt{1 + u^2/9}

    Counts are an example: people with more expected visits also differ more. Near the middle of
    the scores σ grows by the factor :math:`e^g` per width; h is bounded, so that σ stays bounded
    for scores far outside the data. Where σ falls as the score rises, E[y|x] may fall with it near
    a bound.

    Parameters
    ----------
    growth : array of shape (T,)
        g, 0 where the spread is the same everywhere.
    centre, width : arrays of shape (T,)
        Middle and standard deviation of the scores, in their units; the width may be negative,
        never 0.

    Examples
    --------
    >>> spread = Spread(np.array([0.0, 0.5]), np.array([10.0, 10.0]), np.array([2.0, 2.0]))
    >>> spread.factor(np.array([[10.0, 10.0], [12.0, 12.0], [1e9, 1e9]])).round(2)
    array([[1.  , 1.  ],
           [1.  , 1.61],
           [1.  , 4.48]])
    """

    growth: FloatArray
    centre: FloatArray
    width: FloatArray

    def __post_init__(self) -> None:
        """Check growth and width."""
        super().__post_init__()
        if (np.abs(self.growth) > _LARGEST_GROWTH).any():
            raise ValueError("the growth of a Spread must lie between -100 and 100")
        if not self.width.all():
            raise ValueError("the width of a Spread must not be 0")

    def factor(self, latent: FloatArray) -> FloatArray:
        """σ(η)/σ, of the shape of the scores, whose last axis is the tasks'."""
        return np.exp(self.growth * bend((latent - self.centre) / self.width))


def bend(u: FloatArray) -> FloatArray:
    """The function h, about u near 0 and never beyond ±3.

    Examples
    --------
    >>> bend(np.array([0.0, 1.0, -1.0, 1e300])).round(2)
    array([ 0.  ,  0.95, -0.95,  3.  ])
    """
    return np.asarray(u / np.hypot(1.0, u / _REACH))


# The grid of possible scores, where outcomes are whole numbers or multiples of a step.


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
        """Check the steps."""
        super().__post_init__()
        if (self.step < 0.0).any():
            raise ValueError("the step of a ScoreGrid must not be negative")

    def within(self, lower: FloatArray | float, upper: FloatArray | float) -> FloatArray:
        """The steps where both bounds are scores with at least one between them; 0 elsewhere.

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
        """The largest score at or below y, to ``OFF_GRID`` steps; y itself where the step is 0.

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
