"""Randomised quantile residuals, and their pictures."""

import numpy as np
from scipy.special import ndtri

from deeptobit.arrays import FloatArray
from deeptobit.inspection import style
from deeptobit.inspection.calibration import transform
from deeptobit.inspection.style import BLUE, GREY, SMALL, VERMILION, Axes
from deeptobit.likelihood import Predictive
from deeptobit.targets import CensoredTargets

_PLACES = [(0.0, 0.0, 0.44, 1.0), (0.58, 0.0, 0.42, 1.0)]
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
    place = transform(targets, predictive, step, random_state)
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
    ax = style.axes_or_new(ax, 8.6, 4.2)
    over, quantiles = style.divide(ax, _PLACES)
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
    for panel in (over, quantiles):
        style.open_frame(panel)
    return ax
