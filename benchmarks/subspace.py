"""The batch solver of one layer: distance to the oracle, certificate, cost on a cohort."""

import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import shrinkage
from benchmarks.problems import badly_scaled, log_score
from benchmarks.report import Number
from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
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
        yield from _sparse_truth()
        yield _cost_of_sparsity()
        yield from shrinkage.measure(SEEDS)


def _against_the_oracle() -> Iterator[Number]:
    ratios, norms = zip(*(_one_fit(seed) for seed in SEEDS), strict=True)
    mean = float(np.mean(ratios))
    yield Number("ANMSE over the oracle's, mean of seeds 0–9", mean, 1.013, "at most")
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
    yield Number("bad problems: worst loss to intercepts alone", max(excess), 0.01, "at most")
    yield Number("bad problems: mean gain over them", -float(np.mean(excess)), 0.15, "at least")


def _sparse_truth() -> Iterator[Number]:
    """Ten features of 150 matter; alpha and sparsity are chosen on rows of their own."""
    gains, used = zip(*(_tuned_gain(seed) for seed in range(3)), strict=True)
    what = "sparse truth: gain in held-out log score by feature_sparsity, both tuned"
    yield Number(what, float(np.mean(gains)), 0.05, "at least")
    yield Number("sparse truth: the smallest gain of three seeds", min(gains), 0.03, "at least")
    yield Number("sparse truth: features used of 150, most", max(used), 100, "at most")


def _draw_sparse(seed: int, n_samples: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 150))
    latent = X[:, :10] @ rng.normal(size=(10, 5)) @ rng.normal(size=(5, 30)) / np.sqrt(50)
    return X, np.maximum(0.3 + latent + rng.normal(size=latent.shape), 0.0)


def _tuned_gain(seed: int) -> tuple[float, int]:
    X, Y = _draw_sparse(seed, 3300)
    train, choose, test = slice(300), slice(300, 1300), slice(1300, None)
    best = {}
    for sparsity in (0.0, 0.5, 1.0):
        models = [
            SubspaceTobitRegressor(alpha=alpha, feature_sparsity=sparsity, tol=1e-4)
            for alpha in (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.5)
        ]
        for model in models:
            model.fit(X[train], Y[train])
        best[sparsity] = max(models, key=lambda model: model.score_log(X[choose], Y[choose]))
    chosen = max(best.values(), key=lambda model: model.score_log(X[choose], Y[choose]))
    gain = chosen.score_log(X[test], Y[test]) - best[0.0].score_log(X[test], Y[test])
    return float(gain), chosen.history_["n_features_used"]


def _cost_of_sparsity() -> Number:
    X, Y = _draw_sparse(0, 500)
    seconds = {
        sparsity: _best_of(
            5, lambda sparsity=sparsity: SubspaceTobitRegressor(feature_sparsity=sparsity).fit(X, Y)
        )
        for sparsity in (0.0, 0.5, 1.0)
    }
    ratio = max(seconds[0.5], seconds[1.0]) / seconds[0.0]
    return Number(
        "sparse truth of 500 × 150 × 30: time over that without feature_sparsity",
        ratio,
        10.0,
        "at most",
    )


def _best_of(times: int, run: Any) -> float:
    seconds: list[float] = []
    for _ in range(times):
        started = perf_counter()
        run()
        seconds.append(perf_counter() - started)
    return min(seconds)
