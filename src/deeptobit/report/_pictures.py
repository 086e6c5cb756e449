"""Pictures of all outcomes together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from deeptobit import plots
from deeptobit.arrays import FloatArray
from deeptobit.metrics import centred_anmse
from deeptobit.metrics._selection import some_targets
from deeptobit.report._directions import Directions
from deeptobit.report._format import number, times
from deeptobit.report._reliability import N_BINS, histogram_bins
from deeptobit.report._svg import Picture, as_picture, keep_text_colours, new_figure, remove_legend
from deeptobit.study import FEWEST

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.study import HeldOut

N_FEATURES = 30  # rows of the heat map


def draw_reliability(held_out: HeldOut, alt: str, fewest: int = FEWEST) -> Picture:
    """Whether values are at their bounds as often as predicted; bins with few are left out."""
    targets, predictive = held_out.targets, held_out.predictive
    bars = histogram_bins(targets, predictive, fewest)
    figure, ax = new_figure(8.4, 3.9)
    plots.draw_calibration(targets, predictive, n_bins=N_BINS, n_bars=bars, fewest=fewest, ax=ax)
    counts = ax.child_axes[0]
    counts.yaxis.set_major_formatter("{x:,.0f}")
    counts.yaxis.set_minor_formatter("")
    return as_picture(figure, "reliability", alt)


def layer_errors(held_out: HeldOut, table: pd.DataFrame) -> FloatArray:
    """1 − R² after every layer of the outcomes that vary, (K, T)."""
    varied = np.flatnonzero(table["r2"].notna()).tolist()
    targets = replace(some_targets(held_out.targets, varied), one_dimensional=False)
    errors = [
        centred_anmse(targets, stage[:, varied], multioutput="raw_values")
        for stage in held_out.stages
    ]
    return np.asarray(errors)


def draw_layers(errors: FloatArray) -> Picture:
    """The error after every layer."""
    means = ", ".join(number(mean, 3) for mean in errors.mean(axis=1))
    alt = f"Bars: mean error relative to the mean after each layer: {means}"
    figure, ax = new_figure(2.6 + 0.9 * len(errors), 3.2)
    plots.draw_layers(errors, ax=ax)
    remove_legend(ax)
    return as_picture(figure, "layers", alt)


def draw_subspaces(directions: Directions) -> Picture:
    """What the shared directions are made of, and which outcomes they move."""
    numbers = directions.features.columns
    names = [f"{number}\n{share}" for number, share in zip(numbers, directions.shares, strict=True)]
    features, targets = directions.features.set_axis(names, axis=1), directions.targets
    n_rows = min(max(min(len(features), N_FEATURES), len(targets)), 60)
    figure, ax = new_figure(4.6 + 0.8 * features.shape[1], 1.6 + max(0.19 * n_rows, 1.0))
    plots.draw_subspaces(features, targets.set_axis(names, axis=1), n_features=N_FEATURES, ax=ax)
    for panel, title in zip(ax.child_axes, ("features", "outcomes"), strict=True):
        panel.title.set_text(title)
    alt = (
        f"Two heat maps of {times(features.shape[1], 'component')}: loadings of the strongest "
        f"features and of {times(len(targets), 'outcome')}; the table below lists the largest"
    )
    return as_picture(figure, "subspaces", alt)


def draw_similarity(cosines: pd.DataFrame, alt: str) -> Picture:
    """Which outcomes the features move alike."""
    side = max(2.5, min(len(cosines), 60) * 0.19)
    figure, ax = new_figure(side + 2.0, side + 2.4)
    plots.draw_similarity(cosines, ax=ax)
    keep_text_colours(ax)
    figure.axes[-1].set_xlabel("cosine between the effects on two outcomes", fontsize=8)
    return as_picture(figure, "similarity", alt)
