"""The HELP trial in the form of the simulated cohorts: 60 % of the people to train."""

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.cohort import TRAIN, Split
from deeptobit.datasets import load_help


def draw_help(seed: int) -> Split:
    """People without missing outcomes, which the peers could not use, in standard units."""
    cohort = load_help()
    known = cohort.Y.notna().all(axis=1).to_numpy()
    X, Y = cohort.X.to_numpy(dtype=float)[known], cohort.Y.to_numpy(dtype=float)[known]
    order = np.random.default_rng(seed).permutation(len(X))
    n_train = int(TRAIN * len(order))
    train, test = order[:n_train], order[n_train:]
    lower, upper = (
        np.array([bound[str(task)] for task in cohort.Y]) for bound in (cohort.lower, cohort.upper)
    )
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    centre, scale = Y[train].mean(axis=0), Y[train].std(axis=0)
    Y, lower, upper = ((values - centre) / scale for values in (Y, lower, upper))
    folds = list(KFold(5, shuffle=True, random_state=0).split(X[train]))
    return Split(X[train], Y[train], X[test], Y[test], lower, upper, folds)
