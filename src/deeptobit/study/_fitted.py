"""A study that has been fitted, and what goes with it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from deeptobit.estimators import SubspaceNetworkCV
from deeptobit.study._diagnose import Finding
from deeptobit.study._encoding import Encoder
from deeptobit.study._file import Study, parse_study
from deeptobit.study._held_out import HeldOut
from deeptobit.study._lines import Source

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class FittedStudy:
    """The model of a study, how it does on rows it has not seen, and where it comes from.

    No ids are in it, so that it may be passed on; outcomes of the rows are.

    Attributes
    ----------
    model : SubspaceNetworkCV
        Fitted to all rows.
    encoder : Encoder
        Turns other tables into the features of the model.
    name : str
        Of the study file, without its ending.
    text : str
        The study file.
    held_out : HeldOut
    findings : tuple of Finding
        What ``diagnose`` found, and what the fit warned of.
    n_groups : int or None
    facts : dict of str
        Versions of Python and packages, folds, seed, date, seconds.
    """

    model: SubspaceNetworkCV
    encoder: Encoder
    name: str
    text: str
    held_out: HeldOut
    findings: tuple[Finding, ...]
    n_groups: int | None
    facts: dict[str, str]

    @cached_property
    def study(self) -> Study:
        """The study file, read."""
        return parse_study(Source(Path(f"{self.name}.toml"), self.text))

    @property
    def summary(self) -> pd.DataFrame:
        """Bounds, shares at them and missing values, one row per target."""
        return self.held_out.targets.describe()

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self.held_out.targets)
