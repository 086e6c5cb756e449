from . import atlas as atlas
from . import brain as brain
from . import card as card
from . import effects as effects
from . import page as page
from . import patient as patient
from . import pictures as pictures
from . import privacy as privacy
from . import words as words
from .atlas import recognise_regions
from .brain import draw_brain_maps
from .card import card_files, card_markdown, model_card, study_card, write_card
from .page import render_comparison, render_report
from .patient import render_patient_page
from .pictures import as_picture, drawing
from .words import bound, measured, percent

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
