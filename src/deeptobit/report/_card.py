"""The model card in a report: data, settings, versions."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.report._card_parts import noise_words
from deeptobit.report._format import count, some, times
from deeptobit.study import FEWEST

if TYPE_CHECKING:
    from deeptobit.study import FittedStudy

_LISTED = 8

Entries = list[tuple[str, str]]


def data_entries(fitted: FittedStudy, fewest: int = FEWEST) -> Entries:
    """What the model was fitted to."""
    columns = fitted.encoder.columns
    categorical = sum(column.reference is not None for column in columns)
    incomplete = sum(column.indicator for column in columns)
    groups = "none: rows were taken as independent"
    if fitted.n_groups is not None:
        groups = f"{count(fitted.n_groups, fewest)}, never split between training and held-out rows"
    return [
        ("Rows", count(fitted.n_rows, fewest)),
        ("Groups", groups),
        (
            "Features",
            f"{len(columns)}: {len(columns) - categorical} numeric, {categorical} categorical",
        ),
        ("With missing cells", f"{times(incomplete, 'feature')}"),
        ("Outcomes", times(len(fitted.summary), "outcome")),
    ]


def model_entries(fitted: FittedStudy) -> Entries:
    """What was chosen."""
    model = fitted.model
    return [
        ("Kind", "Subspace Network: censored low-rank layers, prediction E[y | x]"),
        ("Layers", str(model.n_layers_)),
        ("Shared directions (rank)", str(model.rank_)),
        ("Strength of the prior", _prior(fitted)),
        ("Noise", noise_words(model.noise_)),
    ]


def _prior(fitted: FittedStudy) -> str:
    if isinstance(fitted.model, SubspaceNetworkRegressor):
        return "by a rule, since rows were streamed"
    learned = fitted.model.best_params_["prior"] == "stacked"
    return "learned from the data" if learned else "chosen on a grid"


def setting_entries(fitted: FittedStudy) -> Entries:
    """What the study file says or leaves as it is, but for the table's name.

    Bounds are in the table of outcomes.
    """
    study = fitted.study
    sections: dict[str, Any] = {
        "data": study.data,
        "features": study.features,
        "model": study.model,
    }
    return [
        (f"{title}.{field.name}", _shown(getattr(section, field.name)))
        for title, section in sections.items()
        for field in fields(section)
        if field.name != "file"
    ]


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "not set"
    return some([str(item) for item in value], _LISTED) if isinstance(value, tuple) else str(value)
