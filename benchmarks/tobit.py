"""All tasks in one call against a per-task loop of L-BFGS-B, and the memory it takes.

Both run on one BLAS thread in the same process, start from least squares, have analytic gradients
and stop at the same gradient norm. The loop is written as well as can be without knowing that the
tasks share their features: vectorised, on standardised data, in Olsen's convex coordinates.

The time to predict one row is compared with that of scikit-learn's Ridge.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize
from scipy.special import log_ndtr
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from benchmarks.report import Number
from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.datasets import make_subspace

SEEDS = (0, 1, 2)
GRADIENT_NORM = 1e-7
LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)


class Run(NamedTuple):
    """Seconds in one call and in the loop (without its starts), and peak memory over X plus Y."""

    one_call: float
    loop: float
    starts: float
    memory: float


def measure() -> Iterator[Number]:
    """Speed and memory on N = 4000, D = 200, T = 100."""
    with threadpool_limits(1):
        TobitRegressor().fit(*_data(99, n_samples=1000))  # compile
        runs = [_compare(seed) for seed in SEEDS]
        one_row = max(
            _one_row(n_features, n_tasks) for n_features in (20, 100) for n_tasks in (1, 10)
        )
    speed = min((run.loop + run.starts) / run.one_call for run in runs)
    without_starts = min(run.loop / run.one_call for run in runs)
    yield Number(f"speed over the loop, worst of seeds {SEEDS}", speed, 8.0, "at least")
    yield Number("the same if least squares cost the loop nothing", without_starts, 1.0, "at least")
    memory = max(run.memory for run in runs)
    yield Number("peak memory over the size of X plus Y", memory, 4.0, "at most")
    yield Number("predict of one row over Ridge's, worst of 20–100 × 1–10", one_row, 2.0, "at most")


def _data(seed: int, n_samples: int = 4000) -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(n_samples, 200, 100, 10, random_state=seed)
    return X, Y


def _compare(seed: int) -> Run:
    X, Y = _data(seed)
    model = TobitRegressor(tol=GRADIENT_NORM)
    one_call = min(_seconds(model, X, Y) for _ in range(3))
    objective, norms, starts, loop = _fit_in_a_loop(X, Y)
    gap = np.abs(model.log_likelihood_ / len(X) + objective).max()
    print(
        f"  seed {seed}: one call {one_call:.3f} s, loop {starts:.3f} + {loop:.3f} s; largest "
        f"gradient norm {model.history_['gradient_norm'].max():.1e} and {norms.max():.1e}; "
        f"objectives agree to {gap:.1e}",
        flush=True,
    )
    tracemalloc.start()
    model.fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Run(one_call, loop, starts, peak / (X.nbytes + Y.nbytes))


def _seconds(model: TobitRegressor, X: FloatArray, Y: FloatArray) -> float:
    started = perf_counter()
    model.fit(X, Y)
    return perf_counter() - started


def _one_row(n_features: int, n_tasks: int) -> float:
    """Seconds of ``predict`` over those of Ridge, for the slower of two linear models."""
    X, Y, _ = make_subspace(400, n_features, n_tasks, 1, random_state=0)
    upper, row = float(np.quantile(Y, 0.9)), X[:1].copy()
    Y = np.minimum(Y, upper)
    models = (Ridge(), TobitRegressor(upper=upper), SubspaceTobitRegressor(1, upper=upper))
    calls = [model.fit(X, Y).predict for model in models]
    rounds = [[_seconds_per_call(call, row) for call in calls] for _ in range(60)]
    ridge, *ours = np.min(rounds, axis=0)
    return float(max(ours) / ridge)


def _seconds_per_call(predict: Callable[[FloatArray], FloatArray], row: FloatArray) -> float:
    started = perf_counter()
    for _ in range(20):
        predict(row)
    return (perf_counter() - started) / 20


def _fit_in_a_loop(X: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray, float, float]:
    """Mean negative log likelihood and gradient norm per task; seconds of starts and of fits."""
    design = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    scale = Y.std(axis=0)
    objective, norms = np.empty(Y.shape[1]), np.empty(Y.shape[1])
    start_seconds = fit_seconds = 0.0
    for task in range(Y.shape[1]):
        y = Y[:, task] / scale[task]
        started = perf_counter()
        line, *_ = np.linalg.lstsq(design, y, rcond=None)
        point = np.append(line, 1.0) / (y - design @ line).std()
        start_seconds += perf_counter() - started
        started = perf_counter()
        result = _minimize(point, design, y)
        fit_seconds += perf_counter() - started
        objective[task] = result.fun + np.mean(y > 0.0) * np.log(scale[task])
        norms[task] = np.linalg.norm(result.jac)
    return objective, norms, start_seconds, fit_seconds


def _minimize(point: FloatArray, design: FloatArray, y: FloatArray) -> Any:
    censored = y <= 0.0
    options: Any = {"gtol": GRADIENT_NORM / 5.0, "ftol": 0.0, "maxiter": 1000, "maxfun": 2000}
    bounds: Any = [(None, None)] * design.shape[1] + [(1e-6, None)]
    minimize: Any = optimize.minimize  # its stubs do not know a tuple of value and gradient
    return minimize(
        lambda at: _tobit_objective(at, design, y, censored),
        point,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options=options,
    )


def _tobit_objective(
    point: FloatArray, design: FloatArray, y: FloatArray, censored: BoolArray
) -> tuple[float, FloatArray]:
    gamma, theta = point[:-1], point[-1]
    z = theta * y - design @ gamma
    log_cdf = log_ndtr(z[censored])
    residual = np.where(censored, 0.0, z)
    n_observed = len(y) - int(censored.sum())
    value = 0.5 * residual @ residual + n_observed * (LOG_SQRT_2PI - np.log(theta)) - log_cdf.sum()
    by_u = -z
    by_u[censored] = np.exp(-0.5 * z[censored] ** 2 - LOG_SQRT_2PI - log_cdf)
    by_theta = residual @ y - n_observed / theta
    return value / len(y), np.append(design.T @ by_u, by_theta) / len(y)
