from . import atlas as atlas
from . import brain as brain
from . import card as card
from . import effects as effects
from . import page as page
from . import patient as patient
from . import pictures as pictures
from . import privacy as privacy
from . import words as words
from .atlas import recognise_regions as recognise_regions
from .brain import draw_brain_maps as draw_brain_maps
from .card import card_files as card_files
from .card import card_markdown as card_markdown
from .card import model_card as model_card
from .card import study_card as study_card
from .card import write_card as write_card
from .page import render_comparison as render_comparison
from .page import render_report as render_report
from .patient import render_patient_page as render_patient_page
from .pictures import as_picture as as_picture
from .pictures import drawing as drawing
from .words import bound as bound
from .words import measured as measured
from .words import percent as percent

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
