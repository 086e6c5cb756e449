"""The cost model of docs/scale.md beside measured rounds: ``python -m benchmarks cost``.

Three constants of the machine are measured on one core: a floating-point operation in a product of
matrices, the likelihood of an entry of Y, and a number that is centred and scaled. With them the
model tells what a round and the moments cost at shapes from small to large.
"""

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import NamedTuple, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.report import Number
from benchmarks.scale_data import N_FEATURES, N_TASKS, RANK, folder
from deeptobit import likelihood
from deeptobit.layer import Design, TargetScaling
from deeptobit.likelihood import Gaussian
from deeptobit.network import LayerInputs
from deeptobit.online import RawRows
from deeptobit.scale.sums import LayerSums, Shift, SumLayer, SumMoments

_ROWS = 8192
_FILE_ROWS = 50_000
_REPEATS = 5
A = TypeVar("A")
_NEAR = 2.0  # a model of a machine that has caches is good within this factor


class Shape(NamedTuple):
    """Features, tasks and rank."""

    D: int
    T: int
    R: int

    def __str__(self) -> str:
        """For people."""
        return f"D = {self.D}, T = {self.T}, R = {self.R}"


_SHAPES = (
    Shape(50, 20, 5),
    Shape(800, 20, 5),
    Shape(50, 200, 5),
    Shape(50, 20, 40),
    Shape(1000, 100, 20),
    Shape(2000, 400, 20),
)


class Machine(NamedTuple):
    """Seconds of an operation in a product, of an entry's likelihood, and of a number handled."""

    flop: float
    entry: float
    number: float

    def round(self, shape: Shape) -> float:
        """Seconds of a row in a round."""
        D, T, R = shape
        flops = 2 * D * R + 4 * R * T + 2 * D * T + T * (R + 2) ** 2
        return self.flop * flops + self.entry * T + self.number * (2 * D + 12 * T + R * R / 2)

    def moments(self, shape: Shape) -> float:
        """Seconds of a row in the pass for the moments."""
        D, T, _ = shape
        return self.flop * (2 * D * D + 4 * D * T) + self.number * (2 * D + 20 * T)


def measure() -> Iterator[Number]:
    """How far the model is from what it describes."""
    with threadpool_limits(1):
        machine = _machine()
        print(
            f"cost: {1e-9 / machine.flop:.1f} Gflop/s in products, {1e9 * machine.entry:.0f} ns an "
            f"entry's likelihood, {1e9 * machine.number:.1f} ns a number handled"
        )
        for shape in _SHAPES:
            rows = _rows(shape)
            sums, seconds = _timed(partial(_sum_layer(shape), rows))
            yield from _near(f"a round, {shape}", seconds, _ROWS * machine.round(shape))
            yield _bytes(shape, sums)
            moments = SumMoments(_inputs(shape.T), Shift(np.zeros(shape.D), np.zeros(shape.T)))
            _, seconds = _timed(partial(moments, rows))
            yield from _near(f"moments, {shape}", seconds, _ROWS * machine.moments(shape))
    yield _bytes_read()


def _near(what: str, seconds: float, expected: float) -> Iterator[Number]:
    ratio = seconds / expected
    yield Number(f"{what}: measured over expected", ratio, _NEAR, "at most")
    yield Number(f"{what}: the same", ratio, 1.0 / _NEAR, "at least")


def _bytes(shape: Shape, sums: LayerSums) -> Number:
    D, T, R = shape
    ratio = sum(part.nbytes for part in sums) / (8 * (D * T + T * (R + 2) ** 2))
    return Number(f"bytes that a worker sends, {shape}: over expected", ratio, 1.05, "at most")


def _bytes_read() -> Number:
    written = sum(path.stat().st_size for path in folder(_FILE_ROWS).glob("*.parquet"))
    ratio = written / (4 * _FILE_ROWS * (N_FEATURES + N_TASKS))
    return Number("bytes read of a table of random numbers: over expected", ratio, 1.4, "at most")


def _machine() -> Machine:
    """The constants, each measured where nothing else is done."""
    rng = np.random.default_rng(0)
    block = rng.normal(size=(512, 1000))
    narrow = rng.normal(size=(1000, 200))
    _, product = _timed(lambda: block @ narrow)
    rows = _rows(Shape(N_FEATURES, N_TASKS, RANK))
    low, high = rows.low[:512], rows.high[:512]
    latent, sigma = rng.normal(size=low.shape), np.ones(N_TASKS)
    _, entries = _timed(lambda: likelihood.evaluate(Gaussian(), low, high, latent, sigma))
    mean, scale = rng.normal(size=1000), np.ones(1000)
    _, centring = _timed(lambda: (block - mean) / scale)
    return Machine(
        product / (2 * block.size * narrow.shape[1]), entries / low.size, centring / block.size
    )


def _timed(work: Callable[[], A]) -> tuple[A, float]:
    """What a function returns, and the least seconds that it took; the first call may compile."""
    found = work()
    seconds = []
    for _ in range(_REPEATS):
        start = perf_counter()
        found = work()
        seconds.append(perf_counter() - start)
    return found, min(seconds)


def _rows(shape: Shape) -> RawRows:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(_ROWS, shape.D))
    high = np.maximum(rng.normal(size=(_ROWS, shape.T)), 0.0)
    return RawRows(X, np.where(high > 0.0, high, -np.inf), high, np.ones(_ROWS))


def _inputs(n_tasks: int) -> LayerInputs:
    return LayerInputs(np.zeros(n_tasks), np.full(n_tasks, np.inf))


def _sum_layer(shape: Shape) -> SumLayer:
    rng = np.random.default_rng(2)
    D, T, R = shape
    directions, _ = np.linalg.qr(rng.normal(size=(D, R)))

    return SumLayer(
        inputs=_inputs(T),
        design=Design.of_moments(np.zeros(D), np.ones(D), center=True, standardize=True),
        scaling=TargetScaling(np.zeros(T), np.ones(T)),
        noise=Gaussian(),
        censored=np.zeros(T, dtype=bool),
        directions=np.asarray(directions),
        slopes=rng.normal(size=(T, R)) / np.sqrt(R),
        intercept=np.zeros(T),
        sigma=np.ones(T),
    )
