"""Separation: directions along which the likelihood rises forever."""

import warnings

import numpy as np
from scipy.optimize import linprog

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators._flat import flat_directions, line_rows
from deeptobit.exceptions import SeparationWarning
from deeptobit.objective import OlsenProblem

_NAMES_SHOWN = 5


def warn_of_separation(problem: OlsenProblem, suspects: BoolArray, names: list[str]) -> BoolArray:
    """Diagnose the tasks that ended on a flat stretch; returns those that are separated, (T,)."""
    separated = np.zeros_like(suspects)
    for task in np.flatnonzero(suspects).tolist():
        direction = separating_direction(problem, task)
        if direction is None:
            continue
        separated[task] = True
        strength = np.abs(problem.features.coefficients(direction[:-1, None])[:, 0])
        order = np.argsort(-strength)
        involved = [names[d] for d in order[:_NAMES_SHOWN].tolist() if strength[d] > 1e-6]
        warnings.warn(
            f"target {problem.targets.names[task]!r}: a combination of features "
            f"({', '.join(map(repr, involved)) or 'the intercept'}) tells censored from observed "
            "entries perfectly, so some coefficients have no finite estimate; those reported are "
            "where the search stopped. Set alpha > 0, or drop or merge the features",
            SeparationWarning,
            stacklevel=4,
        )
    return separated


def separating_direction(problem: OlsenProblem, task: int) -> FloatArray | None:
    r"""A direction of (z, b) along which no entry becomes less likely and some more, or None.

    It leaves the scores of known entries as they are and moves those of censored ones outward, at
    least one of them strictly. Found by linear programming in the unit box.
    """
    rows = line_rows(problem)
    present = problem.weight > 0.0
    targets = problem.targets
    left = targets.at_lower[:, task] & present
    right = targets.at_upper[:, task] & present
    known = present & ~targets.missing[:, task] & ~left & ~right
    outward = np.vstack([-rows[left], rows[right]])
    if not len(outward) or not flat_directions(rows[known]).size:
        return None  # no direction leaves all known scores as they are
    solution = linprog(
        -outward.sum(axis=0),
        A_ub=-outward,
        b_ub=np.zeros(len(outward)),
        A_eq=rows[known],
        b_eq=np.zeros(int(known.sum())),
        bounds=(-1.0, 1.0),
        method="highs",
    )
    direction = np.asarray(solution.x)
    if not solution.success or (outward @ direction).sum() < 1e-7 * max(len(outward), 1):
        return None
    return direction if problem.fit_intercept else np.append(direction, 0.0)
