"""The HELP trial in the form of the simulated cohorts: 60 % of the people to train."""

from benchmarks.cohort import Split, split_cohort
from deeptobit.datasets import load_help


def draw_help(seed: int) -> Split:
    """People without missing outcomes, which the peers could not use, in standard units."""
    cohort = load_help()
    known = cohort.Y.notna().all(axis=1).to_numpy()
    X = cohort.X.to_numpy(dtype=float)[known]
    return split_cohort(X, cohort.Y[known], cohort.lower, cohort.upper, seed)
