"""From columns of a table to a matrix of numbers, the same way for new people."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.app.study.errors import StudyError, closest, listed
from deeptobit.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.app.study.tables import Table


# Values that so few rows have that their number could point to a person.

FEWEST = 5  # smaller counts of rows are not published
_MOST_CODES = 10  # with more different values, a mean tells no count


def tells_few(values: FloatArray) -> bool:
    """Whether the mean of a column would tell how many rows have a value, and they are few.

    Of a column with a handful of different values (a flag, a code, a category as 0 and 1), the
    mean and the standard deviation are counts in disguise.

    Parameters
    ----------
    values : array of shape (N,)
        NaN where unknown.

    Examples
    --------
    >>> flag = np.zeros(60)
    >>> flag[:2] = 1.0
    >>> flag.mean().round(3), tells_few(flag), tells_few(np.arange(60.0))
    (np.float64(0.033), True, False)
    """
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return bool(1 < len(distinct) <= _MOST_CODES and counts.min() < FEWEST)


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
        Means of the features where the column is known; they stand in where it is not.
    indicator : bool
        Whether cells were missing, so that a feature tells where.
    few : tuple of bool
        Whether the mean of a feature would tell a count under five; pages then keep silent.
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
        """Features of categories that fewer than five rows have, and names without the category."""
        pairs = zip(self.levels, self.few, strict=False)
        found = [f"{self.name}={level}" for level, few in pairs if few]
        return {name: f"{self.name}=rare category {k}" for k, name in enumerate(found, start=1)}


@dataclass(frozen=True)
class Encoder:
    """Learned from one table, applied to others; plain values that can be stored as JSON.

    What is unknown is filled with the mean of its feature, which leaves predictions where they
    would be without it; where cells were missing in the first table, an indicator is added. A
    category that the first table did not have is unknown too. With ``missing="error"`` both are
    errors.
    """

    columns: tuple[EncodedColumn, ...]
    missing: str

    @property
    def features(self) -> list[str]:
        """Names of all features."""
        return [name for column in self.columns for name in column.features]

    @property
    def indicators(self) -> list[str]:
        """Names of the features that tell where a column was missing."""
        return [column.name + MISSING for column in self.columns if column.indicator]

    @property
    def rare(self) -> dict[str, str]:
        """Features of rare categories, and the names under which they are published."""
        return {name: public for column in self.columns for name, public in column.rare.items()}

    def encode(self, table: Table) -> pd.DataFrame:
        """Features of a table, (N, D); columns it has beyond those needed are ignored."""
        import pandas as pd

        return pd.DataFrame(self.matrix(table), columns=pd.Index(self.features))

    def matrix(self, table: Table) -> FloatArray:
        """The same without names."""
        self._check_present(table)
        return np.column_stack([self._encode(column, table) for column in self.columns])

    def to_state(self) -> dict[str, Any]:
        """Plain values, from which :meth:`from_state` makes the same encoder."""
        columns = [
            {
                key: list(value) if isinstance(value, tuple) else value
                for key, value in asdict(column).items()
            }
            for column in self.columns
        ]
        return {"columns": columns, "missing": self.missing}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Encoder:
        """The encoder that ``to_state`` described."""
        columns: list[dict[str, Any]] = [
            {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in column.items()
            }
            for column in state["columns"]
        ]
        return cls(tuple(EncodedColumn(**column) for column in columns), state["missing"])

    def _check_present(self, table: Table) -> None:
        known = set(table.columns)
        absent = [column.name for column in self.columns if column.name not in known]
        if absent:
            meant = {closest(name, known) for name in absent[:SHOWN]} - {None}
            hint = f"; did you mean {listed(sorted(map(str, meant)))}?" if meant else ""
            features = "feature" if len(absent) == 1 else "features"
            raise StudyError(f"{table.file} lacks the {features} {listed(absent, SHOWN)}{hint}")

    def _encode(self, column: EncodedColumn, table: Table) -> FloatArray:
        features, missing = _features(column.name, column.levels, column.reference, table)
        if self.missing == "error" and missing.any():
            raise StudyError(
                f"{table.at(missing)}: feature {column.name!r} is missing or of an unknown "
                f"category in {int(missing.sum())} row(s), and the study says missing = 'error'; "
                "fill the cells, exclude the feature, or write missing = 'impute'"
            )
        if missing.any():
            _warn_of_unseen(column, table)
        features[missing] = column.means
        return np.column_stack([features, missing]) if column.indicator else features


def learn_encoding(table: Table, columns: dict[str, bool], missing: str) -> Encoder:
    """Learn categories and means from a table.

    Parameters
    ----------
    columns : dict
        Names of the columns, and whether each is categorical.
    missing : {"impute", "error"}
    """
    learned = []
    for name, categorical in columns.items():
        levels, reference = _levels(table.text(name)) if categorical else ((), None)
        features, unknown = _features(name, levels, reference, table)
        if unknown.all():
            raise StudyError(f"{table.file}: feature {name!r} has no value at all; exclude it")
        known = features[~unknown]
        means, few = tuple(known.mean(axis=0).tolist()), tuple(map(tells_few, known.T))
        learned.append(EncodedColumn(name, levels, reference, means, bool(unknown.any()), few))
    encoder = Encoder(tuple(learned), missing)
    check_distinct(encoder.features, table.file)
    return encoder


def _levels(text: pd.Series[Any]) -> tuple[tuple[str, ...], str | None]:
    counts = text.dropna().value_counts()
    by_size = sorted(counts.index, key=lambda level: (-int(counts[level]), str(level)))
    names = [str(level) for level in by_size]
    return tuple(sorted(names[1:])), names[0] if names else ""


def _features(
    name: str, levels: tuple[str, ...], reference: str | None, table: Table
) -> tuple[FloatArray, BoolArray]:
    """Features without indicator, (N, K), and the rows where they are unknown."""
    if reference is None:
        values = table.numbers(name, "feature")
        return values[:, None].copy(), np.isnan(values)
    text = table.text(name)
    features = np.zeros((len(text), len(levels)))
    for position, level in enumerate(levels):
        features[:, position] = text == level
    return features, ~text.isin([*levels, reference]).to_numpy()


def _warn_of_unseen(column: EncodedColumn, table: Table) -> None:
    if column.reference is None:
        return
    text = table.text(column.name).dropna()
    unseen = sorted(set(text) - {*column.levels, column.reference})
    if unseen:
        warnings.warn(
            f"{table.file}: feature {column.name!r} has categories that the model does not know "
            f"({listed(unseen)}); they are treated as missing",
            stacklevel=4,
        )


def check_distinct(names: list[str], file: str) -> None:
    """Refuse a column that is named like an encoded feature of another."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise StudyError(
            f"{file}: a column has the name of an encoded feature, {listed(twice)}; rename it"
        )
