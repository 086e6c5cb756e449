"""What holds for all tests."""

import gc
import os
from collections.abc import Generator
from pathlib import Path

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
    from deeptobit import AutoTobitRegressor, MixedTobitRegressor, SubspaceTobitRegressor
    from deeptobit.datasets import make_subspace

    X, Y, _ = make_subspace(300, 5, 3, 2, random_state=0)
    SubspaceTobitRegressor(rank=2, solver="batch").fit(X, Y)
    for batch_size in (1, 16):
        model = SubspaceTobitRegressor(rank=2, solver="online", batch_size=batch_size).fit(X, Y)
        model.partial_fit(X, Y)
    few = slice(60)
    AutoTobitRegressor(members=["trees"], cv=2, random_state=0).fit(X[few], Y[few])
    mixed = MixedTobitRegressor(alpha=0.1, shrinkage=1.0, person_rank=0, visit_rank=0)
    mixed.fit(X[few], Y[few], groups=[row // 3 for row in range(60)])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collection leaves stays to the end: the garbage collector need not visit it again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Tests have no doctests to look for."""
    return [found for found in (yield) if isinstance(found, pytest.Module)]
