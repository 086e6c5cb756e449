"""The penalised likelihood of a whole network, differentiated by all layers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.network._layer import NetworkLayer
from deeptobit.network._problem import NetworkProblem
from deeptobit.objective import RoundFeatures
from deeptobit.targets import CensoredTargets


class LayerGradient(NamedTuple):
    """Derivatives by U (T, R), V (R, D_k) and the intercept (T,) of a layer."""

    U: FloatArray
    V: FloatArray
    intercept: FloatArray


class _Trace(NamedTuple):
    """What a block of rows left behind in a layer on its way up."""

    below: FloatArray | None
    sketch: FloatArray
    latent: FloatArray


@dataclass(frozen=True)
class JointProblem:
    r"""All layers together, in standard units.

    .. math::
        \sum_i w_i \sum_t \mathrm{nll}(y_{it};\, \eta^{(K)}_{it}, \sigma_t) + \sum_k
        \frac{\alpha_k}{2}\left(\|U_k\|_F^2 + \Omega(V_k)\right), \qquad
        \eta^{(k)} = U_k V_k [\mathrm{clip}(\eta^{(k-1)}); x] + b_k

    Only the last layer is compared with the outcomes; the others are what the last one makes best
    use of. The sum over rows is additive over blocks of them. Where a hidden score is beyond a
    bound of its task nothing flows back through it.

    Parameters
    ----------
    network : NetworkProblem
    targets : CensoredTargets
        The outcomes, with tasks that say nothing set aside as missing.
    """

    network: NetworkProblem
    targets: CensoredTargets

    def penalty(self, layers: Sequence[NetworkLayer]) -> float:
        """The penalty of all layers."""
        total = 0.0
        for depth, layer in enumerate(layers):
            size = np.square(layer.U).sum() + self.network.penalty(depth).value(layer.V.T)
            total += 0.5 * self.network.tuning_alpha(depth) * float(size)
        return total

    def nll(self, layers: Sequence[NetworkLayer]) -> float:
        """The weighted mean over rows of the negative log likelihood, without the penalty."""
        total = 0.0
        for rows, block in self._features.blocks():
            trace = self._forward(layers, block)
            total += float(self._weight[rows] @ self._entries(rows, trace, layers).nll.sum(axis=1))
        return total

    def latent(self, layers: Sequence[NetworkLayer]) -> FloatArray:
        """Scores of the training rows in the last of some layers, (N, T)."""
        latent = np.empty(self.targets.shape)
        for rows, block in self._features.blocks():
            latent[rows] = self._forward(layers, block)[-1].latent
        return latent

    def evaluate(
        self, layers: Sequence[NetworkLayer]
    ) -> tuple[float, list[LayerGradient], FloatArray]:
        """The objective, its gradient by every layer, and by log σ of the last one (T,)."""
        value = self.penalty(layers)
        gradients = [self._penalty_gradient(layer, depth) for depth, layer in enumerate(layers)]
        by_log_sigma = np.zeros(self.network.n_tasks)
        for rows, block in self._features.blocks():
            trace = self._forward(layers, block)
            at = self._entries(rows, trace, layers)
            weight = self._weight[rows]
            value += float(weight @ at.nll.sum(axis=1))
            by_log_sigma += weight @ at.log_sigma
            self._backward(layers, block, trace, at.latent * weight[:, None], gradients)
        if not self.network.fit_intercept:
            for gradient in gradients:
                gradient.intercept[...] = 0.0
        return value, gradients, by_log_sigma

    @cached_property
    def _features(self) -> RoundFeatures:
        return self.network.features

    @property
    def _weight(self) -> FloatArray:
        return self.network.design.weight

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals in standard units: hundreds of evaluations need them."""
        scaling = self.network.scaling
        return scaling.apply(self.targets.low), scaling.apply(self.targets.high)

    @cached_property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        return self.network.bounds

    def _forward(self, layers: Sequence[NetworkLayer], block: Any) -> list[_Trace]:
        """A block's way up through the layers."""
        trace: list[_Trace] = []
        for layer in layers:
            n_below = self.network.n_tasks if trace else 0
            below = np.clip(trace[-1].latent, *self._bounds) if trace else None
            sketch = 0.0 if below is None else below @ layer.V[:, :n_below].T
            if layer.V.shape[1] > n_below:
                sketch = sketch + block.forward(layer.V[:, n_below:].T)
            trace.append(_Trace(below, np.asarray(sketch), sketch @ layer.U.T + layer.intercept))
        return trace

    def _backward(
        self,
        layers: Sequence[NetworkLayer],
        block: Any,
        trace: list[_Trace],
        pull: FloatArray,
        gradients: list[LayerGradient],
    ) -> None:
        """The block's share of the gradients; ``pull`` is the slope by the last latent (n, T)."""
        lower, upper = self._bounds
        for depth in range(len(layers) - 1, -1, -1):
            layer, at, gradient = layers[depth], trace[depth], gradients[depth]
            by_sketch = pull @ layer.U
            gradient.U[...] += pull.T @ at.sketch
            gradient.intercept[...] += pull.sum(axis=0)
            n_below = 0 if at.below is None else self.network.n_tasks
            if layer.V.shape[1] > n_below:
                gradient.V[:, n_below:] += block.adjoint(by_sketch).T
            if at.below is not None:
                gradient.V[:, :n_below] += by_sketch.T @ at.below
                latent = trace[depth - 1].latent
                pull = by_sketch @ layer.V[:, :n_below]
                pull *= (latent > lower) & (latent < upper)

    def _penalty_gradient(self, layer: NetworkLayer, depth: int) -> LayerGradient:
        alpha = self.network.tuning_alpha(depth)
        by_V = alpha * self.network.penalty(depth).slope(layer.V.T).T
        return LayerGradient(alpha * layer.U, by_V, np.zeros(self.network.n_tasks))

    def _entries(self, rows: slice, trace: list[_Trace], layers: Sequence[NetworkLayer]) -> Any:
        low, high = (ends[rows] for ends in self._ends)
        return likelihood.evaluate(self.network.noise, low, high, trace[-1].latent, layers[-1].sigma)
