"""The working tree against another revision, on work whose seconds are known."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.compare import Timing, checked_out, compare, last_tag, main, table
from benchmarks.workloads import NAMES, WORKLOADS

WORK = """\
import os, sys
import deeptobit
if sys.argv[1] == "threads":
    print(os.environ["NUMBA_NUM_THREADS"])
else:
    print(getattr(deeptobit, sys.argv[1]))
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A package that takes 2 s in its only commit, and 1 s in the working tree."""
    package = tmp_path / "repository" / "src" / "deeptobit"
    package.mkdir(parents=True)
    root = package.parents[1]
    (package / "__init__.py").write_text("tobit = 2.0\n")
    git(root, "init", "--quiet")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "first")
    (package / "__init__.py").write_text("tobit = 1.0\nonline = 3.0\n")
    return root


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "work.py"
    path.write_text(WORK)
    return path


def test_both_trees_do_the_same_work(repository: Path, script: Path) -> None:
    with checked_out(repository, "HEAD") as tree:
        assert tree.is_dir()
        found = list(compare(["tobit", "online", "threads"], tree, repository, 2, script))
    assert found[0] == Timing("tobit", (2.0, 2.0), (1.0, 1.0))
    assert (found[0].ratio, found[0].spread) == (0.5, (0.5, 0.5))
    assert found[1] == Timing("online", (), (3.0, 3.0))
    assert found[2] == Timing("threads", (1.0, 1.0), (1.0, 1.0))
    assert not tree.exists()
    assert git(repository, "worktree", "list").count("\n") == 1
    assert (repository / "src" / "deeptobit" / "__init__.py").read_text().startswith("tobit = 1.0")


def test_the_last_tag_is_the_other_side(
    repository: Path, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert last_tag(repository) is None
    assert main([], repository, script) == 2
    assert "there is no tag to compare with" in capsys.readouterr().err
    git(repository, "tag", "v1.2")
    assert last_tag(repository) == "v1.2"
    assert main(["tobit", "--rounds", "1"], repository, script) == 0
    assert "0.50  0.50 to 0.50" in capsys.readouterr().out


def test_a_revision_that_is_not_there(
    repository: Path, script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--against", "nowhere"], repository, script) == 2
    assert "git cannot check nowhere out: " in capsys.readouterr().err


def test_what_one_side_cannot_do() -> None:
    lines = table([Timing("a", (1.0,), ()), Timing("b", (), (1.0,))], "v1").splitlines()
    assert lines[1].endswith("now cannot do it")
    assert lines[2].endswith("v1 cannot do it")


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_work_can_be_done(name: str) -> None:
    assert name in NAMES
    WORKLOADS[name]()()
