"""The study file: which data, which features, which targets, how to fit and to evaluate."""

import platform
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path, PurePosixPath, PureWindowsPath
from sys import float_info
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from deeptobit.app.study.formats import KINDS
from deeptobit.app.study.tables import StudyError, did_you_mean
from deeptobit.arrays import FloatArray
from deeptobit.extras import require
from deeptobit.likelihood import gaussian

# The line of a key in a TOML text, which tomllib does not tell.

_WIDTH = 200  # of a wrong value in a message
_BEFORE_EQUALS = re.compile(r"""^\s*+((?:"[^"]*"|'[^']*'|[^"'=#\[\]])++)=""")


@dataclass(frozen=True)
class Source:
    """The text of a study file, so that errors can name its lines."""

    path: Path
    text: str

    def error(self, key: tuple[str, ...], message: str) -> StudyError:
        """An error that begins with the file and the line of a key."""
        line = find_line(self.text, key)
        where = f"{self.path.name}, line {line}" if line else self.path.name
        return StudyError(f"{where}: {message}")


def find_line(text: str, key: tuple[str, ...]) -> int | None:
    r"""Find the line of a key, or of the closest table around it; counted from 1.

    Examples
    --------
    >>> find_line('[data]\nfile = "a.csv"\n\n[targets.MMSE]\nlower = 0\n',
    ...           ("targets", "MMSE", "lower"))
    5
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        found: tuple[str, ...] = ()
        if line.lstrip().startswith("["):
            found = table = _path(line) or table
        elif before := _BEFORE_EQUALS.match(line):
            found = table + _path(f"{before[1]} = 0")
        for depth in range(1, min(len(found), 3) + 1):  # section, name and key
            lines.setdefault(found[:depth], number)
    return next((lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines), None)


def _path(line: str) -> tuple[str, ...]:
    """The dotted key that a line of TOML begins with; empty if there is none."""
    try:
        inner: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    path: tuple[str, ...] = ()
    while isinstance(inner, dict) and inner:
        name, inner = next(iter(inner.items()))
        path += (name,)
    return path


# Sections of a study file: their keys, and what each key must hold.

Section = TypeVar("Section")


def key(expected: str, holds: Callable[[Any], bool], default: Any = MISSING) -> Any:
    """A key of a section: what it must hold, in words and as a test; required without default."""
    return field(default=default, metadata={"expected": expected, "holds": holds})


def read_section(
    kind: type[Section], values: Any, where: tuple[str, ...], source: Source, **given: Any
) -> Section:
    """Read a table of the study file into a dataclass of keys; a wrong key or value is an error."""
    known = {item.name: item for item in keys_of(kind)}
    title = f"[{'.'.join(where)}]"
    if not isinstance(values, Mapping):
        message = f"{where[-1]} must be a table, written {title}; got {shown(values)}"
        raise source.error(where, message)
    for name, value in values.items():
        if name not in known:
            message = f"{title} has no key {name!r} (its keys are {', '.join(known)})"
            raise source.error((*where, name), message + did_you_mean(name, known))
        if not known[name].metadata["holds"](value):
            expected = known[name].metadata["expected"]
            hint = did_you_mean(value, re.findall("'(.*?)'", expected)) if is_name(value) else ""
            message = f"{title} {name} must be {expected}; got {shown(value)}{hint}"
            raise source.error((*where, name), message)
    for name, item in known.items():
        if item.default is MISSING and name not in values:
            message = f"{title} lacks the key {name!r}: {item.metadata['expected']}"
            raise source.error(where, message)
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return kind(**given, **{**values, **lists})


def shown(value: object) -> str:
    """A wrong value as text of bounded length.

    Examples
    --------
    >>> shown("imput"), len(shown([0.5] * 100))
    ("'imput'", 201)
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not print whole numbers of over 4300 digits
        return "a number that is too long to show"
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def keys_of(section: Any) -> list[Field[Any]]:
    """The fields of a section that are keys of the study file."""
    return [item for item in fields(section) if item.metadata]


def one_of(*words: str, default: Any = MISSING) -> Any:
    """A key that holds one of a few words."""
    return key(" or ".join(repr(word) for word in words), lambda value: value in words, default)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; true and false are not."""
    # A whole number of any size can be compared with a float.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= float_info.max


def is_positive(value: Any) -> bool:
    """Whether a value is a number above 0."""
    return is_number(value) and value > 0


def is_from_zero(value: Any) -> bool:
    """Whether a value is a number from 0."""
    return is_number(value) and value >= 0


def is_share(value: Any) -> bool:
    """Whether a value is a number between 0 and 1."""
    return is_number(value) and 0 < value < 1


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number, and large enough."""
    return is_number(value) and isinstance(value, int) and value >= least


def is_name(value: Any) -> bool:
    """Whether a value is text that is not empty."""
    return isinstance(value, str) and bool(value.strip())


def is_cell(value: Any) -> bool:
    """Whether a value is text or a number."""
    return is_name(value) or is_number(value)


def each(holds: Callable[[Any], bool], least: int = 0) -> Callable[[Any], bool]:
    """A test of lists: whether every element passes a test, and there are enough."""
    return lambda value: isinstance(value, list) and len(value) >= least and all(map(holds, value))


_COLUMN = ("the name of a column", is_name, None)
_NAMES = ("a list of column names, in which * and ? are wildcards", each(is_name))
_LIMIT = ("a number, or the name of a column that holds the limit of every row", is_cell, None)
_CODES = ("a list of cells that mean missing, such as [-4, 999]", each(is_cell), ())
_TABLES = {*KINDS} - {".txt"}  # a study file may be called .txt
_SECTIONS = ("data", "columns", "features", "targets", "model", "evaluation", "report")


@dataclass(frozen=True)
class DataSettings:
    """``[data]``: the table, its ids and groups."""

    file: str = key(
        "the name of a CSV, Excel, SPSS, Stata or Parquet file",
        lambda value: is_name(value) and "\0" not in value,
    )
    sheet: str | None = key("the name of a sheet", is_name, None)
    header: int | None = key("the number of the row that names the columns, from 1", is_count, None)
    id: str | None = key(*_COLUMN)
    group: str | None = key(*_COLUMN)
    time: str | None = key(*_COLUMN)
    missing: tuple[str | float, ...] = key(*_CODES)


@dataclass(frozen=True)
class ColumnSettings:
    """``[columns.NAME]``: cells of one column that are to be read in another way."""

    name: str
    missing: tuple[str | float, ...] = key(*_CODES)
    divide: float = key("a positive number", is_positive, 1.0)
    above: float = key("a number: only cells above it are divided", is_number, -np.inf)
    below: float = key("a number: only cells below it are divided", is_number, np.inf)
    ignore_case: bool = key("true or false", lambda value: isinstance(value, bool), False)
    remove: tuple[str, ...] = key('a list of text, such as ["kg"]', each(is_name), ())
    decimal_comma: bool = key("true or false", lambda value: isinstance(value, bool), False)

    def apply(self, values: FloatArray) -> FloatArray:
        """Numbers in one unit.

        Examples
        --------
        >>> ColumnSettings("height", divide=100.0, above=3.0).apply(np.array([1.7, 182.0, np.nan]))
        array([1.7 , 1.82,  nan])
        """
        some = (values > self.above) & (values < self.below)
        return np.where(some, values / self.divide, values)


@dataclass(frozen=True)
class FeatureSettings:
    """``[features]``: the columns to predict from."""

    include: tuple[str, ...] = key(*_NAMES, ("*",))
    exclude: tuple[str, ...] = key(*_NAMES, ())
    categorical: tuple[str, ...] = key(*_NAMES, ())
    missing: Literal["impute", "error"] = one_of("impute", "error", default="impute")


@dataclass(frozen=True)
class TargetSettings:
    """``[targets.NAME]``: one outcome, its bounds, and flags of censored values."""

    name: str
    column: str | None = key(*_COLUMN)
    lower: float | str | None = key(*_LIMIT)
    upper: float | str | None = key(*_LIMIT)
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
        found = {name: getattr(self, name) for name in ("lower", "upper", "below", "above")}
        return {name: column for name, column in found.items() if isinstance(column, str)}


_CV = ("a whole number of folds, from 2", lambda value: is_count(value, 2), 5)
_SEED = ("a whole number from 0 to 4294967295", lambda seed: is_count(seed, 0) and seed < 2**32, 0)
_KINDS = ("auto", "network", "tobit", "mixed")


@dataclass(frozen=True)
class FitSettings:
    """``[model]``: the keys of every kind."""

    kind: str = one_of(*_KINDS, default="auto")
    seed: int = key(*_SEED)

    def options(self) -> dict[str, Any]:
        """All other keys, as the parameters of an estimator."""
        others = {name: value for name, value in asdict(self).items() if name != "kind"}
        return {"random_state": others.pop("seed"), **others}


@dataclass(frozen=True)
class AutoSettings(FitSettings):
    """``[model]`` with ``kind = "auto"``: :class:`AutoTobitRegressor`."""

    members: tuple[str, ...] | None = key(
        "a list of 'stack', 'trees' and 'deeper'",
        each(lambda name: name in ("stack", "trees", "deeper"), 1),
        None,
    )
    cv: int = key(*_CV)
    scoring: Literal["r2", "log"] = one_of("r2", "log", default="r2")
    noise: str = one_of("auto", *gaussian.NAMED_FAMILIES, default="auto")


@dataclass(frozen=True)
class NetworkSettings(FitSettings):
    """``[model]`` with ``kind = "network"``: :class:`SubspaceNetworkCV`."""

    max_layers: int = key("a whole number from 1", is_count, 2)
    cv: int = key(*_CV)
    scoring: Literal["r2", "log"] = one_of("r2", "log", default="r2")
    noise: str = one_of(*gaussian.NAMED_FAMILIES, default="gaussian")
    ranks: tuple[int, ...] | None = key("a list of whole numbers from 1", each(is_count, 1), None)
    alphas: tuple[float, ...] | None = key("a list of positive numbers", each(is_positive, 1), None)
    feature_sparsities: tuple[float, ...] | None = key(
        "a list of numbers from 0 to 1", each(lambda s: is_number(s) and 0 <= s <= 1, 1), None
    )


@dataclass(frozen=True)
class TobitSettings(FitSettings):
    """``[model]`` with ``kind = "tobit"``: :class:`TobitRegressor`."""

    alpha: float = key("a number from 0", is_from_zero, 0.0)
    cv: int = key(*_CV)
    noise: str = one_of(*gaussian.NAMED_FAMILIES, default="gaussian")


def _or_auto(expected: str, holds: Callable[[Any], bool]) -> Any:
    return key(f"'auto' or {expected}", lambda value: value == "auto" or holds(value), "auto")


@dataclass(frozen=True)
class MixedSettings(FitSettings):
    """``[model]`` with ``kind = "mixed"``: :class:`MixedTobitRegressor`."""

    cv: ClassVar[int] = 1  # one fit at a time
    noise: ClassVar[str] = "gaussian"
    random_effects: str = one_of("auto", "intercept", "slope", default="auto")
    alpha: float | str = _or_auto("a number from 0", is_from_zero)
    person_rank: int | str = _or_auto("a whole number from 0", lambda rank: is_count(rank, 0))
    visit_rank: int | str = _or_auto("0, 1 or 2", lambda rank: is_count(rank, 0) and rank <= 2)
    shrinkage: float | str = _or_auto("a number from 0", is_from_zero)


ModelSettings = AutoSettings | NetworkSettings | TobitSettings | MixedSettings
MODEL_KINDS: dict[str, type[ModelSettings]] = dict(
    zip(_KINDS, (AutoSettings, NetworkSettings, TobitSettings, MixedSettings), strict=True)
)


@dataclass(frozen=True)
class EvaluationSettings:
    """``[evaluation]``: how methods are compared on held-out rows."""

    method: Literal["splits", "folds"] = one_of("splits", "folds", default="splits")
    train_shares: tuple[float, ...] = key(
        "a list of shares between 0 and 1", each(is_share, 1), (0.4, 0.5, 0.6, 0.7, 0.8)
    )
    repeats: int = key("a whole number from 1", is_count, 5)
    folds: int = key("a whole number from 2", lambda value: is_count(value, 2), 5)
    coverage: float = key("a share between 0 and 1", is_share, 0.9)
    seed: int = key(*_SEED)


@dataclass(frozen=True)
class ReportSettings:
    """``[report]``: what model cards and reports may show."""

    small_counts: bool = key("true or false", lambda value: isinstance(value, bool), False)


@dataclass(frozen=True)
class Study:
    """The settings of a study file; errors about them name its lines."""

    source: Source
    data: DataSettings
    columns: tuple[ColumnSettings, ...]
    features: FeatureSettings
    targets: tuple[TargetSettings, ...]
    model: ModelSettings
    evaluation: EvaluationSettings
    report: ReportSettings

    @property
    def data_path(self) -> Path:
        """Path of the table: in the folder of the study file or below, never outside."""
        name = self.data.file
        folder = self.source.path.resolve().parent
        absolute = PurePosixPath(name).is_absolute() or PureWindowsPath(name).anchor
        path = (folder / name).resolve()
        if absolute or not path.is_relative_to(folder):
            what = f"must be in the folder of the study file or below it; {name!r} is outside"
            do = "Move the study file, or name the table on the command line with --data"
            raise self.source.error(("data", "file"), f"[data] file {what}. {do}")
        return path


def read_study(path: Path | str) -> Study:
    r"""Read a study file; an error in it names the line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('[data]\nfile = "scores.csv"\n[targets.MMSE]\nuper = 30\n')
    ...     read_study(path)
    Traceback (most recent call last):
        ...
    deeptobit.app.study.tables.StudyError: study.toml, line 4: [targets.MMSE] has no key 'uper'
    (its keys are column, lower, upper, below, above, outside); did you mean 'upper'?
    """
    path = Path(path)
    if path.exists() and path.suffix.lower() in _TABLES:
        raise StudyError(
            f"{path.name} is a table, not a study file; 'deeptobit init {path}' writes one for it"
        )
    if not path.is_file():
        raise StudyError(f"{path}: there is no such study file; 'deeptobit init DATA' writes one")
    try:
        return parse_study(Source(path, path.read_text(encoding="utf-8-sig")))
    except UnicodeDecodeError:
        message = f"{path.name} is not UTF-8 text; a study file is written in TOML"
        raise StudyError(message) from None


_LONGEST_STUDY = 2**20  # characters
# tomllib takes time and memory with the square of the parts of a key.
_LONG_KEY = re.compile(r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){10}""")


def parse_study(source: Source) -> Study:
    """Read the text of a study file."""
    name = source.path.name
    if len(source.text) > _LONGEST_STUDY:
        size = f"{len(source.text):,} characters"
        raise StudyError(f"{name} is too long for a study file ({size}); is it a table?")
    if long_key := _LONG_KEY.search(source.text):
        line = source.text.count("\n", 0, long_key.start()) + 1
        raise StudyError(f"{name}, line {line}: a key has more than ten parts")
    try:
        content = tomllib.loads(source.text)
    except ValueError as error:  # also numbers that are too long for Python
        raise StudyError(f"{name} is not valid TOML: {error}") from None
    except RecursionError:
        raise StudyError(f"{name} is nested too deeply") from None
    for title in content:
        if title not in _SECTIONS:
            message = f"unknown section {title!r} (known are {', '.join(_SECTIONS)})"
            raise source.error((title,), message + did_you_mean(title, _SECTIONS))
    if "data" not in content:
        raise StudyError(f"{name} lacks the section [data] with the key 'file'")

    def read(name: str, kind: type[Section]) -> Section:
        return read_section(kind, content.get(name, {}), (name,), source)

    def read_each(title: str, kind: type[Section]) -> tuple[Section, ...]:
        named = content.get(title, {})
        if not isinstance(named, dict):
            raise source.error((title,), f"{title} must be tables, each written [{title}.NAME]")
        return tuple(
            read_section(kind, table, (title, name), source, name=name)
            for name, table in named.items()
        )

    targets = read_each("targets", TargetSettings)
    if not targets:
        what = "there is no target; write at least one table [targets.NAME]"
        raise source.error(("targets",), what)
    for one in targets:
        lower, upper = one.lower, one.upper
        if isinstance(lower, int | float) and isinstance(upper, int | float) and lower >= upper:
            what = f"[targets.{one.name}] upper must be above lower; got {upper:g} and {lower:g}"
            raise source.error(("targets", one.name, "upper"), what)
    return Study(
        source,
        read("data", DataSettings),
        read_each("columns", ColumnSettings),
        read("features", FeatureSettings),
        targets,
        read("model", _kind_of_model(content.get("model", {}), source)),
        read("evaluation", EvaluationSettings),
        read("report", ReportSettings),
    )


def _kind_of_model(table: Any, source: Source) -> type[ModelSettings]:
    """The section that ``kind`` in ``[model]`` names; a key of another kind is an error."""
    kind = table.get("kind", "auto") if isinstance(table, dict) else None
    if not isinstance(kind, str) or kind not in MODEL_KINDS:
        return AutoSettings  # which refuses the table
    keys = {name: {item.name for item in fields(its)} for name, its in MODEL_KINDS.items()}
    for name in table:
        others = [other for other in keys if name in keys[other]]
        if name not in keys[kind] and others:
            instead = ' or members = ["stack"]' if (kind, name) == ("auto", "max_layers") else ""
            what = f"[model] {name} is not a key of kind = {toml_value(kind)}"
            do = f"write kind = {toml_value(others[0])}{instead}, or leave {name} out"
            raise source.error(("model", name), f"{what}; {do}")
    return MODEL_KINDS[kind]


# Names and values as TOML writes them.


def toml_key(name: str) -> str:
    """A key, in quotes where it needs them.

    Examples
    --------
    >>> print(toml_key("MMSE"), toml_key("CSF tau"))
    MMSE "CSF tau"
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_cell(cell: str) -> str:
    """A cell of a table: a whole number without quotes, anything else as text.

    Examples
    --------
    >>> print(toml_cell("-4"), toml_cell("999.0"), toml_cell("refused"))
    -4 "999.0" "refused"
    """
    return cell if re.fullmatch(r"-?[1-9][0-9]*", cell) else toml_value(cell)


def toml_value(value: str | bool | float | tuple[str | float, ...]) -> str:
    r"""A value of a study file.

    Examples
    --------
    >>> toml_value(True), toml_value(0.5), toml_value((1, "a"))
    ('true', '0.5', '[1, "a"]')
    >>> print(toml_value('5" é'))
    "5\" é"
    """
    return str(require("tomlkit", "app").item(value).as_string())


# What is stored with a model: the settings of its study, and versions.


def settings_text(study: Study) -> str:
    r"""The study file without its comments, the name of its table, and keys at their defaults.

    Comments may name people, and so may the name or folder of a table.
    """
    stored = {title: _changed(getattr(study, title)) for title in _SECTIONS}
    stored["data"]["file"] = "table"
    stored = {title: section for title, section in stored.items() if section}
    return str(require("tomlkit", "app").dumps(stored))


def _changed(section: Any) -> dict[str, Any]:
    """The keys of a section that are not at their defaults; of several sections, by name."""
    if isinstance(section, tuple):
        return {one.name: _changed(one) for one in section}
    values = {item.name: (getattr(section, item.name), item.default) for item in keys_of(section)}
    return {name: value for name, (value, default) in values.items() if value != default}


def versions() -> dict[str, str]:
    """Versions of Python, deeptobit and the packages that its numbers depend on.

    Examples
    --------
    >>> list(versions())
    ['python', 'deeptobit', 'numpy', 'scipy', 'scikit-learn']
    """
    packages = ("deeptobit", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
