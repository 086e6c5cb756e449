"""Whether predicted probabilities are kept: at the bounds, and over the whole distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.metrics import pit
from deeptobit.plots._reliability import draw_reliability
from deeptobit.plots._style import BLUE, GREY, axes_or_new, divide, open_frame
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    fewest: int = 1,
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
    fewest : int
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
    draw_reliability(reliability, counts, targets, predictive, n_bins, fewest)
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
