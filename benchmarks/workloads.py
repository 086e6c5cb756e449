"""Fixed pieces of work that two revisions are timed on: ``python benchmarks/workloads.py NAME``.

Only names that users import are used, so that older revisions can run them. The file is started by
:mod:`benchmarks.compare`, which says where deeptobit lies. It prints the seconds of the work alone:
what the work needs is imported, made and compiled before.
"""

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

REPEATS = 3
Work = Callable[[], Any]


def import_package() -> float:
    """Seconds until the flagship can be made; a process imports once."""
    started = perf_counter()
    from deeptobit import SubspaceNetworkRegressor

    SubspaceNetworkRegressor()
    return perf_counter() - started


def tobit() -> Work:
    """Exact maximum likelihood, 10 outcomes."""
    from deeptobit import TobitRegressor

    X, Y = _data(3000, 40, 10)
    return lambda: TobitRegressor(alpha=0.01).fit(X, Y)


def inference() -> Work:
    """Standard errors of a fitted Tobit."""
    from deeptobit import TobitRegressor

    X, Y = _data(3000, 40, 10)
    model = TobitRegressor(alpha=0.01).fit(X, Y)
    return lambda: model.summary()


def subspace() -> Work:
    """The batch solver of one layer."""
    from deeptobit import SubspaceTobitRegressor

    X, Y = _data(2000, 60, 30)
    return lambda: SubspaceTobitRegressor(5, solver="batch", alpha=0.01).fit(X, Y)


def online() -> Work:
    """One pass over rows."""
    from deeptobit import SubspaceTobitRegressor

    X, Y = _data(4000, 60, 30)
    return lambda: SubspaceTobitRegressor(5, solver="online", random_state=0).fit(X, Y)


def network() -> Work:
    """Two layers, grown and tuned."""
    from deeptobit import SubspaceNetworkRegressor

    X, Y = _data(1000, 40, 15)
    return lambda: SubspaceNetworkRegressor(5, 2, alpha=0.01, random_state=0).fit(X, Y)


def choose() -> Work:
    """The default way: prior, rank and depth by cross-validation."""
    import deeptobit

    X, Y = _data(300, 30, 8)
    if hasattr(deeptobit, "AutoTobitRegressor"):
        model = deeptobit.AutoTobitRegressor(members=("stack",), cv=3, random_state=0)
    else:  # 0.1 had the same default under another name
        model = deeptobit.SubspaceNetworkCV(max_layers=1, cv=3, random_state=0)
    return lambda: model.fit(X, Y)


def predict() -> Work:
    """Means and intervals of many rows."""
    from deeptobit import SubspaceTobitRegressor

    X, Y = _data(20_000, 60, 30)
    model = SubspaceTobitRegressor(5, solver="online", random_state=0).fit(X[:2000], Y[:2000])
    return lambda: (model.predict(X), model.predict_interval(X[:2000]))


WORKLOADS: dict[str, Callable[[], Work]] = {
    work.__name__: work for work in (tobit, inference, subspace, online, network, choose, predict)
}
NAMES = ("import", *WORKLOADS)


def _data(n_rows: int, n_features: int, n_tasks: int) -> tuple[Any, Any]:
    from deeptobit.datasets import make_subspace

    X, Y, _ = make_subspace(n_rows, n_features, n_tasks, 5, sigma=1.0, random_state=0)
    return X, Y


def seconds(name: str) -> float:
    """The fastest of some repeats; the first one, which compiles, is not counted."""
    if name == "import":
        return import_package()
    work = WORKLOADS[name]()
    work()
    return min(_time(work) for _ in range(REPEATS))


def _time(work: Work) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


if __name__ == "__main__":
    print(seconds(sys.argv[1]))
