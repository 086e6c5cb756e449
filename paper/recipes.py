"""The Subspace Network as printed, with published or chosen constants, and as we learn it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from deeptobit import CensoredTargets, SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.exceptions import DivergenceError
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.published import PublishedSubspaceNetwork, PublishedSubspaceTobit
from paper.arrays import FloatArray
from paper.methods import Method, Reading
from paper.section import Scale

# The three rows of every table and figure.

PRINTED = "as printed, published constants"
CHOSEN = "as printed, best constants"
OURS = "ours"


class Constants(NamedTuple):
    """λ, η = μ of the first layer, and where it starts.

    The paper leaves them out; these are the ones of the authors' public scripts
    (github.com/illidanlab/subspace-net, 2018), found by running them.
    """

    alpha: float
    step: float
    start: Literal["random", "least squares"] = "random"

    def steps(self, n_layers: int) -> list[float]:
        """Steps by layer: the second divides by 1000, all above by 100 more.

        Examples
        --------
        >>> Constants(0.6, 0.005).steps(4)
        [0.005, 5e-06, 5e-08, 5e-08]
        """
        return [self.step / part for part in (1.0, 1e3, *[1e5] * n_layers)][:n_layers]


PUBLISHED = {
    "fig-subspace": Constants(0.6, 0.001),
    "fig-weights": Constants(0.6, 0.001),
    "table-recovery": Constants(0.6, 0.005, "least squares"),
    "table-synthetic": Constants(0.01, 0.001, "least squares"),
    "table-layers": Constants(0.01, 0.001, "least squares"),
}


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
        """Grow all layers; ``diverged_`` says where it diverged, if it did."""
        steps = self.constants.steps(self.n_layers)
        init: Any = "below"
        if self.constants.start == "least squares":
            init = least_squares_start(X, y.values, min(self.rank, X.shape[1], y.shape[1]))
        network = PublishedSubspaceNetwork(
            self.rank,
            self.n_layers,
            alpha=self.constants.alpha,
            step_size_V=steps,
            step_size_U=steps,
            sigma=self.sigma,
            init=init,
            calibrate=self.calibrate,
            random_state=self.seed,
        )
        self.diverged_ = ""
        try:
            self.network_ = network.fit(X, y)
        except DivergenceError as error:
            self.diverged_, self._shape = str(error), y.shape[1:]
        return self

    def staged_predict(
        self, X: FloatArray, kind: Literal["clip", "mean", "latent"] = "clip"
    ) -> list[FloatArray]:
        """What every layer predicts, each (N, T)."""
        if self.diverged_:
            return [np.full((len(X), *self._shape), np.inf)] * self.n_layers
        return list(self.network_.staged_predict(X, kind=kind))

    def predict(
        self, X: FloatArray, kind: Literal["clip", "mean", "latent"] = "clip"
    ) -> FloatArray:
        """What the last layer predicts, (N, T)."""
        return self.staged_predict(X, kind)[-1]


def printed(networks: Sequence[PrintedNetwork], rows: dict[int, str]) -> Method:
    """Networks as printed; the rows of the table are named by depth.

    Nothing is undone, so that one growth has the networks of all depths.
    """
    return Method(tuple(networks), {name: partial(_stage, number=n) for n, name in rows.items()})


def _stage(model: PrintedNetwork, X: FloatArray, number: int) -> FloatArray:
    return model.staged_predict(X)[number - 1]


# Our networks of several depths from one growth.


@dataclass(eq=False)
class GrownDepths:
    """Networks that may grow to each of several depths.

    Growth is greedy, and layers that do not pay are removed: a network whose paying depth is p is
    that of every larger depth, too, and only shallower ones are grown again.

    Parameters
    ----------
    network : SubspaceNetworkRegressor
        Without joint tuning; its own depth does not matter.
    depths : tuple of int
    """

    network: SubspaceNetworkRegressor
    depths: tuple[int, ...]

    def fit(self, X: FloatArray, y: Any) -> GrownDepths:
        """Grow the deepest network, and shallower ones as far as they differ."""
        self.networks_: dict[int, SubspaceNetworkRegressor] = {}
        network = None
        for depth in sorted(self.depths, reverse=True):
            if network is None or network.history_["paying_depth"] > depth:
                network = clone(self.network).set_params(n_layers=depth).fit(X, y)
            self.networks_[depth] = network
        return self


def depth(number: int) -> Reading:
    """The clipped score of the network that may have this many layers."""
    return partial(_predict_depth, number=number)


def _predict_depth(model: GrownDepths, X: FloatArray, number: int) -> FloatArray:
    return np.asarray(model.networks_[number].predict(X, kind="clip"))


def grown(networks: Sequence[SubspaceNetworkRegressor], rows: dict[int, str]) -> Method:
    """Networks that grow layer by layer; the rows of the table are named by depth."""
    grid = tuple(GrownDepths(network, tuple(rows)) for network in networks)
    return Method(grid, {name: depth(number) for number, name in rows.items()})
