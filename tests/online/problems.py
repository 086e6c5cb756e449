"""Small streams with a known truth."""

from typing import Any, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian
from deeptobit.online import OnlineResult, OnlineSettings, OnlineSolver
from deeptobit.targets import CensoredTargets


class Stream(NamedTuple):
    """Rows, censored at 0 from below, and the true coefficients."""

    X: Any  # dense or sparse
    low: FloatArray
    high: FloatArray
    coef: FloatArray


def stream(n: int = 1000, d: int = 8, t: int = 6, rank: int = 2, seed: int = 0) -> Stream:
    X, Y, truth = make_subspace(n, d, t, rank, sigma=1.0, random_state=seed)
    targets = CensoredTargets.from_bounds(Y, 0.0)
    return Stream(X, np.array(targets.low), np.array(targets.high), truth.coef)


def solve(data: Stream, weight: Any = None, **settings: Any) -> OnlineResult:
    """One call of ``learn`` on everything."""
    solver = make(data, **settings)
    solver.learn(data.X, data.low, data.high, weight)
    return solver.result()


class Interpreted(Gaussian):
    """Gaussian noise without compiled code, which learns in batches."""


def make(data: Stream, **settings: Any) -> OnlineSolver:
    settings.setdefault("noise", Interpreted() if settings.get("batch_size", 1) > 1 else Gaussian())
    settings = {"rank": 2} | settings
    return OnlineSolver(OnlineSettings(**settings), data.X.shape[1], data.low.shape[1])


def same(a: OnlineResult, b: OnlineResult) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("U", "V", "intercept", "sigma")
    )


def is_finite(result: OnlineResult) -> bool:
    parts = (result.U, result.V, result.intercept, result.sigma)
    return all(bool(np.isfinite(part).all()) for part in parts) and bool((result.sigma > 0).all())


def relative_error(result: OnlineResult, coef: FloatArray) -> float:
    return float(np.linalg.norm(result.U @ result.V - coef) / np.linalg.norm(coef))
