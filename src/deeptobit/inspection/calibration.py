"""Whether predicted probabilities are kept: at the bounds, and over the whole distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.inspection.style import BLUE, GREY, SMALL, VERMILION, axes_or_new, divide, open_frame
from deeptobit.likelihood import Predictive
from deeptobit.metrics import BoundCalibration, bound_calibration, pit
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Whether outcomes are at their bounds as often as predicted.


class _Side(NamedTuple):
    """How one of the bounds is drawn; ``offset`` is that of its bar within a bin."""

    name: str
    marker: str
    color: str
    offset: float


_SIDES = {
    "lower": _Side("lower", "v", VERMILION, 0.1),
    "upper": _Side("upper", "^", BLUE, 0.5),
}


def draw_reliability(
    ax: Axes,
    counts: Axes,
    targets: CensoredTargets,
    predictive: Predictive,
    n_bins: int,
    min_count: int,
) -> None:
    """Shares at the bounds over their predicted probability, and the number of entries."""
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.8)
    found = bound_calibrations(targets, predictive, n_bins)
    for side, bins in found.items():
        kept = _without_few(bins, min_count)
        if kept.count.size:
            _draw_side(ax, counts, kept, n_bins, _SIDES[side])
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set(xlabel="predicted probability of the bound", ylabel="share at the bound")
    counts.set(xlim=(-0.02, 1.02), xticklabels=[])
    if not ax.get_legend_handles_labels()[1]:
        reason = "too few entries to show" if found else "no target has a bound"
        ax.text(0.5, 0.5, reason, ha="center", va="center", color=GREY)
        return
    ax.legend(fontsize=SMALL, frameon=False, loc="upper left")
    counts.set_yscale("log")
    counts.set_ylabel("entries", fontsize=SMALL)
    counts.tick_params(labelsize=SMALL)


def bound_calibrations(
    targets: CensoredTargets, predictive: Predictive, n_bins: int
) -> dict[str, BoundCalibration]:
    """Predicted and observed shares of the sides that have bounds, ``"lower"`` and ``"upper"``.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [0.0], [2.0]], lower=0)
    >>> predictive = Predictive(Gaussian(), np.zeros((4, 1)), np.ones(1), targets.lower)
    >>> found = bound_calibrations(targets, predictive, n_bins=10)
    >>> list(found), found["lower"].expected_error
    (['lower'], 0.0)
    """
    sides = (
        ("lower", targets.at_lower, targets.lower_bounds, predictive.at_lower()),
        ("upper", targets.at_upper, targets.upper_bounds, predictive.at_upper()),
    )
    found = {}
    for side, censored, bounds, probability in sides:
        happened = at_bound(targets, censored, bounds)
        if not np.isnan(happened).all():
            found[side] = bound_calibration(happened, np.clip(probability, 0.0, 1.0), n_bins=n_bins)
    return found


def _without_few(found: BoundCalibration, min_count: int) -> BoundCalibration:
    """The bins in which no fewer are at the bound, or off it, unless nobody is."""
    there = np.round(found.observed * found.count)
    off = found.count - there
    kept = ~(((there > 0) & (there < min_count)) | ((off > 0) & (off < min_count)))
    return found._replace(
        predicted=found.predicted[kept], observed=found.observed[kept], count=found.count[kept]
    )


def _draw_side(ax: Axes, counts: Axes, found: BoundCalibration, n_bins: int, side: _Side) -> None:
    label, color = f"at {side.name} bound", side.color
    ax.plot(found.predicted, found.observed, color=color, marker=side.marker, label=label)
    ends = wilson_interval(found.observed, found.count)
    ax.vlines(found.predicted, *ends, color=color, linewidth=1.0, alpha=0.5)
    bins = np.minimum(np.floor(found.predicted * n_bins), n_bins - 1)
    left = (bins + side.offset) / n_bins
    counts.bar(left, found.count, width=0.4 / n_bins, align="edge", color=color)


def at_bound(targets: CensoredTargets, censored: BoolArray, bounds: FloatArray) -> FloatArray:
    """1 where an entry is at its bound, 0 where not, NaN where that is not known, (N, T).

    Not known is what is missing or an interval, what has no bound, and what is censored at a limit
    of its own.

    Examples
    --------
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [np.nan]], lower=0)
    >>> at_bound(targets, targets.at_lower, targets.lower).ravel()
    array([ 1.,  0., nan])
    """
    ends = np.broadcast_to(bounds, targets.shape)
    known = targets.has_value
    known &= np.isfinite(ends) & (~censored | (targets.values == ends))
    return np.where(known, censored.astype(np.float64), np.nan)


def wilson_interval(share: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Wilson's 95 % interval of a probability, given the share among so many entries.

    Examples
    --------
    >>> low, high = wilson_interval(np.array([0.0, 0.5]), np.array([1.0, 100.0]))
    >>> low.round(3), high.round(3)
    (array([0.   , 0.404]), array([0.793, 0.596]))
    """
    z = 1.959964
    scale = 1.0 + z**2 / count
    centre = (share + 0.5 * z**2 / count) / scale
    half = z * np.sqrt(share * (1.0 - share) / count + (0.5 * z / count) ** 2) / scale
    return centre - half, centre + half


_COUNTS, _RELIABILITY, _PIT = (
    (0.0, 0.82, 0.44, 0.18),
    (0.0, 0.0, 0.44, 0.78),
    (0.58, 0.0, 0.42, 1.0),
)


def draw_calibration(
    targets: CensoredTargets,
    predictive: Predictive,
    *,
    n_bins: int = 10,
    n_bars: int | None = None,
    min_count: int = 1,
    step: ArrayLike | None = None,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Reliability of the bound probabilities, and the probability integral transform.

    Left, entries are sorted into bins of the predicted probability of being at a bound; the share
    that is there should be on the diagonal. Lines are 95 % intervals for independent entries, and
    the bars above count them. Right, the place of outcomes in their predictive distributions
    should be uniform: a U says that σ is too small, a hump that it is too large, a slope that
    predictions are biased.

    Parameters
    ----------
    targets : CensoredTargets of shape (N, T)
    predictive : Predictive
        Distributions of the entries.
    n_bins : int
        Of probabilities.
    n_bars : int, optional
        Of the histogram; as many as bins by default.
    min_count : int
        Bins with fewer entries at the bound, or off it, are left out, unless there are none.
    step : number or array of shape (T,), optional
        Distance between neighbouring scores, as in :func:`deeptobit.metrics.pit`.
    random_state : int
        Spreads outcomes at a bound over the mass beyond it.
    ax : Axes, optional

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [0.0], [2.0]], lower=0)
    >>> latent = np.array([[0.0], [0.0], [0.0], [2.0]])
    >>> ax = draw_calibration(targets, Predictive(Gaussian(), latent, np.ones(1), 0.0),
    ...                       ax=Figure().subplots())
    >>> counts, reliability, histogram = ax.child_axes
    >>> reliability.lines[1].get_xydata().round(2).tolist()
    [[0.02, 0.0], [0.5, 0.67]]
    """
    ax = axes_or_new(ax, 8.6, 4.2)
    counts, reliability, histogram = divide(ax, [_COUNTS, _RELIABILITY, _PIT])
    draw_reliability(reliability, counts, targets, predictive, n_bins, min_count)
    _pit_histogram(histogram, pit_values(targets, predictive, step, random_state), n_bars or n_bins)
    for panel in (counts, reliability, histogram):
        open_frame(panel)
    return ax


def pit_values(
    targets: CensoredTargets,
    predictive: Predictive,
    step: ArrayLike | None = None,
    random_state: int = 0,
) -> FloatArray:
    """Places of the known outcomes in their predictive distributions, as they are drawn.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [np.nan]])
    >>> pit_values(targets, Predictive(Gaussian(), np.zeros((3, 1)), np.ones(1))).round(2)
    array([0.5 , 0.84])
    """
    shape = predictive.latent.shape
    latent = predictive.latent[:, 0] if targets.one_dimensional else predictive.latent
    sigma = np.broadcast_to(predictive.sigma, shape)
    values = pit(
        targets, latent, sigma, noise=predictive.noise, random_state=random_state, step=step
    )
    return np.asarray(values[~np.isnan(values)])


def _pit_histogram(ax: Axes, places: FloatArray, n_bars: int) -> None:
    share = np.full(len(places), 1.0 / max(len(places), 1))
    edges = np.linspace(0.0, 1.0, n_bars + 1).tolist()
    ax.hist(places, edges, weights=share, color=BLUE, alpha=0.5)
    ax.axhline(1.0 / n_bars, color=GREY, linewidth=0.8)
    ax.set(xlim=(0.0, 1.0), xlabel="place of y in its predictive distribution (PIT)")
    ax.set_ylabel(f"share of {len(places):,} entries")
