from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit.app.study import StudyError, read_table, write_table
from deeptobit.extras import require

IDS = ["007", "=1+1", "+5", "-5", "@SUM(A1)", "a,b", 'say "x"', "Zürich", None]


@pytest.fixture
def table() -> pd.DataFrame:
    values = np.linspace(0.1, 1.0, len(IDS)) / 3.0
    return pd.DataFrame({"=id": IDS, "y": values}, index=range(5, 5 + len(IDS)))


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_text_and_numbers_come_back(kind: str, table: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / f"p.{kind}"
    write_table(table, path)
    back = read_table(path)
    assert back.columns == ["=id", "y"]
    assert back.text("=id").tolist() == IDS
    # pandas before 3 reads decimals to a few units in the last place.
    np.testing.assert_allclose(back.numbers("y"), table["y"].to_numpy(), rtol=1e-14)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_no_cell_of_excel_is_a_formula(table: pd.DataFrame, tmp_path: Path) -> None:
    write_table(table, tmp_path / "p.xlsx")
    sheet = require("openpyxl", "app").load_workbook(tmp_path / "p.xlsx").active
    kinds = {cell.value: cell.data_type for row in sheet.iter_rows() for cell in row}
    assert "f" not in kinds.values()
    assert (kinds["=1+1"], kinds["=id"], kinds["007"]) == ("s", "s", "s")


def test_what_cannot_be_written_is_one_sentence(table: pd.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(
        StudyError, match=r"p.ods: cannot write files of kind '.ods'; known are .csv"
    ):
        write_table(table, tmp_path / "p.ods")
    with pytest.raises(StudyError, match="no such folder"):
        write_table(table, tmp_path / "none" / "p.csv")
    with pytest.raises(StudyError, match="characters that Excel does not take"):
        write_table(pd.DataFrame({"id": ["a\x00b"]}), tmp_path / "p.xlsx")
    wide = pd.DataFrame(np.zeros((1, 16_385)))
    with pytest.raises(StudyError, match=r"an Excel sheet holds .* 2 and 16385 are needed"):
        write_table(wide.rename(columns=str), tmp_path / "p.xlsx")
    assert list(tmp_path.iterdir()) == []
