"""Small problems in a few words: what the repr of a recipe says is enough to make it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from deeptobit import (
    AutoTobitRegressor,
    CensoredTargets,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.arrays import FloatArray

MODELS: dict[str, type] = {
    "tobit": TobitRegressor,
    "subspace": SubspaceTobitRegressor,
    "network": SubspaceNetworkRegressor,
    "auto": AutoTobitRegressor,
}
COLUMNS = ("normal", "binary", "constant", "zero", "copy", "far", "lone", "wild")
# Bounds of the scale by kind of task, in its own unit.
TASKS: dict[str, tuple[float | None, float | None]] = {
    "scores": (-0.5, None),
    "bounded": (-0.5, 1.0),
    "ceiling": (None, 1.0),
    "open": (None, None),
    "infinite": (-np.inf, np.inf),
    "holes": (-0.5, 1.0),
    "one known": (-0.5, 1.0),
    "missing": (-0.5, 1.0),
    "at lower": (-0.5, 1.0),
    "at upper": (-0.5, 1.0),
    "at bounds": (-0.5, 1.0),
    "constant": (-0.5, 1.0),
    "rounded": (-1.0, 1.0),
    "wild": (None, None),
    "vast": (-1e140, 1e140),
}
WEIGHTS = ("none", "uneven", "some zero", "one row", "all zero", "tiny", "huge")


@dataclass(frozen=True)
class Problem:
    """An estimator and what to fit it to; ``bounds`` are those that ``predict`` takes too.

    With ``n_pieces`` above 0 the rows come in so many pieces, through ``partial_fit``.
    """

    model: Any
    X: Any
    y: Any
    sample_weight: FloatArray | None
    bounds: dict[str, FloatArray]
    lower: FloatArray
    upper: FloatArray
    n_pieces: int = 0

    def fit(self) -> Any:
        """The fitted estimator."""
        if self.n_pieces == 0:
            return self.model.fit(self.X, self.y, sample_weight=self.sample_weight, **self.bounds)
        for rows in np.array_split(np.arange(len(self.y)), self.n_pieces):
            if len(rows):
                self._learn(rows)
        return self.model

    def _learn(self, rows: Any) -> None:
        X = self.X.iloc[rows] if isinstance(self.X, pd.DataFrame) else self.X[rows]
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        bounds = {name: bound[rows] for name, bound in self.bounds.items()}
        self.model.partial_fit(X, self.y[rows], sample_weight=weight, **bounds)


@dataclass(frozen=True)
class Recipe:
    """How to make a problem.

    Parameters
    ----------
    seed : int
        Of the numbers; everything else is in words.
    n_rows : int
    columns, tasks : tuples of str
        A kind for every feature and for every target: of ``COLUMNS`` and of ``TASKS``.
    feature_size, target_size : float
        Units of the features and of the targets with their bounds.
    weights : str
        Of ``WEIGHTS``.
    by_entry, intervals, single, flat, container
        Bounds that differ from row to row; intervals in place of values; single precision; a 1-d
        y where there is one task; "array", "fortran", "sparse" or "frame".
    n_pieces : int
        In which the rows come, if they do not come all at once.
    model : str
        Of ``MODELS``.
    settings : dict
        Parameters of the estimator.
    """

    seed: int = 0
    n_rows: int = 20
    columns: tuple[str, ...] = ("normal", "normal")
    tasks: tuple[str, ...] = ("scores", "bounded")
    feature_size: float = 1.0
    target_size: float = 1.0
    weights: str = "none"
    by_entry: bool = False
    intervals: bool = False
    single: bool = False
    flat: bool = False
    container: str = "array"
    n_pieces: int = 0
    model: str = "tobit"
    settings: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Problem:
        """The problem."""
        rng = np.random.default_rng(self.seed)
        X = _features(self.columns, rng.normal(size=(self.n_rows, len(self.columns))), rng)
        coef = rng.normal(size=(len(self.columns), len(self.tasks)))
        scores = np.clip(X, -3.0, 3.0) @ coef + 0.5 * rng.normal(size=(self.n_rows, len(coef.T)))
        lower, upper = (
            np.array([_open(TASKS[task][side], infinity) for task in self.tasks])
            for side, infinity in ((0, -np.inf), (1, np.inf))
        )
        Y = np.column_stack([_task(task, scores[:, t], rng) for t, task in enumerate(self.tasks)])
        with np.errstate(over="ignore"):  # a wild column in a large unit: to be refused
            X, Y, lower, upper = (
                X * self.feature_size,
                Y * self.target_size,
                lower * self.target_size,
                upper * self.target_size,
            )
        by_entry = self.by_entry and not self.intervals  # which bring their own
        bounds = _move_bounds(lower, upper, self.n_rows, rng) if by_entry else {}
        Y = np.clip(Y, bounds.get("lower", lower), bounds.get("upper", upper))
        weight = _weights(self.weights, self.n_rows, rng)
        model = MODELS[self.model](lower=lower, upper=upper, **self.settings)
        y: Any = Y[:, 0] if self.flat and len(self.tasks) == 1 else Y
        if self.intervals:
            y = _widened(Y, lower, upper, self.target_size, rng)
        return Problem(model, self._contained(X), y, weight, bounds, lower, upper, self.n_pieces)

    def _contained(self, X: FloatArray) -> Any:
        if self.single:
            with np.errstate(over="ignore"):
                X = X.astype(np.float32)
        if self.container == "sparse":
            return csr_array(X)
        if self.container == "frame":
            return pd.DataFrame(X, columns=[f"feature {d}" for d in range(X.shape[1])])
        return np.asfortranarray(X) if self.container == "fortran" else X


def _features(kinds: tuple[str, ...], X: FloatArray, rng: np.random.Generator) -> FloatArray:
    for d, kind in enumerate(kinds):
        match kind:
            case "binary":
                X[:, d] = X[:, d] > 0.5
            case "constant":
                X[:, d] = 0.3
            case "zero":
                X[:, d] = 0.0
            case "copy":
                X[:, d] = X[:, d - 1]
            case "far":
                X[:, d] += 1e6
            case "lone":
                X[1:, d] = 0.0
            case "wild":
                X[:, d] = np.sign(X[:, d]) * 10.0 ** rng.uniform(-300.0, 140.0, len(X))
    return X


def _task(kind: str, scores: FloatArray, rng: np.random.Generator) -> FloatArray:
    n_rows = len(scores)
    match kind:
        case "holes":
            return np.where(rng.uniform(size=n_rows) < 0.5, np.nan, scores)
        case "one known":
            return np.where(np.arange(n_rows) == rng.integers(n_rows), scores, np.nan)
        case "missing":
            return np.full(n_rows, np.nan)
        case "at lower":
            return np.full(n_rows, -0.5)
        case "at upper":
            return np.full(n_rows, 1.0)
        case "at bounds":
            return np.where(scores > 0.0, 1.0, -0.5)
        case "constant":
            return np.full(n_rows, 0.3)
        case "rounded":
            return np.round(scores)
        case "wild":
            return np.sign(scores) * 10.0 ** rng.uniform(-300.0, 140.0, n_rows)
    return scores


def _open(bound: float | None, infinity: float) -> float:
    return infinity if bound is None else bound


def _move_bounds(
    lower: FloatArray, upper: FloatArray, n_rows: int, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """Detection limits around the bounds of the tasks, some of them open."""
    shift = rng.uniform(0.8, 1.2, size=(n_rows, len(lower)))
    never = rng.uniform(size=shift.shape) < 0.1
    return {
        "lower": np.where(never, -np.inf, lower * shift),
        "upper": np.where(never, np.inf, upper * shift),
    }


def _widened(
    Y: FloatArray, lower: FloatArray, upper: FloatArray, size: float, rng: np.random.Generator
) -> CensoredTargets:
    """A third of the observed entries known as intervals, the rest as they are."""
    targets = CensoredTargets.from_bounds(Y, lower, upper)
    wide = targets.observed & (rng.uniform(size=Y.shape) < 0.3)
    half = 0.2 * size * rng.uniform(size=Y.shape)
    low = np.where(wide, Y - half, targets.low)
    high = np.where(wide, Y + half, targets.high)
    return CensoredTargets.from_intervals(low, high, lower=lower, upper=upper)


def _weights(kind: str, n_rows: int, rng: np.random.Generator) -> FloatArray | None:
    match kind:
        case "uneven":
            return rng.uniform(0.5, 2.0, n_rows)
        case "some zero":
            return rng.integers(0, 3, n_rows).astype(np.float64)
        case "one row":
            return np.where(np.arange(n_rows) == 0, 1.0, 0.0)
        case "all zero":
            return np.zeros(n_rows)
        case "tiny":
            return np.full(n_rows, 1e-300)
        case "huge":
            return np.full(n_rows, 1e300)
    return None
