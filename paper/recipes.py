"""The Subspace Network as printed, with published or chosen constants, and as we learn it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from deeptobit import CensoredTargets, SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.exceptions import DivergenceError
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.published import PublishedSubspaceNetwork, PublishedSubspaceTobit
from paper.arrays import FloatArray
from paper.methods import Method
from paper.section import Scale

# The three rows of every table and figure.

PRINTED = "as printed, published constants"
CHOSEN = "as printed, best constants"
OURS = "ours"
ROWS = (PRINTED, CHOSEN, OURS)


class Constants(NamedTuple):
    """λ, η = μ of the first layer, where it starts, and whether steps shrink in the layers above.

    The paper leaves them out; these are the ones of the authors' public scripts
    (github.com/illidanlab/subspace-net, 2018), found by running them.
    """

    alpha: float
    step: float
    start: Literal["random", "least squares"] = "random"
    decay: bool = True

    def steps(self, n_layers: int) -> list[float]:
        """Steps by layer: the second divides by 1000, all above by 100 more, or all are the same.

        Examples
        --------
        >>> Constants(0.6, 0.005).steps(4)
        [0.005, 5e-06, 5e-08, 5e-08]
        """
        parts = (1.0, 1e3, *[1e5] * n_layers) if self.decay else (1.0,) * n_layers
        return [self.step / part for part in parts[:n_layers]]


PUBLISHED = {
    "fig-subspace": Constants(0.6, 0.001),
    "fig-weights": Constants(0.6, 0.001),
    "table-recovery": Constants(0.6, 0.005, "least squares"),
    "table-synthetic": Constants(0.01, 0.001, "least squares"),
    "table-layers": Constants(0.01, 0.001, "least squares"),
}

# What training rows choose from for the row of best constants.
CANDIDATES = tuple(
    Constants(alpha, step, "least squares", decay)
    for alpha in (0.0, 0.01, 0.1)
    for step in (0.0003, 0.001, 0.003)
    for decay in (True, False)
)
CANDIDATES_IN_WORDS = (
    "λ of 0, 0.01 and 0.1, η of 0.0003, 0.001 and 0.003, and steps that shrink like that or are "
    "the same in all layers"
)


def default_layer(scale: Scale) -> SubspaceTobitRegressor:
    """Ours: one pass with steps of its own, intercepts and learned noise scales."""
    return SubspaceTobitRegressor(scale.rank, solver="online")


def printed_layer(scale: Scale, constants: Constants, seed: int) -> PublishedSubspaceTobit:
    """Algorithm 1 as printed, from a random start, with the true σ."""
    return PublishedSubspaceTobit(
        scale.rank,
        alpha=constants.alpha,
        step_size_V=constants.step,
        step_size_U=constants.step,
        sigma=scale.sigma,
        random_state=seed,
    )


_ALPHAS = (0.0, 0.01, 0.6)
_STEPS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


def best_constants(
    make: Callable[[Constants], Any],
    X: FloatArray,
    Y: FloatArray,
    sigma: float,
    start: Literal["random", "least squares"] = "random",
) -> Constants:
    """The λ and η = μ with the least −log Pr of the last fifth of the rows.

    ``make`` gives an unfitted model, which learns from the other four fifths. All pairs of λ in
    0, 0.01, 0.6 and η in 0.0003, 0.001, 0.003, …, 0.3 are tried; those that diverge lose.
    """
    targets = CensoredTargets.from_bounds(Y, 0.0)
    cut = len(X) - len(X) // 5
    held, scales = targets[cut:], np.full(Y.shape[1], sigma)

    def loss(constants: Constants) -> float:
        try:
            latent = make(constants).fit(X[:cut], targets[:cut]).predict(X[cut:], kind="latent")
        except DivergenceError:
            return np.inf
        if not np.isfinite(latent).all():
            return np.inf
        return float(evaluate(Gaussian(), held.low, held.high, latent, scales).nll.mean())

    grid = [Constants(alpha, step, start) for alpha in _ALPHAS for step in _STEPS]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # on the way to infinity
        return min(grid, key=loss)


def one_pass(
    row: str, section: str, scale: Scale, X: FloatArray, Y: FloatArray, seed: int
) -> PublishedSubspaceTobit | SubspaceTobitRegressor:
    """The unfitted layer of one of the three rows."""
    if row == OURS:
        return default_layer(scale)
    constants = PUBLISHED[section]
    if row == CHOSEN:
        constants = best_constants(partial(printed_layer, scale, seed=seed), X, Y, scale.sigma)
    return printed_layer(scale, constants, seed)


def least_squares_start(X: FloatArray, Y: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """Rank-R factors of the least-squares coefficients, U (T, R) and V (R, D).

    Missing outcomes count as the mean of their task.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> W = np.outer([1.0, 2.0], [1.0, 0.0, -1.0])
    >>> U, V = least_squares_start(X, X @ W.T, rank=1)
    >>> np.allclose(U @ V, W)
    True
    """
    filled = np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y)
    W = np.linalg.lstsq(X, filled, rcond=None)[0].T
    left, singular, right = np.linalg.svd(W, full_matrices=False)
    root = np.sqrt(singular[:rank])
    return left[:, :rank] * root, root[:, None] * right[:rank]


@dataclass(eq=False)
class PrintedNetwork:
    """Algorithm 3 as printed, for a comparison: a divergence is an infinite prediction.

    Layers above the first start at the one below.

    Parameters
    ----------
    rank, n_layers : int
    constants : Constants
    sigma : float
        Of all tasks.
    calibrate : bool
    seed : int
    """

    rank: int
    n_layers: int
    constants: Constants
    sigma: float
    calibrate: bool = False
    seed: int = 0

    def fit(self, X: FloatArray, y: CensoredTargets) -> PrintedNetwork:
        """Grow all layers; ``diverged_`` says where it diverged, if it did.

        The layers below that one stay.
        """
        init: Any = "below"
        if self.constants.start == "least squares":
            init = least_squares_start(X, y.values, self.rank)
        self.diverged_, self.n_layers_, self._n_tasks = "", 0, y.shape[1]
        for n_layers in range(self.n_layers, 0, -1):
            steps = self.constants.steps(n_layers)
            network = PublishedSubspaceNetwork(
                self.rank,
                n_layers,
                alpha=self.constants.alpha,
                step_size_V=steps,
                step_size_U=steps,
                sigma=self.sigma,
                init=init,
                calibrate=self.calibrate,
                random_state=self.seed,
            )
            try:
                self.network_, self.n_layers_ = network.fit(X, y), n_layers
            except DivergenceError as error:
                self.diverged_ = str(error)
            else:
                break
        return self

    def staged_predict(
        self, X: FloatArray, kind: Literal["clip", "mean", "latent"] = "clip"
    ) -> list[FloatArray]:
        """What every layer predicts, each (N, T)."""
        known = list(self.network_.staged_predict(X, kind=kind)) if self.n_layers_ else []
        lost = np.full((len(X), self._n_tasks), np.inf)
        return known + [lost] * (self.n_layers - len(known))

    def predict(
        self, X: FloatArray, kind: Literal["clip", "mean", "latent"] = "clip"
    ) -> FloatArray:
        """What the last layer predicts, (N, T)."""
        return self.staged_predict(X, kind)[-1]


@dataclass(eq=False)
class PrintedPasses:
    """One layer by Algorithm 1 as printed that passes several times over the rows.

    Every pass starts where the one before ended. Beside a network of as many layers it tells what
    is a gain of depth and what is one of further passes.

    Parameters
    ----------
    rank : int
    constants : Constants
    sigma : float
    steps : tuple of float
        η = μ of every pass.
    """

    rank: int
    constants: Constants
    sigma: float
    steps: tuple[float, ...]

    def fit(self, X: FloatArray, y: CensoredTargets) -> PrintedPasses:
        """Pass over the rows, once per step."""
        init: Any = least_squares_start(X, y.values, self.rank)
        self.layer_, self._n_tasks = None, y.shape[1]
        for step in self.steps:
            layer = PublishedSubspaceTobit(
                self.rank,
                alpha=self.constants.alpha,
                step_size_V=step,
                step_size_U=step,
                sigma=self.sigma,
                init=init,
            )
            try:
                layer.fit(X, y)
            except DivergenceError:
                return self
            init = layer.U_, layer.V_
        self.layer_ = layer
        return self

    def predict(self, X: FloatArray, kind: Literal["clip", "mean", "latent"]) -> FloatArray:
        """What the layer predicts after the last pass, (N, T); infinite if it diverged."""
        if self.layer_ is None:
            return np.full((len(X), self._n_tasks), np.inf)
        return np.asarray(self.layer_.predict(X, kind=kind))


@dataclass(eq=False)
class InUnits:
    """A printed network on real data, which have units.

    Features are standardised by the training rows (mean 0, standard deviation 1) and get a column
    of ones, as the printed model has no intercept. Outcomes and their bounds are divided by the
    standard deviations of the training rows: each by its own, or all by one number, their root
    mean square. Predictions are in the units of the outcomes.

    Parameters
    ----------
    network : PrintedNetwork
    unit : {"each task", "all tasks"}
    """

    network: PrintedNetwork
    unit: Literal["each task", "all tasks"] = "each task"

    def fit(self, X: FloatArray, y: CensoredTargets) -> InUnits:
        """Take the units from these rows, and fit the network in them."""
        self._scaler = StandardScaler().fit(X)
        sd = np.nanstd(y.values, axis=0)
        sd[sd == 0.0] = 1.0
        self._sd = sd if self.unit == "each task" else np.full_like(sd, np.sqrt(np.mean(sd**2)))
        lower, upper = y.lower / self._sd, y.upper / self._sd
        scaled = CensoredTargets.from_bounds(y.values / self._sd, lower, upper, names=y.names)
        self.network_ = deepcopy(self.network).fit(self._features(X), scaled)
        return self

    def staged_predict(
        self, X: FloatArray, kind: Literal["clip", "mean", "latent"] = "clip"
    ) -> list[FloatArray]:
        """What every layer predicts, each (N, T)."""
        stages = self.network_.staged_predict(self._features(X), kind)
        return [stage * self._sd for stage in stages]

    def _features(self, X: FloatArray) -> FloatArray:
        return np.column_stack([self._scaler.transform(X), np.ones(len(X))])


# Which depth may choose the constants of deeper networks: choosing among 20 layers takes hours.
CHOOSING_DEPTH = 3


def printed(
    networks: Sequence[Any], rows: Mapping[int, str], *, trials: Sequence[Any] = ()
) -> Method:
    """Networks as printed; the rows of the table are named by depth.

    Nothing is undone, so that one growth has the networks of all depths. ``trials`` are shallower
    networks, one for each of the others, that choose among them.
    """
    readings = {name: partial(_stage, number=n) for n, name in rows.items()}
    return Method(tuple(networks), readings, tuple(trials))


def _stage(model: Any, X: FloatArray, number: int) -> FloatArray:
    """The prediction of a layer; of the last one if there are fewer."""
    stages = list(model.staged_predict(X, kind="clip"))
    return np.asarray(stages[min(number, len(stages)) - 1])


def at_depth(row: str, depth: int) -> str:
    """The name of a row of networks of one depth.

    Examples
    --------
    >>> at_depth(OURS, 1), at_depth(OURS, 3)
    ('ours, 1 layer', 'ours, 3 layers')
    """
    return f"{row}, {depth} layer" if depth == 1 else f"{row}, {depth} layers"


def as_printed(
    network: Callable[[int, Constants], Any],
    published: Constants,
    depths: Sequence[int],
    name: Callable[[str, int], str] = at_depth,
) -> dict[str, Method]:
    """The two rows of the algorithm as printed: published constants, and the best ones.

    Parameters
    ----------
    network : callable
        Makes a network of a number of layers with constants.
    published : Constants
    depths : sequence of int
    name : callable
        The name of a line of the table, of the row and a depth.
    """
    last = max(depths)
    rows = {row: {n: name(row, n) for n in depths} for row in (PRINTED, CHOSEN)}
    trials = [network(CHOOSING_DEPTH, constants) for constants in CANDIDATES]
    return {
        PRINTED: printed([network(last, published)], rows[PRINTED]),
        CHOSEN: printed(
            [network(last, constants) for constants in CANDIDATES],
            rows[CHOSEN],
            trials=trials if last > CHOOSING_DEPTH else (),
        ),
    }


# Our networks of several depths from one growth.


def grown(networks: Sequence[SubspaceNetworkRegressor], rows: Mapping[int, str]) -> Method:
    """Networks that grow layer by layer; the rows of the table are named by depth.

    They keep all layers (``prune_layers=False``) and are not tuned, so that one growth has the
    networks of all depths.
    """
    ways = {"n_layers": max(rows), "joint_tuning": False, "prune_layers": False}
    return printed([clone(network).set_params(**ways) for network in networks], rows)
