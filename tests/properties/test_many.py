import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_command_examines_problems_in_any_number_of_processes(jobs: int) -> None:
    words = ["--problems", "20", "--seed", "3", "--jobs", str(jobs)]
    command = [sys.executable, "-m", "tests.properties.many", *words]
    ended = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert f"20 problems, seed 3, {jobs} job(s)" in ended.stdout
    assert "0 crashes or leaked warnings, 0 wrong or not finite, 0 hangs" in ended.stdout
