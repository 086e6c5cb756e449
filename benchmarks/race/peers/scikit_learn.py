"""Regressions of scikit-learn that fit all tasks, or each for itself, to recorded values.

Missing outcomes: ridge and lasso drop the rows of a task that lacks them; multi-task lasso, forest
and network have them filled by ridge regressions.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from sklearn.linear_model import MultiTaskLasso, MultiTaskLassoCV
from sklearn.neural_network import MLPRegressor

from benchmarks.race.peers.points import FittedPoints, fit_best, fit_tuned
from benchmarks.race.problem import Problem
from deeptobit.app.study import Folds
from deeptobit.app.study.methods import (
    Filled,
    Taskwise,
    fill,
    tune_forest,
    tune_lasso,
    tune_ridge,
)
from deeptobit.arrays import FloatArray

_LEAST_PENALTY = 1e-2  # of a multi-task lasso, over the largest
_LAYERS = ((32,), (128,), (32, 16))
_PENALTIES = (3.0, 30.0, 100.0, 300.0)


def fit_ridge(problem: Problem) -> FittedPoints:
    """Ridge with one penalty for all tasks, as RidgeCV chooses it."""
    return fit_tuned(problem, tune_ridge)


def fit_lasso(problem: Problem) -> FittedPoints:
    """Lasso with a penalty for every task, as LassoCV chooses it."""
    return fit_tuned(problem, tune_lasso)


def fit_multi_task_lasso(problem: Problem) -> FittedPoints:
    """Multi-task lasso, with the penalty that MultiTaskLassoCV chooses.

    Its hundred penalties reach over two decades. The third decade of the default is never chosen on
    the data of the race, and takes minutes on its cohorts, where coordinate descent does not
    converge so far down.
    """
    return fit_tuned(problem, _tune_multi_task_lasso)


def fit_forest(problem: Problem) -> FittedPoints:
    """A random forest of all tasks and the size of its leaves."""
    return fit_tuned(problem, partial(tune_forest, random_state=problem.seed))


def fit_mlp(problem: Problem) -> FittedPoints:
    """A network with one output per task, its layers and penalty.

    L-BFGS under a strong penalty; on a few hundred rows Adam that stops early predicts worse (on
    HELP a held-out error of 0.99 against 0.90).
    """
    return fit_best(
        problem,
        [_network(problem, layers, penalty) for layers, penalty in product(_LAYERS, _PENALTIES)],
    )


def _tune_multi_task_lasso(X: FloatArray, Y: FloatArray, folds: Folds) -> Filled:
    search = MultiTaskLassoCV(eps=_LEAST_PENALTY, cv=folds).fit(X, fill(X, Y))
    return Filled(MultiTaskLasso(search.alpha_))


def _network(problem: Problem, layers: tuple[int, ...], penalty: float) -> Filled | Taskwise:
    network = MLPRegressor(
        hidden_layer_sizes=layers, alpha=penalty, solver="lbfgs", random_state=problem.seed
    )
    return Filled(network) if problem.Y.shape[1] > 1 else Taskwise([network])
