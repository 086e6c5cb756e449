"""Training a network in memory: choose the solver, call it, return to the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from deeptobit.arrays import FloatArray
from deeptobit.estimators.diagnosis import check_determined
from deeptobit.estimators.inputs import SolverName, automatic_alpha, choose_solver
from deeptobit.layer import CensoringKinds, Design, TargetScaling
from deeptobit.likelihood import evaluate
from deeptobit.network import (
    GrownLayer,
    JointTuning,
    NetworkLayer,
    NetworkProblem,
    TrainedNetwork,
    grow_online,
    latents,
    to_standard,
    to_user,
    train,
)
from deeptobit.online import OnlineSettings
from deeptobit.penalties import Penalty
from deeptobit.runtime import end_progress, show_progress
from deeptobit.targets import CensoredTargets


@dataclass(frozen=True)
class FittedNetwork:
    """A network in the user's units, its penalties, and how it was found.

    Parameters
    ----------
    layers : tuple of NetworkLayer
    alphas : tuple of float
    n_iter : int
        Newton steps and steps of tuning, or rows that were learned from.
    history : dict
    kinds : CensoringKinds, optional
        Tasks whose entries leave something undetermined; None if unknown.
    """

    layers: tuple[NetworkLayer, ...]
    alphas: tuple[float, ...]
    n_iter: int
    history: dict[str, Any]
    kinds: CensoringKinds | None


@dataclass(frozen=True)
class NetworkTraining:
    """The choices of :class:`SubspaceNetworkRegressor`, checked.

    Parameters
    ----------
    online : OnlineSettings
        Rank, noise, intercept, standardisation and given σ are those of the batch solver too.
    alpha : float, optional
        Of every layer; by rule if None.
    penalty, skip_connection, joint_tuning, solver, n_passes, max_iter, tol, verbose
        As the user gave them.
    calibrate : bool
        Whether σ comes from the residuals of each layer.
    """

    online: OnlineSettings
    alpha: float | None
    penalty: Penalty
    skip_connection: bool
    joint_tuning: JointTuning
    solver: SolverName
    n_passes: int
    calibrate: bool
    max_iter: int
    tol: float
    verbose: int

    def run(
        self, X: Any, targets: CensoredTargets, weight: FloatArray, n_layers: int
    ) -> FittedNetwork:
        """Train a network of ``n_layers``."""
        solver, reason = choose_solver(self.solver, X.shape, targets.shape[1], self.penalty)
        alphas = self._alphas(solver, targets, weight, X.shape[1], n_layers)
        history: dict[str, Any] = {"solver": solver, "reason": reason}
        grown: tuple[GrownLayer, ...] = ()
        if solver == "online":
            known = (weight > 0.0) & ~targets.missing.all(axis=1)
            if not known.all():
                X, targets, weight = X[known], targets[known], weight[known]
            network = self._grow_online(X, targets, weight, n_layers)
            grown = network.grown
        if solver == "batch" or self.joint_tuning is True:
            problem = self._pose(X, targets, weight, alphas)
            units = problem.design, problem.scaling
            network = train(
                problem,
                to_standard([found.layer for found in grown], *units),
                joint_tuning=self.joint_tuning,
                tol=self.tol,
                max_iter=self.max_iter,
                progress=self._show_step,
            )
            network = replace(network, layers=to_user(network.layers, *units))
            grown = grown or network.grown
            history["alphas"] = alphas
        history |= {
            "layers": [found.history for found in grown],
            "nll": network.nlls,
            "paying_depth": network.depth,
            "tuning": {"kept": network.tuned, "objective": network.tuning},
        }
        if self.verbose:
            end_progress()
        n_iter = sum(found.n_iter for found in network.grown) + len(network.tuning)
        return FittedNetwork(network.layers, alphas, n_iter, history, network.kinds)

    def _grow_online(
        self, X: Any, targets: CensoredTargets, weight: FloatArray, n_layers: int
    ) -> TrainedNetwork:
        n_rows = self.n_passes * len(targets)
        return grow_online(
            X,
            targets,
            weight,
            self.online,
            n_layers=n_layers,
            skip_connection=self.skip_connection,
            n_passes=self.n_passes,
            calibrated=self.calibrate,
            progress=lambda layer, done: self._show_rows(layer, done, n_rows),
        )

    def _alphas(
        self,
        solver: str,
        targets: CensoredTargets,
        weight: FloatArray,
        n_features: int,
        n_layers: int,
    ) -> tuple[float, ...]:
        """The penalty of each layer while it is grown."""
        if self.alpha is not None:
            return (self.alpha,) * n_layers
        if solver == "online":
            return (0.0,) * n_layers
        known, n_rows = weight @ ~targets.missing, float(weight.sum())
        above = targets.shape[1] + (n_features if self.skip_connection else 0)
        widths = [n_features, *[above] * (n_layers - 1)]
        return tuple(automatic_alpha(known, n_rows, width) for width in widths)

    def _pose(
        self,
        X: Any,
        targets: CensoredTargets,
        weight: FloatArray,
        alphas: tuple[float, ...],
    ) -> NetworkProblem:
        online, share = self.online, weight / weight.sum()
        design = Design.build(X, share, center=online.fit_intercept, standardize=online.standardize)
        scaling = TargetScaling.build(targets, share, center=online.fit_intercept)
        return NetworkProblem(
            design=design,
            targets=targets,
            scaling=scaling,
            noise=online.noise,
            rank=online.rank,
            alphas=alphas,
            penalty=self.penalty,
            skip_connection=self.skip_connection,
            fit_intercept=online.fit_intercept,
            sigma=None if online.sigma is None else online.sigma / scaling.scale,
            calibrate=self.calibrate,
            total_weight=float(weight.sum()),
            # Layers that are tuned together share one budget, unless the user set the penalty.
            tuning_share=1.0 / len(alphas) if self.alpha is None else 1.0,
        )

    def _show_step(self, stage: str, step: int, objective: float) -> None:
        if self.verbose:
            show_progress(f"{stage}: step {step}, objective {objective:.4f}")

    def _show_rows(self, layer: int, done: int, total: int) -> None:
        if self.verbose:
            show_progress(f"layer {layer + 1}: {done:,} of {total:,} rows")


def validated_depth(
    training: NetworkTraining,
    matrix: Any,
    targets: CensoredTargets,
    weight: FloatArray,
    *,
    n_layers: int,
    fraction: Any,
    random_state: Any,
) -> tuple[int, list[float]]:
    """The depth up to which the prediction of held-out rows improves (early stopping).

    Returns
    -------
    depth : int
        At most ``n_layers``.
    scores : list of float
        Negative log likelihood of the held-out rows, for every depth that was tried.
    """
    if not (isinstance(fraction, Real) and 0.0 < float(fraction) < 1.0):
        raise ValueError(f"validation_fraction must lie between 0 and 1; got {fraction!r}")
    order = check_random_state(random_state).permutation(np.flatnonzero(weight))
    n_held_out = max(1, round(float(fraction) * len(order)))
    held_out, rest = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    check_determined(targets[rest], weight[rest], 0, 1.0)
    scores: list[float] = []
    for depth in range(1, n_layers + 1):
        layers = training.run(matrix[rest], targets[rest], weight[rest], depth).layers
        scores.append(
            _loss(training, layers, matrix[held_out], targets[held_out], weight[held_out])
        )
        if depth > 1 and scores[-1] >= scores[-2]:
            return depth - 1, scores
    return n_layers, scores


def _loss(
    training: NetworkTraining,
    layers: tuple[NetworkLayer, ...],
    matrix: Any,
    targets: CensoredTargets,
    weight: FloatArray,
) -> float:
    """Negative log likelihood per entry, averaged over the tasks that have any."""
    *_, latent = latents(layers, matrix, targets.lower, targets.upper)
    nll = evaluate(training.online.noise, targets.low, targets.high, latent, layers[-1].sigma).nll
    known = weight @ ~targets.missing  # may be 0 for tasks that are rare
    each = np.divide(weight @ nll, known, out=np.zeros_like(known), where=known > 0)
    return float(each.sum() / max(np.count_nonzero(known), 1))
