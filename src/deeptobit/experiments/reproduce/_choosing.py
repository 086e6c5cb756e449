"""One method on one split: which member of its grid is taken, and how it does on the test rows."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Literal, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines import Baseline, NetworkBaseline
from deeptobit.experiments.reproduce._method import Method, Reading, with_choices
from deeptobit.experiments.reproduce._peeking import Tuned, peek
from deeptobit.experiments.reproduce._problem import Problem, Rows
from deeptobit.metrics import anmse, centred_anmse
from deeptobit.metrics._selection import some_targets
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
    if choice == "paper":
        fits = [fit for candidate in method.grid for fit in _fit_peeking(candidate, problem)]
        best = _best(method, fits, problem, problem.test)
        chosen = {row: fits[place] for row, place in best.items()}
    else:
        chosen = _fit_chosen(method, problem)
    return {row: _outcome(method.rows[row], fit, problem) for row, fit in chosen.items()}


class _Fit(NamedTuple):
    """A member of a grid, as it was and fitted."""

    candidate: Any
    model: Any


def _fit(candidate: Any, problem: Problem, rows: Rows) -> _Fit:
    model = deepcopy(candidate)
    if isinstance(model, Baseline):
        model.set_params(cv=[problem.fold_among(rows)])
    return _Fit(candidate, model.fit(problem.X[rows], problem.targets[rows]))


def _fit_chosen(method: Method, problem: Problem) -> dict[str, _Fit]:
    """For every row of the table, what the validation rows choose, fitted to all training rows."""
    best = dict.fromkeys(method.rows, 0)
    if len(method.grid) > 1:
        to_fit, to_judge = problem.fold
        trials = [_fit(candidate, problem, to_fit) for candidate in method.grid]
        best = _best(method, trials, problem, to_judge)
    places = sorted(set(best.values()))
    fits = {place: _fit(method.grid[place], problem, problem.train) for place in places}
    return {row: fits[place] for row, place in best.items()}


def _fit_peeking(candidate: Any, problem: Problem) -> list[_Fit]:
    """All that the test rows may choose from.

    A search of its own judges by squared errors in standard units, and the table by relative ones.
    What the training rows choose therefore stays in the race, and peeking is never behind it.
    """
    fits = []
    if not isinstance(candidate, NetworkBaseline):
        fits.append(_fit(candidate, problem, problem.train))
    if isinstance(candidate, Tuned):
        fits.append(_Fit(candidate, peek(candidate, problem)))
    return fits


def _best(method: Method, fits: Sequence[_Fit], problem: Problem, rows: Rows) -> dict[str, int]:
    """The place of the fit of lowest error, for every row of the table."""
    X, targets = problem.X[rows], problem.targets[rows]
    # A task that is 0 in all of a few validation rows has no relative error.
    tasks = np.flatnonzero(np.nan_to_num(targets.values).any(axis=0)).tolist()
    errors = {
        row: [_error(targets, read(fit.model, X), tasks) for fit in fits]
        for row, read in method.rows.items()
    }
    return {row: found.index(min(found)) for row, found in errors.items()}


def _error(targets: CensoredTargets, predicted: FloatArray, tasks: Sequence[int]) -> float:
    """The paper's measure; infinite where a step was too long and the numbers ran away."""
    if not np.isfinite(predicted).all():
        return np.inf
    return float(anmse(some_targets(targets, tasks), predicted[:, tasks]))


def _outcome(read: Reading, fit: _Fit, problem: Problem) -> Outcome:
    targets = problem.targets[problem.test]
    predicted = read(fit.model, problem.X[problem.test])
    words = with_choices(fit.candidate, fit.model)
    if not np.isfinite(predicted).all():
        return Outcome(np.inf, np.inf, words)
    relative = float(centred_anmse(targets, predicted))
    return Outcome(float(anmse(targets, predicted)), relative, words)
