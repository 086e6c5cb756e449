"""A hundred badly scaled problems on which a solver must do no harm."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.targets import CensoredTargets

N_PROBLEMS = 100
N_TEST = 2000


class Problem(NamedTuple):
    """Training rows, rows to score on, and a rank that is no secret."""

    X: FloatArray
    targets: CensoredTargets
    X_test: FloatArray
    targets_test: CensoredTargets
    rank: int
    pure_noise: bool


def badly_scaled(n_problems: int = N_PROBLEMS, seed: int = 0) -> Iterator[Problem]:
    """Problems with features of sd 1e-6 … 1e6, correlated columns and 1 % to 95 % censored.

    T runs over 1 … 50, N over 30 … 5000, D over 1 … 100, and every tenth problem is pure noise.
    """
    for index in range(n_problems):
        yield _draw(np.random.default_rng([seed, index]), pure_noise=index % 10 == 9)


def log_score(targets: CensoredTargets, latent: FloatArray, sigma: FloatArray) -> float:
    """Mean negative log likelihood per known entry, in the units of the outcomes."""
    nll = evaluate(Gaussian(), targets.low, targets.high, latent, sigma).nll
    return float(nll.sum() / (~targets.missing).sum())


def _draw(rng: np.random.Generator, *, pure_noise: bool) -> Problem:
    n_train = int(np.exp(rng.uniform(np.log(30), np.log(5000))))
    n_features = int(np.exp(rng.uniform(0.0, np.log(100))))
    n_tasks = int(np.exp(rng.uniform(0.0, np.log(50.99))))
    rank = int(rng.integers(1, min(n_features, n_tasks, 8) + 1))
    total = n_train + N_TEST
    X = _correlated(rng, total, n_features)
    V = rng.standard_normal((rank, n_features)) / np.sqrt(n_features)
    U = rng.standard_normal((n_tasks, rank))
    signal = X @ V.T @ U.T
    signal /= np.maximum(signal.std(axis=0), 1e-12)
    ratio = np.exp(rng.uniform(np.log(0.3), np.log(5.0)))
    latent = (0.0 if pure_noise else ratio) * signal + rng.standard_normal(signal.shape)
    scale, shift = 10.0 ** rng.uniform(-4.0, 4.0, n_tasks), rng.normal(0.0, 3.0, n_tasks)
    Y = scale * (latent + shift)
    share = rng.uniform(0.01, 0.95, n_tasks)
    both = rng.uniform(size=n_tasks) < 0.3
    lower = np.array([np.quantile(y, s) for y, s in zip(Y.T, share, strict=True)])
    top = np.array([np.quantile(y, s) for y, s in zip(Y.T, share + 0.8 * (1 - share), strict=True)])
    targets = CensoredTargets.from_bounds(Y, lower, np.where(both, top, np.inf), outside="clip")
    features = 10.0 ** rng.uniform(-6.0, 6.0, n_features) * (X + rng.normal(0, 2, n_features))
    return Problem(
        features[:n_train],
        targets[:n_train],
        features[n_train:],
        targets[n_train:],
        rank,
        pure_noise,
    )


def _correlated(rng: np.random.Generator, n: int, n_features: int) -> FloatArray:
    """Gaussian rows with a few common factors; now and then a column is repeated."""
    n_factors = int(rng.integers(1, 4))
    own = rng.uniform(0.05, 1.0)
    loading = rng.standard_normal((n_factors, n_features))
    X = rng.standard_normal((n, n_factors)) @ loading + own * rng.standard_normal((n, n_features))
    if n_features > 2 and rng.uniform() < 0.3:
        X[:, -1] = X[:, 0]
    return np.asarray(X)
