"""Joint tuning: the penalised likelihood of a whole network, and its descent by L-BFGS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer import BasisFeatures, Design, SubspaceProblem, TargetScaling, features_for
from deeptobit.network.layer import Layers, NetworkLayer, concatenate
from deeptobit.penalties import Penalty, balance
from deeptobit.runtime import one_blas_thread
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
    penalty : Penalty
        On the V of every layer.
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
    noise: likelihood.Noise
    rank: int
    alphas: tuple[float, ...]
    penalty: Penalty
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

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of the tasks in standard units, each (T,)."""
        return self.scaling.apply(self.targets.lower), self.scaling.apply(self.targets.upper)

    @property
    def free_sigma(self) -> BoolArray:
        """Tasks whose σ is estimated, (T,)."""
        return np.full(self.n_tasks, self.sigma is None)

    def layer_problem(self, depth: int, below: FloatArray | None) -> SubspaceProblem:
        """The problem of one layer, given the outputs below it (N, T) in standard units."""
        features = features_for(self._inputs(below), self.penalty)
        return SubspaceProblem(
            features=features,
            targets=self.targets,
            scaling=self.scaling,
            noise=self.noise,
            rank=min(self.rank, features.rank),
            alpha=self.alphas[depth],
            fit_intercept=self.fit_intercept,
            free_sigma=self.free_sigma,
            total_weight=self.total_weight,
            sigma=self.sigma,
            penalty=self.penalty,
        )

    def centre(self, below: FloatArray | None) -> FloatArray:
        """The mean of f, which is subtracted from a layer's inputs, and 0 for x, (D_k,)."""
        n_features = len(self.design.scale)
        if below is None:
            return np.zeros(n_features)
        means = self.design.weight @ below if self.fit_intercept else np.zeros(self.n_tasks)
        return np.pad(means, (0, n_features if self.skip_connection else 0))

    def _inputs(self, below: FloatArray | None) -> Design:
        """What a layer sees: x, [f; x] or f."""
        design = self.design
        if below is None:
            return design
        centre = self.centre(below)[: self.n_tasks]
        ones, constant = np.ones(self.n_tasks), np.ptp(below, axis=0) == 0.0
        if not self.skip_connection:
            return Design(below - centre, centre, ones, design.weight, constant, centre)
        # A mean is folded into products for sparse features only.
        outputs = below if design.is_sparse else below - centre
        return replace(
            design,
            matrix=concatenate(outputs, design.matrix),
            mean=np.append(centre, design.mean),
            scale=np.append(ones, design.scale),
            vanishing=np.append(constant, design.vanishing),
            rest=np.append(centre, design.rest),
        )


class LayerGradient(NamedTuple):
    """Derivatives by U (T, R), V (R, D_k) and the intercept (T,) of a layer."""

    U: FloatArray
    V: FloatArray
    intercept: FloatArray


class _Trace(NamedTuple):
    """Inputs from below, sketch and scores of a block of rows in one layer."""

    below: FloatArray | None
    sketch: FloatArray
    latent: FloatArray


@dataclass(frozen=True)
class JointProblem:
    r"""All layers together, in standard units.

    .. math::
        \sum_i w_i \sum_t \mathrm{nll}(y_{it};\, \eta^{(K)}_{it}, \sigma_t) + \sum_k
        \alpha_k\left(\tfrac12\|U_k\|_F^2 + P(V_k)\right), \qquad
        \eta^{(k)} = U_k V_k [\mathrm{clip}(\eta^{(k-1)}); x] + b_k

    Only the last layer is compared with the outcomes. The sum over rows is additive over blocks of
    them. Where a hidden score is beyond a bound of its task, its derivative is 0.

    Parameters
    ----------
    network : NetworkProblem
    targets : CensoredTargets
        The outcomes; tasks that are censored throughout on one side count as missing.
    """

    network: NetworkProblem
    targets: CensoredTargets

    def nll(self, layers: Layers) -> float:
        """The weighted mean over rows of the negative log likelihood, without the penalty."""
        total, weight = 0.0, self.network.design.weight
        for rows, block in self._features.blocks():
            trace = self._forward(layers, block)
            total += float(weight[rows] @ self._entries(rows, trace, layers).nll.sum(axis=1))
        return total

    def latent(self, layers: Layers) -> FloatArray:
        """Scores of the training rows in the last of some layers, (N, T)."""
        latent = np.empty(self.targets.shape)
        for rows, block in self._features.blocks():
            latent[rows] = self._forward(layers, block)[-1].latent
        return latent

    def evaluate(self, layers: Layers) -> tuple[float, list[LayerGradient], FloatArray]:
        """The objective, its gradient by every layer, and by log σ of the last one (T,)."""
        value, penalty = 0.0, self.network.penalty
        by_log_sigma, gradients = np.zeros(self.network.n_tasks), []
        for depth, layer in enumerate(layers):
            alpha = self.network.tuning_share * self.network.alphas[depth]
            value += alpha * (0.5 * float(np.square(layer.U).sum()) + penalty.value(layer.V))
            by_V = alpha * penalty.gradient(layer.V)
            gradients.append(LayerGradient(alpha * layer.U, by_V, np.zeros_like(by_log_sigma)))
        for rows, block in self._features.blocks():
            trace = self._forward(layers, block)
            at = self._entries(rows, trace, layers)
            weight = self.network.design.weight[rows]
            value += float(weight @ at.nll.sum(axis=1))
            by_log_sigma += weight @ at.log_sigma
            self._backward(layers, block, trace, at.latent * weight[:, None], gradients)
        return value, gradients, by_log_sigma

    @cached_property
    def _features(self) -> BasisFeatures:
        return BasisFeatures.own(self.network.design)

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals in standard units: hundreds of evaluations need them."""
        scaling = self.network.scaling
        return scaling.apply(self.targets.low), scaling.apply(self.targets.high)

    def _forward(self, layers: Layers, block: Any) -> list[_Trace]:
        """The scores of a block in every layer."""
        trace: list[_Trace] = []
        for layer in layers:
            below = np.clip(trace[-1].latent, *self.network.bounds) if trace else None
            sketch = layer.transform(block, below)
            trace.append(_Trace(below, sketch, sketch @ layer.U.T + layer.intercept))
        return trace

    def _backward(
        self,
        layers: Layers,
        block: Any,
        trace: list[_Trace],
        pull: FloatArray,
        gradients: list[LayerGradient],
    ) -> None:
        """The block's share of the gradients; ``pull`` is the slope by the last latent (n, T)."""
        lower, upper = self.network.bounds
        for depth in range(len(layers) - 1, -1, -1):
            layer, at, gradient = layers[depth], trace[depth], gradients[depth]
            by_sketch = pull @ layer.U
            gradient.U[...] += pull.T @ at.sketch
            gradient.intercept[...] += self.network.fit_intercept * pull.sum(axis=0)
            n_below = 0 if at.below is None else self.network.n_tasks
            if layer.V.shape[1] > n_below:
                gradient.V[:, n_below:] += block.adjoint(by_sketch).T
            if at.below is not None:
                gradient.V[:, :n_below] += by_sketch.T @ at.below
                latent = trace[depth - 1].latent
                pull = by_sketch @ layer.V[:, :n_below]
                pull *= (latent > lower) & (latent < upper)

    def _entries(self, rows: slice, trace: list[_Trace], layers: Layers) -> Any:
        noise, (low, high) = self.network.noise, (ends[rows] for ends in self._ends)
        return likelihood.evaluate(noise, low, high, trace[-1].latent, layers[-1].sigma)


MAX_STEPS = 250
_WINDOW = 10  # steps whose gain decides whether to go on
_SETTLED = 1e-3  # of the gain so far: less than this in a window ends the tuning
_MEMORY = 20
_PROBATION = 30  # steps after which tuning must show that it can pay
_LARGEST_LOG_SIGMA = 7.0


def tune(
    problem: JointProblem,
    layers: Layers,
    min_log_sigma: FloatArray,
    free_sigma: BoolArray,
    *,
    progress: Callable[[int, float], None],
    promising: Callable[[Layers], bool],
) -> tuple[tuple[NetworkLayer, ...], list[float]]:
    """Minimise the joint objective by L-BFGS from ``layers``.

    ``promising`` is asked once, after 30 steps, whether to go on. Where tuning pays, most of the
    gain comes early: on non-linear data of 4000 rows a third of it is there by then, on linear
    data there is none however long one tries.

    Columns of V that are zero under a penalty with kinks have left the model, and stay out.
    log σ moves where it is ``free_sigma``, (T,), and not below its floor.

    Returns
    -------
    layers : tuple of NetworkLayer
        With the factors of each UV that have the least penalty, strongest component first.
    objectives : list of float
        The penalised objective at the start and after every step; it never rises.
    """
    has_kinks, start = problem.network.penalty.has_kinks, _pack(layers, np.log(layers[-1].sigma))
    absent = [~layer.V.any(axis=0) & has_kinks for layer in layers]
    low, high = np.full_like(start, -np.inf), np.full_like(start, np.inf)
    low[-len(min_log_sigma) :] = min_log_sigma
    high[-len(min_log_sigma) :] = np.maximum(_LARGEST_LOG_SIGMA, min_log_sigma)
    objectives = [problem.evaluate(layers)[0]]

    def evaluate(point: FloatArray) -> tuple[float, FloatArray]:
        value, gradients, by_log_sigma = problem.evaluate(_unpack(point, layers))
        for gradient, columns in zip(gradients, absent, strict=True):
            gradient.V[:, columns] = 0.0
        return value, _pack(gradients, by_log_sigma * free_sigma)

    def after_step(intermediate_result: Any) -> None:
        objectives.append(float(intermediate_result.fun))
        step = len(objectives) - 1
        progress(step, objectives[-1])
        hopeless = step == _PROBATION and not promising(_unpack(intermediate_result.x, layers))
        latest, gain = (objectives[k] - objectives[-1] for k in (max(step - _WINDOW, 0), 0))
        if hopeless or (step >= 2 * _WINDOW and latest < _SETTLED * gain):
            raise StopIteration

    with one_blas_thread():  # vectors and blocks are small: threads only wait
        result = minimize(
            evaluate,
            np.clip(start, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(low, high),
            callback=after_step,
            options={"maxiter": MAX_STEPS, "maxcor": _MEMORY, "ftol": 1e-12, "gtol": 1e-9},
        )
    if not result.fun <= objectives[0]:
        return tuple(layers), objectives[:1]
    penalty, balanced = problem.network.penalty, []
    for layer in _unpack(result.x, layers):
        U, V = balance(layer.U, layer.V, penalty.variances(layer.V))
        balanced.append(replace(layer, U=U, V=V))
    return tuple(balanced), objectives


def _pack(layers: Sequence[NetworkLayer | LayerGradient], log_sigma: FloatArray) -> FloatArray:
    """All free numbers of a network as one vector, log σ of the last layer at its end."""
    parts = [part.ravel() for layer in layers for part in (layer.U, layer.V, layer.intercept)]
    return np.concatenate([*parts, log_sigma])


def _unpack(point: FloatArray, like: Layers) -> list[NetworkLayer]:
    """The inverse of ``_pack``, for layers of the shapes of ``like``."""
    sizes = [part.size for layer in like for part in layer.factors[:3]]
    parts = iter(np.split(point, np.cumsum(sizes)))
    layers = []
    for layer in like:
        U, V, intercept = (next(parts).reshape(part.shape) for part in layer.factors[:3])
        layers.append(NetworkLayer(U, V, intercept, layer.sigma))
    layers[-1] = replace(layers[-1], sigma=np.exp(next(parts)))
    return layers
