"""What cross-validation compares, and the table it leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from deeptobit.arrays import FloatArray
from deeptobit.estimators._network import SubspaceNetworkRegressor


@dataclass(frozen=True)
class Candidate:
    """A model with its scores on held-out rows.

    Parameters
    ----------
    params : dict
    scores, fit_times : arrays of shape (n_folds,)
    finish : callable or None
        Fits the model to all rows. None for a member of a stack, because the stack is the
        candidate, and for a network that was given up: its scores end with NaN.
    weight : float
        Share in the stack, NaN outside of it.
    """

    params: dict[str, Any]
    scores: FloatArray
    fit_times: FloatArray
    finish: Callable[[], SubspaceNetworkRegressor] | None
    weight: float = np.nan

    def __str__(self) -> str:
        """How it did, for people who watch."""
        seen = self.scores[~np.isnan(self.scores)]
        if seen.size < self.scores.size:
            return f"{seen.mean():.4f}, given up after {seen.size} folds"
        return f"{self.scores.mean():.4f} (sd {_deviation(self.scores):.4f})"


def best_of(candidates: Sequence[Candidate]) -> Candidate:
    """The candidate with the best mean score, the first of them where several are equal.

    Examples
    --------
    >>> one, two = (Candidate({"n_layers": k}, np.array([0.3, 0.1 * k]), np.ones(2), lambda: None)
    ...             for k in (1, 2))
    >>> best_of([one, two]).params
    {'n_layers': 2}
    """
    eligible = [candidate for candidate in candidates if candidate.finish is not None]
    return max(eligible, key=lambda candidate: float(candidate.scores.mean()))


def tabulate(candidates: Sequence[Candidate]) -> dict[str, Any]:
    """``cv_results_`` in the form of scikit-learn's ``GridSearchCV``."""
    scores = np.array([candidate.scores for candidate in candidates])
    times = np.array([candidate.fit_times for candidate in candidates])
    names = sorted({name for candidate in candidates for name in candidate.params})
    table: dict[str, Any] = {"params": [candidate.params for candidate in candidates]}
    for name in names:
        given = [name in candidate.params for candidate in candidates]
        values = np.empty(len(candidates), dtype=object)
        values[:] = [candidate.params.get(name) for candidate in candidates]
        table[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.logical_not(given))
    for fold, column in enumerate(scores.T):
        table[f"split{fold}_test_score"] = column
    table["mean_test_score"] = scores.mean(axis=1)
    table["std_test_score"] = np.array([_deviation(row) for row in scores])
    means = np.nan_to_num(table["mean_test_score"], nan=-np.inf)
    table["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    table["mean_fit_time"] = np.nanmean(times, axis=1)
    table["std_fit_time"] = np.nanstd(times, axis=1)
    table["weight"] = np.array([candidate.weight for candidate in candidates])
    return table


def _deviation(scores: FloatArray) -> float:
    """Standard deviation; on rows that nothing is like, scores are so low that squares overflow."""
    size = max(float(np.abs(scores).max()), 1.0)
    return size * float((scores / size).std())
