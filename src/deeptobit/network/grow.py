"""Growing a network: Algorithm 3 of the paper, its calibration, and the depth that pays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.layer import SIGMA_FLOOR, CensoringKinds, Layer, TargetScaling, newton, solve
from deeptobit.network.joint import MAX_STEPS, JointProblem, NetworkProblem, tune
from deeptobit.network.layer import LayerInputs, Layers, NetworkLayer, start_above
from deeptobit.targets import CensoredTargets


@dataclass(frozen=True)
class GrownLayer:
    """A layer and how it was fitted.

    Parameters
    ----------
    layer : NetworkLayer
    alpha : float
        Its penalty.
    n_iter : int
        Newton steps, or rows that were learned from.
    history : dict
    """

    layer: NetworkLayer
    alpha: float
    n_iter: int
    history: dict[str, Any]


G = TypeVar("G", bound=GrownLayer)


def grow(
    fit_layer: Callable[[LayerInputs, NetworkLayer | None], G],
    n_layers: int,
    lower: FloatArray,
    upper: FloatArray,
    *,
    skip_connection: bool = True,
    grown: Sequence[G] = (),
    keep: Callable[[tuple[G, ...]], None] = lambda grown: None,
) -> tuple[G, ...]:
    r"""Algorithm 3 of the paper: fit layer after layer, each on the outputs of the one below.

    .. math:: f_k(x) = \mathrm{clip}(U_k V_k [f_{k-1}(x);\, x] + b_k), \qquad k = 1, \dots, K

    Every solver grows its networks by this loop: rows in memory, one pass over rows, streams and
    shards differ in ``fit_layer`` alone.

    Parameters
    ----------
    fit_layer : function
        Fits one layer (Algorithm 1), with σ by likelihood or by :func:`calibrate`. Its arguments
        are what the layer sees of a row, and where to start (the layer below, on the new inputs;
        None for a start of its own).
    n_layers : int
        K.
    lower, upper : arrays of shape (T,)
        Bounds at which outputs are censored, in the units of the layers.
    skip_connection : bool
        Whether layers see x beside the outputs below. The paper's Algorithm 3 has none.
    grown : sequence of GrownLayer
        Layers of an earlier fit that was interrupted.
    keep : function
        Called with all layers so far whenever one is finished.

    Examples
    --------
    A "fit" that returns where it starts repeats its first layer:

    >>> one = np.ones((1, 1))
    >>> first = NetworkLayer(one, one, np.zeros(1), one[0])
    >>> def fit_layer(inputs, start):
    ...     return GrownLayer(start or first, alpha=0.0, n_iter=0, history={})
    >>> [found.layer.V for found in grow(fit_layer, 2, np.zeros(1), np.ones(1))]
    [array([[1.]]), array([[0., 1.]])]
    """
    grown = tuple(grown)
    while len(grown) < n_layers:
        layers = tuple(found.layer for found in grown)
        inputs = LayerInputs(lower, upper, layers, skip_connection)
        start = start_above(layers) if layers and skip_connection else None
        grown = (*grown, fit_layer(inputs, start))
        keep(grown)
    return grown


def calibrate(
    targets: CensoredTargets, weight: FloatArray, latent: FloatArray, scaling: TargetScaling
) -> FloatArray:
    r"""Calibration (paper, section 4.2): :math:`\hat\sigma_t^2 = \|y_t - \hat y_t\|_2^2/N`, (T,).

    Parameters
    ----------
    targets : CensoredTargets
        A censored entry counts with the bound it is recorded at; a missing one does not count.
    weight : array of shape (N,)
    latent : array of shape (N, T)
        ŷ, the scores before censoring, in standard units like the result.
    scaling : TargetScaling

    Returns
    -------
    array of shape (T,)
        1 where a task has no entries.

    Examples
    --------
    >>> targets = CensoredTargets.from_bounds([[0.0], [3.0]], lower=0.0)
    >>> unit = TargetScaling(np.zeros(1), np.ones(1))
    >>> calibrate(targets, np.ones(2), np.array([[-1.0], [2.0]]), unit)
    array([1.])
    """
    share = np.where(targets.missing, 0.0, weight[:, None])
    total = share.sum(axis=0)
    residual = np.where(targets.missing, 0.0, scaling.apply(targets.values) - latent)
    mean_square = (share * residual**2).sum(axis=0) / np.where(total > 0.0, total, 1.0)
    return np.where(total > 0.0, np.maximum(np.sqrt(mean_square), SIGMA_FLOOR), 1.0)


_STEPS = 12
_LONGEST = 0.7  # of one step: σ at most doubles or halves


def likelihood_sigma(
    targets: CensoredTargets,
    weight: FloatArray,
    latent: FloatArray,
    scaling: TargetScaling,
    noise: likelihood.Noise,
) -> FloatArray:
    """The σ_t under which given scores (N, T) are most likely, by Newton steps on log σ, (T,)."""
    low, high = scaling.apply(targets.low), scaling.apply(targets.high)

    def objective(log_sigma: FloatArray) -> newton.Objective:
        at = likelihood.evaluate(noise, low, high, latent, np.exp(log_sigma[0]))
        by, by_by = weight @ at.log_sigma, weight @ at.log_sigma_log_sigma
        return weight @ at.nll, lambda: (by[None], by_by[None, None])

    start = np.log(calibrate(targets, weight, latent, scaling))[None]
    (log_sigma,), _ = newton.minimize_each(objective, start, longest=_LONGEST, max_steps=_STEPS)
    return np.asarray(np.maximum(np.exp(log_sigma), SIGMA_FLOOR))


# The depth of a network: as many layers as pay.


def paying_depth(nlls: Sequence[float], n_rows: float, n_per_layer: int) -> int:
    """The depth from 1 on with the least Akaike criterion n·nll + number of parameters.

    A layer on top adds one parameter per component and output below; the layers below it are not
    fitted again.

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


def prune(
    layers: Layers, nlls: Sequence[float], n_rows: float, *, skip_connection: bool
) -> tuple[int, tuple[NetworkLayer, ...]]:
    """The depth that pays, and a network of unchanged length that computes what that depth does.

    Without skip connections there is no such network, and all layers are kept.
    """
    depth = len(layers)
    if skip_connection:
        depth = paying_depth(nlls, n_rows, layers[0].U.size)
    return depth, deepened(layers[:depth], len(layers))


def deepened(layers: Layers, n_layers: int) -> tuple[NetworkLayer, ...]:
    """The same function as a network of ``n_layers``, by repeating the first layer.

    The copies see x alone (zeros for the outputs below), so each repeats the first layer's output.
    """
    copies = [start_above(layers[:1])] * (n_layers - len(layers))
    return (layers[0], *copies, *layers[1:])


def tuning_gain(gained: float, grown: Layers, tuned: Layers) -> float:
    """Log likelihood gained over the number of parameters that tuning sets free.

    Above 1 tuning pays (Akaike). In a grown network only the last layer is fitted to the outcomes,
    in a tuned one all are.
    """
    added = sum(layer.n_parameters for layer in tuned) - grown[-1].n_parameters
    return gained / max(added, 1)


# Rows in memory: grow to the optimum of every layer, prune, tune.

JointTuning = Literal["auto"] | bool
_PROMISING = 1.0 / 3.0  # of what tuning must gain in the end
_AT_FLOOR = 1e-9  # a σ that rounding has put above its floor would be taken for a free one


@dataclass(frozen=True)
class TrainedNetwork:
    """A network and how it was trained.

    Parameters
    ----------
    layers : tuple of NetworkLayer
    grown : tuple of GrownLayer
        All layers as they were grown, whether they pay or not.
    nlls : tuple of float
        Mean negative log likelihood per row of the grown networks of depth 1, 2, …
    depth : int
        The depth that pays; deeper networks repeat the first layer.
    kinds : CensoringKinds, optional
        Tasks whose entries leave something undetermined; None if unknown.
    tuning : tuple of float
        The joint objective before tuning and after each of its steps; empty without tuning.
    tuned : bool
        Whether the result is the tuned network.
    """

    layers: tuple[NetworkLayer, ...]
    grown: tuple[GrownLayer, ...]
    nlls: tuple[float, ...]
    depth: int
    kinds: CensoringKinds | None = None
    tuning: tuple[float, ...] = ()
    tuned: bool = False


def train(
    problem: NetworkProblem,
    layers: Layers = (),
    *,
    joint_tuning: JointTuning,
    tol: float = 1e-6,
    max_iter: int = 100,
    progress: Callable[[str], None] = lambda text: None,
) -> TrainedNetwork:
    """Grow all layers, prune those that do not pay, and tune all together where that pays.

    Everything is in standard units. ``layers`` may have been grown by other means. Tuning begins
    at the network as grown, whether its depth pays or not: layers that gain little one by one can
    gain a lot together. ``"auto"`` keeps its result if the likelihood gained exceeds the parameters
    set free; True always does; False does not tune.
    """
    fit_layer = FitToOptimum(problem, tol, max_iter, progress)
    grown: tuple[GrownLayer, ...] = ()
    if not layers:
        grown = fit_layer.grow(problem.n_layers)
        layers = [found.layer for found in grown]
    null = fit_layer.null or solve.null_layer(problem.layer_problem(0, None))
    joint = JointProblem(problem, null.problem.targets)
    n_rows = problem.total_weight
    nlls = tuple(joint.nll(layers[:depth]) for depth in range(1, len(layers) + 1))
    depth, pruned = prune(layers, nlls, n_rows, skip_connection=problem.skip_connection)
    network = TrainedNetwork(pruned, grown, nlls, depth, null.kinds)
    if joint_tuning is False or problem.n_layers == 1:
        return network

    def gain(candidate: Layers) -> float:
        gained = n_rows * (nlls[depth - 1] - joint.nll(candidate))
        return tuning_gain(gained, layers[:depth], candidate)

    tuned, objectives = tune(
        joint,
        layers,
        null.problem.min_log_sigma,
        problem.free_sigma & ~null.kinds.two_sided,
        progress=lambda step, objective: progress(
            f"tuning all layers, {step} of at most {MAX_STEPS} steps, objective {objective:.4f}"
        ),
        promising=lambda candidate: joint_tuning is True or gain(candidate) > _PROMISING,
    )
    network = replace(network, tuning=tuple(objectives))
    if joint_tuning is True or gain(tuned) > 1.0:
        return replace(network, layers=_with_own_sigmas(joint, tuned), tuned=True)
    return network


def retrain(
    problem: NetworkProblem,
    layers: Layers,
    *,
    n_layers: int,
    tuned: bool,
    tol: float,
    max_iter: int,
) -> tuple[NetworkLayer, ...]:
    """Fit a network that was trained before again, with its choices, in standard units.

    Layers start from their current parameters, one after the other; ``n_layers`` of them are not
    copies of the first. A network that was ``tuned`` is grown and tuned anew: tuning stops before
    its end, and would go further if it went on.
    """
    if tuned:
        return train(problem, joint_tuning=True, tol=tol, max_iter=max_iter).layers
    starts = layers[0], *layers[len(layers) - n_layers + 1 :]
    grown = FitToOptimum(problem, tol, max_iter, starts=starts).grow(n_layers)
    return deepened([found.layer for found in grown], len(layers))


def _with_own_sigmas(joint: JointProblem, layers: Layers) -> tuple[NetworkLayer, ...]:
    """Noise scales for what tuning has made of hidden layers, so that each stage can predict."""
    problem = joint.network
    if problem.sigma is not None:
        return tuple(layers)
    entries = joint.targets, problem.design.weight
    without_entries = joint.targets.missing.all(axis=0)
    rescaled = []
    for depth, layer in enumerate(layers):
        sigma, latent = layer.sigma, joint.latent(layers[: depth + 1])
        if problem.calibrate:
            sigma = calibrate(*entries, latent, problem.scaling)
        elif depth < len(layers) - 1:
            sigma = likelihood_sigma(*entries, latent, problem.scaling, problem.noise)
        rescaled.append(replace(layer, sigma=np.where(without_entries, layer.sigma, sigma)))
    return tuple(rescaled)


@dataclass
class FitToOptimum:
    """The ``fit_layer`` of rows in memory: each layer to its optimum, in standard units.

    Parameters
    ----------
    problem : NetworkProblem
    tol : float
    max_iter : int
    progress : function
        Called with a line after every Newton step.
    starts : sequence of NetworkLayer
        Where layers start, if not at the layer below.
    null : NullLayer, optional
        The model without features of the last layer that was fitted.
    """

    problem: NetworkProblem
    tol: float
    max_iter: int
    progress: Callable[[str], None] = lambda text: None
    starts: Layers = ()
    null: solve.NullLayer | None = None

    def grow(self, n_layers: int) -> tuple[GrownLayer, ...]:
        """Algorithm 3, each layer to its optimum."""
        skip_connection = self.problem.skip_connection
        return grow(self, n_layers, *self.problem.bounds, skip_connection=skip_connection)

    def __call__(self, inputs: LayerInputs, start: NetworkLayer | None) -> GrownLayer:
        """The layer on given inputs."""
        layers, problem = inputs.layers, self.problem
        start = self.starts[len(layers)] if self.starts else start
        joint = JointProblem(problem, problem.targets)
        below = np.clip(joint.latent(layers), *problem.bounds) if layers else None
        if problem.calibrate:  # each layer is fitted with the scales of the one below
            sigma = layers[-1].sigma if layers else np.ones(problem.n_tasks)
            problem = replace(problem, sigma=sigma)
        alpha, centre = problem.alphas[len(layers)], problem.centre(below)
        self.null = null = solve.null_layer(problem.layer_problem(len(layers), below))
        begin = solve.spectral_start(null) if start is None else standard_start(null, start, centre)
        name = f"layer {len(layers) + 1} of {problem.n_layers}"
        settings: Any = {"alpha": alpha, "tol": self.tol, "max_iter": self.max_iter}
        fit = solve.solve_subspace(
            null, begin, **settings, watch=lambda at: self.progress(f"{name}, {at.text(self.tol)}")
        )
        layer = _on_inputs(null, fit.layer, centre, problem.rank)
        if problem.calibrate:
            latent = joint.latent((*layers, layer))
            sigma = calibrate(problem.targets, problem.design.weight, latent, problem.scaling)
            layer = replace(layer, sigma=sigma)
        return GrownLayer(layer, alpha, fit.n_iter, fit.history)


def standard_start(null: solve.NullLayer, start: NetworkLayer, centre: FloatArray) -> Layer:
    """A layer on given inputs as a point of the solver, which centres its inputs."""
    problem, rank = null.problem, null.problem.rank
    intercept = start.intercept + start.U @ (start.V @ centre)
    log_sigma, floor = np.log(start.sigma), problem.min_log_sigma
    layer = Layer(
        start.U[:, :rank],
        problem.features.coordinates(start.V.T)[:, :rank],
        np.where(null.kinds.one_sided, null.layer.intercept, intercept),
        np.where(log_sigma > floor + _AT_FLOOR, log_sigma, floor),
    )
    return problem.balance(layer)


def _on_inputs(null: solve.NullLayer, layer: Layer, centre: FloatArray, rank: int) -> NetworkLayer:
    """The inverse: a point of the solver as a layer, with empty components up to ``rank``."""
    U, V, intercept, sigma = null.problem.features.factors(layer, rank)
    return NetworkLayer(U, V, intercept - U @ (V @ centre), sigma)
