"""The data of the race: real tables, simulated ones, and any study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.race.real import REAL
from deeptobit.app.study import (
    EvaluationData,
    build_data,
    data_of_cohort,
    data_of_study,
    read_data,
    read_study,
)
from deeptobit.datasets import make_clinical_cohort, make_subspace
from deeptobit.targets import CensoredTargets


def draw_cohort() -> EvaluationData:
    """Simulated patients whose scores are linear in 138 brain measurements before rounding."""
    return data_of_cohort(make_clinical_cohort(missing=0.0, random_state=0), "cohort")


def draw_nonlinear_cohort() -> EvaluationData:
    """The same brains, with scores of which a linear model sees about half."""
    cohort = make_clinical_cohort(nonlinear=True, missing=0.0, random_state=0)
    return data_of_cohort(cohort, "cohort-nonlinear")


def draw_subspace() -> EvaluationData:
    """The paper's generator with one layer, 480 × 40 × 15 to train on."""
    return _draw_paper("subspace", 800, 40, 15, 3, latent_sd=3.0)


def draw_deep_subspace() -> EvaluationData:
    """The paper's generator with three layers, each seeing the features too."""
    settings = {"n_layers": 3, "skip_connection": True, "latent_sd": 3.0, "hidden_sigma": 1.0}
    return _draw_paper("subspace-deep", 800, 40, 15, 3, **settings)


def draw_wide() -> EvaluationData:
    """More features than rows, 150 × 250 × 50 to train on: the cohort that takes time."""
    return _draw_paper("wide", 250, 250, 50, 5, latent_sd=3.0)


def read_study_data(path: Path) -> EvaluationData:
    """Any study, by its file.

    Raises
    ------
    ValueError
        If a bound differs from row to row, which most methods of the race cannot use.
    """
    study = read_study(path)
    data = data_of_study(build_data(study, read_data(study)), path.stem)
    if data.targets.entry_lower is not None or data.targets.entry_upper is not None:
        raise ValueError(
            f"{path} has bounds that differ from row to row; the race needs one for every outcome"
        )
    return data


SIMULATED: dict[str, Callable[[], EvaluationData]] = {
    "cohort": draw_cohort,
    "cohort-nonlinear": draw_nonlinear_cohort,
    "subspace": draw_subspace,
    "subspace-deep": draw_deep_subspace,
    "wide": draw_wide,
}
DATA: dict[str, Callable[[], EvaluationData]] = {**REAL, **SIMULATED}


def _draw_paper(
    name: str, n_samples: int, n_features: int, n_tasks: int, rank: int, **settings: Any
) -> EvaluationData:
    X, Y, _ = make_subspace(n_samples, n_features, n_tasks, rank, random_state=0, **settings)
    return EvaluationData(name, X, CensoredTargets.from_bounds(Y, lower=0.0))
