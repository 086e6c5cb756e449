"""Growing a network: one layer after the other, each a subspace Tobit on what lies below."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.layer import (
    SIGMA_FLOOR,
    CensoringKinds,
    Layer,
    NullLayer,
    Objective,
    Step,
    SubspaceFit,
    TargetScaling,
    minimize_each,
    null_layer,
    solve_subspace,
    spectral_start,
)
from deeptobit.likelihood import Noise
from deeptobit.network.joint import JointProblem, NetworkProblem, tune
from deeptobit.network.layer import NetworkLayer
from deeptobit.targets import CensoredTargets

# Noise scales of scores that are already there.

_STEPS = 12
_LONGEST = 0.7  # of one step: σ at most doubles or halves


def residual_sigma(
    targets: CensoredTargets, weight: FloatArray, latent: FloatArray, scaling: TargetScaling
) -> FloatArray:
    r"""The paper's calibration :math:`\hat\sigma_t^2 = \overline{(y_t - \hat y_t)^2}`, (T,).

    Parameters
    ----------
    targets : CensoredTargets
        A censored entry counts with the bound it is recorded at.
    weight : array of shape (N,)
    latent : array of shape (N, T)
        ŷ, the scores before censoring, in standard units like the result.
    scaling : TargetScaling

    Returns
    -------
    array of shape (T,)
        1 where a task has no entries.
    """
    share = np.where(targets.missing, 0.0, weight[:, None])
    total = share.sum(axis=0)
    residual = np.where(targets.missing, 0.0, scaling.apply(targets.values) - latent)
    mean_square = (share * residual**2).sum(axis=0) / np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, np.maximum(np.sqrt(mean_square), SIGMA_FLOOR), 1.0)


def likelihood_sigma(
    targets: CensoredTargets,
    weight: FloatArray,
    latent: FloatArray,
    scaling: TargetScaling,
    noise: Noise,
) -> FloatArray:
    """The σ_t under which given scores (N, T) are most likely, by Newton steps on log σ, (T,)."""
    low, high = scaling.apply(targets.low), scaling.apply(targets.high)

    def objective(log_sigma: FloatArray) -> Objective:
        at = likelihood.evaluate(noise, low, high, latent, np.exp(log_sigma[0]))
        by, by_by = weight @ at.log_sigma, weight @ at.log_sigma_log_sigma
        return weight @ at.nll, lambda: (by[None], by_by[None, None])

    start = np.log(residual_sigma(targets, weight, latent, scaling))[None]
    (log_sigma,), _ = minimize_each(objective, start, longest=_LONGEST, max_steps=_STEPS)
    return np.maximum(np.exp(log_sigma), SIGMA_FLOOR)


_AT_FLOOR = 1e-9  # a σ that rounding has put above its floor would be taken for a free one


@dataclass(frozen=True)
class GrownLayer:
    """A new layer in standard units, and how it was found.

    Parameters
    ----------
    layer : NetworkLayer
    fit : SubspaceFit
    null : NullLayer
        The model without features; it knows the tasks that say nothing and the floors of σ.
    """

    layer: NetworkLayer
    fit: SubspaceFit
    null: NullLayer


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
        null, centre = null_layer(problem.layer_problem(depth, below)), problem.centre(below)
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


def _start(null: NullLayer, previous: NetworkLayer, centre: FloatArray) -> Layer:
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
    null: NullLayer, layer: Layer, centre: FloatArray, rank: int
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


# Whether a network's depth pays for itself.


def paying_depth(nlls: Sequence[float], n_rows: float, n_per_layer: int) -> int:
    """The depth from 1 on with the least Akaike criterion n·nll + number of parameters.

    A layer that is grown on top adds one number per component and output below to what is fitted
    to the outcomes; what lies below it is not touched.

    Parameters
    ----------
    nlls : sequence of float
        Mean negative log likelihood per row of networks of depth 1, 2, …
    n_rows : float
        Their total weight.
    n_per_layer : int
        R·T, the parameters on the outputs below.

    Examples
    --------
    >>> paying_depth([3.0, 2.5, 2.499], n_rows=1000, n_per_layer=50)
    2
    """
    criteria = [n_rows * nll + depth * n_per_layer for depth, nll in enumerate(nlls)]
    return int(np.argmin(criteria)) + 1


def deepened(layers: Sequence[NetworkLayer], n_layers: int) -> tuple[NetworkLayer, ...]:
    """The same function as a network of ``n_layers``, by repeating the first layer.

    The copies look at x alone (zeros for the outputs below), so that they pass on what the first
    layer says.
    """
    first = layers[0]
    copy = replace(first, V=np.pad(first.V, ((0, 0), (len(first.U), 0))))
    return (first, *[copy] * (n_layers - len(layers)), *layers[1:])


def tuning_gain(
    before: float,
    after: float,
    n_rows: float,
    grown: Sequence[NetworkLayer],
    tuned: Sequence[NetworkLayer],
) -> float:
    """Log likelihood gained over the number of parameters that tuning sets free.

    Above 1 tuning pays (Akaike). ``before`` and ``after`` are mean negative log likelihoods per
    row. In a grown network only the last layer is fitted to the outcomes, in a tuned one all are.
    """
    added = sum(layer.n_parameters for layer in tuned) - grown[-1].n_parameters
    return n_rows * (before - after) / max(added, 1)


# From data to a network: grow, see what pays, tune.

JointTuning = Literal["auto"] | bool
Progress = Callable[[str, int, float], None]
_PROMISING = 1.0 / 3.0  # of what tuning must gain in the end


@dataclass(frozen=True)
class TrainedNetwork:
    """A network in standard units, and how it came about.

    Parameters
    ----------
    layers : tuple of NetworkLayer
    fits : tuple of SubspaceFit
        How each layer was grown.
    nlls : tuple of float
        Mean negative log likelihood per row of the grown networks of depth 1, 2, …
    depth : int
        Up to where growth pays; deeper networks repeat the first layer.
    tuning : tuple of float
        The joint objective before tuning and after each of its steps; empty without tuning.
    tuned : bool
        Whether the result is the tuned network.
    kinds : CensoringKinds
        Tasks whose entries leave something undetermined.
    """

    layers: tuple[NetworkLayer, ...]
    fits: tuple[SubspaceFit, ...]
    nlls: tuple[float, ...]
    depth: int
    tuning: tuple[float, ...]
    tuned: bool
    kinds: CensoringKinds


def _silent(stage: str, step: int, objective: float) -> None:
    """Nobody watches."""


def train(
    problem: NetworkProblem,
    *,
    joint_tuning: JointTuning,
    tol: float,
    max_iter: int,
    progress: Progress = _silent,
) -> TrainedNetwork:
    """Grow all layers, keep those that pay, and tune them together where that pays.

    Tuning begins at the network as grown, whether its depth pays or not: layers that gain little
    one by one can gain a lot together. ``"auto"`` keeps its result if the likelihood gained
    exceeds the parameters set free; True always does; False does not tune.
    """
    grown: list[GrownLayer] = []
    for step in grow(
        problem,
        tol=tol,
        max_iter=max_iter,
        watch=lambda at: progress(f"layer {len(grown) + 1}", at.n_iter, at.objective),
    ):
        grown.append(step)
    null = grown[-1].null
    network = finish(
        problem, [step.layer for step in grown], null, joint_tuning=joint_tuning, progress=progress
    )
    return replace(network, fits=tuple(step.fit for step in grown))


def finish(
    problem: NetworkProblem,
    candidates: Sequence[NetworkLayer],
    null: NullLayer | None = None,
    *,
    joint_tuning: JointTuning,
    progress: Progress = _silent,
) -> TrainedNetwork:
    """What becomes of layers that were grown by any means: the second half of ``train``."""
    null = null_layer(problem.layer_problem(0, None)) if null is None else null
    joint = JointProblem(problem, null.problem.targets)
    nlls = tuple(joint.nll(candidates[: depth + 1]) for depth in range(len(candidates)))
    depth = problem.n_layers
    if problem.skip_connection:
        depth = paying_depth(nlls, problem.total_weight, problem.rank * problem.n_tasks)
    kept = deepened(candidates[:depth], problem.n_layers)
    network = TrainedNetwork(kept, (), nlls, depth, (), tuned=False, kinds=null.kinds)
    if joint_tuning is False or problem.n_layers == 1:
        return network

    def gain(layers: Sequence[NetworkLayer]) -> float:
        after = joint.nll(layers)
        return tuning_gain(nlls[depth - 1], after, problem.total_weight, candidates[:depth], layers)

    found = tune(
        joint,
        candidates,
        null.problem.min_log_sigma,
        problem.free_sigma & ~null.kinds.two_sided,
        progress=lambda step, objective: progress("tuning", step, objective),
        promising=lambda layers: joint_tuning is True or gain(layers) > _PROMISING,
    )
    network = replace(network, tuning=tuple(found.objectives))
    if joint_tuning is True or gain(found.layers) > 1.0:
        return replace(network, layers=_with_own_sigmas(joint, found.layers), tuned=True)
    return network


def _with_own_sigmas(
    joint: JointProblem, layers: Sequence[NetworkLayer]
) -> tuple[NetworkLayer, ...]:
    """Noise scales for what hidden layers have become, so that each stage can predict."""
    problem = joint.network
    if problem.sigma is not None:
        return tuple(layers)
    entries = joint.targets, problem.design.weight
    silent = joint.targets.missing.all(axis=0)
    rescaled = []
    for depth, layer in enumerate(layers):
        sigma, latent = layer.sigma, joint.latent(layers[: depth + 1])
        if problem.calibrate:
            sigma = residual_sigma(*entries, latent, problem.scaling)
        elif depth < len(layers) - 1:
            sigma = likelihood_sigma(*entries, latent, problem.scaling, problem.noise)
        rescaled.append(replace(layer, sigma=np.where(silent, layer.sigma, sigma)))
    return tuple(rescaled)
