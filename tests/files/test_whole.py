from collections.abc import Iterator
from pathlib import Path

import pytest

from deeptobit.files import write_whole


def test_an_interruption_while_writing_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    write_whole(path, [b"before"])

    def interrupted() -> Iterator[bytes]:
        yield b"half of what was to "
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, interrupted())
    assert path.read_bytes() == b"before"
    assert [file.name for file in tmp_path.iterdir()] == ["a.model"]


def test_a_missing_folder_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder .*absent to write a\.model into"):
        write_whole(tmp_path / "absent" / "a.model", [b""])
    with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
        write_whole(tmp_path, [b""])
    assert not list(tmp_path.iterdir())


def test_a_new_file_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    write_whole(path, [b"a longer one than the next"])
    write_whole(path, [b"an", memoryview(b"other")])
    assert path.read_bytes() == b"another"
