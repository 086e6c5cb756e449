"""The card that goes with a model: data, settings, versions and scores, without people in it.

A card is plain: dicts, lists, text, numbers and None, the same in JSON and in Markdown. What could
point to a person is not in it: no ids, and no count from 1 to 4, nor what would tell one, unless
small counts are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deeptobit.likelihood import Predictive
from deeptobit.report._card_parts import (
    column_rows,
    feature_rows,
    model_part,
    plain,
    rounded,
    score_rows,
    study_settings,
    target_rows,
    told,
)
from deeptobit.report._findings import published
from deeptobit.report._format import fewest_told, percent
from deeptobit.report._words import cautions, held_out_by_lot
from deeptobit.study import FEWEST, measure, versions
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.study import FittedStudy

Card = dict[str, Any]

_COVERAGE = 0.9
_MEASURES = ("r2", "anmse", "crps", "coverage")
_LEFT_OUT = f"No ids are in this card, and no counts from 1 to {FEWEST - 1}."
_SMALL = "No ids are in this card; small counts are, so that it is not for publication."
_GIVEN = "On the rows passed with the model; if it was fitted to them, they flatter it."


def study_card(fitted: FittedStudy, *, small_counts: bool | None = None) -> Card:
    r"""The card of a fitted study; its scores are those of held-out rows.

    Parameters
    ----------
    fitted : FittedStudy
    small_counts : bool, optional
        Whether counts under five and rare categories are told after all; by default as
        ``[report]`` of the study says.

    Returns
    -------
    dict
        ``name``, ``left_out``, ``model``, ``data``, ``scores``, ``cautions``, ``findings``,
        ``settings``, ``made_with``. An unknown number is None; a count that is not told is text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import build_data, fit_study, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age},{min(90 - age + age % 3, 30)}" for age in range(40, 80)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "clinic.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.csv"\ntargets.MMSE.upper = 30\nevaluation.folds = 2\n'
    ...         "model = {max_layers = 1, ranks = [1], alphas = [0.1], cv = 2}"
    ...     )
    ...     study = read_study(path)
    ...     card = study_card(fit_study(study, build_data(study, read_data(study))))
    >>> card["name"], card["data"]["features"][0]["mean"], card["scores"]["targets"][0]["r2"]
    ('clinic', 59.5, 0.986)
    """
    table = fitted.held_out.table()
    shown = fitted.study.report.small_counts if small_counts is None else small_counts
    fewest, rare = fewest_told(shown), {} if shown else fitted.encoder.rare
    how = (
        f"{_held_out(fitted)} Intervals promise {percent(fitted.held_out.coverage)}. "
        "null: a model without features."
    )
    measures = [name for measure in _MEASURES for name in (measure, f"null_{measure}")]
    return {
        "name": fitted.name,
        "left_out": _SMALL if shown else _LEFT_OUT,
        "model": model_part(fitted.model, table["lower"], table["upper"]),
        "data": {
            "rows": told(fitted.n_rows, fewest),
            **({"held_out_rows": told(fitted.n_held_out, fewest)} if fitted.streamed else {}),
            "groups": None if fitted.n_groups is None else told(fitted.n_groups, fewest),
            "targets": target_rows(table, fitted.n_held_out, fewest),
            "features": column_rows(fitted, fewest),
        },
        "scores": {"how": how, "targets": score_rows(table, measures, fewest)},
        "cautions": cautions(fitted, table),
        "findings": [
            f"{remark.level}: {remark.about}: {remark.message}"
            for remark in published(fitted.findings, rare, fewest)
        ],
        "settings": study_settings(fitted),
        "made_with": dict(fitted.facts),
    }


def _held_out(fitted: FittedStudy) -> str:
    """Which rows the scores are about."""
    if fitted.streamed:
        return f"{held_out_by_lot(fitted)}. Values, shares and scores are theirs."
    kept = "" if fitted.n_groups is None else ", nor any other row of its group"
    return (
        f"Every row was predicted by a model that had not seen it{kept} "
        f"({fitted.facts['folds']} folds)."
    )


def model_card(
    model: Any,
    X: Any = None,
    Y: Any = None,
    *,
    name: str | None = None,
    small_counts: bool = False,
) -> Card:
    """The card of a fitted estimator; with rows X and Y it describes them and scores the model.

    Parameters
    ----------
    model : fitted estimator of deeptobit
    X : array, sparse matrix or DataFrame of shape (N, D), optional
    Y : array, DataFrame or CensoredTargets of shape (N,) or (N, T), optional
        Best of rows that the model was not fitted to.
    name : str, optional
        Of the model; that of its class by default.
    small_counts : bool
        Whether counts under five are told after all.

    Returns
    -------
    dict
        As of :func:`study_card`, as far as it is known.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> y = np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10)
    >>> card = model_card(TobitRegressor(upper=10).fit(X, y), X, y)
    >>> card["data"]["targets"]
    [{'name': 'y', 'values': 20, 'at_lower': 0.3, 'at_upper': 0.25}]
    >>> card["scores"]["targets"][0]["r2"]
    0.986
    """
    check_is_fitted(model)
    if (X is None) != (Y is None):
        raise ValueError("a card describes rows by X and Y together; pass both, or neither")
    fewest = fewest_told(small_counts)
    known: dict[str, Any] = {"features": feature_rows(model, X, fewest)}
    scores: dict[str, Any] = {}
    if hasattr(model, "best_score_"):
        scores[f"cross_validated_{model.scoring}"] = rounded(model.best_score_)
    if Y is not None:
        targets = _read(model, Y)
        table = _measured(model, X, targets)
        known = {
            "rows": told(len(targets), fewest),
            "targets": target_rows(table, len(targets), fewest),
        } | known
        how = f"{_GIVEN} Intervals promise {percent(_COVERAGE)}."
        scores |= {"how": how, "targets": score_rows(table, list(_MEASURES), fewest)}
    return {
        "name": name or type(model).__name__,
        "left_out": _SMALL if small_counts else _LEFT_OUT,
        "model": model_part(model, model.lower_, model.upper_),
        "data": known,
        "scores": scores,
        "settings": {key: plain(value) for key, value in model.get_params(deep=False).items()},
        "made_with": versions(),
    }


def _read(model: Any, Y: Any) -> CensoredTargets:
    if isinstance(Y, CensoredTargets):
        return Y
    return CensoredTargets.from_bounds(
        Y, model.lower_, model.upper_, names=model.target_names_, outside=model.outside
    )


def _measured(model: Any, X: Any, targets: CensoredTargets) -> pd.DataFrame:
    latent = model.predict(X, kind="latent").reshape(targets.shape)
    sigma = np.broadcast_to(model.sigma_, targets.shape)
    bounds = (targets.lower_bounds, targets.upper_bounds)
    predictive = Predictive(model.noise_, latent, sigma, *bounds)
    return targets.describe().assign(**measure(targets, predictive, _COVERAGE))
