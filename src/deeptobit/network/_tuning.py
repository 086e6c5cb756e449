"""Joint tuning: from a grown network downhill with all of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.network._joint import JointProblem, LayerGradient
from deeptobit.network._layer import NetworkLayer
from deeptobit.objective import FeaturePenalty
from deeptobit.threads import one_blas_thread

MAX_STEPS = 250
_WINDOW = 10  # steps whose gain tells whether it is worth going on
_SETTLED = 1e-3  # of the gain so far: less than this in a window ends the tuning
_MEMORY = 20
_PROBATION = 30  # steps after which tuning must show that it can pay
_LARGEST_LOG_SIGMA = 7.0

Progress = Callable[[int, float], None]
Judge = Callable[[Sequence[NetworkLayer]], bool]
Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class TunedNetwork:
    """Where joint tuning ended.

    Parameters
    ----------
    layers : tuple of NetworkLayer
    objectives : list of float
        The penalised objective at the start and after every step; it never rises.
    """

    layers: tuple[NetworkLayer, ...]
    objectives: list[float]


def tune(
    problem: JointProblem,
    layers: Sequence[NetworkLayer],
    min_log_sigma: FloatArray,
    free_sigma: BoolArray,
    progress: Progress,
    promising: Judge,
) -> TunedNetwork:
    """Minimise the joint objective by L-BFGS from ``layers``.

    ``promising`` is asked once, after 30 steps, whether to go on. What pays gains most of it early:
    on non-linear data of 4000 rows a third of the gain is there by then, on linear data there is
    none however long one tries.

    Columns of V that are zero under a feature penalty have left the model, and stay out of it.
    log σ moves where it is ``free_sigma``, (T,), and not below its floor.
    """
    parameters = _Parameters.of(problem, layers, min_log_sigma, free_sigma)
    start = parameters.pack(layers)
    objectives = [problem.evaluate(layers)[0]]

    def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
        value, gradients, by_log_sigma = problem.evaluate(parameters.unpack(point))
        return value, parameters.gradient(gradients, by_log_sigma)

    def look(intermediate_result: Any) -> None:
        at = intermediate_result  # SciPy looks for the long name
        objectives.append(float(at.fun))
        step = len(objectives) - 1
        progress(step, objectives[-1])
        tried = step == _PROBATION and not promising(parameters.unpack(at.x))
        if tried or _settled(objectives):
            raise StopIteration

    with one_blas_thread():  # vectors and blocks are small: threads only wait
        result = minimize(
            evaluate,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=parameters.bounds,
            callback=look,
            options={"maxiter": MAX_STEPS, "maxcor": _MEMORY, "ftol": 1e-12, "gtol": 1e-9},
        )
    if not result.fun <= objectives[0]:
        return TunedNetwork(tuple(layers), objectives[:1])
    tuned = parameters.unpack(result.x)
    penalties = [problem.network.penalty(depth) for depth in range(len(tuned))]
    return TunedNetwork(tuple(map(balanced, tuned, penalties)), objectives)


def balanced(layer: NetworkLayer, penalty: FeaturePenalty) -> NetworkLayer:
    """The factors of the same UV with the least ‖U‖² + Ω(V), strongest component first."""
    U, Z = penalty.balance(layer.U, layer.V.T)
    return replace(layer, U=U, V=Z.T)


def _settled(objectives: list[float]) -> bool:
    if len(objectives) <= 2 * _WINDOW:
        return False
    latest = objectives[-1 - _WINDOW] - objectives[-1]
    return latest < _SETTLED * (objectives[0] - objectives[-1])


@dataclass(frozen=True)
class _Parameters:
    """All free numbers of a network as one vector, log σ of the last layer at its end."""

    shapes: list[Shapes]
    free: FloatArray
    sigmas: list[FloatArray]
    bounds: Bounds

    @classmethod
    def of(
        cls,
        problem: JointProblem,
        layers: Sequence[NetworkLayer],
        min_log_sigma: FloatArray,
        free_sigma: BoolArray,
    ) -> _Parameters:
        shapes: list[Shapes] = [
            (layer.U.shape, layer.V.shape, layer.intercept.shape) for layer in layers
        ]
        sparse = problem.network.feature_sparsity > 0.0
        parts = []
        for layer in layers:
            stays = layer.V.any(axis=0) if sparse else np.ones(layer.V.shape[1])
            parts += [np.ones(layer.U.size), np.tile(stays, len(layer.V)), np.ones(len(layer.U))]
        free = np.concatenate([*parts, free_sigma]).astype(np.float64)
        low, high = np.full(len(free), -np.inf), np.full(len(free), np.inf)
        low[-len(min_log_sigma) :] = min_log_sigma
        high[-len(min_log_sigma) :] = np.maximum(_LARGEST_LOG_SIGMA, min_log_sigma)
        return cls(shapes, free, [layer.sigma for layer in layers], Bounds(low, high))

    def pack(self, layers: Sequence[NetworkLayer]) -> FloatArray:
        parts = [part.ravel() for layer in layers for part in (layer.U, layer.V, layer.intercept)]
        point = np.concatenate([*parts, np.log(layers[-1].sigma)])
        return np.asarray(np.clip(point, self.bounds.lb, self.bounds.ub))

    def unpack(self, point: FloatArray) -> list[NetworkLayer]:
        sizes = [int(np.prod(shape)) for shapes in self.shapes for shape in shapes]
        parts = iter(np.split(point, np.cumsum(sizes)))
        layers = []
        for shapes, sigma in zip(self.shapes, self.sigmas, strict=True):
            U, V, intercept = (next(parts).reshape(shape) for shape in shapes)
            layers.append(NetworkLayer(U, V, intercept, sigma))
        layers[-1] = replace(layers[-1], sigma=np.exp(next(parts)))
        return layers

    def gradient(self, gradients: list[LayerGradient], by_log_sigma: FloatArray) -> FloatArray:
        parts = [part.ravel() for gradient in gradients for part in gradient]
        return np.concatenate([*parts, by_log_sigma]) * self.free
