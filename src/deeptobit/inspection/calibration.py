"""Calibration and residuals: whether predictive distributions agree with outcomes."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import binomtest

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.inspection.style import BLUE, GREY, SMALL, VERMILION, Axes, axes_or_new, divide
from deeptobit.likelihood import Predictive
from deeptobit.metrics import BoundCalibration, bound_calibration, pit
from deeptobit.targets import CensoredTargets

# Places of the panels: counts, reliability, histogram.
_PLACES = [(0.0, 0.82, 0.44, 0.18), (0.0, 0.0, 0.44, 0.78), (0.58, 0.0, 0.42, 1.0)]
# Marker and colour of a side, and the offset of its bar within a bin.
_MARKS = {"lower": ("v", VERMILION, 0.1), "upper": ("^", BLUE, 0.5)}


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

    Left: entries are grouped into bins of the predicted probability of being at a bound; the share
    of each bin that is at the bound should be on the diagonal. Lines are 95 % intervals for
    independent entries, and the bars above count the entries. Right: the probability integral
    transform should be uniform. A U says that σ is too small, a hump that it is too large, a slope
    that predictions are biased.

    Parameters
    ----------
    targets : CensoredTargets of shape (N, T)
    predictive : Predictive
        Distributions of the entries.
    n_bins : int
        Number of bins of probabilities.
    n_bars : int, optional
        Number of bars of the histogram; ``n_bins`` by default.
    min_count : int
        Bins with fewer entries at the bound, or off it, are left out; none at all is allowed.
    step : number or array of shape (T,), optional
        Distance between neighbouring scores, as in :func:`deeptobit.metrics.pit`.
    random_state : int
        Seed; outcomes at a bound are spread at random over the mass beyond it.
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
    counts, reliability, histogram = divide(ax, _PLACES)
    found = bound_calibrations(targets, predictive, n_bins)
    _draw_reliability(reliability, counts, found, n_bins, min_count)
    values = pit_values(targets, predictive, step, random_state)
    _draw_histogram(histogram, values[~np.isnan(values)], n_bars or n_bins)
    return ax


def _draw_reliability(
    ax: Axes, counts: Axes, found: dict[str, BoundCalibration], n_bins: int, min_count: int
) -> None:
    """Shares at the bounds over their predicted probability, and the number of entries."""
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.8)
    for side, bins in found.items():
        marker, color, offset = _MARKS[side]
        at_bound = np.round(bins.observed * bins.count)
        fewer = np.minimum(*(np.where(n > 0, n, np.inf) for n in (at_bound, bins.count - at_bound)))
        shown = fewer >= min_count
        if not shown.any():
            continue
        predicted, observed, n = bins.predicted[shown], bins.observed[shown], bins.count[shown]
        ax.plot(predicted, observed, color=color, marker=marker, label=f"at {side} bound")
        counted = zip(at_bound[shown].astype(int), n.astype(int), strict=True)
        ends = [binomtest(*pair).proportion_ci(method="wilson") for pair in counted]
        ax.vlines(predicted, *np.transpose(ends), color=color, linewidth=1.0, alpha=0.5)
        left = (np.minimum(np.floor(predicted * n_bins), n_bins - 1) + offset) / n_bins
        counts.bar(left, n, width=0.4 / n_bins, align="edge", color=color)
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


def _draw_histogram(ax: Axes, values: FloatArray, n_bars: int) -> None:
    share = np.full(len(values), 1.0 / max(len(values), 1))
    edges = np.linspace(0.0, 1.0, n_bars + 1).tolist()
    ax.hist(values, edges, weights=share, color=BLUE, alpha=0.5)
    ax.axhline(1.0 / n_bars, color=GREY, linewidth=0.8)
    ax.set(xlim=(0.0, 1.0), xlabel="place of y in its predictive distribution (PIT)")
    ax.set_ylabel(f"share of {len(values):,} entries")


def bound_calibrations(
    targets: CensoredTargets, predictive: Predictive, n_bins: int
) -> dict[str, BoundCalibration]:
    """Predicted and observed shares at the bounds, by side; only sides that have bounds.

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


def at_bound(targets: CensoredTargets, censored: BoolArray, bounds: FloatArray) -> FloatArray:
    """1 if an entry is at its bound, 0 if not, NaN if unknown, (N, T).

    It is unknown for entries that are missing, intervals, without a bound, or censored at a limit
    of their own.

    Examples
    --------
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [np.nan]], lower=0)
    >>> at_bound(targets, targets.at_lower, targets.lower).ravel()
    array([ 1.,  0., nan])
    """
    ends = np.broadcast_to(bounds, targets.shape)
    known = targets.has_value & np.isfinite(ends) & (~censored | (targets.values == ends))
    return np.where(known, censored.astype(np.float64), np.nan)


def pit_values(
    targets: CensoredTargets,
    predictive: Predictive,
    step: ArrayLike | None = None,
    random_state: int = 0,
) -> FloatArray:
    """Probability integral transform, (N, T); NaN where an outcome is not known.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [np.nan]])
    >>> pit_values(targets, Predictive(Gaussian(), np.zeros((3, 1)), np.ones(1))).ravel().round(2)
    array([0.5 , 0.84,  nan])
    """
    latent, sigma, noise = predictive.latent, predictive.sigma, predictive.noise
    values = pit(targets, latent, sigma, noise=noise, random_state=random_state, step=step)
    return values.reshape(latent.shape)


# Residuals.

_HALVES = [(0.0, 0.0, 0.44, 1.0), (0.58, 0.0, 0.42, 1.0)]
_N_BINS = 10
_FARTHEST = 1e-15  # a place this near 0 or 1 has a residual of 7.9


def quantile_residuals(
    targets: CensoredTargets, predictive: Predictive, random_state: int = 0
) -> FloatArray:
    """Φ⁻¹ of the randomised probability integral transform, (N, T); NaN where it is unknown.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.5], [-1.0], [np.nan]])
    >>> predictive = Predictive(Gaussian(), np.zeros((3, 1)), np.full(1, 0.5))
    >>> quantile_residuals(targets, predictive).ravel()
    array([ 1., -2., nan])
    """
    tasks = predictive.latent.shape[1:]
    step = np.broadcast_to(predictive.step, tasks) if predictive.step.ndim < 2 else None
    place = pit_values(targets, predictive, step, random_state)
    return np.asarray(ndtri(np.clip(place, _FARTHEST, 1.0 - _FARTHEST)))


def draw_diagnostics(
    targets: CensoredTargets,
    predictive: Predictive,
    *,
    random_state: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Residuals over predicted scores, with their means and spread, and a normal QQ plot.

    If the model is right, the means are 0, nine tenths of the residuals lie between the lines at
    ±1.64 wherever the score is, and the quantiles are on the diagonal.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds(np.linspace(-2.0, 2.0, 50)[:, None], lower=None)
    >>> predictive = Predictive(Gaussian(), np.linspace(-1.0, 1.0, 50)[:, None], np.ones(1))
    >>> ax = draw_diagnostics(targets, predictive, ax=Figure().subplots())
    >>> len(ax.child_axes)
    2
    """
    ax = axes_or_new(ax, 8.6, 4.2)
    over, quantiles = divide(ax, _HALVES)
    residual = quantile_residuals(targets, predictive, random_state)
    spread = predictive.latent.std(axis=0)
    score = (predictive.latent - predictive.latent.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    known = ~np.isnan(residual)
    x, y = score[known], residual[known]
    over.plot(x, y, ".", color=BLUE, alpha=0.3, markersize=3, rasterized=True)
    for end in (-1.645, 1.645):
        over.axhline(end, color=GREY, linewidth=0.8, linestyle="--")
    over.axhline(0.0, color=GREY, linewidth=0.8)
    order = np.array_split(np.argsort(x), min(_N_BINS, max(len(x) // 10, 1)))
    means = [(x[part].mean(), y[part].mean()) for part in order if part.size]
    over.plot(*np.array(means).reshape(-1, 2).T, color=VERMILION, marker="o", label="mean")
    over.legend(fontsize=SMALL, frameon=False)
    over.set(xlabel="predicted score, in units of its spread", ylabel="residual")
    normal = ndtri((np.arange(len(y)) + 0.5) / max(len(y), 1))
    quantiles.plot(normal, normal, color=GREY, linewidth=0.8)
    quantiles.plot(normal, np.sort(y), ".", color=BLUE, markersize=3)
    quantiles.set(xlabel="normal quantile", ylabel="residual")
    return ax
