"""One layer of the subspace Tobit: all tasks share W = UV (eq. 2 of the paper, mean form)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.objective._layer import Layer
from deeptobit.objective._layer_problem import LayerProblem, Tasks
from deeptobit.objective._scaling import TargetScaling
from deeptobit.objective._subspace_evaluation import SubspaceEvaluation
from deeptobit.targets import CensoredTargets

_ALL = slice(None)


@dataclass(frozen=True, kw_only=True)
class SubspaceProblem(LayerProblem):
    """A :class:`LayerProblem` whose rows are in memory.

    Parameters
    ----------
    targets, scaling
        The outcomes and their standard units.
    features, noise, rank, alpha, …
        As in :class:`LayerProblem`.
    """

    targets: CensoredTargets
    scaling: TargetScaling

    @property
    def weight(self) -> FloatArray:
        """Row weights that sum to one, (N,)."""
        return self.features.design.weight

    def evaluate(self, point: FloatArray, tasks: Tasks) -> SubspaceEvaluation:
        """Objective, gradient and curvature at a point; ``tasks`` is the only problem there is."""
        layer = self.unpack(point)
        shape = self.targets.shape
        pull, bend, cross = np.empty((3, *shape), dtype=np.float32)
        hidden = np.empty((shape[0], self.rank))
        value, slopes = self.penalty_value(layer), Layer(*map(np.zeros_like, layer))
        scale_scale, sigma = np.zeros(shape[1]), np.exp(layer.log_sigma)
        for rows, block in self.features.blocks():
            h = block.forward(layer.Z)
            at = self._entries(rows, h @ layer.U.T + layer.intercept, sigma)
            weight = self.weight[rows]
            share = weight[:, None]
            G = at.latent * share
            value += float(weight @ at.nll.sum(axis=1))
            slopes.U[...] += G.T @ h
            slopes.Z[...] += block.adjoint(G @ layer.U)
            slopes.intercept[...] += G.sum(axis=0)
            slopes.log_sigma[...] += weight @ at.log_sigma
            scale_scale += weight @ at.log_sigma_log_sigma
            hidden[rows], pull[rows] = h, G
            np.multiply(at.latent_latent, share, out=bend[rows], casting="same_kind")
            np.multiply(at.latent_log_sigma, share, out=cross[rows], casting="same_kind")
        gradient, free = self.gradient_and_free(layer, slopes)
        return SubspaceEvaluation(
            self,
            layer,
            np.array([value]),
            gradient,
            free,
            scale_scale,
            hidden,
            pull,
            bend,
            cross,
        )

    def value(self, point: FloatArray, tasks: Tasks) -> FloatArray:
        """The objective alone, (1,)."""
        layer = self.unpack(point)
        total, sigma = self.penalty_value(layer), np.exp(layer.log_sigma)
        for rows, block in self.features.blocks():
            latent = block.forward(layer.Z) @ layer.U.T + layer.intercept
            total += float(self.weight[rows] @ self._entries(rows, latent, sigma).nll.sum(axis=1))
        return np.array([total])

    def _entries(self, rows: slice, latent: FloatArray, sigma: FloatArray) -> Any:
        low = self.scaling.apply(self.targets.low[rows], _ALL)
        high = self.scaling.apply(self.targets.high[rows], _ALL)
        return likelihood.evaluate(self.noise, low, high, latent, sigma)
