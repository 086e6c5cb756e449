"""The paper's choice of settings: whatever predicts the test rows best."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from deeptobit.arrays import FloatArray
from deeptobit.baselines import NetworkBaseline, PenalisedBaseline, UncensoredBaseline
from deeptobit.experiments.reproduce._problem import Problem
from deeptobit.targets import CensoredTargets

Tuned = NetworkBaseline | PenalisedBaseline | UncensoredBaseline


def peek(candidate: Tuned, problem: Problem) -> Any:
    """A baseline whose settings the test rows chose, fitted to the training rows."""
    rows = np.concatenate([problem.train, problem.test])
    train, test = np.split(np.arange(len(rows)), [len(problem.train)])
    chosen = clone(candidate).set_params(cv=[(train, test)])
    chosen.fit(problem.X[rows], problem.targets[rows])
    if isinstance(chosen, NetworkBaseline):
        return chosen  # a network learns from the first part of the fold alone
    again = _with_settings_of(chosen, problem)
    return again.fit(problem.X[problem.train], problem.targets[problem.train])


def _with_settings_of(chosen: PenalisedBaseline | UncensoredBaseline, problem: Problem) -> Any:
    if isinstance(chosen, PenalisedBaseline):
        fold = problem.fold_among(problem.train)
        return clone(chosen).set_params(alpha=chosen.alpha_, cv=[fold])
    return Refitted(chosen.model_, chosen.chosen_)


class Refitted:
    """A regression whose settings are known, in standard units of the rows it is fitted to."""

    def __init__(self, model: Any, chosen: dict[str, Any]) -> None:
        self.model = model
        self.chosen_ = chosen

    def fit(self, X: FloatArray, y: CensoredTargets) -> Refitted:
        """Fit what was chosen."""
        self._features, self._outcomes = StandardScaler().fit(X), StandardScaler().fit(y.values)
        self._bounds = y.lower, y.upper
        self.model_ = clone(self.model).fit(
            self._features.transform(X), self._outcomes.transform(y.values)
        )
        return self

    def predict(self, X: FloatArray, kind: Literal["clip", "latent"]) -> FloatArray:
        """The score, as it is or within the bounds, (N, T)."""
        scores = self.model_.predict(self._features.transform(X))
        latent = np.asarray(self._outcomes.inverse_transform(scores))
        return np.clip(latent, *self._bounds) if kind == "clip" else latent
