"""What holds for all tests."""

import os

# Dask's profiler asks Python for the frames of all threads, which can hang for ever while one of
# them ends (python/cpython#106883, mended in 3.11.12). Workers inherit the environment.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")

# Two workers share two cores: more threads only wait for each other.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
