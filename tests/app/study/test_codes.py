from pathlib import Path

import pytest

from deeptobit.app.study import read_table
from deeptobit.app.study.doctor.values import codes_of_table as find_codes

Column = list[object]
SCORES: Column = [30, 28, 21, 19, 25, 30, 27, 22]


def _codes(folder: Path, **columns: Column) -> list[str]:
    columns = {"n": [*range(1, 9)]} | columns  # one column alone has no separator
    rows = zip(*columns.values(), strict=True)
    lines = [";".join(columns), *(";".join(map(str, row)) for row in rows)]
    (folder / "a.csv").write_text("\n".join(lines))
    return find_codes(read_table(folder / "a.csv"))


def _with(*cells: object) -> Column:
    return [*cells, *SCORES[len(cells) :]]


def test_numbers_that_a_known_scale_cannot_reach(tmp_path: Path) -> None:
    assert _codes(tmp_path, MMSE=_with(-4, "-4,0", 999)) == ["-4", "999"]
    assert _codes(tmp_path, MMSE=SCORES) == []
    assert _codes(tmp_path, volume=_with(-4, 999)) == []  # nobody knows its range


def test_a_code_among_words(tmp_path: Path) -> None:
    assert _codes(tmp_path, MMSE=_with("-4", "refused")) == ["-4", "refused"]


@pytest.mark.parametrize(
    ("other", "found"),
    [
        ([-4, 3, 5, 2, 1, 0, 2, 3], ["-4"]),  # the only negative one
        ([-4, -2.5, 0.3, 2, 1, 0, 2, 3], []),  # z-scores
    ],
)
def test_no_code_where_another_column_has_the_value(
    other: Column, found: list[str], tmp_path: Path
) -> None:
    assert _codes(tmp_path, MMSE=_with(-4), other=other) == found


def test_an_age_of_99_is_an_age(tmp_path: Path) -> None:
    ages: Column = [99, 95, 91, 70, 81, 77, 85, 90]
    assert _codes(tmp_path, MMSE=_with(99), age=ages) == []
    assert _codes(tmp_path, MMSE=_with(99), age=[35.5, *ages[1:]]) == ["99"]


def test_words_among_numbers(tmp_path: Path) -> None:
    assert _codes(tmp_path, dose=_with("unknown", "#DIV/0!", "-")) == ["#DIV/0!", "-", "unknown"]
    assert _codes(tmp_path, crp=_with("<0,5", "lost")) == ["lost"]


def test_a_word_that_is_a_category_elsewhere_is_none(tmp_path: Path) -> None:
    smoker: Column = ["none", "none", "some", "some", "none", "some", "none", "some"]
    assert _codes(tmp_path, dose=_with("none"), smoker=smoker) == []


@pytest.mark.parametrize("cell", ["5%", "1.234,5", "inf", "-Infinity", "12 mg"])
def test_numbers_in_an_unusual_form_are_not_codes(cell: str, tmp_path: Path) -> None:
    assert _codes(tmp_path, dose=_with(cell)) == []
