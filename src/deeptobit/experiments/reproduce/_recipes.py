"""One layer as the paper learns it, and as we do."""

from __future__ import annotations

from deeptobit.estimators import SubspaceTobitRegressor
from deeptobit.experiments.reproduce._scales import Scale

OURS = "deeptobit's defaults"


def default_layer(scale: Scale) -> SubspaceTobitRegressor:
    """One pass with steps of its own, averaging, intercepts and learned noise scales."""
    return SubspaceTobitRegressor(scale.rank, solver="online")


def paper_step(scale: Scale) -> float:
    """A constant step that suits the data, which the paper does not state.

    It is 1/(T·R), about 1/‖U‖²: at the paper's sizes
    a step of 0.001.

    Examples
    --------
    >>> from deeptobit.experiments.reproduce import PAPER
    >>> round(paper_step(PAPER), 6)
    0.001
    """
    return 1.0 / (scale.n_tasks * scale.rank)


def paper_layer(scale: Scale, step: float, seed: int) -> SubspaceTobitRegressor:
    """Algorithm 1 to the letter: constant step, last iterate, no intercept, known σ."""
    return SubspaceTobitRegressor(
        scale.rank,
        solver="online",
        alpha=0.0,
        step_size=step,
        averaging=False,
        start="random",
        fit_intercept=False,
        sigma=scale.sigma,
        standardize=False,
        random_state=seed,
    )
