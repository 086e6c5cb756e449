"""The Subspace Network: against plain networks, against one layer, calibration, and cost."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import kstest
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from benchmarks.report import Number
from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.metrics import anmse, bound_calibration, pit

SEEDS = range(5)
HIDDEN_SIZES = ((30, 30), (100, 100), (200, 200))
N_TRAIN = 4000


class Race(NamedTuple):
    """ANMSE of the network over that of its rivals, and its time over theirs."""

    over_best_mlp: float
    over_one_layer: float
    time_over_mlps: float


def measure() -> Iterator[Number]:
    """Every promise about the network."""
    with threadpool_limits(1):
        yield from _non_linear()
        yield _one_layer_truth()
        yield from _calibration()
        yield _three_layers_online()


def _non_linear() -> Iterator[Number]:
    with_skip = [_race(seed, skip=True) for seed in SEEDS]
    mean = Race(*np.mean(with_skip, axis=0))
    yield Number("non-linear: ANMSE over the best MLP's", mean.over_best_mlp, 0.88, "at most")
    yield Number("non-linear: ANMSE over one layer's", mean.over_one_layer, 0.80, "at most")
    slowest = max(race.time_over_mlps for race in with_skip)
    yield Number("non-linear: time over that of three MLPs, worst", slowest, 1.0, "at most")
    without = np.mean([_race(seed, skip=False).over_best_mlp for seed in SEEDS])
    yield Number("the same, no skip in the truth", float(without), 0.97, "at most")


def _race(seed: int, *, skip: bool) -> Race:
    X, Y, X_test, Y_test = _non_linear_data(seed, skip=skip, n_test=1000)
    started = perf_counter()
    network = SubspaceNetworkRegressor(rank=10).fit(X, Y)
    ours = perf_counter() - started
    started = perf_counter()
    peers = [_mlp(sizes, seed).fit(X, Y) for sizes in HIDDEN_SIZES]
    theirs = perf_counter() - started
    best = min(float(anmse(Y_test, np.clip(mlp.predict(X_test), 0.0, None))) for mlp in peers)
    one = float(anmse(Y_test, SubspaceTobitRegressor(rank=10).fit(X, Y).predict(X_test)))
    error = float(anmse(Y_test, network.predict(X_test)))
    return Race(error / best, error / one, ours / theirs)


def _mlp(sizes: tuple[int, ...], seed: int) -> Any:
    return MLPRegressor(
        hidden_layer_sizes=sizes, early_stopping=True, max_iter=1000, random_state=seed
    )


def _one_layer_truth() -> Number:
    """Layers above the first must not cost anything where there is nothing to gain."""
    worst = 0.0
    for seed in SEEDS:
        X, Y, _ = make_subspace(5000, 200, 100, 10, sigma=3.0, random_state=seed)
        X_test, Y_test = X[N_TRAIN:], Y[N_TRAIN:]
        errors = [
            anmse(Y_test, _network(n_layers=depth, X=X, Y=Y).predict(X_test)) for depth in (1, 3)
        ]
        worst = max(worst, float(errors[1] / errors[0]))
    return Number("one-layer truth: three layers over one, worst", worst, 1.005, "at most")


def _network(*, n_layers: int, X: FloatArray, Y: FloatArray) -> SubspaceNetworkRegressor:
    return SubspaceNetworkRegressor(rank=10, n_layers=n_layers).fit(X[:N_TRAIN], Y[:N_TRAIN])


def _calibration() -> Iterator[Number]:
    """On 20,000 rows that were not seen; the worst of the generators and seeds."""
    checks = [
        _check(*data, seed=seed)
        for seed in range(2)
        for data in (
            _non_linear_data(seed, skip=True, n_test=20_000),
            _non_linear_data(seed, skip=False, n_test=20_000),
            _paper_data(seed, n_test=20_000),
        )
    ]
    distance = max(float(check.distance.mean()) for check in checks)
    yield Number("PIT: distance from uniform, mean over tasks", distance, 0.03, "at most")
    furthest = max(float(check.distance.max()) for check in checks)
    yield Number("PIT: distance from uniform, worst task", furthest, 0.06, "at most")
    covered = min(float(check.coverage.mean()) for check in checks)
    yield Number("90 % intervals cover, mean over tasks", covered, 0.88, "at least")
    least = min(float(check.coverage.min()) for check in checks)
    yield Number("90 % intervals cover, worst task", least, 0.85, "at least")
    gap = max(check.bound_error for check in checks)
    yield Number("calibration error of bound probabilities", gap, 0.03, "at most")


class Check(NamedTuple):
    """Distances of the PIT from uniform and coverages per task, and the error at the bound."""

    distance: FloatArray
    coverage: FloatArray
    bound_error: float


def _check(
    X: FloatArray, Y: FloatArray, X_test: FloatArray, Y_test: FloatArray, *, seed: int
) -> Check:
    model = SubspaceNetworkRegressor(rank=10).fit(X, Y)
    latent = model.predict(X_test, kind="latent")
    values = pit(Y_test, latent, model.sigma_, lower=0.0, random_state=seed)
    distances = [kstest(values[:, task], "uniform").statistic for task in range(Y.shape[1])]
    low, high = model.predict_interval(X_test, 0.9)
    at_lower, _ = model.predict_bound_proba(X_test)
    return Check(
        np.array(distances),
        ((Y_test >= low) & (Y_test <= high)).mean(axis=0),
        bound_calibration(Y_test == 0.0, at_lower).expected_error,
    )


def _three_layers_online() -> Number:
    X, Y, _ = make_subspace(5000, 200, 100, 10, sigma=3.0, random_state=0)
    one = SubspaceTobitRegressor(rank=10, solver="online")
    three = SubspaceNetworkRegressor(rank=10, solver="online", joint_tuning=False)
    one.fit(X, Y)
    ratios = [_seconds(three, X, Y) / _seconds(one, X, Y) for _ in range(9)]
    return Number("three layers online over one", float(np.median(ratios)), 4.5, "at most")


def _seconds(model: Any, X: FloatArray, Y: FloatArray) -> float:
    started = perf_counter()
    model.fit(X, Y)
    return perf_counter() - started


def _non_linear_data(
    seed: int, *, skip: bool, n_test: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Three layers with 50 features, 30 tasks and 5 directions; rows to train and to test."""
    X, Y, _ = make_subspace(
        N_TRAIN + n_test,
        50,
        30,
        5,
        n_layers=3,
        skip_connection=skip,
        sigma=1.0,
        hidden_sigma=0.3,
        latent_sd=3.0,
        random_state=seed,
    )
    return X[:N_TRAIN], Y[:N_TRAIN], X[N_TRAIN:], Y[N_TRAIN:]


def _paper_data(seed: int, *, n_test: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    X, Y, _ = make_subspace(N_TRAIN + n_test, 200, 100, 10, sigma=3.0, random_state=seed)
    return X[:N_TRAIN], Y[:N_TRAIN], X[N_TRAIN:], Y[N_TRAIN:]
