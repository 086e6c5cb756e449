"""Columns of a table as a matrix of features, encoded in the same way for new tables."""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from deeptobit.app.study.columns import MOST_DECLARED, ColumnSummary, is_small
from deeptobit.app.study.tables import StudyError, Table, closest, listed
from deeptobit.arrays import FloatArray

MISSING = " (missing)"
SHOWN = 10  # features in one message


@dataclass(frozen=True)
class EncodedColumn:
    """How one column becomes one or more features.

    Attributes
    ----------
    name : str
    levels : tuple of str
        Categories that get a feature ``name=level`` each; empty for a column of numbers.
    reference : str or None
        The most frequent category, which gets none: all its features are 0.
    means : tuple of float
        Means of the features where the column is known; they replace missing values.
    indicator : bool
        Whether cells were missing, so that a further feature marks them.
    few : tuple of bool
        Whether the mean of a feature would reveal a count below five; reports then leave it out.
    """

    name: str
    levels: tuple[str, ...]
    reference: str | None
    means: tuple[float, ...]
    indicator: bool
    few: tuple[bool, ...]

    @property
    def features(self) -> list[str]:
        """Names of the features, the indicator last."""
        names = [f"{self.name}={level}" for level in self.levels]
        if self.reference is None:
            names = [self.name]
        return names + [self.name + MISSING] * self.indicator

    @property
    def rare(self) -> dict[str, str]:
        """Features of categories with fewer than five rows, and names that hide the category."""
        pairs = zip(self.levels, self.few, strict=False)
        found = [f"{self.name}={level}" for level, few in pairs if few]
        return {name: f"{self.name}=rare category {k}" for k, name in enumerate(found, start=1)}


@dataclass(frozen=True)
class Encoder:
    """How the columns of a table become features; learned from one table, applied to others.

    Missing values are replaced by the mean of their feature. Where cells were missing in the first
    table, an indicator is added. A category that the first table did not have counts as missing.
    With ``missing="error"`` both are errors.
    """

    columns: tuple[EncodedColumn, ...]
    missing: str

    @property
    def features(self) -> list[str]:
        """Names of all features."""
        return [name for column in self.columns for name in column.features]

    @property
    def indicators(self) -> list[str]:
        """Names of the features that mark missing cells."""
        return [column.name + MISSING for column in self.columns if column.indicator]

    @property
    def rare(self) -> dict[str, str]:
        """Features of rare categories, and the names under which they are published."""
        return {name: public for column in self.columns for name, public in column.rare.items()}

    def encode(self, table: Table) -> pd.DataFrame:
        """Features of a table, (N, D); columns it has beyond those needed are ignored."""
        return pd.DataFrame(self.matrix(table), columns=pd.Index(self.features))

    def matrix(self, table: Table) -> FloatArray:
        """The same without names."""
        known = set(table.columns)
        absent = [column.name for column in self.columns if column.name not in known]
        if absent:
            meant = {closest(name, known) for name in absent[:SHOWN]} - {None}
            hint = f"; did you mean {listed(sorted(map(str, meant)))}?" if meant else ""
            features = "feature" if len(absent) == 1 else "features"
            raise StudyError(f"{table.file} lacks the {features} {listed(absent, SHOWN)}{hint}")
        return np.column_stack([self._encode(column, table) for column in self.columns])

    def to_state(self) -> dict[str, Any]:
        """Plain values, from which :meth:`from_state` makes the same encoder."""
        columns = [_converted(asdict(column), tuple, list) for column in self.columns]
        return {"columns": columns, "missing": self.missing}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Encoder":
        """The encoder that ``to_state`` described."""
        columns = [_converted(column, list, tuple) for column in state["columns"]]
        return cls(tuple(EncodedColumn(**column) for column in columns), state["missing"])

    def _encode(self, column: EncodedColumn, table: Table) -> FloatArray:
        if column.reference is None:
            features = table.numbers(column.name, "feature")[:, None].copy()
            missing = np.isnan(features[:, 0])
        else:
            text = table.text(column.name)
            levels = np.array(column.levels, dtype=object)
            features = (text.to_numpy(dtype=object)[:, None] == levels).astype(np.float64)
            missing = ~text.isin([*column.levels, column.reference]).to_numpy()
        if self.missing == "error" and missing.any():
            raise StudyError(
                f"{table.at(missing)}: feature {column.name!r} is missing or of an unknown "
                f"category in {int(missing.sum())} row(s), and the study says missing = 'error'; "
                "fill the cells, exclude the feature, or write missing = 'impute'"
            )
        unseen = sorted(set(table.text(column.name)[missing].dropna()))
        if unseen:
            warnings.warn(
                f"{table.file}: feature {column.name!r} has categories that the model does not "
                f"know ({listed(unseen)}); they are treated as missing",
                stacklevel=4,
            )
        features[missing] = column.means
        return np.column_stack([features, missing]) if column.indicator else features


def _converted(values: Mapping[str, Any], old: type, new: type) -> dict[str, Any]:
    """Values of one type as another; files have lists, and columns have tuples."""
    return {key: new(value) if isinstance(value, old) else value for key, value in values.items()}


def learn_encoder(summaries: Iterable[ColumnSummary], missing: str, file: str) -> Encoder:
    """The encoder of a table's features, by summaries of its columns.

    Parameters
    ----------
    summaries : iterable of ColumnSummary
    missing : {"impute", "error"}
    file : str
        Name of the table, for errors.
    """
    encoder = Encoder(tuple(_learn(summary, file) for summary in summaries), missing)
    twice = [name for name, times in Counter(encoder.features).items() if times > 1]
    if twice:
        message = f"a column has the name of an encoded feature, {listed(twice)}; rename it"
        raise StudyError(f"{file}: {message}")
    return encoder


def _learn(summary: ColumnSummary, file: str) -> EncodedColumn:
    name, counts, n_known = summary.name, summary.levels, summary.n_known
    if n_known == 0:
        raise StudyError(f"{file}: feature {name!r} has no value at all; exclude it")
    has_blanks = n_known < summary.n_rows
    if summary.kind != "categories":
        few = summary.values is not None and is_small(summary.values.values())
        return EncodedColumn(name, (), None, (summary.total / n_known,), has_blanks, (few,))
    if counts is None:
        raise StudyError(
            f"{file}: feature {name!r} has over {MOST_DECLARED:,} categories, more than a table "
            "that does not fit in memory may have; join the rare ones, or exclude it"
        )
    reference = min(counts, key=lambda level: (-counts[level], level))
    levels = tuple(sorted(counts.keys() - {reference}))
    return EncodedColumn(
        name,
        levels,
        reference,
        means=tuple(counts[level] / n_known for level in levels),
        indicator=has_blanks,
        few=tuple(is_small([counts[level], n_known - counts[level]]) for level in levels),
    )
