"""A fitted study on the table of another site: is it still right, and what would put it right."""

from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import pandas as pd

from deeptobit.app.study.columns import named_columns
from deeptobit.app.study.data import read_targets
from deeptobit.app.study.doctor.registry import Finding
from deeptobit.app.study.fitted import FittedStudy, predict_rows
from deeptobit.app.study.measures import MEASURES, measure, recorded_errors
from deeptobit.app.study.tables import StudyError, Table, did_you_mean
from deeptobit.estimators.base import fit_recalibration

_FAR = 3.0  # standard deviations from the training mean


@dataclass(frozen=True, eq=False)
class ExternalValidation:
    """How a model does on the rows of a table that it was not made for.

    Attributes
    ----------
    measures : DataFrame, one row per target
        ``entries``; ``bias`` (mean of predicted minus recorded values) and ``rmse`` of E[y|x], in
        points of the scale; ``level``, ``slope`` and ``sigma_ratio`` of the regression
        of the outcome on the model's score, in points, 1 and 1 if the model is right, NaN with
        fewer than 20 values between the bounds; then the measures of reports (``mae``, R², …),
        and with the prefix ``own_`` those of held-out rows of the table that the model was made of.
    drift : DataFrame, one row per feature
        ``shift`` of the mean and ``spread`` (ratio of standard deviations), in standard deviations
        of the training table; ``missing`` cells and values ``far`` out (beyond three standard
        deviations) as shares of the rows.
    n_rows : int
    """

    measures: pd.DataFrame
    drift: pd.DataFrame
    n_rows: int

    def notes(self) -> list[str]:
        """What to look at, in sentences."""
        found, notes = self.measures, []
        biased = found["bias"].abs() > 2.0 * found["rmse"] / np.sqrt(found["entries"])
        for name, row in found[biased].iterrows():
            side = "above" if row["bias"] > 0.0 else "below"
            away = f"{abs(row['bias']):.2g} points {side} the recorded values"
            notes.append(f"{name}: predictions are on average {away}.")
        for name, row in found[(found["slope"] - 1.0).abs() > 0.2].iterrows():
            wrong = "too far apart" if row["slope"] < 1.0 else "too close together"
            notes.append(f"{name}: predictions are {wrong} (slope {row['slope']:.2f}).")
        moved = self.drift[self.drift["shift"].abs() > 0.5].index
        if len(moved):
            names = ", ".join(map(str, moved[:5])) + (", …" if len(moved) > 5 else "")
            far = "another mean here (over half a standard deviation away)"
            notes.append(f"{len(moved)} feature(s) have {far}: {names}.")
        return notes or ["Nothing is far from what the model expects."]


def validate(fitted: FittedStudy, table: Table) -> ExternalValidation:
    """Predict the outcomes of a table, compare, and estimate what would put the model right."""
    X = fitted.encoder.encode(table)
    for where, name in named_columns(fitted.study).items():
        if where[0] == "targets" and name not in table.columns:
            hint = did_you_mean(name, table.columns)
            raise StudyError(f"{table.file} lacks the column {name!r} of the outcomes{hint}")
    targets = read_targets(fitted.study, table)
    if not len(targets) or targets.missing.all():
        raise StudyError(f"{table.file} has no outcome to compare predictions with")
    predictive = predict_rows(fitted.model, X, targets.lower_bounds, targets.upper_bounds)
    found, _, free = fit_recalibration(fitted.model, predictive, targets)
    error = pd.DataFrame(recorded_errors(targets, predictive.mean()))
    level = found.intercept + (found.slope - 1.0) * predictive.latent.mean(axis=0)
    reported = [name for name, one in MEASURES.items() if one.reported]
    here = measure(targets, predictive, fitted.held_out.coverage)
    measures = targets.describe()[["entries"]].assign(
        bias=error.mean().to_numpy(),
        rmse=np.sqrt((error**2).mean()).to_numpy(),
        level=np.where(free, level, np.nan),
        slope=np.where(free, found.slope, np.nan),
        sigma_ratio=np.where(free, found.sigma / fitted.model.sigma_, np.nan),
        **{name: here[name] for name in reported},
    )
    measures = measures.join(fitted.held_out.table()[reported].add_prefix("own_"))
    return ExternalValidation(measures, _drift(fitted, table, X), len(table))


def _drift(fitted: FittedStudy, table: Table, X: pd.DataFrame) -> pd.DataFrame:
    """How the features differ from those of the training table."""
    encoder = fitted.encoder
    blank = {column.name: table.text(column.name).isna().mean() for column in encoder.columns}
    scale = np.where(fitted.model.feature_scale_ > 0.0, fitted.model.feature_scale_, np.nan)
    away = (X.to_numpy() - np.array(encoder.means)) / scale
    columns = {
        "shift": away.mean(axis=0),
        "spread": X.to_numpy().std(axis=0) / scale,
        "missing": [blank[column.name] for column in encoder.columns for _ in column.features],
        "far": (np.abs(away) > _FAR).mean(axis=0),
    }
    drift = pd.DataFrame(columns, index=pd.Index(encoder.features, name="feature"))
    return drift.drop(index=encoder.indicators)


def recalibrated(fitted: FittedStudy, table: Table) -> FittedStudy:
    """The study with level, slope and σ of another table; its facts say so.

    Effects of features keep their proportions, held-out predictions are those of the table that
    the model was made of.
    """
    targets = read_targets(fitted.study, table)
    what = f"level, slope and σ, with {len(table)} rows of another table, on {date.today()}"
    kept = "Held-out predictions are those of the table it was made of, before that."
    note = Finding("note", "model", f"This model was recalibrated: {what}. {kept}")
    return replace(
        fitted,
        model=fitted.model.recalibrate(fitted.encoder.encode(table), targets),
        name=f"{fitted.name}-recalibrated",
        findings=(*fitted.findings, note),
        facts=fitted.facts | {"recalibrated": what},
    )
