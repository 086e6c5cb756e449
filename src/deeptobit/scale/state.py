"""Where a fit stands: what a checkpoint stores."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.layer import Layer, Step
from deeptobit.network import GrownLayer
from deeptobit.online import OnlineSolver, RawRows
from deeptobit.scale.sums import DataSummary, Moments, Shift

_PAIRS = 2  # older ones mislead, because curvature changes on the way
_LEAST_CURVATURE = 1e-3  # of a secant, relative to what was expected along it


@dataclass
class Secants:
    """The last rounds' changes of position and slope, each (P, T), a column per task.

    Parameters
    ----------
    position, slope : arrays of shape (P, T), optional
        Of the last round.
    pairs : list of pairs of arrays of shape (P, T)
        The oldest first.
    """

    position: FloatArray | None = None
    slope: FloatArray | None = None
    pairs: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)

    def add(self, position: FloatArray, slope: FloatArray) -> None:
        """Remember a round."""
        if self.position is not None and self.slope is not None:
            if np.array_equal(position, self.position):
                return  # the first round after a fit was resumed
            self.pairs.append((position - self.position, slope - self.slope))
            del self.pairs[:-_PAIRS]
        self.position, self.slope = position, slope

    def correct(
        self, product: Callable[[FloatArray], FloatArray]
    ) -> Callable[[FloatArray], FloatArray]:
        r"""What BFGS updates add to every task's Hessian, of which ``product`` is the first guess.

        .. math:: B \leftarrow B - \frac{Bss^\top B}{s^\top Bs} + \frac{yy^\top}{s^\top y}

        A task skips a pair along which its curvature is not positive.
        """
        terms: list[tuple[float, FloatArray]] = []  # ±vvᵀ, as signs and vectors (P, T)

        def apply(direction: FloatArray) -> FloatArray:
            total = np.zeros_like(direction)
            for sign, vector in terms:
                total += sign * vector * (vector * direction).sum(axis=0)
            return total

        for s, y in self.pairs:
            expected = product(s) + apply(s)
            before, after = (s * expected).sum(axis=0), (s * y).sum(axis=0)
            sound = (before > 0.0) & (after > _LEAST_CURVATURE * before)
            terms += [(-1.0, _unit(expected, before, sound)), (1.0, _unit(y, after, sound))]
        return apply


def _unit(vectors: FloatArray, curvature: FloatArray, sound: np.ndarray) -> FloatArray:
    """Vectors over the roots of their curvatures; 0 where a task skips the pair."""
    return np.where(sound, vectors / np.sqrt(np.where(sound, curvature, 1.0)), 0.0)


@dataclass(frozen=True)
class RoundState:
    """A layer that is fitted by rounds: everything the next round depends on.

    Parameters
    ----------
    shift, moments
        Of the first pass.
    layer : Layer, optional
        The last accepted point, in standard units.
    steps : tuple of Step
    n_restarts : int
        As in :class:`deeptobit.layer.solve.StepLog`.
    secants : Secants
    """

    shift: Shift
    moments: Moments
    layer: Layer | None = None
    steps: tuple[Step, ...] = ()
    n_restarts: int = 0
    secants: Secants = field(default_factory=Secants)


@dataclass(frozen=True)
class Seen:
    """Counts, moments and a sample of the rows of a pass.

    Parameters
    ----------
    n_rows, weight : float
    known : array of shape (T,)
        Total weight of the entries that are not missing.
    mean, deviations : arrays of shape (D,)
        Weighted means of the features, and sums of squared deviations from them.
    sample : RawRows
        Some of the rows, evenly spread.
    """

    n_rows: float
    weight: float
    known: FloatArray
    mean: FloatArray
    deviations: FloatArray
    sample: RawRows

    @classmethod
    def nothing(cls, n_features: int, n_tasks: int) -> Self:
        """Before the first row."""
        shapes = ((0, n_features), (0, n_tasks), (0, n_tasks), (0,))
        sample = RawRows(*(np.zeros(shape) for shape in shapes))
        known, mean, deviations = np.zeros(n_tasks), np.zeros(n_features), np.zeros(n_features)
        return cls(0.0, 0.0, known, mean, deviations, sample)

    def more(self, rows: RawRows, stride: int) -> "Seen":
        """With some more rows, of which every ``stride``-th joins the sample."""
        n_rows, weight = float(len(rows.weight)), float(rows.weight.sum())
        mean = rows.weight @ rows.X / (weight or 1.0)
        deviations = rows.weight @ np.square(rows.X - mean)
        known = rows.weight @ ~np.isnan(rows.low)
        sample = RawRows(*(part[-int(self.n_rows) % stride :: stride] for part in rows))
        return self + Seen(n_rows, weight, known, mean, deviations, sample)

    def __add__(self, other: "Seen") -> "Seen":
        """Of the rows of both; deviations are those from the common mean (Chan et al. 1983)."""
        weight = self.weight + other.weight
        share, step = other.weight / (weight or 1.0), other.mean - self.mean
        samples = zip(self.sample, other.sample, strict=True)
        return Seen(
            self.n_rows + other.n_rows,
            weight,
            self.known + other.known,
            self.mean + share * step,
            self.deviations + other.deviations + self.weight * share * step**2,
            RawRows(*(np.concatenate(parts) for parts in samples)),
        )

    def summary(self) -> DataSummary:
        """The numbers of the rows that an estimator keeps."""
        variance, unknown = self.deviations / (self.weight or 1.0), np.zeros(len(self.known), bool)
        squares, scale = variance + self.mean**2, np.sqrt(variance)
        return DataSummary(self.n_rows, self.weight, self.known, squares, scale, unknown, unknown)


@dataclass(frozen=True)
class OnlineState:
    """A layer that is learned online.

    Parameters
    ----------
    solver : OnlineSolver
    seen : Seen
        In the first pass of the first layer; complete from then on.
    n_read, n_passes : int
        Rows read so far in this pass, whatever their weight, and passes that are complete.
    """

    solver: OnlineSolver
    seen: Seen
    n_read: int = 0
    n_passes: int = 0


@dataclass(frozen=True)
class FinishedLayer(GrownLayer):
    """A layer in the user's units, and the mean negative log likelihood up to it.

    Parameters
    ----------
    layer, alpha, n_iter, history
        As in :class:`GrownLayer`.
    nll : float
        Mean negative log likelihood of a row under the network up to here.
    """

    nll: float


@dataclass(frozen=True)
class Progress:
    """The layers that are finished, and the one under way.

    Parameters
    ----------
    finished : tuple of FinishedLayer
    now : RoundState or OnlineState, optional
    summary : DataSummary, optional
        Known once the first layer is finished.
    seen : Seen, optional
        What the first pass of an online fit saw.
    """

    finished: tuple[FinishedLayer, ...] = ()
    now: RoundState | OnlineState | None = None
    summary: DataSummary | None = None
    seen: Seen | None = None
