"""How long a fit goes on after Ctrl-C: at three moments, and at the worst."""

import signal
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.decisions.table import Table
from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.datasets import make_subspace

MODELS: dict[str, Any] = {
    "Tobit": TobitRegressor(),
    "one layer, batch": SubspaceTobitRegressor(5, solver="batch"),
    "one layer, online": SubspaceTobitRegressor(5, solver="online"),
    "network of two layers": SubspaceNetworkRegressor(5, 2, solver="batch"),
    "default": AutoTobitRegressor(random_state=0),
}
MOMENTS = (0.1, 0.4, 0.7)  # of the time of a fit


def measure() -> Table:
    """Seconds of a fit to 100,000 × 100 × 20, and of its end after an interruption."""
    yield "model", "fit", *(f"waits at {moment:.0%}" for moment in MOMENTS), "longest wait"
    X, Y, _ = make_subspace(100_000, 100, 20, 5, sigma=3.0, random_state=0)
    for name, model in MODELS.items():
        model.fit(X[:2000], Y[:2000])  # compiles
        heard = _listen(model, X, Y)
        whole = heard[-1] - heard[0]
        waits = (_wait(model, X, Y, moment * whole) for moment in MOMENTS)
        yield name, whole, *waits, float(np.diff(heard).max())


def _listen(model: Any, X: Any, Y: Any) -> list[float]:
    """When signals were heard that the kernel sends every 10 ms of a fit, with its two ends."""
    heard = [perf_counter()]
    signal.signal(signal.SIGALRM, lambda *given: heard.append(perf_counter()))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        model.fit(X, Y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    return [*heard, perf_counter()]


def _wait(model: Any, X: Any, Y: Any, delay: float) -> float:
    """Seconds from a signal of the kernel, whoever holds the interpreter then, to the end."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    started = perf_counter()
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        model.fit(X, Y)
    except KeyboardInterrupt:
        return perf_counter() - started - delay
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    return float("nan")  # over before
