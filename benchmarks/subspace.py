"""The batch solver of one layer: distance to the oracle, certificate, cost on a cohort."""

import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.problems import badly_scaled, log_score
from benchmarks.report import Number
from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics import anmse

SEEDS = range(10)


def measure() -> Iterator[Number]:
    """Every promise about ``solver="batch"``."""
    with threadpool_limits(1):
        yield from _against_the_oracle()
        yield _certificate()
        yield _cohort()
        yield from _bad_problems()


def _against_the_oracle() -> Iterator[Number]:
    ratios, norms = zip(*(_one_fit(seed) for seed in SEEDS), strict=True)
    mean = float(np.mean(ratios))
    yield Number("ANMSE over the oracle's, mean of seeds 0–9", mean, 1.02, "at most")
    yield Number("ANMSE over the oracle's, worst seed", max(ratios), 1.02, "at most")
    yield Number("relative gradient norm, worst seed", max(norms), 1e-5, "at most")


def _one_fit(seed: int) -> tuple[float, float]:
    X, Y, truth = make_subspace(5000, 200, 100, 10, sigma=3.0, random_state=seed)
    model = SubspaceTobitRegressor(rank=10, solver="batch").fit(X[:4000], Y[:4000])
    X_test, Y_test = X[4000:], Y[4000:]
    ours = anmse(Y_test, model.predict(X_test, kind="clip"))
    return float(ours / anmse(Y_test, truth.predict(X_test))), model.history_["gradient_norm"]


def _certificate() -> Number:
    """Full rank and a large alpha: the gradient by W shows that no better W exists."""
    worst = 0.0
    for seed in range(3):
        X, Y, _ = make_subspace(500, 40, 20, 4, sigma=3.0, random_state=seed)
        for share in (0.5, 0.2, 0.05):
            start = SubspaceTobitRegressor(rank=20, alpha=1.0, solver="batch").fit(X, Y)
            alpha = share * start.history_["alpha_max"]
            model = SubspaceTobitRegressor(rank=20, alpha=alpha, solver="batch").fit(X, Y)
            worst = max(worst, model.history_["certificate"])
    return Number("spectral norm of the gradient by W over alpha", worst, 1.001, "at most")


def _cohort() -> Number:
    X, Y, _ = make_subspace(500, 150, 30, 5, sigma=3.0, random_state=0)
    design = np.column_stack([X, np.ones(len(X))])
    model = SubspaceTobitRegressor(solver="batch").fit(X, Y)
    ours = _best_of(5, lambda: model.fit(X, Y))
    least_squares = _best_of(20, lambda: np.linalg.lstsq(design, Y, rcond=None))
    return Number("cohort of 500 × 150 × 30 over one lstsq", ours / least_squares, 100.0, "at most")


def _bad_problems() -> Iterator[Number]:
    """Against the Tobit with intercepts alone (a ridge under which every coefficient is zero)."""
    excess = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CensoringWarning)  # tasks censored throughout are meant
        for problem in badly_scaled():
            model = SubspaceTobitRegressor(problem.rank, solver="batch")
            model.fit(problem.X, problem.targets)
            null = TobitRegressor(alpha=1e9).fit(problem.X, problem.targets)
            ours, base = (
                log_score(problem.targets_test, m.predict(problem.X_test, kind="latent"), m.sigma_)
                for m in (model, null)
            )
            excess.append(ours - base)
    yield Number("bad problems: worst loss to intercepts alone", max(excess), 0.05, "at most")
    yield Number("bad problems: mean gain over them", -float(np.mean(excess)), 0.15, "at least")


def _best_of(times: int, run: Any) -> float:
    seconds: list[float] = []
    for _ in range(times):
        started = perf_counter()
        run()
        seconds.append(perf_counter() - started)
    return min(seconds)
