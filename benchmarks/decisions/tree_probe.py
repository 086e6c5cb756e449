"""Trees on linear data: how often the probe of residuals sees something, and what trees cost."""

from time import process_time

import numpy as np

from benchmarks.decisions.table import Table
from benchmarks.default import draw
from deeptobit import AutoTobitRegressor
from deeptobit.auto import HeldOutFolds, TreeTable, make_folds
from deeptobit.likelihood import Gaussian
from deeptobit.targets import CensoredTargets

SHAPES = ((300, 30, 10), (1_000, 100, 20), (10_000, 100, 20))
SEEDS = range(3)
N_TASKS = 20


def measure() -> Table:
    """Shares of outcomes above so many standard errors, and time with trees over that without."""
    yield (
        "rows × features × outcomes",
        "above 0",
        "above 1",
        "above 1.5",
        "time with over without",
    )
    for model in ("auto", ("trees",)):
        AutoTobitRegressor(cv=2, random_state=0, members=model).fit(*draw(100, 5, 3))  # compiles
    for shape in SHAPES:
        gains = np.concatenate([_probe(*shape[:2], seed) for seed in SEEDS])
        shares = [float((gains > least).mean()) for least in (0.0, 1.0, 1.5)]
        seconds = [_seconds(shape, members) for members in ("auto", ("stack", "deeper"))]
        yield " × ".join(map(str, shape)), *shares, seconds[0] / seconds[1]


def _probe(n_rows: int, n_features: int, seed: int) -> np.ndarray:
    """Standard errors that trees gain on scores that are the truth and a little noise."""
    rng = np.random.default_rng(seed)
    n_rows = min(n_rows, 4000)  # as many as are held out
    X = rng.normal(size=(n_rows, n_features))
    latent = X @ rng.normal(size=(n_features, N_TASKS)) / np.sqrt(n_features)
    Y = np.maximum(latent + rng.normal(size=latent.shape), 0.0)
    scores = latent + 0.1 * rng.normal(size=latent.shape)
    folds = make_folds(n_rows, 5, None, 0)
    targets = CensoredTargets.from_bounds(Y, lower=0.0)
    held_out = HeldOutFolds(targets, np.ones(n_rows), folds, Gaussian())
    table = TreeTable.build(X, held_out, None, fit_intercept=True)
    return table.probe([scores[fold.test] for fold in folds], np.ones(N_TASKS))[0]


def _seconds(shape: tuple[int, int, int], members: object) -> float:
    X, Y = draw(*shape)
    started = process_time()
    AutoTobitRegressor(random_state=0, members=members).fit(X, Y)  # type: ignore[arg-type]
    return process_time() - started
