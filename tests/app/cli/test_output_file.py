"""A command refuses what it cannot or must not write, before it does any work."""

from pathlib import Path

import pytest

from deeptobit.app.cli.common import check_output
from deeptobit.app.study import StudyError


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    model, table = tmp_path / "cohort.deeptobit", tmp_path / "cohort.csv"
    model.touch()
    with pytest.raises(StudyError, match=r"none: there is no such folder; make it first"):
        check_output(tmp_path / "none" / "a", False)
    with pytest.raises(StudyError, match=r"cohort\.csv is already used by this command; --out"):
        check_output(table, True, table)
    with pytest.raises(StudyError, match=r" is a folder; --onnx must name a file"):
        check_output(tmp_path, True, option="--onnx")
    with pytest.raises(StudyError, match=r"cohort\.deeptobit exists; --force replaces it, --out"):
        check_output(model, False)
    check_output(model, True, table)


def test_a_folder_that_takes_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(dir: Path) -> None:
        raise PermissionError(13, "Permission denied", str(dir / ".draft"))

    check_output(tmp_path / "a.onnx", False)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("deeptobit.app.cli.common.TemporaryFile", refuse)
    refused = r"the folder .* cannot be written to \(Permission denied\); --onnx writes elsewhere$"
    with pytest.raises(StudyError, match=refused):
        check_output(tmp_path / "a.onnx", False, option="--onnx")
