import os
import platform
import stat
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
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


def test_a_link_is_followed_and_permissions_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "a.model", tmp_path / "link"
    write_whole(path, [b"before"])
    path.chmod(0o600)
    link.symlink_to(path)
    write_whole(link, [b"after"])
    assert link.is_symlink()
    assert path.read_bytes() == b"after"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_devices_and_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/null")):
        with pytest.raises(ValueError, match="is a device or a pipe; name a file"):
            write_whole(path, [b"x"])
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_what_a_killed_process_left_is_removed_by_the_next_save(tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from deeptobit.files import write_whole\n"
        "def parts():\n"
        "    yield b'half'\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(Path(sys.argv[1]), parts())\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert [file.suffix for file in tmp_path.iterdir()] == [".draft"]
    host = sha256(platform.node().encode()).hexdigest()[:8]
    alive = tmp_path / f".a.model-{host}-{os.getpid()}-abc.draft"  # another thread at work
    other = tmp_path / ".a.model-00000000-1-abc.draft"  # another machine's
    alive.touch()
    other.touch()
    write_whole(path, [b"whole"])
    assert {file.name for file in tmp_path.iterdir()} == {"a.model", alive.name, other.name}
