"""What holds for all tests."""

import os

# Dask's profiler asks Python for the frames of all threads, which can hang for ever while one of
# them ends (python/cpython#106883, mended in 3.11.12). Workers inherit the environment.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")
