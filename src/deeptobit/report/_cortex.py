"""Brain maps in the report, where features are regions of the cortex."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from deeptobit.exceptions import MissingExtraError
from deeptobit.report._directions import Directions, in_words
from deeptobit.report._svg import Picture, as_picture
from deeptobit.report.brain import draw_brain_maps, recognise_regions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_N_COMPONENTS = 3
_N_TASKS = 3


class Cortex(NamedTuple):
    """Maps by measure, or why there are none."""

    pictures: list[Picture]
    note: str


def draw_cortex(directions: Directions) -> Cortex | None:
    """The strongest components on the cortex; None if no feature is a region of it."""
    regions = recognise_regions(directions.features.index)
    if not regions.measures:
        return None
    components = in_words(directions)[:_N_COMPONENTS]
    names = [f"component {component.number} ({component.share})" for component in components]
    values = directions.features.iloc[:, :_N_COMPONENTS].set_axis(names, axis=1)
    tasks = [", ".join(component.targets[:_N_TASKS]) for component in components]
    try:
        maps = [draw_brain_maps(values, measure=name, tasks=tasks) for name in regions.measures]
    except MissingExtraError as error:
        return Cortex([], f"The features are regions of the cortex, but {error}.")
    return Cortex([_with_caption(*numbered) for numbered in enumerate(maps)], "")


def _with_caption(number: int, figure: Figure) -> Picture:
    """A map whose note stands in the page, where it can be read out."""
    caption = figure.get_supxlabel().replace("\n", " ")
    figure.supxlabel("")
    return as_picture(figure, f"brain{number}", f"Loadings on the cortex. {caption}", caption)
