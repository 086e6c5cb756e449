"""Growing a network: one layer after the other, each a subspace Tobit on what lies below."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.network._calibration import residual_sigma
from deeptobit.network._layer import NetworkLayer
from deeptobit.network._problem import NetworkProblem
from deeptobit.objective import Layer
from deeptobit.solvers import (
    NullModel,
    Step,
    SubspaceFit,
    fit_null,
    solve_subspace,
    spectral_start,
)

_AT_FLOOR = 1e-9  # a σ that rounding has put above its floor would be taken for a free one


@dataclass(frozen=True)
class GrownLayer:
    """A new layer in standard units, and how it was found.

    Parameters
    ----------
    layer : NetworkLayer
    fit : SubspaceFit
    null : NullModel
        The model without features; it knows the tasks that say nothing and the floors of σ.
    """

    layer: NetworkLayer
    fit: SubspaceFit
    null: NullModel


def grow(
    problem: NetworkProblem,
    *,
    tol: float,
    max_iter: int,
    watch: Callable[[Step], None] | None = None,
) -> Iterator[GrownLayer]:
    """Algorithm 3 of the paper: layer after layer, each on [f; x] of the one below.

    A layer starts where the one below ended, with zeros for the block that is new: the second
    layer's first prediction is that of the first. Those above it begin with the factors of the one
    below on its outputs instead of its inputs. ``watch`` is called after every Newton step.
    """
    below: FloatArray | None = None
    layer: NetworkLayer | None = None
    if problem.calibrate:
        problem = replace(problem, sigma=np.ones(problem.n_tasks))
    for depth in range(problem.n_layers):
        null, centre = fit_null(problem.layer_problem(depth, below)), problem.centre(below)
        if layer is not None and problem.skip_connection:
            start = _start(null, layer, centre)
        else:
            start = spectral_start(null)
        alpha = problem.alphas[depth]
        fit = solve_subspace(null, start, alpha=alpha, tol=tol, max_iter=max_iter, watch=watch)
        layer, latent = _result(null, fit.layer, centre, problem.rank)
        if problem.calibrate:
            sigma = residual_sigma(problem.targets, problem.design.weight, latent, problem.scaling)
            layer, problem = replace(layer, sigma=sigma), replace(problem, sigma=sigma)
        yield GrownLayer(layer, fit, null)
        below = np.clip(latent, *problem.bounds)


def _start(null: NullModel, previous: NetworkLayer, centre: FloatArray) -> Layer:
    """The layer below, with zeros for inputs that it did not have."""
    problem = null.problem
    features = problem.features
    n_new = len(centre) - previous.V.shape[1]
    V = np.pad(previous.V, ((0, 0), (n_new, 0)))
    intercept = previous.intercept + previous.U @ (V @ centre)
    log_sigma = np.log(previous.sigma)
    layer = Layer(
        previous.U[:, : problem.rank],
        features.coordinates(V.T)[:, : problem.rank],
        np.where(null.kinds.one_sided, null.layer.intercept, intercept),
        np.where(log_sigma > problem.min_log_sigma + _AT_FLOOR, log_sigma, problem.min_log_sigma),
    )
    return problem.balance(layer)


def _result(
    null: NullModel, layer: Layer, centre: FloatArray, rank: int
) -> tuple[NetworkLayer, FloatArray]:
    """The layer for standardised inputs, and its scores of the training rows (N, T)."""
    features, unused = null.problem.features, rank - null.problem.rank
    latent = np.empty(null.problem.targets.shape)
    for rows, block in features.blocks():
        latent[rows] = block.forward(layer.Z) @ layer.U.T + layer.intercept
    V = features.coefficients(layer.Z).T
    intercept = layer.intercept - layer.U @ (V @ centre)
    U, V = np.pad(layer.U, ((0, 0), (0, unused))), np.pad(V, ((0, unused), (0, 0)))
    return NetworkLayer(U, V, intercept, np.exp(layer.log_sigma)), latent
