"""What one name of ``deeptobit reproduce`` gives: tables, figures, and claims with verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["holds", "does not hold", "cannot be told"]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, or of ours, and what repeats say of it.

    Parameters
    ----------
    text : str
        The claim, in one sentence.
    paper : str
        What the paper reports, with the number of its table or figure.
    ours : str
        What was measured here.
    verdict : {"holds", "does not hold", "cannot be told"}
    test : str
        The test that gave the verdict, and its result.
    """

    text: str
    paper: str
    ours: str
    verdict: Verdict
    test: str


@dataclass(frozen=True, eq=False)
class TableOf:
    """A table as people read it: one header row, and no index.

    Cells are numbers or words; the columns that hold the paper's values say so in their names.
    ``data`` has what the table was made from, one row per repeat, for machines.
    """

    caption: str
    frame: pd.DataFrame
    data: pd.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class FigureOf:
    """Arrays, numbers, words, and lists and dicts of them, which the report draws as ``kind``."""

    caption: str
    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Section:
    """One name of ``deeptobit reproduce``.

    Parameters
    ----------
    name, title, text : str
        ``text`` says what was done; an empty line separates paragraphs.
    tables, figures, claims : tuples
    seconds : float
        Of work, whenever that was; :func:`reproduce` fills it in.
    settings : dict
        What the numbers depend on; :func:`reproduce` fills it in.
    """

    name: str
    title: str
    text: str
    tables: tuple[TableOf, ...] = ()
    figures: tuple[FigureOf, ...] = ()
    claims: tuple[Claim, ...] = ()
    seconds: float = 0.0
    settings: dict[str, Any] = field(default_factory=dict)
