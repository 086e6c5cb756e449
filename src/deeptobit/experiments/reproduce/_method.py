"""A method of a comparison: a grid of estimators, and the rows of a table read from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.datasets import SubspaceTruth

Reading = Callable[[Any, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Method:
    """What is fitted, and what is measured of it.

    Parameters
    ----------
    grid : tuple of estimators
        Unfitted, with ``fit(X, targets)`` and a ``repr`` that names all settings; one of them is
        chosen for every row. A :class:`~deeptobit.baselines.Baseline` searches a grid of its own
        by the fold that it is given.
    rows : mapping of str to callables
        The prediction (N, T) of a fitted estimator for X (N, D), by the name of its row: one fit
        may serve several rows.
    """

    grid: tuple[Any, ...]
    rows: Mapping[str, Reading]

    def settings(self) -> dict[str, Any]:
        """What a result depends on, as JSON has it."""
        grid = [in_words(model) for model in self.grid]
        return {"grid": grid, "rows": list(self.rows)}


def in_words(model: Any) -> str:
    """An estimator on one line."""
    return " ".join(repr(model).split())


def with_choices(model: Any, fitted: Any) -> str:
    """An estimator on one line, followed by what it chose for itself when it was fitted.

    Examples
    --------
    >>> from deeptobit.baselines import RidgeBaseline
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> with_choices(RidgeBaseline(), RidgeBaseline().fit(X, X[:, 0]))
    'RidgeBaseline() alpha=1.0'
    """
    # A baseline has the first, a search over networks the second.
    chosen = getattr(fitted, "chosen_", getattr(fitted, "best_params_", {}))
    return " ".join([in_words(model), *(f"{name}={value!r}" for name, value in chosen.items())])


def reading(kind: Literal["clip", "mean", "latent"]) -> Reading:
    """The clipped score, E[y|x], or the score as it is."""
    return partial(_predict, kind=kind)


def _predict(model: Any, X: FloatArray, kind: str) -> FloatArray:
    return np.asarray(model.predict(X, kind=kind))


@dataclass(repr=False, eq=False)
class Oracle:
    """The parameters that made the data: what no method can learn better than."""

    truth: SubspaceTruth

    def fit(self, X: FloatArray, y: Any) -> Oracle:
        """Nothing is left to learn."""
        return self

    def predict(self, X: FloatArray, kind: Literal["clip", "latent"] = "clip") -> FloatArray:
        """The true network without its noise, (N, T)."""
        return self.truth.predict(X, kind)

    def __repr__(self) -> str:
        """Without its numbers, which are those of the data."""
        return "Oracle()"
