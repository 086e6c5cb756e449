"""One method on one split: which member of its grid is taken, and how it does on the test rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines import Baseline, NetworkBaseline, UncensoredBaseline
from deeptobit.experiments.reproduce._method import Method, in_words
from deeptobit.experiments.reproduce._peeking import peek
from deeptobit.experiments.reproduce._problem import Problem, Rows
from deeptobit.metrics import anmse, centred_anmse
from deeptobit.plots import some_targets
from deeptobit.targets import CensoredTargets

Choice = Literal["honest", "paper"]


class Outcome(NamedTuple):
    """How the chosen estimator predicts the test rows."""

    anmse: float
    centred_anmse: float
    choice: str


def assess(method: Method, problem: Problem, choice: Choice) -> dict[str, Outcome]:
    """Outcomes by row.

    Parameters
    ----------
    method : Method
    problem : Problem
    choice : {"honest", "paper"}
        ``"honest"``: the candidate that predicts the validation rows best, when fitted to the rest
        of the training rows, is fitted to all of them. ``"paper"``: every candidate is fitted to
        all training rows, and the best value on the *test* rows is reported. That is too good to
        be true, and the more so the larger the grid.
    """
    candidates = range(len(method.grid))
    chosen = dict.fromkeys(method.rows, 0)
    if choice == "paper":
        models = {place: _fit_peeking(method.grid[place], problem) for place in candidates}
        chosen = _best(method, models, problem, problem.test)
    else:
        if len(candidates) > 1:
            to_fit, to_judge = problem.fold
            trial = {place: _fit(method.grid[place], problem, to_fit) for place in candidates}
            chosen = _best(method, trial, problem, to_judge)
        places = sorted(set(chosen.values()))
        models = {place: _fit(method.grid[place], problem, problem.train) for place in places}
    return {row: _outcome(method, row, models, chosen[row], problem) for row in method.rows}


def _fit(candidate: Any, problem: Problem, rows: Rows) -> Any:
    model = deepcopy(candidate)
    if isinstance(model, Baseline):
        model.set_params(cv=[problem.fold_among(rows)])
    return model.fit(problem.X[rows], problem.targets[rows])


def _fit_peeking(candidate: Any, problem: Problem) -> Any:
    if isinstance(candidate, NetworkBaseline | UncensoredBaseline):
        return peek(candidate, problem)
    return _fit(candidate, problem, problem.train)


def _best(
    method: Method, models: Mapping[int, Any], problem: Problem, rows: Rows
) -> dict[str, int]:
    """The candidate of lowest error, for every row of the table."""
    X, targets = problem.X[rows], problem.targets[rows]
    # A task that is 0 in all of a few validation rows has no relative error.
    tasks = np.flatnonzero(np.nan_to_num(targets.values).any(axis=0)).tolist()
    errors = {
        row: {place: _error(targets, read(model, X), tasks) for place, model in models.items()}
        for row, read in method.rows.items()
    }
    return {row: min(found, key=found.__getitem__) for row, found in errors.items()}


def _error(targets: CensoredTargets, predicted: FloatArray, tasks: Sequence[int]) -> float:
    """The paper's measure; infinite where a step was too long and the numbers ran away."""
    if not np.isfinite(predicted).all():
        return np.inf
    return float(anmse(some_targets(targets, tasks), predicted[:, tasks]))


def _outcome(
    method: Method, row: str, models: Mapping[int, Any], place: int, problem: Problem
) -> Outcome:
    targets = problem.targets[problem.test]
    predicted = method.rows[row](models[place], problem.X[problem.test])
    words = in_words(method.grid[place])
    if not np.isfinite(predicted).all():
        return Outcome(np.inf, np.inf, words)
    relative = float(centred_anmse(targets, predicted))
    return Outcome(float(anmse(targets, predicted)), relative, words)
