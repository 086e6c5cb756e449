"""Tables that nobody should send, and the one sentence that each of them gets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.app.study import read_table

BOUNDS = "[targets.MMSE]\nlower = 0\nupper = 30\n[model]\nmembers = ['stack']\ncv = 2\n"
SCRIPT, QUOTES = "<script>alert(1)</script>", 'a&b"c'


class Run(NamedTuple):
    """What a command left behind."""

    code: int
    shown: str
    error: str


def _run(*arguments: object) -> Run:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Run(result.exit_code, result.stdout, result.stderr)


def _table(n_rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    volume = rng.normal(3.0, 0.3, n_rows)
    mmse = np.clip(np.round(27.0 + 6.0 * (volume - 3.0) + rng.normal(size=n_rows)), 0, 30)
    return pd.DataFrame(
        {
            "id": [f"S{row:03d}" for row in range(n_rows)],
            "age": rng.normal(70.0, 8.0, n_rows).round(1),
            "volume": volume.round(3),
            "sex": rng.choice(["f", "m"], n_rows),
            "MMSE": mmse.astype(int),
        }
    )


def _csv(**columns: str | int | list[int]) -> bytes:
    return _table().assign(**columns).to_csv(index=False).encode()


def _twice(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(id=table["id"].replace("S004", "S003"))


def _refused(run: Run, sentence: str) -> None:
    assert (run.code, run.shown) == (1, "")
    assert run.error.startswith("deeptobit: ")
    assert run.error.count("\n") == 1
    assert sentence in run.error


UNREADABLE: dict[str, tuple[str, bytes, str]] = {
    "empty": ("a.csv", b"", "a.csv is empty: the first row must name the columns"),
    "BOM alone": ("a.csv", b"\xef\xbb\xbf", "a.csv is empty"),
    "blank lines": ("a.csv", b"\n \n\n", "a.csv is empty"),
    "header": ("a.csv", b"id,age,MMSE\n", "a header but no row of data; add rows"),
    "same names": ("a.csv", b"age,age\n1,2\n", "columns A and B are both called 'age'"),
    "ragged": ("a.csv", b"id,age\n1,2\n1,2,3\n", "line 3: 3 cells, but the header names 2"),
    "open quote": ("a.csv", b'id,age\n1,"2\n3,4\n', "line 2: cannot be read as CSV"),
    "UTF-32": ("a.csv", "id,age\n1,2\n".encode("utf-32"), "save the file as 'CSV UTF-8'"),
    "cut UTF-16": ("a.csv", "id,age\n1,2\n".encode("utf-16")[:-1], "a.csv"),
    "odd UTF-16": ("a.csv", "id,age\n1,2\n".encode("utf-16") + b"\x00\xd8\x20\x00", "a.csv"),
    "not Excel": ("a.xlsx", b"id,age\n", "as an Excel file; save it again as .xlsx"),
    "not Parquet": ("a.parquet", b"id,age\n", "as a Parquet file; write it again"),
    "SPSS": ("a.sav", b"$FL2", "a.sav cannot be read as an SPSS file; save it again"),
    "SAS": ("a.sas7bdat", b"", "cannot read files of kind '.sas7bdat'; known are .csv"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read(case: str, tmp_path: Path) -> None:
    name, content, sentence = UNREADABLE[case]
    (tmp_path / name).write_bytes(content)
    _refused(_run("init", tmp_path / name), sentence)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    as_json = _run("init", tmp_path / name, "--json")
    assert as_json.code == 1
    assert sentence in json.loads(as_json.shown)["error"]


UNUSABLE: dict[str, tuple[bytes, str, str]] = {
    "one row": (_csv().splitlines()[0] + b"\nS1,70,3,f,30\n", "", "has one row of data; a model"),
    "missing target": (_csv(MMSE=""), 'id = "id"', "target 'MMSE' has no value at all"),
    "words as target": (
        _csv(MMSE="good"),
        'id = "id"',
        "must hold numbers (or limits such as <0.5)",
    ),
    "dates as target": (
        _csv(MMSE="2020-01-31"),
        'id = "id"',
        "found '2020-01-31' (a.csv, lines 2, 3,",
    ),
    "missing id": (_csv(id=""), 'id = "id"', "the id 'id' is blank in 40 row(s)"),
    "dates": (_csv(id=1, visit="31.01.2020"), "", "turn it into a number such as an age"),
    "free text": (_csv(), "", "holds free text, an identifier"),
    "huge integers": (
        _csv(id=[10**25 + row for row in range(40)]),
        "",
        "holds free text, an identifier",
    ),
    "empty feature": (_csv(id=""), "", "has no value at all; exclude it"),
}


@pytest.mark.parametrize("case", UNUSABLE)
@pytest.mark.parametrize("command", ["check", "fit", "evaluate"])
def test_what_cannot_be_used(case: str, command: str, tmp_path: Path) -> None:
    content, data, sentence = UNUSABLE[case]
    (tmp_path / "a.csv").write_bytes(content)
    (tmp_path / "a.toml").write_text(f'[data]\nfile = "a.csv"\n{data}\n{BOUNDS}')
    run = _run(command, tmp_path / "a.toml")
    assert run.code == 1
    assert sentence in run.shown + run.error  # 'check' lists all that is wrong
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.toml"]


TOO_LITTLE: dict[str, tuple[pd.DataFrame, str, str]] = {
    "nine rows": (_table(9), "", "a.csv has 9 rows; to fit a model and test it"),
    "one group": (_table().assign(site="A"), 'group = "site"', "has values in 1 group(s)"),
}


@pytest.mark.parametrize("case", TOO_LITTLE)
def test_check_says_what_fit_will_refuse(case: str, tmp_path: Path) -> None:
    table, group, sentence = TOO_LITTLE[case]
    table.to_csv(tmp_path / "a.csv", index=False)
    study = tmp_path / "a.toml"
    study.write_text(f'[data]\nfile = "a.csv"\nid = "id"\n{group}\n{BOUNDS}')
    checked = _run("check", study)
    assert checked.code == 0
    said = " ".join(checked.shown.split())
    assert "warning rows:fit will refuse: " in said
    assert sentence in said
    _refused(_run("fit", study), sentence)


def _write_csv(table: pd.DataFrame, path: Path) -> Path:
    table.to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


def _german(table: pd.DataFrame, path: Path) -> Path:
    table = table.rename(columns={"age": "Âge à l’entrée", "volume": "海马体", "sex": "Пол"})
    path = path.with_suffix(".csv")
    table.to_csv(path, index=False, sep=";", decimal=",", encoding="utf-8-sig")
    return path


def _excel(table: pd.DataFrame, path: Path) -> Path:
    table = table.assign(visit=pd.Timestamp("2020-01-31"), well=table["age"] > 70.0)
    table.to_excel(path.with_suffix(".xlsx"), index=False)
    return path.with_suffix(".xlsx")


def _parquet(table: pd.DataFrame, path: Path) -> Path:
    table = table.assign(well=table["age"] > 70.0, visit=pd.Timestamp("2020-01-31"))
    table.to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def _marked_up(table: pd.DataFrame, path: Path) -> Path:
    names = {"age": SCRIPT, "volume": QUOTES, "sex": 'x, "y"\n[red]{{ 7*7 }}'}
    return _write_csv(table.rename(columns=names), path)


def _coded(table: pd.DataFrame, path: Path) -> Path:
    mmse = table["MMSE"].astype(object)
    mmse[[1, 11, 21, 31]] = -4
    mmse[2] = "refused"
    barcode = [10**25 + row for row in range(len(table))]
    return _write_csv(table.assign(MMSE=mmse, barcode=barcode, visit="2020-01-31", c="x"), path)


def _one_value(table: pd.DataFrame, path: Path) -> Path:
    return _write_csv(table.assign(MMSE=25), path)


def _at_bound(table: pd.DataFrame, path: Path) -> Path:
    return _write_csv(table.assign(MMSE=30), path)


ODD = [_german, _excel, _parquet, _marked_up, _coded, _one_value, _at_bound]


Write = Callable[[pd.DataFrame, Path], Path]


@pytest.fixture(scope="module")
def followed(
    tmp_path_factory: pytest.TempPathFactory, without_pictures: None
) -> Callable[[Write], Path]:
    """The folder in which a table went through all commands."""

    @cache
    def follow(write: Write) -> Path:
        folder = tmp_path_factory.mktemp("odd")
        data = write(_table(), folder / "a")
        assert _run("init", data).code == 0
        study = folder / "a.toml"
        text = study.read_text(encoding="utf-8").replace("# members =", "members =")
        if write in (_excel, _parquet):  # odd until they are read
            text = text.replace('kind = "auto"', 'kind = "tobit"').replace(
                "members =", "# members ="
            )
        study.write_text(text.replace("# cv = 5", "cv = 2"), encoding="utf-8")
        for command in (
            ("check", study),
            ("fit", study, "--jobs", 1),
            ("predict", folder / "a.deeptobit", data),
            ("report", folder / "a.deeptobit"),
        ):
            run = _run(*command)
            assert (run.code, run.error) == (0, ""), run
            assert not re.search(r"\b[Nn]a[Nn]\b|Warning:", run.shown)
        return folder

    return follow


@pytest.mark.parametrize("write", ODD)
@pytest.mark.filterwarnings("error")
def test_what_is_odd_works(write: Write, followed: Callable[[Write], Path]) -> None:
    folder = followed(write)
    predicted = read_table(folder / "a-predictions.csv")
    assert len(predicted) == 40
    for name in ("MMSE", "MMSE low", "MMSE high"):
        numbers = predicted.numbers(name)
        assert ((numbers >= 0) & (numbers <= 30)).all()
    page = (folder / "a.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1
    assert not re.search(r">\s*(nan|inf)\b", page, re.IGNORECASE)


def test_codes_are_found_and_written_into_the_study(tmp_path: Path) -> None:
    shown = _run("init", _coded(_table(), tmp_path / "a")).shown
    assert "missing -4 and refused" in " ".join(shown.split())
    assert 'missing = [-4, "refused"]' in (tmp_path / "a.toml").read_text()
    target = json.loads(_run("check", tmp_path / "a.toml", "--json").shown)["targets"][0]
    assert (target["entries"], target["missing"]) == (35, 5)


@pytest.mark.filterwarnings("error")
def test_names_are_text_in_the_report(followed: Callable[[Write], Path]) -> None:
    page = (followed(_marked_up) / "a.html").read_text(encoding="utf-8")
    assert SCRIPT not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "a&amp;b&#34;c" in page
    assert "{{ 7*7 }}" in page


def test_names_of_several_levels(tmp_path: Path) -> None:
    table = _table()
    table.columns = pd.MultiIndex.from_tuples([("a", name) for name in table.columns])
    table.to_parquet(tmp_path / "a.parquet")
    assert json.loads(_run("init", tmp_path / "a.parquet", "--json").shown)["id"] == "('a', 'id')"


@pytest.mark.slow
def test_ten_thousand_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    genes = pd.DataFrame(rng.normal(size=(30, 10_000)).round(2)).add_prefix("gene_")
    data = _write_csv(pd.concat([_table(30), genes], axis=1), tmp_path / "a")
    assert _run("init", data).code == 0
    checked = _run("check", tmp_path / "a.toml", "--json")
    assert json.loads(checked.shown)["features"] == 10_003
