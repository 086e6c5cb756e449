"""Reports, model cards and brain maps of fitted studies.

Pages and pictures load on first use: ``deeptobit fit`` needs the card alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from deeptobit.app.report.card import card_files, card_markdown, model_card, study_card, write_card
from deeptobit.app.report.words import bound, measured, percent

if TYPE_CHECKING:
    from deeptobit.app.report.atlas import recognise_regions
    from deeptobit.app.report.brain import draw_brain_maps
    from deeptobit.app.report.page import render_comparison, render_report
    from deeptobit.app.report.patient import render_patient_page
    from deeptobit.app.report.pictures import as_picture, drawing

__all__ = [
    "as_picture",
    "bound",
    "card_files",
    "card_markdown",
    "draw_brain_maps",
    "drawing",
    "measured",
    "model_card",
    "percent",
    "recognise_regions",
    "render_comparison",
    "render_patient_page",
    "render_report",
    "study_card",
    "write_card",
]

_LATER = "atlas", "pictures", "brain", "patient", "page"


def __getattr__(name: str) -> object:
    for home in _LATER if name in __all__ else ():
        module = import_module(f"{__name__}.{home}")
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
