"""From data to a network: grow, see what pays, tune."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from deeptobit.network._calibration import likelihood_sigma, residual_sigma
from deeptobit.network._depth import deepened, paying_depth, tuning_gain
from deeptobit.network._growth import GrownLayer, grow
from deeptobit.network._joint import JointProblem
from deeptobit.network._layer import NetworkLayer
from deeptobit.network._problem import NetworkProblem
from deeptobit.network._tuning import tune
from deeptobit.solvers import CensoringKinds, NullModel, SubspaceFit, fit_null

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
    null: NullModel | None = None,
    *,
    joint_tuning: JointTuning,
    progress: Progress = _silent,
) -> TrainedNetwork:
    """What becomes of layers that were grown by any means: the second half of ``train``."""
    null = fit_null(problem.layer_problem(0, None)) if null is None else null
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
