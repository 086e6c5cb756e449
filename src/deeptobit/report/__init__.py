"""The report: what a fitted study says, as one HTML page for people; model cards; the paper."""

from deeptobit.report._card_files import card_files, write_card
from deeptobit.report._card_markdown import card_markdown
from deeptobit.report._model_card import model_card, study_card
from deeptobit.report._page import render_report
from deeptobit.report._reproduction import render_reproduction
from deeptobit.report._reproduction_files import write_reproduction

__all__ = [
    "card_files",
    "card_markdown",
    "model_card",
    "render_report",
    "render_reproduction",
    "study_card",
    "write_card",
    "write_reproduction",
]
