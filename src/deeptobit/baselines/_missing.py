"""Regressions of scikit-learn on outcomes some of which are missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import RidgeCV

from deeptobit.arrays import BoolArray, FloatArray


class Block(NamedTuple):
    """Tasks that are known in the same rows."""

    known: BoolArray
    tasks: NDArray[np.intp]


def blocks(Y: FloatArray) -> Iterator[Block]:
    """Tasks by the rows in which they are known; without missing entries, one block.

    Examples
    --------
    >>> Y = np.array([[1.0, np.nan, 2.0], [3.0, 4.0, 5.0]])
    >>> [(block.known.tolist(), block.tasks.tolist()) for block in blocks(Y)]
    [([False, True], [1]), ([True, True], [0, 2])]
    """
    patterns, member = np.unique(~np.isnan(Y), axis=1, return_inverse=True)
    for number, known in enumerate(patterns.T):
        yield Block(known, np.flatnonzero(member == number))


class Taskwise:
    """One model per task, each fitted to the rows in which its task is known."""

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models

    def fit(self, X: FloatArray, Y: FloatArray) -> Taskwise:
        """Fit every task."""
        for model, y in zip(self.models, Y.T, strict=True):
            known = ~np.isnan(y)
            model.fit(X[known], y[known])
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """All tasks side by side, (N, T)."""
        return np.column_stack([model.predict(X) for model in self.models])

    def __sklearn_clone__(self) -> Taskwise:
        """Copy the models without what they learned."""
        return Taskwise([clone(model) for model in self.models])


class Blockwise:
    """A model of many tasks; tasks that are known in the same rows are fitted together."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: FloatArray, Y: FloatArray) -> Blockwise:
        """Fit every block of tasks to its rows."""
        self.n_tasks = Y.shape[1]
        self.fitted = [
            (tasks, clone(self.model).fit(X[known], Y[np.ix_(known, tasks)]))
            for known, tasks in blocks(Y)
        ]
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """All tasks, (N, T)."""
        predicted = np.empty((len(X), self.n_tasks))
        for tasks, model in self.fitted:
            predicted[:, tasks] = model.predict(X).reshape(len(X), -1)
        return predicted

    def __sklearn_clone__(self) -> Blockwise:
        """Copy the model without what it learned."""
        return Blockwise(clone(self.model))


class Filled:
    """A model of all tasks at once; ridge regressions of its own rows fill what is missing."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: FloatArray, Y: FloatArray) -> Filled:
        """Fill and fit."""
        self.model.fit(X, fill(X, Y))
        return self

    def predict(self, X: FloatArray) -> FloatArray:
        """All tasks, (N, T)."""
        return np.asarray(self.model.predict(X)).reshape(len(X), -1)

    def __sklearn_clone__(self) -> Filled:
        """Copy the model without what it learned."""
        return Filled(clone(self.model))


def fill(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Outcomes without gaps: ridge regressions on the known rows of a task predict the others."""
    filled = Y.copy()
    for known, tasks in blocks(Y):
        if not known.all():
            ridge = RidgeCV(np.logspace(0, 5, 10)).fit(X[known], Y[np.ix_(known, tasks)])
            filled[np.ix_(~known, tasks)] = ridge.predict(X[~known]).reshape(-1, len(tasks))
    return filled
