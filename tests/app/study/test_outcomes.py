from pathlib import Path

import numpy as np
import pytest

from deeptobit.app.study import StudyError
from deeptobit.targets import CensoredTargets
from tests.app.study.problems import build

INF = np.inf


def _targets(folder: Path, columns: str, rows: list[str], target: str) -> CensoredTargets:
    table = "\n".join([f"age,{columns}", *(f"{i},{row}" for i, row in enumerate(rows))])
    return build(folder, f"[targets.tau]\n{target}", table, data="").targets


def test_a_limit_for_every_row(tmp_path: Path) -> None:
    rows = ["0.5,0.5", "0.7,0.5", "0.2,0.2", ","]
    targets = _targets(tmp_path, "tau,lod", rows, 'lower = "lod"')
    np.testing.assert_array_equal(targets.at_lower.ravel(), [True, False, True, False])
    np.testing.assert_array_equal(targets.high.ravel(), [0.5, 0.7, 0.2, np.nan])
    np.testing.assert_array_equal(targets.lower, [-INF])
    assert targets.entry_lower is not None
    np.testing.assert_array_equal(targets.entry_lower.ravel(), [0.5, 0.5, 0.2, -INF])


def test_a_flag_for_values_below_detection(tmp_path: Path) -> None:
    rows = ["0.5,yes", "0.4,no", "0.3,1", "0.2,"]
    targets = _targets(tmp_path, "tau,flag", rows, 'below = "flag"')
    np.testing.assert_array_equal(targets.low.ravel(), [-INF, 0.4, -INF, 0.2])
    np.testing.assert_array_equal(targets.high.ravel(), [0.5, 0.4, 0.3, 0.2])


def test_a_blank_flagged_cell_takes_the_limit(tmp_path: Path) -> None:
    rows = [",1", "0.4,0", "0.07,1"]  # the last is a substitute, such as half the limit
    targets = _targets(tmp_path, "tau,flag", rows, 'lower = 0.1\nbelow = "flag"')
    np.testing.assert_array_equal(targets.low.ravel(), [-INF, 0.4, -INF])
    np.testing.assert_array_equal(targets.high.ravel(), [0.1, 0.4, 0.1])
    assert targets.entry_lower is None


def test_signs_in_cells(tmp_path: Path) -> None:
    targets = _targets(tmp_path, "tau", ["<0.5", "> 80", "≤0.2", "3", ""], "lower = 0")
    np.testing.assert_array_equal(targets.low.ravel(), [-INF, 80.0, -INF, 3.0, np.nan])
    np.testing.assert_array_equal(targets.high.ravel(), [0.5, INF, 0.2, 3.0, np.nan])
    np.testing.assert_array_equal(targets.lower, [0.0])


def test_above_detection(tmp_path: Path) -> None:
    targets = _targets(tmp_path, "tau,f,max", ["5,1,9", "9,0,9"], 'above = "f"\nupper = "max"')
    np.testing.assert_array_equal(targets.low.ravel(), [5.0, 9.0])
    assert targets.at_upper.all()


@pytest.mark.parametrize(
    ("columns", "rows", "target", "sentence"),
    [
        (
            "tau,lod",
            ["1,0.5", "2,"],
            'lower = "lod"',
            "value, but no lower limit in 'lod' in 1 row",
        ),
        (
            "tau,lod",
            ["1,x", "2,1"],
            'lower = "lod"',
            "lower limit of 'tau', column 'lod' must hold",
        ),
        ("tau,f", [",1", "2,0"], 'below = "f"', "flagged below detection, but has no limit"),
        ("tau,f", [",1", "2,0"], 'above = "f"', "flagged above detection, but has no limit"),
        (
            "tau,f",
            ["1,maybe", "2,0"],
            'below = "f"',
            "a.csv, line 2: .* must say yes or no .1 or 0.* found 'maybe'",
        ),
        ("tau,f,g", ["1,1,1", "2,0,0"], 'below = "f"\nabove = "g"', "both below and above"),
        (
            "tau,a,b",
            ["1,2,1", "2,0,5"],
            'lower = "a"\nupper = "b"',
            "lower limit that is not below the upper one in 1 row",
        ),
        ("tau", ["<0.5", "LOD"], "", "must hold numbers .or limits such as <0.5.; found 'LOD'"),
    ],
)
def test_errors(columns: str, rows: list[str], target: str, sentence: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=sentence):
        _targets(tmp_path, columns, rows, target)
