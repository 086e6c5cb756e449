"""The study file: which data, which features, which targets, how to fit and to evaluate."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Literal

from deeptobit.study._errors import StudyError, did_you_mean
from deeptobit.study._lines import Source
from deeptobit.study._sections import (
    is_count,
    is_file_name,
    is_list,
    is_name,
    is_number,
    key,
    one_of,
)
from deeptobit.study._sections import read_section as _section
from deeptobit.study._table import EXCEL, PARQUET

_NAMES = "a list of column names, in which * and ? are wildcards"
_TABLES = (".csv", ".tsv", *EXCEL, *PARQUET)  # a study file may well be called .txt
_SECTIONS = ("data", "features", "targets", "model", "evaluation", "report")


@dataclass(frozen=True)
class DataSettings:
    """``[data]``: the table, and who its rows are."""

    file: str = key("the name of a CSV, Excel or Parquet file", is_file_name)
    sheet: str | None = key("the name of a sheet", is_name, None)
    id: str | None = key("the name of a column", is_name, None)
    group: str | None = key("the name of a column", is_name, None)
    missing: tuple[str | float, ...] = key(
        "a list of cells that mean missing, such as [-4, 999]",
        lambda value: is_list(value, lambda cell: is_name(cell) or is_number(cell)),
        (),
    )


@dataclass(frozen=True)
class FeatureSettings:
    """``[features]``: the columns to predict from."""

    include: tuple[str, ...] = key(_NAMES, lambda value: is_list(value, is_name), ("*",))
    exclude: tuple[str, ...] = key(_NAMES, lambda value: is_list(value, is_name), ())
    categorical: tuple[str, ...] = key(_NAMES, lambda value: is_list(value, is_name), ())
    missing: Literal["impute", "error"] = one_of("impute", "error", default="impute")


@dataclass(frozen=True)
class TargetSettings:
    """``[targets.NAME]``: one outcome, its bounds, and how to tell a censored value."""

    name: str
    column: str | None = key("the name of a column", is_name, None)
    lower: float | str | None = key(
        "a number, or the name of a column that holds the limit of every row",
        lambda value: is_number(value) or is_name(value),
        None,
    )
    upper: float | str | None = key(
        "a number, or the name of a column that holds the limit of every row",
        lambda value: is_number(value) or is_name(value),
        None,
    )
    below: str | None = key("the name of a column that flags values below detection", is_name, None)
    above: str | None = key("the name of a column that flags values above detection", is_name, None)
    outside: Literal["error", "clip"] = one_of("error", "clip", default="error")

    @property
    def values(self) -> str:
        """The column that holds the outcome: ``column``, or the target's own name."""
        return self.column or self.name

    @property
    def helpers(self) -> dict[str, str]:
        """Key and name of the columns that hold limits and flags."""
        keys = ("lower", "upper", "below", "above")
        found = {name: getattr(self, name) for name in keys}
        return {name: column for name, column in found.items() if isinstance(column, str)}


@dataclass(frozen=True)
class ModelSettings:
    """``[model]``: how :class:`SubspaceNetworkCV` chooses."""

    max_layers: int = key("a whole number from 1", is_count, 2)
    cv: int = key("a whole number of folds, from 2", lambda value: is_count(value, 2), 5)
    scoring: Literal["r2", "log"] = one_of("r2", "log", default="r2")
    noise: str = one_of("auto", "gaussian", "logistic", "student_t", default="auto")
    ranks: tuple[int, ...] | None = key(
        "a list of whole numbers from 1", lambda value: is_list(value, is_count), None
    )
    alphas: tuple[float, ...] | None = key(
        "a list of positive numbers",
        lambda value: is_list(value, lambda alpha: is_number(alpha) and alpha > 0),
        None,
    )
    feature_sparsities: tuple[float, ...] | None = key(
        "a list of numbers from 0 to 1",
        lambda value: is_list(value, lambda share: is_number(share) and 0 <= share <= 1),
        None,
    )
    seed: int = key("a whole number from 0", lambda value: is_count(value, 0), 0)


@dataclass(frozen=True)
class EvaluationSettings:
    """``[evaluation]``: how held-out rows are chosen."""

    method: Literal["splits", "folds"] = one_of("splits", "folds", default="splits")
    train_shares: tuple[float, ...] = key(
        "a list of shares between 0 and 1",
        lambda value: bool(value) and is_list(value, lambda s: is_number(s) and 0 < s < 1),
        (0.4, 0.5, 0.6, 0.7, 0.8),
    )
    repeats: int = key("a whole number from 1", is_count, 5)
    folds: int = key("a whole number from 2", lambda value: is_count(value, 2), 5)
    coverage: float = key(
        "a share between 0 and 1", lambda value: is_number(value) and 0 < value < 1, 0.9
    )
    seed: int = key("a whole number from 0", lambda value: is_count(value, 0), 0)


@dataclass(frozen=True)
class ReportSettings:
    """``[report]``: what model cards and reports may tell."""

    small_counts: bool = key("true or false", lambda value: isinstance(value, bool), False)


@dataclass(frozen=True)
class Study:
    """A study file that has been read; errors about it point to its lines."""

    source: Source
    data: DataSettings
    features: FeatureSettings
    targets: tuple[TargetSettings, ...]
    model: ModelSettings
    evaluation: EvaluationSettings
    report: ReportSettings

    @property
    def data_path(self) -> Path:
        """Where the table lies: in the folder of the study file or below, never outside."""
        name = self.data.file
        folder = self.source.path.resolve().parent
        absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor
        path = (folder / name).resolve()
        if absolute or not path.is_relative_to(folder):
            raise self.source.error(
                ("data", "file"),
                f"[data] file must lie in the folder of the study file or below it; {name!r} leads "
                "outside. Move the study file, or name the table on the command line with --data",
            )
        return path


def read_study(path: Path | str) -> Study:
    r"""Read a study file; whatever is wrong with it is an error that names the line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('[data]\nfile = "scores.csv"\n[targets.MMSE]\nuper = 30\n')
    ...     read_study(path)
    Traceback (most recent call last):
        ...
    deeptobit.study._errors.StudyError: study.toml, line 4: [targets.MMSE] has no key 'uper'
    (its keys are column, lower, upper, below, above, outside); did you mean 'upper'?
    """
    return parse_study(Source(Path(path), _read_text(Path(path))))


def parse_study(source: Source) -> Study:
    """The study that a text describes, wherever the text comes from."""
    try:
        content = tomllib.loads(source.text)
    except ValueError as error:  # also numbers that are too long for Python
        raise StudyError(f"{source.path.name} is not valid TOML: {error}") from None
    except RecursionError:
        raise StudyError(f"{source.path.name} is nested too deeply") from None
    for name in content:
        if name not in _SECTIONS:
            raise source.error(
                (name,),
                f"unknown section {name!r} (known are {', '.join(_SECTIONS)})"
                f"{did_you_mean(name, _SECTIONS)}",
            )
    if "data" not in content:
        raise StudyError(f"{source.path.name} lacks the section [data] with the key 'file'")
    return Study(
        source,
        _section(DataSettings, content["data"], ("data",), source),
        _section(FeatureSettings, content.get("features", {}), ("features",), source),
        _read_targets(content.get("targets", {}), source),
        _section(ModelSettings, content.get("model", {}), ("model",), source),
        _section(EvaluationSettings, content.get("evaluation", {}), ("evaluation",), source),
        _section(ReportSettings, content.get("report", {}), ("report",), source),
    )


def _read_text(path: Path) -> str:
    if path.exists() and path.suffix.lower() in _TABLES:
        raise StudyError(
            f"{path.name} is a table, not a study file; 'deeptobit init {path}' writes one for it"
        )
    if not path.is_file():
        raise StudyError(f"{path}: there is no such study file; 'deeptobit init DATA' writes one")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise StudyError(
            f"{path.name} is not UTF-8 text; a study file is written in TOML"
        ) from None


def _read_targets(tables: Any, source: Source) -> tuple[TargetSettings, ...]:
    if not isinstance(tables, dict) or not tables:
        raise source.error(
            ("targets",), "there is no target; write at least one table [targets.NAME]"
        )
    targets = []
    for name, table in tables.items():
        target = _section(TargetSettings, table, ("targets", name), source, name=name)
        lower, upper = target.lower, target.upper
        if isinstance(lower, int | float) and isinstance(upper, int | float) and lower >= upper:
            raise source.error(
                ("targets", name, "upper"),
                f"[targets.{name}] upper must be above lower; got {upper:g} and {lower:g}",
            )
        targets.append(target)
    return tuple(targets)
