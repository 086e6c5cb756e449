"""Too little to test a model on, in the words that users read."""

from pathlib import Path

import pytest

from deeptobit.app.study import StudyError, build_data, read_data, read_study
from deeptobit.app.study.data import check_enough
from tests.app.study.problems import TARGET, write_study


def rows(n_rows: int, n_sites: int, n_known: int) -> str:
    lines = [
        f"{row},{row % n_sites},{50 + row},{row % 7 if row < n_known else ''}"
        for row in range(n_rows)
    ]
    return "\n".join(["id,site,age,MMSE", *lines, ""])


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            rows(9, 3, 9),
            r"a\.csv has 9 rows; to fit a model and test it on held-out rows, at least 10",
        ),
        (rows(30, 3, 5), r"target 'MMSE' has values in 5 rows and needs at least 10; leave it out"),
        (
            rows(30, 2, 30),
            r"has values in 2 group\(s\) of 'site', which are never split, and needs at least 3",
        ),
    ],
)
def test_what_is_too_little_is_said(table: str, sentence: str, tmp_path: Path) -> None:
    study = read_study(write_study(tmp_path, TARGET, table, data='id = "id"\ngroup = "site"'))
    with pytest.raises(StudyError, match=sentence):
        check_enough(study, build_data(study, read_data(study)))
