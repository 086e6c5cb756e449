"""Which trees: ours on the censored likelihood, LightGBM on the same, or scikit-learn's.

LightGBM is no dependency; the environment of the race has it.
"""

from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.decisions.table import Table
from benchmarks.race.real import REAL
from deeptobit.app.study import EvaluationData
from deeptobit.arrays import FloatArray
from deeptobit.auto import Fold, HeldOutFolds, TreeTable
from deeptobit.auto.trees import TREES
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian, Predictive, evaluate
from deeptobit.targets import CensoredTargets

TABLES = ("licorice_gargle", "help", "fastfood", "batting", "bfi", "nmes1988", "weather")
COMPLETIONS = 3  # of latents, each followed by a new fit of scikit-learn's trees
MOST_ROWS = 4000


class Task(NamedTuple):
    """One outcome in standard units: features, interval ends, rows to learn, stop and test."""

    X: FloatArray
    low: FloatArray
    high: FloatArray
    values: FloatArray
    learn: Any
    stop: Any
    test: Any
    start: float
    sigma: float


def measure() -> Table:
    """Centred ANMSE of E[y|x] on test rows, and seconds of processor time, of trees alone."""
    kinds: dict[str, Callable[[Task], tuple[FloatArray, float]]] = {
        "LightGBM": _lightgbm,
        "HGB on completed latents": _completed,
        "HGB on squared error": _squared,
    }
    names = ["ours", *kinds]
    yield "table", *(f"{name}: {what}" for name in names for what in ("ANMSE", "seconds"))
    _compare(kinds, _draw(300))  # compiles
    for name in TABLES:
        yield name, *_compare(kinds, REAL[name]())
    yield "three layers, generated", *_compare(kinds, _draw(4000))


def _draw(n_rows: int) -> EvaluationData:
    settings: dict[str, Any] = {
        "n_layers": 3,
        "skip_connection": True,
        "latent_sd": 3.0,
        "hidden_sigma": 1.0,
    }
    X, Y, _ = make_subspace(n_rows, 40, 5, 3, random_state=0, **settings)
    return EvaluationData("generated", X, CensoredTargets.from_bounds(Y, lower=0.0))


def _compare(kinds: dict[str, Any], data: EvaluationData) -> list[float]:
    order = np.random.default_rng(1).permutation(len(data.targets))[:MOST_ROWS]
    n_train = int(0.6 * len(order))
    train, test = order[:n_train], order[n_train:]
    X, targets = data.features(train), data.targets
    stop, learn = np.arange(n_train // 5), np.arange(n_train // 5, n_train)
    held_out = HeldOutFolds(targets[train], np.ones(n_train), [Fold(learn, stop)], Gaussian())
    started = process_time()
    table = TreeTable.build(X[train], held_out, None, fit_intercept=True)
    tasks = np.arange(targets.shape[1])
    grown = table._boost(tasks, TREES, learn, stop)
    scaling, problem = table.problem.scaling, table.problem
    best = np.minimum(grown.rounds, len(grown.sigma) - 1)
    sigma = grown.sigma[best, tasks]
    trees = table._to_trees(grown, grown.rounds, tasks, TREES)
    scores = np.tile(problem.intercept, (len(test), 1))
    scores[:, trees.tasks] = (trees(X[test]) - scaling.location[trees.tasks]) / scaling.scale[
        trees.tasks
    ]
    seconds = process_time() - started
    low, high, values = (
        scaling.apply(part) for part in (targets.low, targets.high, targets.values)
    )
    bounds = [
        scaling.apply(np.broadcast_to(bound, targets.shape))[test]
        for bound in (targets.lower_bounds, targets.upper_bounds)
    ]
    result = [_anmse(targets, values, scores, sigma, bounds, test), seconds]
    for fit in kinds.values():
        started = process_time()
        for number in tasks:
            task = Task(
                X,
                low[:, number],
                high[:, number],
                values[:, number],
                train[learn],
                train[stop],
                test,
                problem.intercept[number],
                problem.sigma[number],
            )
            scores[:, number], sigma[number] = fit(task)
        seconds = process_time() - started
        result += [_anmse(targets, values, scores, sigma, bounds, test), seconds]
    return result


def _anmse(
    targets: CensoredTargets,
    values: FloatArray,
    scores: FloatArray,
    sigma: FloatArray,
    bounds: list[FloatArray],
    test: Any,
) -> float:
    """σ = 0 stands for trees of y itself, which are clipped."""
    mean = np.clip(scores, *bounds)
    if sigma.all():
        mean = Predictive(Gaussian(), scores, sigma, *bounds).mean()
    known = targets.has_value[test]
    errors = np.where(known, values[test] - mean, 0.0)
    spread = [values[test][rows, task].var() for task, rows in enumerate(known.T)]
    return float(np.mean((errors**2).sum(axis=0) / known.sum(axis=0) / spread))


def _lightgbm(task: Task) -> tuple[FloatArray, float]:
    """The same gradients and curvatures, one tree at a time."""
    import lightgbm

    learn = task.learn[~np.isnan(task.low[task.learn])]
    stop = task.stop[~np.isnan(task.low[task.stop])]
    settings = {
        "num_leaves": TREES.leaves,
        "learning_rate": TREES.rate,
        "verbose": -1,
        "num_threads": 1,
        "min_data_in_leaf": 10,
        "lambda_l2": TREES.ridge,
        "max_bin": 63,
        "deterministic": True,
    }
    sigma, found, best, best_round = task.sigma, task.sigma, np.inf, 0
    ends = [(task.low[rows][:, None], task.high[rows][:, None]) for rows in (learn, stop)]
    data = lightgbm.Dataset(task.X[learn], np.zeros(len(learn)))
    booster = lightgbm.Booster(settings, data)
    booster.add_valid(lightgbm.Dataset(task.X[stop], np.zeros(len(stop)), reference=data), "stop")
    judged = np.zeros(len(stop))

    def pull(scores: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
        at = _at(ends[0], task.start + scores, sigma)
        return at.latent.ravel() * sigma**2, np.maximum(at.latent_latent.ravel() * sigma**2, 0.01)

    def judge(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        judged[:] = scores
        return "none", 0.0, True

    for number in range(TREES.rounds):
        at = _at(ends[1], task.start + judged, sigma)
        if at.nll.sum() < best:
            best, best_round, found = at.nll.sum(), number, sigma
        elif number - best_round >= TREES.patience:
            break
        step = -at.log_sigma.sum() / max(at.log_sigma_log_sigma.sum(), 0.1 * len(stop))
        sigma *= float(np.exp(np.clip(step, -0.3, 0.3)))
        booster.update(fobj=pull)
        booster.eval_valid(feval=judge)
    predicted: Any = (
        booster.predict(task.X[task.test], num_iteration=best_round) if best_round else 0.0
    )
    return np.asarray(task.start + predicted), found


def _at(ends: tuple[FloatArray, FloatArray], scores: FloatArray, sigma: float) -> Any:
    return evaluate(Gaussian(), *ends, scores[:, None], np.array([sigma]))


def _completed(task: Task) -> tuple[FloatArray, float]:
    """Latents expected under the running fit are the outcomes of the next one."""
    rows = np.concatenate([task.learn, task.stop])
    rows = rows[~np.isnan(task.low[rows])]
    scores, sigma = np.full(len(rows), task.start), task.sigma
    for _ in range(COMPLETIONS):
        at = _at((task.low[rows][:, None], task.high[rows][:, None]), scores, sigma)
        latent = scores - sigma**2 * at.latent.ravel()
        trees = _hgb().fit(task.X[rows], latent)
        scores = trees.predict(task.X[rows])
        variance = sigma**2 * (1.0 - sigma**2 * at.latent_latent.ravel())
        left = np.square(latent - scores) + variance
        sigma = float(np.sqrt(left.mean()))
    return trees.predict(task.X[task.test]), sigma


def _squared(task: Task) -> tuple[FloatArray, float]:
    rows = np.concatenate([task.learn, task.stop])
    rows = rows[~np.isnan(task.values[rows])]
    return _hgb().fit(task.X[rows], task.values[rows]).predict(task.X[task.test]), 0.0


def _hgb() -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(
        learning_rate=TREES.rate,
        max_iter=TREES.rounds,
        max_leaf_nodes=TREES.leaves,
        min_samples_leaf=10,
        l2_regularization=TREES.ridge,
        max_bins=63,
        early_stopping=True,
        validation_fraction=0.2,
        n_iter_no_change=TREES.patience,
        random_state=0,
    )
