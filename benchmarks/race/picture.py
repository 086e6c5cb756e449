"""Average ranks as a picture."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from benchmarks.race.critical_difference import RankTest
from benchmarks.race.ours import NAME
from deeptobit.app.report.pictures import Picture, as_picture, drawing, new_figure

if TYPE_CHECKING:
    import pandas as pd

_BLUE, _GREY, _BAND = "#0072b2", "#5f5f5f", "#c8c8c8"
_ROW = 0.27  # inches
_DPI = 110


def draw_ranks(ranks: pd.DataFrame, found: RankTest, key: str, what: str) -> Picture:
    """Methods from best to worst; lines at the right join those that do not differ."""
    with drawing():
        figure = _figure(ranks, found, what)
        best = found.names[0]
        alt = f"Average ranks in {what}; the best is {best} with {found.average[0]:.1f}."
        return as_picture(figure, key, alt, _caption(found, len(ranks)))


def ranks_as_png(ranks: pd.DataFrame, found: RankTest, what: str) -> bytes:
    """The same by itself, on white."""
    buffer = BytesIO()
    with drawing():
        figure = _figure(ranks, found, what)
        figure.savefig(buffer, format="png", dpi=_DPI, metadata={"Software": None})
    return buffer.getvalue()


def _figure(ranks: pd.DataFrame, found: RankTest, what: str) -> Any:
    n_methods = len(found.names)
    figure, ax = new_figure(8.6, 1.0 + _ROW * n_methods)
    for row, name in enumerate(found.names):
        colour = _BLUE if name == NAME else _GREY
        ax.plot(ranks[name], [row] * len(ranks), "|", color=_BAND, markersize=9, mew=1.5)
        ax.plot(found.average[row], row, "o", color=colour, markersize=7)
    for lane, (first, last) in enumerate(found.groups):
        x = n_methods + 1.0 + 0.025 * n_methods * lane
        ax.plot([x, x], [first, last], color="#000000", linewidth=2.5, solid_capstyle="round")
    ax.set_yticks(range(n_methods), found.names)
    for label in ax.get_yticklabels():
        if label.get_text() == NAME:
            label.set(color=_BLUE, fontweight="bold")
    ax.set_ylim(n_methods - 0.5, -0.5)
    ax.set_xlim(0.5, n_methods + 1.5 + 0.025 * n_methods * len(found.groups))
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xlabel(f"rank in {what}, 1 is best")
    ax.set_xticks(range(1, n_methods + 1, 2))
    for side in ("left", "right", "bottom"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return figure


def _caption(found: RankTest, n_data: int) -> str:
    text = f"Average ranks over {n_data} data sets (dots) and the rank on each (marks)."
    if found.groups:
        text += (
            f" Methods joined by a line differ by less than the critical difference"
            f" {found.distance:.1f} (Nemenyi, 5 %)."
        )
    return text
