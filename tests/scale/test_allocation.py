"""Workers that keep freed memory do not clear the same pages again and again."""

import os
import platform
import subprocess
import sys

import pytest

_PROGRAM = """
import resource, sys
import numpy as np
from deeptobit.scale.cluster import keep_freed_memory

if sys.argv[1] == "keep":
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(300):
    np.ones(125_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_arrays_of_a_megabyte_are_not_mapped_anew() -> None:
    as_in_workers = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    faults = {}
    for what in ("give back", "keep"):
        command = [sys.executable, "-c", _PROGRAM, what]
        run = subprocess.run(command, env=as_in_workers, check=True, capture_output=True, text=True)
        faults[what] = int(run.stdout)
    assert faults["give back"] > 20 * faults["keep"]
