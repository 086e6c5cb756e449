"""TODO."""

from deeptobit.app.report.atlas import recognise_regions
from deeptobit.app.report.brain import draw_brain_maps
from deeptobit.app.report.card import card_files, card_markdown, model_card, study_card, write_card
from deeptobit.app.report.format import UNKNOWN, bound, number, percent, significant
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
    "model_card",
    "number",
    "percent",
    "recognise_regions",
    "render_report",
    "significant",
    "study_card",
    "template_part",
    "write_card",
]
