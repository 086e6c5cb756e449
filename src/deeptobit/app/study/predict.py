"""From a fitted study and a new table to a table of predictions."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.app.study.config import Study
from deeptobit.app.study.encoding import Encoder
from deeptobit.app.study.errors import StudyError, listed
from deeptobit.app.study.fitted import FittedStudy, StudyModel
from deeptobit.app.study.outcomes import read_limits
from deeptobit.app.study.tables import EXCEL, Table, read_table
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Predictive

if TYPE_CHECKING:
    import pandas as pd


# The distributions that a model predicts for rows, within limits that may differ by row.


def predict_rows(
    model: StudyModel,
    X: pd.DataFrame,
    lower: FloatArray,
    upper: FloatArray,
) -> Predictive:
    """Predictive distributions of shape (N, T), σ too, within bounds of shape (T,) or (N, T)."""
    latent = model.predict(X, kind="latent")
    sigma = np.broadcast_to(model.sigma_, latent.shape)
    return Predictive(model.noise_, latent, sigma, lower, upper)


ROW = "row"  # the column that numbers the rows where there are no ids


def read_new_data(study: Study, path: Path) -> Table:
    r"""Read a table of new people as the study says: its codes for missing, its sheet.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data = {file = "a.csv", missing = [-4]}\ntargets.MMSE = {}')
    ...     _ = Path(folder, "new.csv").write_text("id,age\n007,70\n008,-4\n")
    ...     new = read_new_data(read_study(path), Path(folder, "new.csv"))
    >>> new.parse("age")[0]
    array([70., nan])
    """
    sheet = study.data.sheet if path.suffix.lower() in EXCEL else None
    return read_table(path, sheet=sheet, missing=[str(code) for code in study.data.missing])


def predict_table(
    fitted: FittedStudy, table: Table, *, coverage: float | None = None
) -> pd.DataFrame:
    r"""Predictions for the rows of a table, which needs the features and nothing else.

    Parameters
    ----------
    fitted : FittedStudy
    table : Table
    coverage : float, optional
        Of the intervals, between 0 and 1; that of the study by default.

    Returns
    -------
    DataFrame of N rows
        The id as it is written in the table, or the number of the ``row``. Then for every target
        ``NAME`` its expected value E[y|x], ``NAME low`` and ``NAME high``, the ends of the central
        interval, and where it is bounded ``NAME P(lower)`` and ``NAME P(upper)``, the probability
        that y is at its bound.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import build_data, fit_study, load_fitted, read_data, read_study
    >>> from deeptobit.study import save_fitted
    >>> study = ["[data]", "file = 'a.csv'", "id = 'who'", "[targets.MMSE]", "upper = 30"]
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age:03d},{age},{min(30, 98 - age + 7 * age % 5)}" for age in range(60, 90)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["who,age,MMSE", *rows]))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text("\n".join([*study, "[model]", 'members = ["stack"]', "cv = 2"]))
    ...     study = read_study(path)
    ...     fitted = fit_study(study, build_data(study, read_data(study)))
    ...     save_fitted(fitted, Path(folder, "study.deeptobit"))
    ...     _ = Path(folder, "new.csv").write_text("who,age\n007,80")
    ...     fitted = load_fitted(Path(folder, "study.deeptobit"))
    ...     predictions = predict_table(fitted, read_new_data(study, Path(folder, "new.csv")))
    >>> predictions.round(0)
       who  MMSE  MMSE low  MMSE high  MMSE P(upper)
    0  007  20.0      17.0       23.0            0.0
    """
    import pandas as pd

    coverage = fitted.study.evaluation.coverage if coverage is None else coverage
    if not 0.0 < coverage < 1.0:
        raise StudyError(f"coverage must lie between 0 and 1; got {coverage:g}")
    X = fitted.encoder.encode(table)
    _warn_of_imputed(fitted.encoder, table)
    lower, upper = read_limits(fitted.study, table)
    predictive = predict_rows(fitted.model, X, lower, upper)
    tail = 0.5 * (1.0 - coverage)
    low, high = predictive.quantile([tail, 1.0 - tail])
    mean, at_lower, at_upper = predictive.mean(), predictive.at_lower(), predictive.at_upper()
    columns: list[tuple[str, Any]] = [_identify(fitted.study, table)]
    for task, name in enumerate(fitted.model.target_names_):
        columns += [(name, mean[:, task]), (f"{name} low", low[:, task])]
        columns += [(f"{name} high", high[:, task])]
        if np.isfinite(lower[:, task]).any():
            columns += [(f"{name} P(lower)", at_lower[:, task])]
        if np.isfinite(upper[:, task]).any():
            columns += [(f"{name} P(upper)", at_upper[:, task])]
    twice = [name for name, times in Counter(name for name, _ in columns).items() if times > 1]
    if twice:
        raise StudyError(f"columns of the predictions would share a name: {listed(twice)}")
    return pd.DataFrame(dict(columns))


def _identify(study: Study, table: Table) -> tuple[str, Any]:
    """Who the rows are: ids are copied, not checked, since nothing depends on them."""
    if study.data.id is not None and study.data.id in table.columns:
        return study.data.id, table.text(study.data.id).tolist()
    return ROW, np.arange(1, len(table) + 1)


def _warn_of_imputed(encoder: Encoder, table: Table) -> None:
    counts = {c.name: int(table.text(c.name).isna().sum()) for c in encoder.columns}
    imputed = {name: count for name, count in counts.items() if count}
    if imputed:
        warnings.warn(
            f"{table.file}: {sum(imputed.values())} missing cell(s) are filled with the means of "
            f"the table the model was fitted to, in {listed(imputed)}",
            stacklevel=3,
        )
