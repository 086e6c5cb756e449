"""A fitted study: its model, its held-out predictions, its file, and predictions for new tables."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deeptobit import estimators, files
from deeptobit.app.study.config import Source, Study, parse_study
from deeptobit.app.study.data import EncodedColumn, Encoder, read_limits
from deeptobit.app.study.doctor.numbers import guess_unit
from deeptobit.app.study.doctor.registry import Finding
from deeptobit.app.study.effects import Effects, FeatureRanges, Part
from deeptobit.app.study.formats import KINDS
from deeptobit.app.study.measures import HeldOut
from deeptobit.app.study.tables import StudyError, Table
from deeptobit.arrays import BoolArray, FloatArray, listed
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.exceptions import ModelFileError
from deeptobit.files.values import by_fields, pack, unpack
from deeptobit.likelihood import Predictive
from deeptobit.targets import CensoredTargets


@dataclass(frozen=True, eq=False)
class FittedStudy:
    """The model of a study, its predictions for held-out rows, and how it was made.

    It contains the outcomes of the rows, but no ids, no comments of the study file, and not the
    name of the table.

    Attributes
    ----------
    model : AutoTobitRegressor, SubspaceNetworkCV, TobitRegressor or SubspaceNetworkRegressor
        Fitted to all rows, or if streamed to all except the held-out ones.
    encoder : Encoder
        Turns other tables into the features of the model.
    name : str
        Name of the study file, without its suffix.
    text : str
        The settings of the study file, as TOML.
    held_out : HeldOut
    findings : tuple of Finding
        What ``diagnose`` found, and the warnings of the fit.
    n_groups : int or None
    facts : dict of str
        Versions of Python and packages, folds, seed, date, seconds.
    n_rows : int
        Rows of the table.
    ranges : FeatureRanges or None
        Where the features lie.
    effects : Effects or None
        What features do to outcomes, in their units.
    subgroups : tuple of Part
        Held-out errors in subgroups.
    forecasts : list of dict
        Errors of forecasts by horizon, of a mixed model.
    stable : array of shape (D, R) or None
        Which loadings of the shared directions would keep their sign in another sample.
    """

    model: CensoredRegressor
    encoder: Encoder
    name: str
    text: str
    held_out: HeldOut
    findings: tuple[Finding, ...]
    n_groups: int | None
    facts: dict[str, str]
    n_rows: int
    ranges: FeatureRanges | None = None
    effects: Effects | None = None
    subgroups: tuple[Part, ...] = ()
    forecasts: Sequence[dict[str, float]] = ()
    stable: BoolArray | None = None

    @cached_property
    def study(self) -> Study:
        """The settings of the study file."""
        return parse_study(Source(Path(f"{self.name}.toml"), self.text))

    @property
    def n_held_out(self) -> int:
        """Number of held-out rows: all, or some if streamed, or last visits if mixed."""
        return len(self.held_out.targets)

    @property
    def streamed(self) -> bool:
        """Whether the rows were streamed, so that one model was fitted to most of them."""
        return self.n_held_out < self.n_rows and not self.mixed

    @property
    def mixed(self) -> bool:
        """Whether people were forecast: the held-out rows are their last visits."""
        return isinstance(self.model, estimators.MixedTobitRegressor)


# The file of a fitted study.

KIND = "study"
_PARTS = (CensoredTargets, Predictive, HeldOut, Encoder, EncodedColumn, Finding)
_LEARNED = (FeatureRanges, Effects, Part)
_CLASSES = files.models.CLASSES | {cls.__name__: by_fields(cls) for cls in _PARTS + _LEARNED}


def save_fitted(fitted: FittedStudy, path: Path | str) -> None:
    r"""Write a fitted study to one file, atomically.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import build_data, fit_study, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age},{min(90 - age, 30)}" for age in range(40, 80)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.csv"\ntargets.MMSE = {upper = 30}\n'
    ...         'model.members = ["stack"]\nmodel.cv = 2'
    ...     )
    ...     study = read_study(path)
    ...     fitted = fit_study(study, build_data(study, read_data(study)))
    ...     save_fitted(fitted, Path(folder, "study.deeptobit"))
    ...     load_fitted(Path(folder, "study.deeptobit")).encoder.features
    ['age']
    """
    model = fitted.model
    if isinstance(model, estimators.MixedTobitRegressor):
        model = model.without_people()  # their names and scores stay behind
    parts = {field.name: getattr(fitted, field.name) for field in fields(fitted)}
    # Their evidence names rows.
    parts["findings"] = tuple(one._replace(evidence="", edits=()) for one in fitted.findings)
    del parts["model"]
    state = {"model": estimators.estimator_state(model), "study": pack(parts, _CLASSES)}
    files.write_state(path, KIND, state)


def load_fitted(path: Path | str) -> FittedStudy:
    """Read the file of a fitted study; a damaged or different file is an error.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "letter.md")
    ...     _ = path.write_text("Dear colleague, here is the model.")
    ...     load_fitted(path)
    Traceback (most recent call last):
        ...
    deeptobit.exceptions.ModelFileError: ...letter.md cannot be loaded: it is not a deeptobit model
    file, or its header is too long
    """
    kind = Path(path).suffix.lower()
    if kind == ".toml":
        out = Path(path).with_suffix(".deeptobit")
        what = f"{path} is a study file, not a model: 'deeptobit fit {path}' writes {out}"
        raise ModelFileError(f"{what}, which this command reads")
    if kind in KINDS:
        what = f"{path} is a table, not a model: 'deeptobit init {path}' writes a study file for it"
        raise ModelFileError(f"{what}, and 'deeptobit fit' its model")
    _, state = files.read_state(path, KIND)
    try:
        model: Any = estimators.estimator_from_state(state["model"])
        return FittedStudy(model=model, **unpack(state["study"], _CLASSES))
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError):
        what = "comes from another version of deeptobit, which stored studies differently"
        raise ModelFileError(f"{path} {what}; fit the study again") from None


# Predictions for new rows.


def predict_rows(
    model: CensoredRegressor,
    X: pd.DataFrame,
    lower: FloatArray,
    upper: FloatArray,
    groups: NDArray[Any] | None = None,
) -> Predictive:
    """Predictive distributions of shape (N, T), σ too, within bounds of shape (T,) or (N, T).

    ``groups`` are the people of the rows, if a mixed model is to use what it knows of them.
    """
    mixed = isinstance(model, estimators.MixedTobitRegressor)
    y = (model._at(X, groups, None) if mixed else model)._predictive(X)
    return replace(y, sigma=np.broadcast_to(y.sigma, y.latent.shape), lower=lower, upper=upper)


def predicted_columns(predictive: Predictive, coverage: float) -> dict[str, FloatArray]:
    """Mean, ends of the central interval and probabilities of the bounds, by column suffix."""
    if not 0.0 < coverage < 1.0:
        raise StudyError(f"coverage must lie between 0 and 1; got {coverage:g}")
    low, high = predictive.interval(coverage)
    ends = {" low": low, " high": high}
    at_bounds = {" P(lower)": predictive.at_lower(), " P(upper)": predictive.at_upper()}
    return {"": predictive.mean()} | ends | at_bounds


def predict_table(
    fitted: FittedStudy, table: Table, *, coverage: float | None = None
) -> pd.DataFrame:
    r"""Predictions for the rows of a table; only the features are needed.

    Parameters
    ----------
    fitted : FittedStudy
    table : Table
    coverage : float, optional
        Nominal coverage of the intervals, between 0 and 1; that of the study by default.

    Returns
    -------
    DataFrame of N rows
        The id as it is written in the table, or the number of the ``row``; then for every target
        ``NAME`` its expected value E[y|x], ``NAME low`` and ``NAME high``, the ends of the central
        interval, and where it is bounded ``NAME P(lower)`` and ``NAME P(upper)``, the probability
        that y is at its bound. Last, ``outside_the_data`` names the features whose values the
        training table did not have, or says ``together``; it is blank for all other rows.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import build_data, fit_study, load_fitted, read_data, read_study
    >>> from deeptobit.app.study import save_fitted
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
    ...     predictions = predict_table(fitted, read_data(study, Path(folder, "new.csv")))
    >>> predictions.round(0)
       who  MMSE  MMSE low  MMSE high  MMSE P(upper) outside_the_data
    0  007  20.0      18.0       22.0            0.0
    """
    coverage = fitted.study.evaluation.coverage if coverage is None else coverage
    X = fitted.encoder.encode(table)
    imputed = {c.name: n for c in fitted.encoder.columns if (n := table.n_blank(c.name))}
    if imputed:
        what = f"{sum(imputed.values())} missing cell(s) are filled with the means"
        message = f"{table.file}: {what} of the training table, in {listed(imputed)}"
        warnings.warn(message, stacklevel=2)
    lower, upper = read_limits(fitted.study, table)
    found = predicted_columns(predict_rows(fitted.model, X, lower, upper), coverage)
    bounded = {" P(lower)": np.isfinite(lower), " P(upper)": np.isfinite(upper)}
    key = fitted.study.data.id  # ids are copied without a check
    columns: list[tuple[str, Any]] = [("row", np.arange(1, len(table) + 1))]
    if key is not None and key in table.columns:
        columns = [(key, table.text(key).tolist())]
    for task, name in enumerate(fitted.model.target_names_):
        columns += [
            (name + what, values[:, task])
            for what, values in found.items()
            if what not in bounded or bounded[what][:, task].any()
        ]
    if fitted.ranges is not None:
        columns.append((OUTSIDE, _outside(fitted.ranges, X, table)))
    twice = [name for name, times in Counter(name for name, _ in columns).items() if times > 1]
    if twice:
        raise StudyError(f"columns of the predictions would share a name: {listed(twice)}")
    return pd.DataFrame(dict(columns))


OUTSIDE = "outside_the_data"
_MOST_WARNINGS = 10


def _outside(ranges: FeatureRanges, X: pd.DataFrame, table: Table) -> list[str]:
    """Features of every row that are outside the data, by name; a warning for every cell."""
    matrix = X.to_numpy(dtype=np.float64)
    cells = ranges.outside(matrix)
    together = ranges.distance(matrix) > ranges.farthest
    names = np.array(ranges.names, dtype=object)
    for row, place in np.argwhere(cells)[:_MOST_WARNINGS].tolist():
        name, value = str(names[place]), float(matrix[row, place])
        low, high = float(ranges.low[place]), float(ranges.high[place])
        guess = guess_unit(name, value, low, high)
        where = f"{table.file}, line {table.lines[row]}"
        known = f"training {low:.3g}–{high:.3g}{guess and f': {guess}?'}"
        warnings.warn(f"{where}: {name} {value:g}, {known}", stacklevel=3)
    if (more := int(cells.sum()) - _MOST_WARNINGS) > 0:
        warnings.warn(f"{more} more cells are outside the data", stacklevel=3)
    found = [", ".join(names[row]) for row in cells]
    return [name or ("together" if far else "") for name, far in zip(found, together, strict=True)]


# Predictions as they are written: beside the columns of the table, with as many digits as matter.


def with_input(predictions: pd.DataFrame, table: Table) -> pd.DataFrame:
    """The table, then predictions; a column with a prediction's name becomes ``NAME (given)``."""
    given = table.cells.reset_index(drop=True)
    predicted = predictions.iloc[:, 1:]  # the first column is the id, or the number of the row
    given = given.rename(columns={name: f"{name} (given)" for name in predicted})
    return pd.concat([given, predicted], axis=1)


def rounded(predictions: pd.DataFrame, fitted: FittedStudy) -> pd.DataFrame:
    """Three digits of the spread of every target, four of probabilities."""
    spread = np.nanstd(fitted.held_out.targets.values, axis=0)
    digits = np.clip(2.0 - np.floor(np.log10(np.where(spread > 0.0, spread, 0.1))), 0, 15)
    places: dict[str, int] = {}
    for name, number in zip(fitted.model.target_names_, digits.astype(int).tolist(), strict=True):
        places |= {name + what: number for what in ("", " low", " high")}
        places |= {name + what: 4 for what in (" P(lower)", " P(upper)")}
    return predictions.round(places)
