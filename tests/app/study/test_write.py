from pathlib import Path

import pytest

from deeptobit.app.study import write_whole


def test_what_was_there_survives_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study.toml"
    path.write_text("before")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["study.toml"]


def test_a_new_file_has_the_rights_of_any_other(tmp_path: Path) -> None:
    plain, whole = tmp_path / "plain", tmp_path / "whole"
    plain.write_text("")
    write_whole(whole, "µ")
    assert whole.stat().st_mode == plain.stat().st_mode
    assert whole.read_text(encoding="utf-8") == "µ"
