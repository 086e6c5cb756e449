"""Reports, model cards and brain maps of fitted studies."""

from deeptobit.app.report.atlas import recognise_regions
from deeptobit.app.report.brain import draw_brain_maps
from deeptobit.app.report.card import card_files, card_markdown, model_card, study_card, write_card
from deeptobit.app.report.format import UNKNOWN, bound, measured, percent
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
