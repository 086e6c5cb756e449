"""Reports, model cards and brain maps of fitted studies."""

from deeptobit.app.report.atlas import recognise_regions
from deeptobit.app.report.brain import draw_brain_maps
from deeptobit.app.report.card import card_files, card_markdown, model_card, study_card, write_card
from deeptobit.app.report.page import render_comparison, render_report
from deeptobit.app.report.patient import render_patient_page
from deeptobit.app.report.pictures import as_picture, drawing
from deeptobit.app.report.words import bound, measured, percent

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
