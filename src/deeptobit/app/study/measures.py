"""The measures of a prediction: one table, which reports, model cards and comparisons read.

A measure is one entry of :data:`MEASURES`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from deeptobit import metrics
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.targets import CensoredTargets


class Cell(NamedTuple):
    """A number in a table: how it is read, what it is sorted by (None last), and its mark."""

    text: str
    key: float | str | None
    mark: str = ""


@dataclass(frozen=True, eq=False)
class Predicted:
    """Outcomes, and what was predicted for them: all that a measure may look at.

    Attributes
    ----------
    targets : CensoredTargets of shape (N, T)
    predictive : Predictive of shape (N, T)
    point : array of shape (N, T)
        Point predictions.
    coverage : float
        Nominal coverage of the central prediction intervals, between 0 and 1.
    """

    targets: CensoredTargets
    predictive: Predictive
    point: FloatArray
    coverage: float

    @cached_property
    def interval(self) -> FloatArray:
        """Ends of the central prediction intervals, (2, N, T)."""
        return self.predictive.interval(self.coverage)

    def of_tasks(self, tasks: list[int]) -> "Predicted":
        """The same for some of the targets."""
        targets = metrics.some_targets(self.targets, tasks)
        predictive = metrics.some_predictive(self.predictive, tasks)
        return Predicted(targets, predictive, self.point[:, tasks], self.coverage)

    def score(self, of: Callable[..., Any]) -> FloatArray:
        """A metric of the predictive distribution, such as :func:`deeptobit.metrics.crps`, (T,)."""
        latent, sigma, noise = self.predictive.latent, self.predictive.sigma, self.predictive.noise
        return np.asarray(of(self.targets, latent, sigma, noise=noise, multioutput="raw_values"))

    def mean_of_known(self, entries: FloatArray) -> FloatArray:
        """Mean over the entries of which something is known, (T,)."""
        return np.asarray(np.mean(entries, axis=0, where=~self.targets.missing))


def covered(of: Predicted) -> FloatArray:
    r"""Probability that an outcome lies in its prediction interval, given what is known of it.

    .. math:: P(low \le y \le high \mid a \le \eta + \sigma\varepsilon \le b)

    under the predictive distribution. It is 1 or 0 where y was recorded, also at a bound of its
    scale. Where only an interval [a, b] is known, it is the share of the mass between a and b that
    lies in the prediction interval. If the model is right, its mean is the nominal coverage,
    however wide the intervals [a, b] are. (At bounds and on whole scores it is higher, because
    their mass cannot be split.)

    Returns
    -------
    array of shape (N, T)
        NaN where an entry is missing.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_intervals([1.0, 0.0, -np.inf], [1.0, 9.0, 3.0])
    >>> predictive = Predictive(Gaussian(), np.zeros((3, 1)), np.ones(1))
    >>> covered(Predicted(targets, predictive, np.zeros((3, 1)), 0.9)).ravel().round(3)
    array([1.   , 0.9  , 0.901])
    """
    targets, predictive = of.targets, of.predictive
    low, high = of.interval
    inside = (low <= targets.low) & (targets.high <= high)
    # The latents that are recorded inside the interval, and those of them that are possible.
    first = np.where(low <= predictive.lower, -np.inf, predictive.cell(low)[0])
    last = np.where(high >= predictive.upper, np.inf, predictive.cell(high)[1])
    start, end = np.fmax(first, targets.low), np.fmin(last, targets.high)
    part = np.asarray(~targets.observed & (start < end))  # False where missing
    mass, whole = (
        predictive.log_density(np.where(part, low, np.nan), np.where(part, high, np.nan))
        for low, high in ((start, end), (targets.low, targets.high))
    )
    share = np.where(part, np.exp(np.minimum(mass - whole, 0.0)), 0.0)
    share = np.where(targets.observed, inside, share)
    return np.where(targets.missing, np.nan, share)


def recorded_errors(targets: CensoredTargets, point: FloatArray) -> FloatArray:
    """Predictions less recorded values, (N, T); NaN where none was recorded."""
    return np.where(targets.has_value, point - targets.values, np.nan)


def has_known(targets: CensoredTargets) -> BoolArray:
    """Targets of which something is known, (T,)."""
    return np.asarray((~targets.missing).any(axis=0))


def has_values(targets: CensoredTargets) -> BoolArray:
    """Targets with a recorded value, (T,)."""
    return np.asarray(targets.has_value.any(axis=0))


def varies(targets: CensoredTargets) -> BoolArray:
    """Targets whose recorded values are not all the same, (T,)."""
    values = np.where(targets.has_value, targets.values, np.nan)
    return np.asarray(np.fmin.reduce(values, axis=0) < np.fmax.reduce(values, axis=0))


@dataclass(frozen=True)
class Measure:
    """What a measure computes, and how it is named and shown.

    Attributes
    ----------
    title : str
        Heading of its column.
    help : str
        What it is, in a clause that follows its title.
    compute : callable
        From :class:`Predicted` to an array of shape (T,).
    better : {"lower", "higher", "nominal", ""}
        Which value is good: low (by default), high, near the nominal coverage, or none.
    needs : callable
        From targets to a boolean array of shape (T,): which targets determine it. For the others
        it is NaN, and ``compute`` does not see them.
    style : {"decimal", "significant", "percent"}
        How people read it: ``digits`` decimals, three significant digits, or a percentage.
    digits : int
    in_units : bool
        Whether it is in units of the target. Comparisons divide it by the target's standard
        deviation before they average over targets.
    reported : bool
        Whether reports and model cards show it; comparisons show all.
    """

    title: str
    help: str
    compute: Callable[[Predicted], Any]
    better: Literal["lower", "higher", "nominal", ""] = "lower"
    needs: Callable[[CensoredTargets], BoolArray] = has_values
    style: Literal["decimal", "significant", "percent"] = "decimal"
    digits: int = 2
    in_units: bool = False
    reported: bool = True


MEASURES: dict[str, Measure] = {
    "mae": Measure(
        "typical error",
        "the mean absolute error, in points of the outcome",
        lambda of: np.nanmean(np.abs(recorded_errors(of.targets, of.point)), axis=0),
        style="significant",
        in_units=True,
    ),
    "r2": Measure(
        "R²",
        "the share of the variance that is explained: 1 is perfect, 0 no better than the mean",
        lambda of: 1.0 - metrics.centred_anmse(of.targets, of.point, multioutput="raw_values"),
        "higher",
        needs=varies,
    ),
    "anmse": Measure(
        "ANMSE",
        "the squared error as a share of the squared values",
        lambda of: metrics.anmse(of.targets, of.point, multioutput="raw_values"),
        needs=lambda targets: (targets.has_value & (targets.values != 0.0)).any(axis=0),
        digits=3,
        reported=False,
    ),
    "crps": Measure(
        "CRPS",
        "the error of the whole predicted distribution, in units of the outcome",
        lambda of: of.score(metrics.crps),
        style="significant",
        in_units=True,
    ),
    "log_score": Measure(
        "log score",
        "the mean negative log likelihood",
        lambda of: of.score(metrics.censored_log_score),
        needs=has_known,
        digits=3,
        reported=False,
    ),
    "coverage": Measure(
        "coverage",
        "the share of outcomes inside their prediction interval",
        lambda of: of.mean_of_known(covered(of)),
        "nominal",
        needs=has_known,
        style="percent",
    ),
    "width": Measure(
        "width",
        "the mean width of the prediction intervals, in units of the outcome",
        lambda of: of.mean_of_known(of.interval[1] - of.interval[0]),
        "",
        needs=has_known,
        style="significant",
        in_units=True,
        reported=False,
    ),
}


def measure(
    targets: CensoredTargets,
    predictive: Predictive,
    coverage: float,
    *,
    point: FloatArray | None = None,
) -> dict[str, FloatArray]:
    r"""All :data:`MEASURES` of a prediction by name, each of shape (T,).

    A measure that a target does not determine (no values, or all the same) is NaN.

    Parameters
    ----------
    targets : CensoredTargets of shape (N, T)
    predictive : Predictive of shape (N, T)
    coverage : float
        Nominal coverage of the prediction intervals, between 0 and 1.
    point : array of shape (N, T), optional
        Point predictions; E[y|x] by default.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[30.0], [21.0], [27.0]], 0, 30, names=["MMSE"])
    >>> latent, sigma = np.array([[31.0], [22.0], [26.0]]), np.full((3, 1), 2.0)
    >>> predictive = Predictive(Gaussian(), latent, sigma, targets.lower, targets.upper)
    >>> measured = measure(targets, predictive, 0.9)
    >>> {name: measured[name].round(2).tolist() for name in ("r2", "crps", "coverage")}
    {'r2': [0.95], 'crps': [0.46], 'coverage': [1.0]}
    """
    point = predictive.mean() if point is None else point
    predicted = Predicted(targets, predictive, point, coverage)
    found = {}
    for name, one in MEASURES.items():
        values = np.full(len(targets.names), np.nan)
        tasks = np.flatnonzero(one.needs(targets)).tolist()
        if tasks:
            some = predicted if len(tasks) == len(values) else predicted.of_tasks(tasks)
            values[tasks] = one.compute(some)
        found[name] = values
    return found


@dataclass(frozen=True, eq=False)
class HeldOut:
    r"""Rows of a study, each predicted by a model that was fitted without it and its group.

    Attributes
    ----------
    targets : CensoredTargets of shape (N, T)
    predictive : Predictive of shape (N, T)
        Predictions of the model; σ is that of the fold, (N, T).
    null : Predictive of shape (N, T)
        Predictions of the null model, a censored model with intercepts only.
    stages : tuple of arrays of shape (N, T)
        E[y|x] after every layer, the last being the mean of ``predictive``. Where a fold chose
        fewer layers than another, its last one is repeated.
    coverage : float
        Nominal coverage of prediction intervals, between 0 and 1.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[30.0], [21.0], [27.0]], 0, 30, names=["MMSE"])
    >>> latent, sigma = np.array([[31.0], [22.0], [26.0]]), np.full((3, 1), 2.0)
    >>> model = Predictive(Gaussian(), latent, sigma, targets.lower, targets.upper)
    >>> null = Predictive(Gaussian(), np.full((3, 1), 26.0), sigma, targets.lower, targets.upper)
    >>> held_out = HeldOut(targets, model, null, (model.mean(),), coverage=0.9)
    >>> held_out.table()[["entries", "at_upper", "r2", "crps", "null_crps", "coverage"]].round(2)
            entries  at_upper    r2  crps  null_crps  coverage
    target
    MMSE          3      0.33  0.95  0.46       2.48       1.0
    """

    targets: CensoredTargets
    predictive: Predictive
    null: Predictive
    stages: tuple[FloatArray, ...]
    coverage: float

    def table(self) -> pd.DataFrame:
        """Measures of the model and of the null model, one row per target.

        Bounds, number of values and shares at the bounds; then the measures of :func:`measure`,
        and with the prefix ``null_`` those of the null model.
        """
        measured = self.targets.describe()[["lower", "upper", "entries", "at_lower", "at_upper"]]
        model = measure(self.targets, self.predictive, self.coverage)
        null = measure(self.targets, self.null, self.coverage)
        return measured.assign(**model, **{f"null_{name}": of for name, of in null.items()})
