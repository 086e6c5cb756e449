"""Figures of the reproduction, by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from deeptobit.exceptions import MissingExtraError
from deeptobit.report._reproduction_lines import draw_lines, draw_weights
from deeptobit.report._reproduction_network import draw_network
from deeptobit.report.brain import draw_brain_maps, recognise_regions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deeptobit.experiments.reproduce import FigureOf

_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Figure]] = {
    "lines": draw_lines,
    "weights": draw_weights,
    "network": draw_network,
}


class Drawn(NamedTuple):
    """Figures with their captions; without any, ``note`` says why."""

    figures: list[tuple[Figure, str]]
    note: str = ""


def draw(figure: FigureOf) -> Drawn:
    """Draw what a section describes."""
    if figure.kind == "brain":
        return _draw_brain(figure)
    return Drawn([(_KINDS[figure.kind](figure.data), figure.caption)])


def _draw_brain(figure: FigureOf) -> Drawn:
    import pandas as pd

    data = figure.data
    values = pd.DataFrame(data["loadings"], index=data["features"], columns=data["names"])
    measures = recognise_regions(values.index).measures
    if not measures:
        return Drawn([], "No feature is a region of the cortex: there is no map to draw.")
    try:
        maps = [draw_brain_maps(values, measure=name, tasks=data["tasks"]) for name in measures]
    except MissingExtraError as error:
        return Drawn([], f"The features are regions of the cortex, but {error}.")
    drawn = []
    for name, one in zip(measures, maps, strict=True):
        note = one.get_supxlabel().replace("\n", " ")
        one.supxlabel("")
        drawn.append((one, f"{figure.caption} Measure: {name}. {note}"))
    return Drawn(drawn)
