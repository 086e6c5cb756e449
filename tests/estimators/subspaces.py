"""Outcomes of a common subspace, and a model for them."""

from typing import Any

import numpy as np

from deeptobit import SubspaceTobitRegressor, layer
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace


def data(seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Four outcomes between 0 and 3 of five features that act through two directions."""
    X, Y, _ = make_subspace(
        200, 5, 4, 2, latent_sd=1.0, lower=-np.inf, sigma=0.7, random_state=seed
    )
    return X, np.clip(Y + 1.0, 0.0, 3.0)


def subspace(**options: Any) -> SubspaceTobitRegressor:
    """A model for outcomes between 0 and 3, closer to the optimum than by default."""
    defaults: dict[str, Any] = {
        "rank": 2,
        "lower": 0.0,
        "upper": 3.0,
        "solver": "batch",
        "tol": 1e-9,
    }
    return SubspaceTobitRegressor(**(defaults | options))


def fitted(model: SubspaceTobitRegressor) -> FloatArray:
    """(coef, intercept, σ) of every task, (T, D + 2)."""
    return np.column_stack([model.coef_, model.intercept_, model.sigma_])


def relative_gradient(model: SubspaceTobitRegressor, X: FloatArray, Y: FloatArray) -> float:
    """Norm of the batch objective's gradient at a fitted model, relative to that by W at W = 0."""
    null = model._null(*model._read(X, Y, None, None, None, reset=False))
    problem, factors = null.problem, (model.U_, model.V_, model.intercept_, model.sigma_)
    point = layer.to_standard(problem.features, problem.scaling, factors, problem.rank)
    gradient = problem.evaluate(problem.pack(problem.balance(point))).gradient
    return float(np.linalg.norm(gradient)) / null.gradient_scale
