"""What holds for all tests."""

import os

import pytest

# Dask's profiler asks Python for the frames of all threads, which can hang for ever while one of
# them ends (python/cpython#106883, mended in 3.11.12). Workers inherit the environment.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")

# Two workers share two cores: more threads only wait for each other.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Compile the kernels once before the workers start: they load them from the cache on disk."""
    from deeptobit import SubspaceTobitRegressor
    from deeptobit.datasets import make_subspace

    X, Y, _ = make_subspace(300, 5, 3, 2, random_state=0)
    SubspaceTobitRegressor(rank=2, solver="batch").fit(X, Y)
    for batch_size in (1, 16):
        model = SubspaceTobitRegressor(rank=2, solver="online", batch_size=batch_size).fit(X, Y)
        model.partial_fit(X, Y)
