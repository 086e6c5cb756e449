"""Figures as SVG inside the page: text stays text, and colours follow the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from deeptobit.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RASTER_DPI = 160
_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "deeptobit",
    "text.parse_math": False,  # a dollar in the name of a column is a dollar
    "font.size": 10.0,
}
# What pictures are drawn in, and the variables of the style sheet that take its place.
_VARIABLES = {
    "#000000": "currentColor",
    "#0072b2": "var(--blue)",
    "#d55e00": "var(--vermilion)",
    "#5f5f5f": "var(--muted)",
    "#c8c8c8": "var(--band)",
    "#ffffff": "none",
}
_FIXED_BLACK = "#010101"  # on a coloured cell, black and white stay what they are
_FIXED_WHITE = "#fefefe"


class Picture(NamedTuple):
    """A drawing and its place in the page.

    Parameters
    ----------
    svg : str
    width : int
        Its natural width in CSS pixels.
    caption : str
    """

    svg: str
    width: int
    caption: str


@contextmanager
def drawing() -> Iterator[None]:
    """Draw in matplotlib's default style whatever the user's is, and leave that as it was."""
    style = require("matplotlib.style", "app")
    with style.context(["default", _SETTINGS]), warnings.catch_warnings():
        # The browser has the letters that matplotlib's own font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        yield


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure that belongs to no window, its size in inches, and its Axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def remove_legend(ax: Axes) -> None:
    """The page explains the marks once, in words of its own."""
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()


def keep_text_colours(ax: Axes) -> None:
    """Numbers on coloured cells keep their black or white in a dark page."""
    for text in ax.texts:
        text.set_color(_FIXED_WHITE if text.get_color() == "white" else _FIXED_BLACK)


def as_picture(figure: Figure, name: str, alt: str, caption: str = "") -> Picture:
    """A figure as inline SVG on the page's own background, its ids made different by ``name``."""
    figure.patch.set_visible(False)
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", dpi=_RASTER_DPI, metadata=nothing)
    width = round(float(figure.get_size_inches()[0]) * 96)
    return Picture(_inline(buffer.getvalue(), name, alt, width), width, caption)


def _inline(svg: str, name: str, alt: str, width: int) -> str:
    """Without prologue and style sheet, and with ids and colours of the page."""
    view_box = re.search(r'viewBox="[^"]*"', svg)
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda found: _VARIABLES.get(found[0], found[0]), body)
    assert view_box is not None
    head = f'<svg {view_box[0]} role="img" width="{width}" aria-label="{escape(alt)}">'
    return head + body.strip()  # matplotlib escapes what it writes
