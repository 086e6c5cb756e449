"""Whether outcomes are at their bounds as often as predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.metrics import bound_calibration
from deeptobit.metrics._calibration import BoundCalibration
from deeptobit.plots._style import BLUE, GREY, SMALL, VERMILION
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    fewest: int,
) -> None:
    """Shares at the bounds over their predicted probability, and the number of entries."""
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.8)
    found = bound_calibrations(targets, predictive, n_bins)
    for side, bins in found.items():
        kept = _without_few(bins, fewest)
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


def _without_few(found: BoundCalibration, fewest: int) -> BoundCalibration:
    """The bins in which no fewer are at the bound, or off it, unless nobody is."""
    there = np.round(found.observed * found.count)
    off = found.count - there
    kept = ~(((there > 0) & (there < fewest)) | ((off > 0) & (off < fewest)))
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
