"""The online solver in one pass: against the oracle, in matrix products, and on bad problems.

Times are those of ``learn`` and ``result``, on one BLAS thread and after compilation, over the time
of one product ``X @ coef.T``. Both are seconds of the one thread at work, and the products between
two runs are as many as take about as long as a run: what else the machine does disturbs a long
measurement more often than a short one.
"""

import warnings
from collections.abc import Callable, Iterator
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.problems import Problem, badly_scaled, log_score
from benchmarks.report import Number
from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics import anmse, principal_angles
from deeptobit.online import OnlineResult, OnlineSettings, OnlineSolver
from deeptobit.targets import CensoredTargets

SEEDS = range(10)
N_TRAIN = 4000
N_SAMPLES, N_FEATURES, N_TASKS, RANK = 5000, 200, 100, 10
_PRODUCTS = 9


class Data(NamedTuple):
    """All rows, their outcomes, the oracle's prediction and the true U and coefficients."""

    X: FloatArray
    Y: FloatArray
    oracle: FloatArray
    U: FloatArray
    coef: FloatArray

    @property
    def targets(self) -> CensoredTargets:
        """The outcomes to learn from."""
        return CensoredTargets.from_bounds(self.Y[:N_TRAIN], 0.0)


def measure() -> Iterator[Number]:
    """Every number of the online solver."""
    with threadpool_limits(1):
        yield from _against_the_oracle()
        yield from _products()
        yield from _few_rows()
        yield from _ill_conditioned()
        yield from _growth()
        yield from _bad_problems()


def _against_the_oracle() -> Iterator[Number]:
    rows, cosines, correlations = [], [], []
    for seed in SEEDS:
        data = paper_data(seed)
        result = solve(data)
        rows.append(ratio(data, result))
        cosines.append(float(np.cos(principal_angles(data.U, result.U)).min()))
        pairs = zip(result.U @ result.V, data.coef, strict=True)
        correlations.append(min(float(np.corrcoef(a, b)[0, 1]) for a, b in pairs))
    yield Number(
        "ANMSE over the oracle's, mean of 10 seeds", float(np.mean(rows)), 1.036, "at most"
    )
    yield Number("the same, worst seed", max(rows), 1.10, "at most")
    yield Number("smallest principal cosine, worst seed", min(cosines), 0.999, "at least")
    yield Number("correlation of a task's coefficients, worst", min(correlations), 0.99, "at least")


def _products() -> Iterator[Number]:
    data = paper_data(0)
    yield Number("one pass in products", _cost(data), 14.0 * 2 / 3, "at most")
    yield Number("fit in products, reading included", _cost_of_fit(data), 8.3, "at most")


def _few_rows() -> Iterator[Number]:
    """The paper's sizes with a tenth and a fifth of its rows, of which most wait in the buffer."""
    for n_rows, wanted in ((400, 0.05), (800, 0.015)):
        errors, gaps = [], []
        for seed in SEEDS:
            data = paper_data(seed)
            whole, pieces = (SubspaceTobitRegressor(RANK, solver="online") for _ in range(2))
            whole.fit(data.X[:n_rows], data.Y[:n_rows])
            for first in range(0, n_rows, 50):
                rows = slice(first, first + 50)
                pieces.partial_fit(data.X[rows], data.Y[rows])
            predicted = whole.predict(data.X[N_TRAIN:], kind="clip")
            errors.append(float(anmse(data.Y[N_TRAIN:], predicted)))
            gaps.append(np.abs(pieces.coef_ - whole.coef_).max() / np.abs(whole.coef_).max())
        cost = _cost_of_fit(paper_data(0), n_rows)
        yield Number(
            f"{n_rows} rows: ANMSE, mean of 10 seeds", float(np.mean(errors)), wanted, "at most"
        )
        yield Number(f"{n_rows} rows: fit in products of as many rows", cost, 40.0, "at most")
        yield Number(f"{n_rows} rows: in pieces of 50, off by", float(max(gaps)), 1e-12, "at most")


def _ill_conditioned() -> Iterator[Number]:
    cases = [ill_conditioned_data(seed) for seed in range(3)]
    worst = max(ratio(data, solve(data)) for data in cases)
    yield Number("condition number 1e4: ANMSE over the oracle's, worst", worst, 1.08, "at most")
    yield Number("condition number 1e4: products", _cost(cases[0]), 30.0, "at most")


def _growth() -> Iterator[Number]:
    sizes = {"N": N_TRAIN, "D": N_FEATURES, "T": N_TASKS, "R": RANK}
    for name in sizes:
        once, twice = _stream_of(**sizes), _stream_of(**(sizes | {name: 2 * sizes[name]}))
        ratio = float(np.median([twice() / once() for _ in range(7)]))
        yield Number(f"cost after doubling {name}", ratio, 2.3, "at most")


def _bad_problems() -> Iterator[Number]:
    """Against the Tobit with intercepts alone (a ridge under which every coefficient is zero)."""
    gains = []
    for problem in badly_scaled():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CensoringWarning)  # tasks censored throughout are meant
            null = TobitRegressor(alpha=1e9).fit(problem.X, problem.targets)
        latent = null.predict(problem.X_test, kind="latent")
        base = log_score(problem.targets_test, latent, null.sigma_)
        gains.append(base - _score(problem))
    finite = np.isfinite(gains)
    yield Number("bad problems: share without NaN", float(finite.mean()), 1.0, "at least")
    yield Number("bad problems: worst loss to intercepts alone", -min(gains), 0.05, "at most")
    yield Number("bad problems: mean gain over them", float(np.mean(gains)), 0.15, "at least")


def _score(problem: Problem, **settings: Any) -> float:
    """Log score on new rows after one pass."""
    targets = problem.targets
    shape = problem.X.shape[1], targets.shape[1]
    solver = OnlineSolver(OnlineSettings(rank=problem.rank, random_state=0, **settings), *shape)
    solver.learn(problem.X, targets.low, targets.high)
    found = solver.result()
    latent = problem.X_test @ (found.U @ found.V).T + found.intercept
    return log_score(problem.targets_test, latent, found.sigma)


def paper_data(seed: int) -> Data:
    """The paper's generator at its size."""
    X, Y, truth = make_subspace(N_SAMPLES, N_FEATURES, N_TASKS, RANK, sigma=3.0, random_state=seed)
    return Data(X, Y, truth.predict(X), truth.U, truth.coef)


def ill_conditioned_data(seed: int) -> Data:
    """The same signal in features of condition number 1e4: every direction matters alike."""
    plain = paper_data(seed)
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((N_FEATURES, N_FEATURES)))[0] for _ in range(2))
    turn = left * np.geomspace(1.0, 1e-4, N_FEATURES) @ right.T
    return plain._replace(X=plain.X @ turn)


def solve(data: Data, **settings: Any) -> OnlineResult:
    """One pass over the rows to train on."""
    solver = OnlineSolver(OnlineSettings(rank=RANK, **settings), N_FEATURES, N_TASKS)
    solver.learn(data.X[:N_TRAIN], data.targets.low, data.targets.high)
    return solver.result()


def ratio(data: Data, result: OnlineResult) -> float:
    """ANMSE of the clipped latent on the other rows, over the oracle's."""
    X, Y = data.X[N_TRAIN:], data.Y[N_TRAIN:]
    clipped = np.clip(X @ (result.U @ result.V).T + result.intercept, 0.0, None)
    return float(anmse(Y, clipped)) / float(anmse(Y, data.oracle[N_TRAIN:]))


def _cost(data: Data, **settings: Any) -> float:
    """One pass over the rows, in products."""
    X, targets = data.X[:N_TRAIN], data.targets
    low, high = np.array(targets.low), np.array(targets.high)

    def run() -> None:
        solver = OnlineSolver(OnlineSettings(rank=RANK, **settings), N_FEATURES, N_TASKS)
        _learn(solver, X, low, high)

    return _in_products(run, X, data.coef)


def _cost_of_fit(data: Data, n_rows: int = N_TRAIN, **settings: Any) -> float:
    """The same for the estimator, which also reads and checks X and Y."""
    X, Y = data.X[:n_rows], data.Y[:n_rows]
    model = SubspaceTobitRegressor(RANK, solver="online", **settings)
    return _in_products(lambda: model.fit(X, Y), X, data.coef)


def _in_products(work: Callable[[], Any], X: FloatArray, coef: FloatArray) -> float:
    """Best of several runs over the best of several rounds of products."""

    def multiply() -> None:
        for _ in range(_PRODUCTS):
            X @ coef.T  # let go at once: memory that is new costs as much again

    runs, products = [], []
    work()
    for _ in range(25):
        runs.append(_seconds(work))
        products.append(_seconds(multiply) / _PRODUCTS)
    return min(runs) / min(products)


def _stream_of(N: int, D: int, T: int, R: int) -> Callable[[], float]:
    """A function that learns from a stream of these sizes, and takes its time."""
    X, Y, _ = make_subspace(N, D, T, R, random_state=0)
    targets = CensoredTargets.from_bounds(Y, 0.0)

    def run() -> float:
        solver = OnlineSolver(OnlineSettings(rank=R), D, T)
        return _seconds(lambda: _learn(solver, X, targets.low, targets.high))

    run()
    return lambda: min(run(), run())


def _learn(solver: OnlineSolver, X: FloatArray, low: FloatArray, high: FloatArray) -> None:
    solver.learn(X, low, high)
    solver.result()


def _seconds(work: Callable[[], Any]) -> float:
    started = thread_time()
    work()
    return thread_time() - started
