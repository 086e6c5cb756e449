"""The paper's synthetic data, and the networks that are compared on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from deeptobit.datasets import SubspaceTruth, make_subspace
from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.experiments._evaluation_data import EvaluationData
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._depths import GrownDepths, depth
from deeptobit.experiments.reproduce._method import Method
from deeptobit.experiments.reproduce._recipes import paper_step
from deeptobit.experiments.reproduce._scales import Scale
from deeptobit.targets import CensoredTargets

_STEPS = (0.3, 1.0, 3.0)  # of the step that suits the data, as the paper does not state its own


def like_the_paper(scale: Scale) -> Scale:
    """The scale with the paper's number of entries per parameter, and its ratio of signal to noise.

    These decide who is ahead of whom: N T / (R (D + T)) = 500/3, and σ² / (R D) = 9/2000.

    Examples
    --------
    >>> from deeptobit.experiments.reproduce import PAPER, SMALL
    >>> like_the_paper(PAPER) == PAPER
    True
    >>> small = like_the_paper(SMALL)
    >>> small.n_samples, round(small.sigma, 2)
    (1500, 0.73)
    """
    n_parameters = scale.rank * (scale.n_features + scale.n_tasks)
    n_samples = round(500 * n_parameters / (3 * scale.n_tasks))
    sigma = 3.0 * (scale.rank * scale.n_features / 2000) ** 0.5
    return replace(scale, n_samples=n_samples, sigma=sigma)


def one_layer_data(scale: Scale, context: Context) -> tuple[EvaluationData, SubspaceTruth]:
    """One layer of Gaussian X, U and V, as in the paper; its splits are of one data set."""
    X, Y, truth = make_subspace(**scale.sizes, random_state=context.seed)
    return EvaluationData("one layer", X, CensoredTargets.from_bounds(Y, 0.0)), truth


def recipe(scale: Scale, context: Context, rows: dict[int, str]) -> Method:
    """The paper's: one pass per layer, constant step, no intercept, given σ, by depth.

    Every layer is grown from the outputs below, and kept where it gains more log likelihood than it
    has parameters. Three steps are tried.
    """
    networks = [
        SubspaceNetworkRegressor(
            scale.rank,
            solver="online",
            alpha=0.0,
            step_size=share * paper_step(scale),
            averaging=False,
            start="random",
            fit_intercept=False,
            sigma=scale.sigma,
            standardize=False,
            joint_tuning=False,
            random_state=context.seed,
        )
        for share in _STEPS
    ]
    return grown(networks, rows)


def grown(networks: Sequence[SubspaceNetworkRegressor], rows: dict[int, str]) -> Method:
    """Networks that grow layer by layer; the rows of the table are named by depth."""
    grid = tuple(GrownDepths(network, tuple(rows)) for network in networks)
    return Method(grid, {name: depth(number) for number, name in rows.items()})
