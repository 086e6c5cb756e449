"""The pictures of a report: figures of matplotlib as SVG inside the page."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from deeptobit import inspection as plots
from deeptobit.app.report.effects import Directions
from deeptobit.app.report.privacy import N_BINS, histogram_bins
from deeptobit.app.report.words import bound, number, plural
from deeptobit.app.study import FEWEST, FittedStudy, HeldOut, Predicted
from deeptobit.arrays import FloatArray
from deeptobit.estimators import MixedTobitRegressor
from deeptobit.extras import require
from deeptobit.metrics import centred_anmse, some_targets
from deeptobit.targets import CensoredTargets

# Figures as SVG inside the page: text stays text, and colours follow the page.

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "deeptobit",
    "text.parse_math": False,  # a dollar in the name of a column is a dollar
    "font.size": 10.0,
}
# Colours of the pictures, and the variables of the style sheet that replace them.
_VARIABLES = {
    "#000000": "currentColor",
    "#0072b2": "var(--blue)",
    "#d55e00": "var(--vermilion)",
    "#5f5f5f": "var(--muted)",
    "#c8c8c8": "var(--band)",
    "#ffffff": "none",
}
_FIXED_BLACK = "#010101"  # numbers on coloured cells keep their colour in a dark page
_FIXED_WHITE = "#fefefe"


class Picture(NamedTuple):
    """A drawing and its place in the page.

    Parameters
    ----------
    svg : str
    width : int
        Its natural width in CSS pixels.
    caption : str
    """

    svg: str
    width: int
    caption: str


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in matplotlib's default style, and restore the user's style afterwards."""
    style = require("matplotlib.style", "app")
    with style.context(["default", _SETTINGS]), warnings.catch_warnings():
        # The browser has the letters that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def new_figure(width: float, height: float, **grid: Any) -> tuple[Any, Any]:
    """A figure of this size in inches, and its axes: one, or a grid as ``subplots`` makes it."""
    figure = require("matplotlib.figure", "app").Figure((width, height), layout="constrained")
    return figure, figure.subplots(**grid)


def as_picture(figure: Any, name: str, alt: str, caption: str = "") -> Picture:
    """A figure as inline SVG on the background of the page; its ids begin with ``name``."""
    figure.patch.set_visible(False)
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", dpi=160, metadata=nothing)
    svg, width = buffer.getvalue(), round(float(figure.get_size_inches()[0]) * 96)
    view_box = re.findall(r'viewBox="[^"]*"', svg)[0]
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]  # matplotlib escapes what it writes
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda found: _VARIABLES.get(found[0], found[0]), body)
    head = f'<svg {view_box} role="img" width="{width}" aria-label="{escape(alt)}">'
    return Picture(head + body.strip(), width, caption)


Rows = NDArray[np.intp]

_PLACE = (0.19, 0.18, 0.78, 0.79)  # of the axes in the figure
_MOST_POINTS = 2000  # in one panel; more are a blot


def draw_outcomes(held_out: HeldOut, table: pd.DataFrame, min_count: int = FEWEST) -> list[Picture]:
    """Predicted against observed, a picture for every outcome, best explained first.

    Values at a bound are not drawn if they are fewer than ``min_count``, nor are the others if
    those are; an outcome of which nothing is drawn has no picture.
    """
    order = np.argsort(-table["r2"].fillna(-np.inf).to_numpy(), kind="stable")
    rows = {task: drawn_rows(held_out.targets, task, min_count) for task in order.tolist()}
    targets, predictive = held_out.targets, held_out.predictive
    every = Predicted(targets, predictive, predictive.mean(), held_out.coverage)
    return [_draw_outcome(every, table, task, rows[task]) for task in rows if rows[task].size]


def _draw_outcome(every: Predicted, table: pd.DataFrame, task: int, rows: Rows) -> Picture:
    one = every.of_tasks([task])
    targets, predicted, (low, high) = one.targets[rows], one.point[rows], one.interval[:, rows]
    by_row = targets.entry_lower is not None or targets.entry_upper is not None
    if not by_row:
        low, high = _smooth(predicted, low), _smooth(predicted, high)
    figure, ax = new_figure(3.0, 2.6)
    figure.set_layout_engine("none")  # which would take half of the time for a page of panels
    ax.set_position(_PLACE)
    plots.draw_predictions(targets, predicted, low, high, coverage=one.coverage, ax=ax)
    ax.get_legend().remove()  # the page explains the marks once, in its own words
    ax.set(title="", xlabel="predicted", ylabel="observed")
    for marks in ax.collections if by_row else ax.collections[1:]:  # the first is a band
        marks.set_rasterized(True)
    row = table.iloc[task]
    name, r2 = str(table.index[task]), number(row["r2"])
    alt = f"{name}: observed over predicted values of held-out rows; R² {r2}; bounds "
    alt += f"{bound(row['lower'])} and {bound(row['upper'])}"
    return as_picture(figure, f"outcome{task}", alt, name)


def drawn_rows(targets: CensoredTargets, task: int, min_count: int) -> Rows:
    """Rows whose outcome is at a bound, or between, like those of at least ``min_count`` rows.

    If there are too many, rows are taken evenly from the table.
    """
    at_lower, at_upper = targets.at_lower[:, task], targets.at_upper[:, task]
    kinds = at_lower, at_upper, ~(at_lower | at_upper | targets.missing[:, task])
    drawn = np.flatnonzero(np.any([kind & (kind.sum() >= min_count) for kind in kinds], axis=0))
    if len(drawn) <= _MOST_POINTS:
        return drawn
    return drawn[np.linspace(0, len(drawn) - 1, _MOST_POINTS).astype(np.intp)]


def _smooth(predicted: FloatArray, end: FloatArray) -> FloatArray:
    """One end of the intervals as a monotone function of the prediction; folds differ a little.

    It rises, or falls if the spread grows faster than the score.
    """
    x, y = predicted[:, 0], end[:, 0]
    fits = [IsotonicRegression(increasing=way).fit(x, y).predict(x) for way in (True, False)]
    best = min(fits, key=lambda fit: float(np.square(fit - y).sum()))
    return np.asarray(best)[:, None]


# Pictures of all outcomes together.

N_FEATURES = 30  # rows of the heat map


def draw_reliability(held_out: HeldOut, alt: str, min_count: int = FEWEST) -> Picture:
    """Whether values are at their bounds as often as predicted; bins with few are left out."""
    found = held_out.targets, held_out.predictive
    n_bars = histogram_bins(*found, min_count)
    figure, ax = new_figure(8.4, 3.9)
    plots.draw_calibration(*found, n_bins=N_BINS, n_bars=n_bars, min_count=min_count, ax=ax)
    counts = ax.child_axes[0]
    counts.yaxis.set_major_formatter("{x:,.0f}")
    counts.yaxis.set_minor_formatter("")
    return as_picture(figure, "reliability", alt)


def layer_errors(held_out: HeldOut, table: pd.DataFrame) -> FloatArray:
    """1 − R² after every layer of the outcomes that vary, (K, T)."""
    varied = np.flatnonzero(table["r2"].notna()).tolist()
    targets = replace(some_targets(held_out.targets, varied), one_dimensional=False)
    stages = [stage[:, varied] for stage in held_out.stages]
    return np.array([centred_anmse(targets, s, multioutput="raw_values") for s in stages])


def draw_layers(errors: FloatArray) -> Picture:
    """The error after every layer."""
    means = ", ".join(number(mean, 3) for mean in errors.mean(axis=1))
    alt = f"Bars: mean error relative to the mean after each layer: {means}"
    figure, ax = new_figure(2.6 + 0.9 * len(errors), 3.2)
    plots.draw_layers(errors, ax=ax)
    ax.get_legend().remove()
    return as_picture(figure, "layers", alt)


def draw_subspaces(directions: Directions) -> Picture:
    """Loadings of the shared directions on features and outcomes."""
    numbers = directions.features.columns
    names = [f"{number}\n{share}" for number, share in zip(numbers, directions.shares, strict=True)]
    features, targets = (side.set_axis(names, axis=1) for side in directions[:2])
    n_rows = min(max(min(len(features), N_FEATURES), len(targets)), 60)
    figure, ax = new_figure(4.6 + 0.8 * features.shape[1], 1.6 + max(0.19 * n_rows, 1.0))
    plots.draw_subspaces(features, targets, n_features=N_FEATURES, stable=directions.stable, ax=ax)
    for panel, title in zip(ax.child_axes, ("features", "outcomes"), strict=True):
        panel.title.set_text(title)
    alt = f"Two heat maps of {plural(features.shape[1], 'component')}: loadings of the strongest "
    alt += f"features and of {plural(len(targets), 'outcome')}; the table below lists the largest"
    return as_picture(figure, "subspaces", alt)


def draw_similarity(cosines: pd.DataFrame, alt: str) -> Picture:
    """Which outcomes the features move alike."""
    side = max(2.5, min(len(cosines), 60) * 0.19)
    figure, ax = new_figure(side + 2.0, side + 2.4)
    plots.draw_similarity(cosines, ax=ax)
    for text in ax.texts:
        text.set_color(_FIXED_WHITE if text.get_color() == "white" else _FIXED_BLACK)
    figure.axes[-1].set_xlabel("cosine between the effects on two outcomes", fontsize=8)
    return as_picture(figure, "similarity", alt)


# Trajectories of a mixed model.

TRAJECTORY_WORDS = (
    "Scores in percent of their scale, over time. The black line is the mean of the population at "
    "mean features. Each band is a forecast (80 %) of a person who was seen twice at the start, "
    "with low, typical or high scores. The model made these people up; none is real."
)
_N_TIMES, _MOST_PANELS, _N_COLUMNS = 25, 8, 4
_REACH = 1.7  # standard deviations of time around its mean; about the ends of even visits
_PEOPLE = {0.1: "#d55e00", 0.5: "#5f5f5f", 0.9: "#0072b2"}  # quantiles at early visits, colours


def draw_trajectories(fitted: FittedStudy) -> Picture | None:
    """The population over time, and forecasts of people whom the model made up.

    A panel for each of the first outcomes between two bounds; None for other models.
    """
    model, column = fitted.model, fitted.study.data.time
    if not isinstance(model, MixedTobitRegressor) or column is None:
        return None
    shown = np.flatnonzero(np.isfinite(model.lower_) & np.isfinite(model.upper_))[:_MOST_PANELS]
    if not shown.size:
        return None
    start, end = usual_times(model)
    X = pd.DataFrame([fitted.encoder.means] * _N_TIMES, columns=fitted.encoder.features)
    X[column] = np.linspace(start, end, _N_TIMES)
    early, later = X.iloc[[0, 2]], X.iloc[2:]
    scores = model.predict_quantile(early, list(_PEOPLE)).reshape(2 * len(_PEOPLE), -1)
    visits, people = pd.concat([early] * len(_PEOPLE)), np.repeat(list(_PEOPLE), len(early))
    known = model.condition(visits, scores, groups=people, time=visits[column])
    bands = [known.predict_interval(later, 0.8, groups=[who] * len(later)) for who in _PEOPLE]
    lower, span = model.lower_, model.upper_ - model.lower_

    def percent(scores: FloatArray, task: int) -> FloatArray:
        of_task = scores.reshape(len(scores), -1)[:, task]
        return np.asarray(100.0 * (of_task - lower[task]) / span[task])

    width = min(len(shown), _N_COLUMNS)
    height = -(-len(shown) // width)
    size, shared = (2.4 * width + 0.4, 2.1 * height + 0.3), {"sharex": True, "sharey": True}
    figure, grid = new_figure(*size, nrows=height, ncols=width, squeeze=False, **shared)
    axes = grid.ravel()
    for ax, task in zip(axes, shown, strict=False):
        for ends, colour in zip(bands, _PEOPLE.values(), strict=True):
            low, high = (percent(end, task) for end in ends)
            ax.fill_between(later[column], low, high, color=colour, alpha=0.25, linewidth=0)
        ax.plot(X[column], percent(model.predict(X), task), color="#000000", linewidth=1.5)
        ax.set_title(model.target_names_[task], fontsize=9)
        ax.set_ylim(0, 100)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    figure.supxlabel(column, fontsize=9)
    figure.supylabel("percent of scale", fontsize=9)
    return as_picture(figure, "trajectories", f"Trajectories. {TRAJECTORY_WORDS}")


def usual_times(model: MixedTobitRegressor) -> list[float]:
    """From about the first to about the last of even visits."""
    mean, unit = model._units.time
    return [max(mean - _REACH * unit, min(mean, 0.0)), mean + _REACH * unit]
