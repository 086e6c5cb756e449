"""Reports, model cards and brain maps of fitted studies.

Pages and pictures load on first use: ``deeptobit fit`` needs the card alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from deeptobit.app.report.card import card_files, card_markdown, model_card, study_card, write_card
from deeptobit.app.report.format import UNKNOWN, bound, measured, percent

if TYPE_CHECKING:
    from deeptobit.app.report.atlas import recognise_regions
    from deeptobit.app.report.brain import draw_brain_maps
    from deeptobit.app.report.page import environment, render_report, template_part
    from deeptobit.app.report.pictures import Picture, as_picture, drawing

__all__ = [
    "UNKNOWN",
    "Picture",
    "as_picture",
    "bound",
    "card_files",
    "card_markdown",
    "draw_brain_maps",
    "drawing",
    "environment",
    "measured",
    "model_card",
    "percent",
    "recognise_regions",
    "render_report",
    "study_card",
    "template_part",
    "write_card",
]

_HOME = {"recognise_regions": "atlas", "draw_brain_maps": "brain"}
_HOME |= dict.fromkeys(("environment", "render_report", "template_part"), "page")
_HOME |= dict.fromkeys(("Picture", "as_picture", "drawing"), "pictures")


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
