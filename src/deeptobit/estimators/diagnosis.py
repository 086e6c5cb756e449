"""Checks that the data determine a fit; errors and warnings name the target or feature at fault.

Too few rows, collinear or constant features, targets that are all censored, separation, and noise
scales in the wrong unit.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.linalg import null_space
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from deeptobit.arrays import BoolArray, FloatArray, listed
from deeptobit.estimators import inputs
from deeptobit.exceptions import CensoringWarning, CollinearityWarning, SeparationWarning, warn
from deeptobit.layer import BasisFeatures, CensoringKinds, Design, OlsenProblem, TargetScaling
from deeptobit.targets import CensoredTargets

_NAMES_SHOWN, _FEATURES_SHOWN = 10, 5
_NULL_SPACE = 1e-10  # relative to the largest eigenvalue of the second moments
_FURTHEST = 1e9  # ratio of a target's spread to a given sigma: beyond, squares lose all digits
_REACH = 1e60  # in units of sigma: beyond, powers overflow


def check_determined(
    targets: CensoredTargets,
    weight: FloatArray,
    n_features: int = 0,
    sigma: FloatArray | None = None,
) -> None:
    """Every task needs an entry, and at least ``n_features``, which is 0 with a penalty.

    Given noise scales ``sigma`` (T,) must be in the units of their targets.
    """
    present = weight > 0.0
    missing = targets.missing if present.all() else targets.missing[present]
    n_rows = int(present.sum())
    counts = n_rows - np.count_nonzero(missing, axis=0)
    check_counts(n_rows, counts, targets.names, n_features, weighted=not present.all())
    inputs.refuse_small_targets(targets)
    if sigma is None:
        return
    scale = TargetScaling.build(targets, weight / weight.sum(), center=True).scale
    far = np.abs(np.log(sigma) - np.log(scale)) > np.log(_FURTHEST)
    for task in np.flatnonzero(far).tolist():
        raise ValueError(
            f"target {targets.names[task]!r}: sigma = {sigma[task]:g} cannot belong to values that "
            f"spread by {scale[task]:.2g}; give sigma in the unit of the target"
        )


def check_reach(sigma: FloatArray | None, targets: CensoredTargets) -> None:
    """Values of a stream must be in the unit of a given sigma, whose squares must not overflow."""
    inputs.refuse_small_targets(targets)
    if sigma is None:
        return
    largest = np.fmax.reduce(np.abs(targets.values), axis=0)
    for task in np.flatnonzero(largest / _REACH > sigma).tolist():
        raise ValueError(
            f"target {targets.names[task]!r}: sigma = {sigma[task]:g} cannot belong to values up "
            f"to {largest[task]:.2g}; give sigma in the unit of the target"
        )


def check_counts(
    n_rows: int, counts: Any, names: Sequence[str], n_features: int = 0, *, weighted: bool = False
) -> None:
    """:func:`check_determined` for the number of entries of every task, (T,)."""
    if n_rows < 2:
        raise ValueError(f"{n_rows} row (n_samples = {n_rows}) is not enough to learn from")
    for task in np.flatnonzero(counts == 0).tolist():
        raise ValueError(
            f"target {names[task]!r} has no entry (all are missing"
            f"{' or have weight 0' if weighted else ''}); drop it"
        )
    if n_rows < n_features:
        raise ValueError(
            f"{n_rows} row(s) (n_samples = {n_rows}) cannot determine {n_features} features "
            "without a penalty; set alpha > 0, for example alpha=0.1"
        )
    for task in np.flatnonzero(counts < n_features).tolist():
        raise ValueError(
            f"target {names[task]!r} has {counts[task]:.0f} entries for {n_features} features; "
            "set alpha > 0, or drop it"
        )


def warn_of_collinearity(features: BasisFeatures, names: list[str], alpha: float) -> None:
    """Name the columns that are constant or linearly dependent on others, or nearly so."""
    if alpha > 0.0:
        return
    if features.n_dropped == 0:
        columns = features.nearly_dependent_columns()
        state = (
            "nearly linearly dependent: their coefficients, and predictions for rows in which they "
            "differ otherwise, are uncertain"
        )
    else:
        columns = features.dependent_columns()
        state = (
            f"constant or linearly dependent ({features.n_dropped} redundant direction(s)); the "
            "coefficients of minimum norm were taken"
        )
    involved = [names[column] for column in np.flatnonzero(columns).tolist()]
    if involved:
        warn(
            f"features {listed(involved, _NAMES_SHOWN)} are {state}. Drop the redundant columns, "
            "or set alpha > 0",
            CollinearityWarning,
        )


def warn_of_constant_where_known(
    matrix: Any, targets: CensoredTargets, weight: FloatArray, names: list[str], alpha: float
) -> BoolArray:
    """Name the columns that vary, but not where a target is known; returns such targets, (T,)."""
    if alpha > 0.0 or not targets.missing.any():
        return np.zeros(targets.shape[1], dtype=np.bool_)
    everywhere = (weight / weight.sum())[:, None]
    known = np.where(targets.missing, 0.0, everywhere)
    known /= known.sum(axis=0)
    # A large mean would hide a small deviation.
    design = Design.build(matrix, everywhere[:, 0], center=True, standardize=False)
    matrix = design.matrix
    constant = _variances(matrix, known) <= 1e-12 * _variances(matrix, everywhere)
    constant &= ~design.vanishing[:, None]
    for task in np.flatnonzero(constant.any(axis=0)).tolist():
        columns = [names[column] for column in np.flatnonzero(constant[:, task]).tolist()]
        warn(
            f"target {targets.names[task]!r} is known only in rows in which feature(s) "
            f"{', '.join(map(repr, columns[:_NAMES_SHOWN]))} do not vary, so their coefficient is "
            "not determined and 0 was taken; set alpha > 0, or drop the feature(s)",
            CollinearityWarning,
        )
    return np.asarray(constant.any(axis=0))


def _variances(matrix: Any, weights: FloatArray) -> FloatArray:
    """Weighted variance of every column under every column of weights, (D, K)."""
    squares = matrix.multiply(matrix) if inputs.is_sparse(matrix) else np.square(matrix)
    return np.asarray(squares.T @ weights - np.square(matrix.T @ weights))


def warn_of_censoring(
    kinds: CensoringKinds, targets: CensoredTargets, *, given_sigma: bool = False
) -> None:
    """Name the tasks whose entries are all censored, all the same, or piled up without a bound."""
    _warn_of_piles(targets)
    for task in np.flatnonzero(kinds.one_sided).tolist():
        warn(
            f"target {targets.names[task]!r}: every entry is censored on the same side, so its "
            "regression is not determined; a constant close to the bound is predicted. Drop the "
            "target, or give it bounds that its values do not all sit at",
            CensoringWarning,
        )
    for task in [] if given_sigma else np.flatnonzero(kinds.two_sided).tolist():
        warn(
            f"target {targets.names[task]!r}: every entry is at a bound, so sigma is not "
            "determined; it was held at the standard deviation of the recorded values",
            CensoringWarning,
        )


_PILE, _PILE_ROWS, _PILE_VALUES = 0.1, 20, 10  # share, rows, and different values of a target
_PILE_HIGH = 3.0  # times as many as have the neighbouring value


def _warn_of_piles(targets: CensoredTargets) -> None:
    """Name the tasks of one value, and those with many values at an end that has no bound."""
    bounds = {"lower": targets.lower, "upper": targets.upper}
    for task, name in enumerate(targets.names):
        observed = targets.low[targets.observed[:, task], task]
        values, counts = np.unique(observed, return_counts=True)
        if len(values) == 1 and len(observed) == (~targets.missing[:, task]).sum() > 1:
            warn(
                f"target {name!r}: all values are the same, so there is nothing to learn; drop it",
                CensoringWarning,
            )
        if len(values) < _PILE_VALUES:
            continue
        for side, end, neighbour in (("lower", 0, 1), ("upper", -1, -2)):
            share = counts[end] / len(observed)
            least = max(_PILE_ROWS, _PILE * len(observed), _PILE_HIGH * counts[neighbour])
            if np.isinf(bounds[side][task]) and counts[end] >= least:
                warn(
                    f"target {name!r}: {share:.0%} of the values are {values[end]:g}, its "
                    f"{'smallest' if end == 0 else 'largest'}; if the scale ends there, give "
                    f"{side}={values[end]:g}; otherwise slopes are too flat",
                    CensoringWarning,
                )


def warn_of_convergence(failed: BoolArray, targets: CensoredTargets, max_iter: int) -> None:
    """Name the tasks that did not converge."""
    if failed.any():
        names = ", ".join(repr(targets.names[task]) for task in np.flatnonzero(failed).tolist())
        warn(
            f"no convergence after {max_iter} Newton steps for target(s) {names}; increase "
            "max_iter, loosen tol, or set alpha > 0",
            ConvergenceWarning,
        )


def warn_of_layers(layers: Sequence[dict[str, Any]], tol: float) -> None:
    """Name the layers that halved steps, left rows out or did not converge: ``history_`` says."""
    for depth, layer in enumerate(layers, 1):
        if layer.get("n_halvings"):
            warn(
                f"layer {depth} halved {layer['n_halvings']} step(s) that diverged, left out "
                f"{layer['n_blocks_left_out']} block(s) of rows where halving did not help, and "
                "learned less from these rows: look for outliers, or use solver='batch'",
                ConvergenceWarning,
            )
        if not layer.get("converged", True):
            warn(
                f"layer {depth} did not converge after {len(layer['course'])} Newton steps "
                f"(relative gradient norm {layer['gradient_norm']:.1e}, tol {tol:.1e}); increase "
                "max_iter, loosen tol, or set a larger alpha",
                ConvergenceWarning,
            )


def regression_rows(problem: OlsenProblem) -> FloatArray:
    """Features in the basis of the problem and, with an intercept, ones, (N, r or r + 1)."""
    rows = np.vstack([block.dense() for _, block in problem.features.blocks()])
    return np.column_stack([rows, np.ones(len(rows))]) if problem.fit_intercept else rows


def null_directions(rows: FloatArray) -> FloatArray:
    """Orthonormal basis of the null space of ``rows``, (P, k)."""
    return np.asarray(null_space(rows.T @ rows, rcond=_NULL_SPACE))


def take_minimum_norm(problem: OlsenProblem, point: FloatArray, tasks: BoolArray) -> FloatArray:
    """Move ``tasks`` within their null spaces to the coefficients of minimum norm, (r + 2, T)."""
    point = point.copy()
    for task in np.flatnonzero(tasks).tolist():
        entry = ~problem.targets.missing[:, task] & (problem.weight > 0.0)
        null = null_directions(regression_rows(problem)[entry])
        rank = problem.features.rank
        along = problem.features.coefficients(null[:rank])
        gamma = problem.features.coefficients(point[:-2, [task]])[:, 0]
        shift, *_ = np.linalg.lstsq(along, -gamma, rcond=None)
        point[: len(null), task] += null @ shift
    return point


def warn_of_separation(problem: OlsenProblem, suspects: BoolArray, names: list[str]) -> BoolArray:
    """Warn of separation among the suspects; returns the tasks that are separated, (T,)."""
    separated = np.zeros_like(suspects)
    for task in np.flatnonzero(suspects).tolist():
        direction = separating_direction(problem, task)
        if direction is None:
            continue
        separated[task] = True
        strength = np.abs(problem.features.coefficients(direction[:-1, None])[:, 0])
        order = np.argsort(-strength)
        involved = [names[d] for d in order[:_FEATURES_SHOWN].tolist() if strength[d] > 1e-6]
        warn(
            f"target {problem.targets.names[task]!r}: a combination of features "
            f"({', '.join(map(repr, involved)) or 'the intercept'}) separates censored from "
            "observed entries perfectly, so some coefficients have no finite estimate; those "
            "reported are where the search stopped. Set alpha > 0, or drop or merge the features",
            SeparationWarning,
        )
    return separated


def separating_direction(problem: OlsenProblem, task: int) -> FloatArray | None:
    r"""A direction of (z, b) along which no entry becomes less likely and some more, or None.

    It leaves the scores of known entries unchanged and moves those of censored ones outward, at
    least one of them strictly. Found by linear programming in the unit box.
    """
    rows = regression_rows(problem)
    present = problem.weight > 0.0
    targets = problem.targets
    left = targets.at_lower[:, task] & present
    right = targets.at_upper[:, task] & present
    known = present & ~targets.missing[:, task] & ~left & ~right
    outward = np.vstack([-rows[left], rows[right]])
    if not len(outward) or not null_directions(rows[known]).size:
        return None  # no direction leaves all known scores unchanged
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


_MOST_COLUMNS = 50  # that are looked at as a person's own
_CONSTANT = 0.9  # of the groups, in which a column has one value


def repeats_people(X: FloatArray) -> bool:
    """Whether rows look like several visits of the same people.

    A column has one value for most groups of rows, several rows to a value, and within these groups
    a third of the other columns, at least three, do not change: what belongs to a person.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people, visits = rng.normal(size=(100, 6)), rng.normal(size=(300, 4))
    >>> repeats_people(np.hstack([np.repeat(people, 3, axis=0), visits])), repeats_people(visits)
    (True, False)
    """
    n_rows, n_features = X.shape
    for key in range(min(n_features, _MOST_COLUMNS)):
        _, group, sizes = np.unique(X[:, key], return_inverse=True, return_counts=True)
        repeated = sizes > 1
        telling = n_rows <= 50 * len(sizes) and sizes[repeated].sum() > 0.5 * n_rows
        if not telling or len(sizes) < 10:
            continue
        groups = pd.DataFrame(X).groupby(group)
        same = (groups.min() == groups.max()).to_numpy()
        constant = same[repeated].mean(axis=0) >= _CONSTANT
        varies = X.min(axis=0) < X.max(axis=0)
        if (constant & varies).sum() > max(3, varies.sum() / 3):  # the key is one of them
            return True
    return False


def warn_of_repeats(X: Any, groups: Any) -> None:
    """Ask for groups where rows look like visits of the same people."""
    if groups is None and not inputs.is_sparse(X) and repeats_people(X):
        warn(
            "rows look like several visits of the same people, and trees recognise people: pass "
            "groups, one label per person, so that held-out rows are of people not seen before"
        )
