"""Real cohorts: HELP, which everybody can have, or the paper's ADNI for those with access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from deeptobit.datasets import load_adni, load_help
from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.experiments._evaluation_data import EvaluationData, data_of_cohort
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._method import Method, reading

_ALPHAS: tuple[float | Literal["auto"], ...] = ("auto", 0.2, 0.5, 2.0)


def real_data(context: Context) -> EvaluationData:
    """ADNI from ``context.path``, or else the HELP cohort."""
    if context.path is None:
        return data_of_cohort(load_help(), "HELP")
    return data_of_cohort(load_adni(context.path), "ADNI")


def about(data: EvaluationData) -> str:
    """What the data are, and what may be compared with the paper."""
    rows, features = data.X.shape
    tasks = data.targets.shape[1]
    sizes = f"{data.name}: {rows} people, {features} features, {tasks} bounded outcomes."
    if data.name == "ADNI":
        return f"{sizes} The paper's list of scores is not known: compare order and ratios."
    return (
        f"{sizes} The paper's cohort, ADNI, needs an agreement and is not here (--path takes its "
        "downloads); its values are those of other people and other outcomes. Compare order and "
        "ratios, not values."
    )


def network_grid(**settings: Any) -> tuple[SubspaceNetworkRegressor, ...]:
    """Subspace Networks with these settings, by penalty."""
    return tuple(SubspaceNetworkRegressor(alpha=alpha, **settings) for alpha in _ALPHAS)


def network_method(
    row: str, *, wrap: Callable[[SubspaceNetworkRegressor], Any] | None = None, **settings: Any
) -> Method:
    """Two rows: the clipped score of such a network, and E[y|x].

    ``wrap`` makes another estimator of every network.
    """
    grid: tuple[Any, ...] = network_grid(**settings)
    rows = {row: reading("clip"), with_mean(row): reading("mean")}
    return Method(tuple(map(wrap, grid)) if wrap else grid, rows)


def with_mean(row: str) -> str:
    """The name of the row for E[y|x].

    Examples
    --------
    >>> with_mean("SN")
    'SN, E[y|x]'
    """
    return f"{row}, E[y|x]"
