"""Messy tables, each made from a clean one by a fault that people make, and what it is called."""

# ruff: noqa: E501

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from deeptobit.extras import require

openpyxl = require("openpyxl", "app")
N_ROWS = 160
STUDY = """\
[data]
file = "{file}"
id = "subject"
[features]
include = ["*"]
[targets.MMSE]
lower = 0
upper = 30
[targets.ADAS13]
lower = 0
upper = 85
[model]
kind = "tobit"
cv = 2
"""


def clean(seed: int = 0) -> pd.DataFrame:
    """A cohort without a fault."""
    rng = np.random.default_rng(seed)
    age = rng.normal(72, 7, N_ROWS).round(1)
    health = rng.normal(size=N_ROWS) - 0.05 * (age - 72)
    education = rng.integers(6, 21, N_ROWS)
    mmse = 27 + 2 * health + 0.1 * (education - 12) + 0.7 * rng.normal(size=N_ROWS)
    adas = 12 - 6 * health + 3 * rng.normal(size=N_ROWS)
    return pd.DataFrame(
        {
            "subject": [f"S{row:04d}" for row in range(N_ROWS)],
            "age": age,
            "sex": rng.choice(["female", "male"], N_ROWS),
            "education": education,
            "hippocampus": (7 + 1.1 * health + 0.4 * rng.normal(size=N_ROWS)).round(2),
            "bmi": rng.normal(26, 4, N_ROWS).round(1),
            "height": rng.normal(170, 9, N_ROWS).round(),
            "glucose": rng.lognormal(1.7, 0.2, N_ROWS).round(2),
            "creatinine": rng.lognormal(0.0, 0.25, N_ROWS).round(2),
            "MMSE": np.clip(np.round(mmse), 0, 30).astype(int),
            "ADAS13": np.clip(adas, 0, 85).round(1),
        }
    )


Change = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]
Write = Callable[[pd.DataFrame, Path], Path]


@dataclass(frozen=True)
class Fault:
    """What is wrong, how it is made, and the findings of which one must be named.

    ``study`` changes the text of the study file; ``mends`` says whether the proposed fixes give
    back the numbers of the clean table; ``refused`` is part of the sentence with which the file is
    refused.
    """

    name: str
    found: tuple[str, ...]
    change: Change = field(default=lambda table, rng: table)
    write: Write | None = None
    study: Callable[[str], str] = field(default=lambda text: text)
    mends: bool = True
    refused: str = ""


def _cells(column: str, values: Any, times: int = 1) -> Change:
    """Some cells of a column replaced, at random rows."""

    def change(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        some = values if isinstance(values, list) else [values] * times
        rows = rng.choice(np.arange(20, len(table)), len(some), replace=False)
        cells = table[column].astype(object).copy()
        cells.iloc[rows] = some
        return table.assign(**{column: cells})

    return change


def _times(column: str, factor: float, share: float = 0.2) -> Change:
    def change(table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        some = rng.random(len(table)) < share
        return table.assign(**{column: np.where(some, factor * table[column], table[column])})

    return change


def _column(name: str, make: Callable[[pd.DataFrame, np.random.Generator], Any]) -> Change:
    return lambda table, rng: table.assign(**{name: make(table, rng)})


def _items(table: pd.DataFrame, rng: np.random.Generator, mean: bool = False) -> pd.DataFrame:
    total = table["ADAS13"].to_numpy() * (1.0 if not mean else 4.0)
    parts = np.sort(rng.random((len(table), 3)), axis=1)
    shares = np.diff(np.column_stack([np.zeros(len(table)), parts, np.ones(len(table))]))
    items = (total[:, None] * shares).round(3)
    items[:, 3] = total - items[:, :3].sum(axis=1)
    return table.assign(**{f"q{item + 1}": items[:, item] for item in range(4)})


def _csv_lines(table: pd.DataFrame) -> list[str]:
    return table.to_csv(index=False).splitlines()


def _text(path: Path, lines: list[str], encoding: str = "utf-8") -> Path:
    path = path.with_suffix(".csv")
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))
    return path


def _last(*rows: str) -> Write:
    return lambda table, path: _text(path, [*_csv_lines(table), *rows])


def _below_header(row: str) -> Write:
    def write(table: pd.DataFrame, path: Path) -> Path:
        lines = _csv_lines(table)
        return _text(path, [lines[0], row, *lines[1:]])

    return write


def _title(table: pd.DataFrame, path: Path) -> Path:
    return _text(path, ["Memory clinic export of 3 May", "", *_csv_lines(table)])


def _title_with_commas(table: pd.DataFrame, path: Path) -> Path:
    return _text(
        path, ["Memory clinic export" + "," * 10, "confidential" + "," * 10, *_csv_lines(table)]
    )


def _german(table: pd.DataFrame, path: Path) -> Path:
    table = table.rename(columns={"height": "Größe"})
    text = table.to_csv(index=False, sep=";", decimal=",")
    return _text(path, text.splitlines(), "cp1252")


def _twice_inside(table: pd.DataFrame, path: Path) -> Path:
    lines = _csv_lines(table)
    return _text(path, [*lines[:80], lines[0], *lines[80:]])


def _nameless(table: pd.DataFrame, path: Path) -> Path:
    lines = _csv_lines(table)
    return _text(path, ["subject" + "," * 10, *lines[1:]])


def _headerless(table: pd.DataFrame, path: Path) -> Path:
    return _text(path, _csv_lines(table.drop(columns=["subject", "sex"]))[1:])


def _same_names(table: pd.DataFrame, path: Path, other: str = "bmi") -> Path:
    lines = pd.concat([table, table[["bmi"]] + (other != "bmi")], axis=1)
    return _text(path, _csv_lines(lines))


def _book(path: Path, rows: list[list[Any]], merged: tuple[str, ...] = ()) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in rows:
        sheet.append(row)
    for cells in merged:
        sheet.merge_cells(cells)
    path = path.with_suffix(".xlsx")
    book.save(path)
    return path


def _excel_title(table: pd.DataFrame, path: Path) -> Path:
    rows: list[list[Any]] = [
        ["Memory clinic export 2024"],
        [],
        list(table.columns),
        *table.to_numpy().tolist(),
    ]
    return _book(path, rows, ("A1:K1",))


def _excel_groups(table: pd.DataFrame, path: Path) -> Path:
    groups = ["subject", "Demography", None, None, "Brain", "Body", None, "Blood", None, "Scores"]
    names = [None, *table.columns[1:]]
    return _book(path, [groups, names, *table.to_numpy().tolist()], ("A1:A2", "B1:D1", "J1:K1"))


def _excel_units(table: pd.DataFrame, path: Path) -> Path:
    units = [
        None,
        "years",
        None,
        "years",
        "ml",
        "kg/m²",
        "cm",
        "mmol/l",
        "mg/dl",
        "points",
        "points",
    ]
    mean = ["Mean", *([None] * 8), float(table["MMSE"].mean()), float(table["ADAS13"].mean())]
    rows: list[list[Any]] = [list(table.columns), units, *table.to_numpy().tolist(), [], mean]
    return _book(path, rows)


def _with(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new)


def _near(table: pd.DataFrame, rng: np.random.Generator) -> Any:
    return (table["ADAS13"] + rng.normal(0, 0.3, len(table))).round(2)


def _people(table: pd.DataFrame, rng: np.random.Generator) -> Any:
    return [f"P{row // 2:03d}" for row in range(len(table))]


_UNITS = ",years,,years,ml,kg/m2,cm,mmol/l,mg/dl,points,points"
_LABELS = "Number,Age in years,Sex,Years of school,Volume,Mass,Size,Sugar,Kidney,Mini mental,ADAS"
_NO_UPPER = "[targets.MMSE]\nlower = 0\n"
_BOUNDS = "lower = 0\nupper = 30\n"

ONE = [
    Fault("code -4 in a target", ("code:-4",), _cells("MMSE", -4, 10)),
    Fault("code 99 in a target", ("code:99",), _cells("MMSE", 99, 4)),
    Fault("code -4.0 in a target", ("code:-4",), _cells("ADAS13", "-4.0", 6)),
    Fault("one code 999 in a target", ("code:999",), _cells("MMSE", 999)),
    Fault("code -2 that is in no list", ("code:-2",), _cells("MMSE", -2, 5)),
    Fault("code 999 in a feature", ("code:999",), _cells("bmi", 999, 4)),
    Fault("code -9 in a feature", ("code:-9",), _cells("height", -9, 4)),
    Fault("code 99 beside ages of 99", ("code:99",), lambda table, rng: _cells("age", [99.0, 99.0])(
        _cells("education", 99, 5)(table, rng), rng)),
    Fault("codes hidden by a typing error", ("code:-4",), _cells("MMSE", [31] + 8 * [-4] + 3 * [99])),
    Fault("code -1 in a feature", ("code:-1",), _cells("height", -1, 5)),
    Fault("code 999.9 in a feature", ("code:999.9",), _cells("bmi", 999.9, 4)),
    Fault("code 0 in a measurement", ("code:0",), _cells("hippocampus", 0, 6)),
    Fault("code 99 among multiples of 5", ("code:99",), lambda t, r: _cells("pain", 99, 6)(
        t.assign(pain=5 * r.integers(0, 21, len(t))), r)),
    Fault("a typing error in a target", ("outside:MMSE",), _cells("MMSE", 31)),
    Fault("three typing errors in a target", ("outside:MMSE",), _cells("MMSE", [31, 50, 280])),
    Fault("a negative value of a scale", ("outside:ADAS13",), _cells("ADAS13", -12.5)),
    Fault("age 720", ("outlier:age",), _cells("age", 720)),
    Fault("age -70", ("outlier:age",), _cells("age", -71)),
    Fault("height 0", ("outlier:height",), _cells("height", 0)),
    Fault("heights that hide each other", ("outlier:height", "units:height"), _cells("height", [61.7, 71.8, 84])),
    Fault("a birth year as age", ("outlier:age",), _cells("age", [1949, -54])),
    Fault("birth years as ages", ("units:age",), _cells("age", [*range(1935, 1950)])),
    Fault("education 99 once", ("outlier:education",), _cells("education", 99)),
    Fault("a decimal point lost", ("outlier:bmi",), _cells("bmi", 261)),
    Fault("a decimal point gained", ("outlier:height",), _cells("height", 17.2)),
    Fault("two volumes in mm³", ("outlier:hippocampus",), _cells("hippocampus", [6800, 7100])),
    Fault("an impossible creatinine", ("outlier:creatinine",), _cells("creatinine", 104)),
    Fault("a word among numbers", ("word:refused",), _cells("age", "refused", 3)),
    Fault("an error of Excel", ("word:#DIV/0!",), _cells("bmi", "#DIV/0!", 2)),
    Fault("a word in a target", ("word:not done",), _cells("MMSE", "not done", 4)),
    Fault("a copy of a target", ("leak:total",), _column("total", lambda t, r: t["MMSE"])),
    Fault("a scaled copy", ("leak:percent",), _column("percent", lambda t, r: t["MMSE"] / 0.3)),
    Fault("an inverted copy", ("leak:lost",), _column("lost", lambda t, r: 30 - t["MMSE"])),
    Fault("a near copy", ("leak:retest",), _column("retest", _near)),
    Fault("a logarithm", ("leak:log",), _column("log", lambda t, r: np.log1p(t["ADAS13"]).round(4))),
    Fault("a copy with blanks", ("leak:total",), _column(
        "total", lambda t, r: t["MMSE"].where(r.random(len(t)) > 0.3))),
    Fault("items of a sum", ("leak:ADAS13",), _items),
    Fault("items of a mean", ("leak:ADAS13",), lambda t, r: _items(t, r, mean=True)),
    Fault("items with blanks", ("leak:ADAS13",), lambda t, r: _cells("q2", "", 10)(_items(t, r), r)),
    Fault("classes of a target", ("leak:stage",), _column(
        "stage", lambda t, r: np.select([t["MMSE"] < 24, t["MMSE"] < 28], ["severe", "mild"], "none"))),
    Fault("a flag made from a target", ("leak:flag",), _column("flag", lambda t, r: (t["ADAS13"] > 15) * 1)),
    Fault("upper bound forgotten", ("bound:MMSE",), study=_with("lower = 0\nupper = 30\n", "lower = 0\n")),
    Fault("lower bound forgotten", ("bound:drinks",), _column(
        "drinks", lambda t, r: np.maximum(0, np.round(r.normal(2, 5, len(t)) + 0.2 * t["age"] - 14))),
        study=lambda text: text + "[targets.drinks]\n"),
    Fault("bounds of another scale", ("scale:MMSE", "bound:MMSE"), study=_with(_BOUNDS, "lower = 0\nupper = 100\n")),
    Fault("a bound too low", ("outside:MMSE",), study=_with("upper = 30", "upper = 26"), mends=False),
    Fault("MMSE in percent", ("scale:MMSE", "outside:MMSE"), _column("MMSE", lambda t, r: (t["MMSE"] / 0.3).round()), mends=False),
    Fault("a constant target", ("constant:flat",), _column("flat", lambda t, r: 25), study=lambda text: text + "[targets.flat]\n", mends=False),
    Fault("a constant feature", ("constant:features",), _column("scanner", lambda t, r: 3)),
    Fault("a feature twice", ("collinear:cm",), _column("cm", lambda t, r: t["height"])),
    Fault("a feature mostly blank", ("sparse:features",), _column("csf", lambda t, r: np.where(r.random(len(t)) < 0.2, r.normal(size=len(t)), np.nan))),
    Fault("a number of rows", ("identifier:nr",), _column("nr", lambda t, r: np.arange(1001, 1001 + len(t)))),
    Fault("people twice", ("people:patient_id",), _column("patient_id", _people), mends=False),
    Fault("people twice without an id", ("people:subject",), _column("subject", _people), study=_with('id = "subject"', ""), mends=False),
    Fault("an id twice", ("id:subject",), _column("subject", _people)),
    Fault("rows twice", ("rows:duplicates",), lambda t, r: pd.concat([t, t.iloc[:9]]).drop(columns="subject"), study=_with('id = "subject"', ""), mends=False),
    Fault("glucose in two units", ("units:glucose",), _times("glucose", 18.016)),
    Fault("few glucoses in mg/dl", ("units:glucose",), _times("glucose", 18.016, 0.06)),
    Fault("creatinine in two units", ("units:creatinine",), _times("creatinine", 88.4)),
    Fault("volume in two units", ("units:hippocampus",), _times("hippocampus", 1000.0, 0.3)),
    Fault("height in metres", ("units:height",), _times("height", 0.01)),
    Fault("height in inches", ("units:height",), _times("height", 1 / 2.54)),
    Fault("bmi ten times", ("units:bmi",), _times("bmi", 10.0, 0.1)),
    Fault("weight in pounds", ("units:weight",), lambda t, r: _times("weight", 2.20462)(
        t.assign(weight=(t["height"] - 96 + r.normal(0, 8, len(t))).round(1)), r), mends=False),
    Fault("sex partly as a code", ("category:sex",), lambda t, r: t.assign(sex=np.where(r.random(len(t)) < 0.3, t["sex"].map({"male": "1", "female": "2"}), t["sex"]))),
    Fault("sex partly abbreviated", ("category:sex",), lambda t, r: t.assign(sex=np.where(r.random(len(t)) < 0.3, t["sex"].str[0], t["sex"]))),
    Fault("a misspelled category", ("category:scanner",), lambda t, r: _cells("scanner", ["Simens"])(
        t.assign(scanner=r.choice(["Siemens", "Philips"], len(t))), r)),
    Fault("thousands with commas", ("useless:hippocampus",), _column("hippocampus", lambda t, r: [f"{1000 * x:,.0f}" for x in t["hippocampus"]])),
    Fault("units in the cells", ("useless:height",), _column("height", lambda t, r: [f"{x:.0f} cm" for x in t["height"]])),
    Fault("points and decimal commas", ("useless:bmi",), _column("bmi", lambda t, r: [str(x).replace(".", ",") if k % 3 else str(x) for k, x in enumerate(t["bmi"])])),
    Fault("numbers turned into dates", ("useless:glucose",), _cells("glucose", ["05. Mai", "06. Jun", "4-Jul", "2024-05-05"])),
    Fault("ids of merged cells", ("people:subject",), _column("subject", lambda t, r: [f"P{k}" if k % 2 == 0 else None for k in range(len(t))]), study=_with('id = "subject"', "")),
    Fault("sex in two spellings", ("category:sex",), lambda t, r: t.assign(sex=np.where(r.random(len(t)) < 0.3, t["sex"].str.title(), t["sex"]))),
    Fault("percent signs", ("category:fat", "useless:fat"), _column("fat", lambda t, r: [f"{x:.0f}%" for x in r.normal(25, 5, len(t))])),
    Fault("dates", ("useless:visit",), _column("visit", lambda t, r: "2020-03-01")),
    Fault("names of people", ("useless:name",), _column("name", lambda t, r: [f"Ann B. {k}" for k in range(len(t))])),
    Fault("an empty column", ("useless:csf",), _column("csf", lambda t, r: None)),
    Fault("a row of means", ("read:line 162",), write=_last("Mean,72,,13,7,26,170,5.5,1,27,12")),
    Fault("a total and a note", ("read:line 162",), write=_last("Total,11520,,,,,,,,,", "checked by the office,,,,,,,,,,")),
    Fault("a row of units", ("read:row 2",), write=_below_header(_UNITS)),
    Fault("two rows of names", ("read:row 2",), write=_below_header(_LABELS)),
    Fault("a title", ("read:header",), write=_title),
    Fault("two titles with commas", ("read:header",), write=_title_with_commas),
    Fault("a header within", ("read:line 81",), write=_twice_inside),
    Fault("German Excel", ("read:encoding",), write=_german),
    Fault("a name twice, same cells", ("read:bmi",), write=_same_names),
    Fault("a name twice", (), write=lambda t, p: _same_names(t, p, "other"), refused="columns F and L are both called 'bmi'"),
    Fault("no names", (), write=_nameless, refused="no names of columns"),
    Fault("no header", (), write=_headerless, refused="no names of columns"),
    Fault("Excel with a title", ("read:header",), write=_excel_title),
    Fault("Excel with merged names", ("read:header",), write=_excel_groups),
    Fault("Excel with units and means", ("read:row 2",), write=_excel_units),
    Fault("ranks beyond the targets", ("rank:ranks",), study=_with('kind = "tobit"', 'kind = "network"\nranks = [7]'), mends=False),
]  # fmt: skip
BY_NAME = {fault.name: fault for fault in ONE}

_MIXED = [
    ("code -4 in a target", "age 720"),
    ("codes hidden by a typing error", "a copy of a target"),
    ("code 999 in a feature", "glucose in two units"),
    ("a typing error in a target", "items of a sum"),
    ("a word among numbers", "upper bound forgotten"),
    ("education 99 once", "an inverted copy"),
    ("volume in two units", "a constant feature"),
    ("code -9 in a feature", "sex in two spellings"),
    ("a scaled copy", "a near copy"),
    ("code 99 in a target", "a row of means"),
    ("age 720", "a row of units"),
    ("a copy of a target", "Excel with a title"),
    ("creatinine in two units", "German Excel"),
    ("a decimal point lost", "a title"),
    ("code -4 in a target", "two rows of names"),
]


def _pair(first: str, second: str) -> Fault:
    a, b = BY_NAME[first], BY_NAME[second]
    return Fault(
        f"{first} & {second}",
        a.found[:1] + b.found[:1],
        lambda table, rng: b.change(a.change(table, rng), rng),
        b.write or a.write,
        lambda text: b.study(a.study(text)),
        a.mends and b.mends,
    )


PAIRS = [_pair(*names) for names in _MIXED]
ALL = ONE + PAIRS
BY_NAME |= {fault.name: fault for fault in PAIRS}


def write_fault(fault: Fault, folder: Path, seed: int = 0) -> Path:
    """The table with the fault and its study file; returns the latter."""
    table = fault.change(clean(seed), np.random.default_rng(seed + 1))
    path = folder / "cohort.csv"
    if fault.write is None:
        table.to_csv(path, index=False)
    else:
        path = fault.write(table, folder / "cohort")
    study = folder / "cohort.toml"
    study.write_text(fault.study(STUDY).format(file=path.name), encoding="utf-8")
    return study
