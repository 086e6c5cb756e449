"""How large alpha="auto" should be, on 60 badly scaled problems and on the paper's generator."""

import numpy as np

from benchmarks.decisions.losses import Alpha, excess
from benchmarks.decisions.table import Table
from deeptobit import SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.metrics import anmse

N_PROBLEMS = 60
SEEDS = range(2)


def measure() -> Table:
    """Loss to intercepts alone, and ANMSE over the oracle's, by rule."""
    yield (
        "f, p in f(√D + √T)/√n · (1 + pD/n)",
        "mean loss",
        "worst loss",
        "worse by > 0.05",
        "ANMSE over the oracle's",
    )
    for factor, slope in ((0.25, 0.0), (0.5, 0.0), (1.0, 0.0), (0.5, 1.0), (0.5, 2.0), (0.5, 4.0)):
        rule = _rule(factor, slope)
        loss = excess(N_PROBLEMS, rule)
        yield (
            f"{factor:g}, {slope:g}",
            float(loss.mean()),
            float(loss.max()),
            f"{int((loss > 0.05).sum())} of {N_PROBLEMS}",
            _over_oracle(rule),
        )


def _rule(factor: float, slope: float) -> Alpha:
    def alpha(n: float, n_features: int, n_tasks: int) -> float:
        noise = (np.sqrt(n_features) + np.sqrt(n_tasks)) / np.sqrt(n)
        return float(factor * noise * (1.0 + slope * n_features / n))

    return alpha


def _over_oracle(rule: Alpha) -> float:
    ratios = []
    for seed in SEEDS:
        X, Y, truth = make_subspace(5000, 200, 100, 10, sigma=3.0, random_state=seed)
        model = SubspaceTobitRegressor(10, alpha=rule(4000, 200, 100), solver="batch")
        model.fit(X[:4000], Y[:4000])
        found = anmse(Y[4000:], model.predict(X[4000:], kind="clip"))
        ratios.append(float(found / anmse(Y[4000:], truth.predict(X[4000:]))))
    return float(np.mean(ratios))
