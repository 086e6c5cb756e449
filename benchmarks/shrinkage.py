"""``alpha="auto"`` of one layer against the best of five alphas, and on pure noise."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

from benchmarks.report import Number
from deeptobit import SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.estimators.inputs import automatic_alpha
from deeptobit.exceptions import CensoringWarning

LOWER, UPPER, TRUE_RANK = -2.0, 3.0, 4
SHARES = (1.0, 0.3, 0.1, 0.03, 0.0)  # of the largest alpha of the path
N_TEST = 4000


class Shape(NamedTuple):
    """Rows, features and outcomes of a generated problem, and how large W is."""

    n_samples: int
    n_features: int
    n_tasks: int
    strength: float = 1.0

    def __str__(self) -> str:
        """As a line of a report names it."""
        weak = ", weak signal" if 0.0 < self.strength < 1.0 else ""
        return f"{self.n_samples} × {self.n_features} × {self.n_tasks}{weak}"


SHAPES = (Shape(1500, 40, 12), Shape(300, 40, 12), Shape(150, 60, 20), Shape(400, 100, 30, 0.5))
NOISE = (Shape(100, 30, 10, 0.0), Shape(300, 10, 3, 0.0))
WIDE_NOISE = (Shape(60, 100, 10, 0.0), Shape(40, 60, 5, 0.0))


class Drawn(NamedTuple):
    """Rows to learn from and new ones, with what generated them."""

    X: FloatArray
    Y: FloatArray
    X_new: FloatArray
    Y_new: FloatArray
    W: FloatArray
    sigma: FloatArray


class Errors(NamedTuple):
    """Of a fit: of W, log score on new rows, and at the bounds.

    There the share of all outcomes is off by ``share``, the probabilities of single entries by
    ``entry`` on average.
    """

    coef: float
    log_score: float
    share: float
    entry: float


def draw(shape: Shape, seed: int) -> Drawn:
    """Rank four, σ from 0.5 to 4, outcomes between −2 and 3."""
    rng = np.random.default_rng(seed)
    n_samples, n_features, n_tasks, strength = shape
    W = rng.normal(size=(n_tasks, TRUE_RANK)) @ rng.normal(size=(TRUE_RANK, n_features))
    W *= strength / np.sqrt(n_features)
    sigma = np.exp(rng.uniform(np.log(0.5), np.log(4.0), n_tasks))
    X = rng.normal(size=(n_samples + N_TEST, n_features))
    Y = np.clip(X @ W.T + sigma * rng.normal(size=(len(X), n_tasks)), LOWER, UPPER)
    return Drawn(X[:n_samples], Y[:n_samples], X[n_samples:], Y[n_samples:], W, sigma)


def fit(drawn: Drawn, rank: int, alpha: Any = "auto") -> SubspaceTobitRegressor:
    """One layer with the bounds of the problems."""
    model = SubspaceTobitRegressor(rank, alpha=alpha, lower=LOWER, upper=UPPER, solver="batch")
    return model.fit(drawn.X, drawn.Y)


def errors(model: SubspaceTobitRegressor, drawn: Drawn) -> Errors:
    """Where a fit is off, against the truth."""
    coef = np.linalg.norm(model.coef_ - drawn.W) / np.linalg.norm(drawn.W)
    ours = _at_bounds(drawn.X_new @ model.coef_.T + model.intercept_, model.sigma_)
    difference = ours - _at_bounds(drawn.X_new @ drawn.W.T, drawn.sigma)
    share = np.abs(difference.mean(axis=(1, 2))).mean()
    score = model.score_log(drawn.X_new, drawn.Y_new)
    return Errors(float(coef), score, float(share), float(np.abs(difference).mean()))


def _at_bounds(latent: FloatArray, sigma: FloatArray) -> FloatArray:
    """Probabilities of the lower and of the upper bound, (2, N, T)."""
    return np.stack([norm.cdf((LOWER - latent) / sigma), norm.sf((UPPER - latent) / sigma)])


def measure(seeds: Iterable[int] = range(10)) -> Iterator[Number]:
    """Every promise about ``alpha="auto"``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # small alphas of too large ranks
        warnings.simplefilter("ignore", CensoringWarning)
        seeds = tuple(seeds)
        for rank, coef, score in ((TRUE_RANK, 1.15, -0.005), (2 * TRUE_RANK, 1.3, -0.015)):
            for shape in SHAPES:
                yield from _against_the_best(shape, rank, seeds, coef, score)
        yield _worst_on_noise("pure noise: R² on new rows", NOISE, seeds)
        yield _worst_on_noise("pure noise, more features than rows: R²", WIDE_NOISE, seeds)
        yield _cost()


def _against_the_best(
    shape: Shape, rank: int, seeds: tuple[int, ...], coef: float, score: float
) -> Iterator[Number]:
    """Means over seeds, against the best single share of the largest alpha."""
    n_samples, n_features, n_tasks, _ = shape
    largest = automatic_alpha(np.full(n_tasks, float(n_samples)), n_samples, n_features)
    alphas = ["auto", *(share * largest for share in SHARES)]
    found = np.zeros((len(alphas), len(Errors._fields)))
    for seed in seeds:
        drawn = draw(shape, seed)
        found += np.array([errors(fit(drawn, rank, alpha), drawn) for alpha in alphas])
    found /= len(seeds)
    auto, given = found[0], found[1:]
    what = f"auto, {shape}, rank {rank} of {TRUE_RANK}:"
    yield Number(f"{what} error of W over the best's", auto[0] / given[:, 0].min(), coef, "at most")
    gain = auto[1] - given[:, 1].max()
    yield Number(f"{what} log score less the best's", gain, score, "at least")
    yield Number(f"{what} share at a bound off by", auto[2], 0.01, "at most")
    ratio = auto[3] / given[:, 3].min()
    yield Number(
        f"{what} probabilities at the bounds, error over the best's", ratio, coef, "at most"
    )


def _worst_on_noise(what: str, shapes: tuple[Shape, ...], seeds: tuple[int, ...]) -> Number:
    scores = []
    for shape in shapes:
        for seed in (*seeds, *(1000 + seed for seed in seeds)):
            drawn = draw(shape, seed)
            scores.append(fit(drawn, TRUE_RANK).score(drawn.X_new, drawn.Y_new))
    return Number(f"{what}, worst of {len(scores)}", min(scores), -0.08, "at least")


def _cost() -> Number:
    """The largest ratio over the problems, each the best of five runs."""
    worst = 0.0
    for shape in SHAPES:
        drawn = draw(shape, 0)
        alpha = fit(drawn, TRUE_RANK).alpha_
        seconds = []
        for each in ("auto", alpha):
            times = []
            for _ in range(5):
                started = perf_counter()
                fit(drawn, TRUE_RANK, each)
                times.append(perf_counter() - started)
            seconds.append(min(times))
        worst = max(worst, seconds[0] / seconds[1])
    return Number("auto: time over that of a fit with one alpha", worst, 4.0, "at most")


if __name__ == "__main__":
    first, last = (int(argument) for argument in sys.argv[1:])
    for number in measure(range(first, last)):
        print(number, flush=True)
