"""A study that has been fitted, and what goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from deeptobit.estimators import SubspaceNetworkCV, SubspaceNetworkRegressor
from deeptobit.study._encoding import Encoder
from deeptobit.study._file import Study, parse_study
from deeptobit.study._finding import Finding
from deeptobit.study._held_out import HeldOut
from deeptobit.study._lines import Source

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class FittedStudy:
    """The model of a study, how it does on rows it has not seen, and where it comes from.

    No ids are in it, and neither comments of the study file nor the name of its table; outcomes
    of the rows are.

    Attributes
    ----------
    model : SubspaceNetworkCV or SubspaceNetworkRegressor
        Fitted to all rows, or streamed: fitted to all but those that were held out.
    encoder : Encoder
        Turns other tables into the features of the model.
    name : str
        Of the study file, without its ending.
    text : str
        The settings of the study file, in its own language.
    held_out : HeldOut
    findings : tuple of Finding
        What ``diagnose`` found, and what the fit warned of.
    n_groups : int or None
    facts : dict of str
        Versions of Python and packages, folds, seed, date, seconds.
    n_rows : int
        Rows of the table.
    """

    model: SubspaceNetworkCV | SubspaceNetworkRegressor
    encoder: Encoder
    name: str
    text: str
    held_out: HeldOut
    findings: tuple[Finding, ...]
    n_groups: int | None
    facts: dict[str, str]
    n_rows: int

    @cached_property
    def study(self) -> Study:
        """The settings of the study file."""
        return parse_study(Source(Path(f"{self.name}.toml"), self.text))

    @property
    def summary(self) -> pd.DataFrame:
        """Bounds, shares at them and missing values, one row per target."""
        return self.held_out.targets.describe()

    @property
    def n_held_out(self) -> int:
        """Rows that were predicted by a model which had not seen them: all, unless streamed."""
        return len(self.held_out.targets)

    @property
    def streamed(self) -> bool:
        """Whether the table was beyond memory, and one model was fitted to most of its rows."""
        return self.n_held_out < self.n_rows
