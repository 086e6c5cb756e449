"""What all layers of a network share: data in standard units, and the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Noise
from deeptobit.network._inputs import layer_inputs
from deeptobit.network._units import Units
from deeptobit.objective import (
    Design,
    FeaturePenalty,
    RoundFeatures,
    SubspaceProblem,
    TargetScaling,
    subspace_features,
)
from deeptobit.objective._feature_penalty import group_share
from deeptobit.targets import CensoredTargets


@dataclass(frozen=True)
class NetworkProblem:
    """The data and the model of a network.

    Parameters
    ----------
    design : Design
        The features x in standard units.
    targets, scaling, noise
        The outcomes, their units, and the family of the noise.
    rank : int
        R of every layer.
    alphas : tuple of float
        The penalty of each layer while it is grown; their number is the depth of the network.
    feature_sparsity : float
    skip_connection : bool
        Whether layers above the first see x as well.
    fit_intercept : bool
    sigma : array of shape (T,), optional
        Given noise scales in standard units; estimated by default.
    calibrate : bool
        Whether σ comes from the residuals of each layer, as in the paper.
    total_weight : float
        Sum of the row weights as given.
    tuning_share : float
        The share of its penalty that a layer has while all are tuned together.
    """

    design: Design
    targets: CensoredTargets
    scaling: TargetScaling
    noise: Noise
    rank: int
    alphas: tuple[float, ...]
    feature_sparsity: float
    skip_connection: bool
    fit_intercept: bool
    sigma: FloatArray | None
    calibrate: bool
    total_weight: float
    tuning_share: float = 1.0

    @property
    def n_layers(self) -> int:
        """K."""
        return len(self.alphas)

    @property
    def n_tasks(self) -> int:
        """T."""
        return self.targets.shape[1]

    @property
    def units(self) -> Units:
        """Between the user's units and these."""
        scaling, design = self.scaling, self.design
        return Units(design.mean, design.scale, scaling.location, scaling.scale)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of the tasks in standard units, each (T,)."""
        return self.units.outcome(self.targets.lower), self.units.outcome(self.targets.upper)

    @property
    def features(self) -> RoundFeatures:
        """The standardised features x themselves."""
        design, n_features = self.design, len(self.design.scale)
        matrix = None if design.is_sparse else design.matrix
        return RoundFeatures(design, np.ones(n_features), np.zeros(n_features), matrix)

    @property
    def free_sigma(self) -> BoolArray:
        """Tasks whose σ is estimated, (T,)."""
        return np.full(self.n_tasks, self.sigma is None)

    def n_inputs(self, depth: int) -> int:
        """D_k of the layer at a depth, counted from 0."""
        n_features = len(self.design.scale)
        if depth == 0:
            return n_features
        return self.n_tasks + (n_features if self.skip_connection else 0)

    def tuning_alpha(self, depth: int) -> float:
        """The penalty of a layer while all are tuned together."""
        return self.tuning_share * self.alphas[depth]

    def penalty(self, depth: int) -> FeaturePenalty:
        """The penalty on the V of the layer at a depth."""
        n_inputs = self.n_inputs(depth)
        return FeaturePenalty(np.ones(n_inputs), group_share(self.feature_sparsity, n_inputs))

    def layer_problem(self, depth: int, below: FloatArray | None) -> SubspaceProblem:
        """The problem of one layer, given the outputs below it (N, T) in standard units."""
        features = subspace_features(self._inputs(below), self.feature_sparsity)
        fixed = np.zeros(self.n_tasks) if self.sigma is None else np.log(self.sigma)
        return SubspaceProblem(
            features=features,
            targets=self.targets,
            scaling=self.scaling,
            noise=self.noise,
            rank=min(self.rank, features.rank),
            alpha=self.alphas[depth],
            fit_intercept=self.fit_intercept,
            free_sigma=self.free_sigma,
            min_log_sigma=np.full(self.n_tasks, -np.inf),
            fixed_log_sigma=fixed,
            total_weight=self.total_weight,
            feature_sparsity=self.feature_sparsity,
        )

    def centre(self, below: FloatArray | None) -> FloatArray:
        """What is taken out of a layer's inputs: the mean of f, and nothing of x, (D_k,)."""
        if below is None:
            return np.zeros(self.n_inputs(0))
        means = self.design.weight @ below if self.fit_intercept else np.zeros(self.n_tasks)
        return np.pad(means, (0, self.n_inputs(1) - self.n_tasks))

    def _inputs(self, below: FloatArray | None) -> Design:
        """What a layer sees: x, [f; x] or f."""
        design = self.design
        if below is None:
            return design
        centre = self.centre(below)[: self.n_tasks]
        ones, flat = np.ones(self.n_tasks), np.ptp(below, axis=0) == 0.0
        if not self.skip_connection:
            return Design(below - centre, centre, ones, design.weight, flat)
        # Folding a mean into products is for sparse features; dense ones lose theirs at once.
        outputs = below if design.is_sparse else below - centre
        matrix = layer_inputs(design.matrix, outputs, skip_connection=True)
        return replace(
            design,
            matrix=matrix,
            mean=np.append(centre, design.mean),
            scale=np.append(ones, design.scale),
            vanishing=np.append(flat, design.vanishing),
        )
