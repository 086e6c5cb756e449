"""Heat maps of signed values between −1 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deeptobit.plots._style import SMALL

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

# Moreland's map: its steps look equally large, and blue against red survives colour blindness.
DIVERGING = "coolwarm"
ROW_HEIGHT = 0.19  # inches: names of that font size do not touch
_MAX_NAMED = 60  # rows beyond this have no room for their names


def heat_map(ax: Axes, table: pd.DataFrame) -> AxesImage:
    """Draw a table of values between −1 and 1, its first row on top; names stand at the left."""
    image = ax.imshow(
        table.to_numpy(), cmap=DIVERGING, vmin=-1.0, vmax=1.0, aspect="auto", interpolation="none"
    )
    names = [shorten(str(name)) for name in table.index]
    named = range(len(names)) if len(names) <= _MAX_NAMED else range(0)
    ax.set_yticks(named, names[: len(named)], fontsize=SMALL)
    ax.set_xticks(range(table.shape[1]), [str(name) for name in table.columns], fontsize=SMALL)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def add_scale(ax: Axes, image: AxesImage, label: str) -> None:
    """Explain the colours under the picture."""
    figure: Any = ax.figure
    bar = figure.colorbar(
        image, ax=ax, location="bottom", pad=0.02, shrink=0.6, aspect=40, ticks=[-1.0, 0.0, 1.0]
    )
    bar.set_label(label, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    bar.outline.set_visible(False)


def map_height(n_rows: int) -> float:
    """Inches for so many rows.

    Examples
    --------
    >>> map_height(3), map_height(30), map_height(1000)
    (1.0, 5.7, 11.4)
    """
    return round(min(max(n_rows * ROW_HEIGHT, 1.0), _MAX_NAMED * ROW_HEIGHT), 2)


def shorten(name: str, length: int = 32) -> str:
    """A name that leaves room for the picture; what tells names apart is often at their end.

    Examples
    --------
    >>> shorten("lh_superiortemporal_thickness (layer 2)")
    'lh_superiortemp…ckness (layer 2)'
    """
    if len(name) <= length:
        return name
    half = length // 2
    return f"{name[: half - 1]}…{name[-half:]}"
