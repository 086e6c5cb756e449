from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import (
    FittedStudy,
    StudyError,
    Table,
    fit_study,
    load_fitted,
    predict_table,
    read_data,
    save_fitted,
)
from deeptobit.exceptions import ModelFileError
from deeptobit.files import write_state
from tests.app.study.cohorts import read_cohort, write_cohort

HEADER = "visit,age,sex,volume,lod\n"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> FittedStudy:
    path = write_cohort(tmp_path_factory.mktemp("cohort"), n_people=20, max_layers=2, cv=2)
    return fit_study(*read_cohort(path))


def _table(folder: Path, fitted: FittedStudy, text: str) -> Table:
    (folder / "new.csv").write_text(text)
    return read_data(fitted.study, folder / "new.csv")


def test_predictions_are_those_of_the_model(fitted: FittedStudy, tmp_path: Path) -> None:
    rows = "007,70,f,3000,0.5\n=1+1,75,m,3500,0.9\n008,66,m,2500,0.5\n"
    table = _table(tmp_path, fitted, HEADER + rows)
    predictions = predict_table(fitted, table)
    assert predictions.columns.tolist() == [
        *("visit", "MMSE", "MMSE low", "MMSE high", "MMSE P(lower)", "MMSE P(upper)"),
        *("tau", "tau low", "tau high", "tau P(lower)", "speed", "speed low", "speed high"),
        "outside_the_data",
    ]
    assert predictions["visit"].tolist() == ["007", "=1+1", "008"]
    X = fitted.encoder.encode(table)
    lower = np.column_stack([np.zeros(3), [0.5, 0.9, 0.5], np.full(3, -np.inf)])
    upper = np.tile([30.0, np.inf, np.inf], (3, 1))
    limits: dict[str, Any] = {"lower": lower, "upper": upper}
    np.testing.assert_allclose(
        predictions[["MMSE", "tau", "speed"]], fitted.model.predict(X, **limits)
    )
    low, high = fitted.model.predict_interval(X, 0.9, **limits)
    np.testing.assert_allclose(predictions[["MMSE low", "tau low", "speed low"]], low)
    np.testing.assert_allclose(predictions[["MMSE high", "tau high", "speed high"]], high)
    at_lower, at_upper = fitted.model.predict_bound_proba(X, **limits)
    np.testing.assert_allclose(predictions["tau P(lower)"], at_lower[:, 1])
    np.testing.assert_allclose(predictions["MMSE P(upper)"], at_upper[:, 0])


def test_without_ids_and_limits(fitted: FittedStudy, tmp_path: Path) -> None:
    table = _table(tmp_path, fitted, "sex,age,volume\nf,70,3000\n")
    predictions: Any = predict_table(fitted, table)
    assert predictions.columns[0] == "row"
    assert predictions["row"].tolist() == [1]
    assert "tau P(lower)" not in predictions.columns
    assert predictions.loc[0, "tau low"] < predictions.loc[0, "tau"]


def test_ids_may_repeat_and_be_blank(fitted: FittedStudy, tmp_path: Path) -> None:
    table = _table(tmp_path, fitted, HEADER + "a,70,f,3000,\na,71,f,3000,\n,72,m,3000,\n")
    assert predict_table(fitted, table)["visit"].fillna("-").tolist() == ["a", "a", "-"]


def test_coverage(fitted: FittedStudy, tmp_path: Path) -> None:
    table = _table(tmp_path, fitted, HEADER + "a,70,f,3000,0.5\n")
    narrow: Any = predict_table(fitted, table, coverage=0.5)
    X = fitted.encoder.encode(table)
    expected = fitted.model.predict_quantile(X, 0.25)[0, 2]
    assert narrow.loc[0, "speed low"] == pytest.approx(expected)
    for wrong in (0.0, 1.0, 90.0, float("nan")):
        with pytest.raises(StudyError, match="coverage must lie between 0 and 1"):
            predict_table(fitted, table, coverage=wrong)


def test_absent_features_are_all_named(fitted: FittedStudy, tmp_path: Path) -> None:
    table = _table(tmp_path, fitted, "visit,Age,Sex,volume\n1,70,f,3000\n")
    with pytest.raises(StudyError) as error:
        predict_table(fitted, table)
    assert str(error.value) == (
        "new.csv lacks the features 'age', 'sex'; did you mean 'Age', 'Sex'?"
    )


def test_cells_that_are_filled_are_told(fitted: FittedStudy, tmp_path: Path) -> None:
    table = _table(tmp_path, fitted, HEADER + "a,,x,3000,0.5\nb,70,,3000,0.5\n")
    with pytest.warns(UserWarning, match=r"new\.csv") as caught:
        predictions = predict_table(fitted, table)
    told = [str(warning.message) for warning in caught]
    assert len(told) == 2
    assert "'sex' has categories that the model does not know ('x')" in told[0]
    assert "new.csv: 2 missing cell(s)" in told[1]
    assert "'age', 'sex'" in told[1]
    assert predictions.notna().all(axis=None)


def test_limits_that_cross(fitted: FittedStudy, tmp_path: Path) -> None:
    fresh = replace(fitted, text=fitted.text.replace("[targets.speed]", CAPPED))
    rows = "a,70,f,3000,0.5,9\nb,70,f,3000,0.5,-9\n"
    table = _table(tmp_path, fresh, "visit,age,sex,volume,lod,cap\n" + rows)
    with pytest.raises(StudyError, match=r"new.csv, line 3: target 'speed' has a lower limit"):
        predict_table(fresh, table)


CAPPED = '[targets.speed]\nlower = 0\nupper = "cap"'


def test_columns_of_one_name_are_refused(fitted: FittedStudy, tmp_path: Path) -> None:
    text = fitted.text.replace('id = "visit"', 'id = "speed low"')
    fresh = replace(fitted, text=text)
    table = _table(tmp_path, fresh, "speed low,age,sex,volume\n1,70,f,3000\n")
    with pytest.raises(StudyError, match="share a name: 'speed low'"):
        predict_table(fresh, table)


def test_missing_codes_and_sheets_are_those_of_the_study(
    fitted: FittedStudy, tmp_path: Path
) -> None:
    text = fitted.text.replace('id = "visit"', 'id = "visit"\nmissing = [-4]\nsheet = "new"')
    fresh = replace(fitted, text=text)
    table = _table(tmp_path, fresh, HEADER + "a,-4,f,3000,0.5\n")  # a CSV file has no sheets
    assert table.text("age").tolist() == [None]
    with pd.ExcelWriter(tmp_path / "new.xlsx") as book:
        pd.DataFrame({"wrong": [1]}).to_excel(book, sheet_name="old", index=False)
        table.cells.to_excel(book, sheet_name="new", index=False)
    assert read_data(fresh.study, tmp_path / "new.xlsx").columns == table.columns


def test_a_file_holds_it_all_but_no_ids(fitted: FittedStudy, tmp_path: Path) -> None:
    path = tmp_path / "cohort.deeptobit"
    save_fitted(fitted, path)
    loaded = load_fitted(path)
    table = _table(tmp_path, fitted, HEADER + "a,70,f,3000,0.5\nb,75,m,3500,0.9\n")
    pd.testing.assert_frame_equal(
        predict_table(loaded, table), predict_table(fitted, table), check_exact=True
    )
    pd.testing.assert_frame_equal(loaded.held_out.table(), fitted.held_out.table())
    np.testing.assert_array_equal(loaded.held_out.stages, fitted.held_out.stages)
    assert loaded.encoder == fitted.encoder
    plain = ("name", "text", "findings", "n_groups", "facts", "n_rows", "study")
    for name in plain:
        assert getattr(loaded, name) == getattr(fitted, name), name
    content = path.read_bytes()
    assert b"cohort.csv" not in content  # a name of a file may be that of a person
    assert not any(
        f"{person:03d}-{visit}".encode() in content for person in (0, 19) for visit in (0, 1)
    )


def test_other_files_are_refused(fitted: FittedStudy, tmp_path: Path) -> None:
    path = tmp_path / "cohort.deeptobit"
    save_fitted(fitted, path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load_fitted(path)
    fitted.model.save(path)
    with pytest.raises(ModelFileError, match="where a 'study' is wanted"):
        load_fitted(path)
    write_state(path, "study", {"model": {"model": {"is": "NextRegressor"}}})
    with pytest.raises(ModelFileError, match="cannot be loaded: it holds no model"):
        load_fitted(path)
    write_state(path, "study", {"rows": 100})
    with pytest.raises(ModelFileError, match="comes from another version of deeptobit"):
        load_fitted(path)
