"""What the numbers say, in sentences for someone who knows the outcomes and not the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.report._directions import Likeness
from deeptobit.report._format import count, number, percent, some, times
from deeptobit.study import FEWEST

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.study import FittedStudy

_OFTEN = 0.1  # at a bound
_OPPOSITE = -0.5  # of three outcomes, two are at least as much alike


class KeyFigure(NamedTuple):
    """A number that stands out at the top of the page."""

    value: str
    label: str


def the_study(fitted: FittedStudy, table: pd.DataFrame, fewest: int = FEWEST) -> str:
    """What was predicted from what, and how it was measured."""
    n_columns, n_features = len(fitted.encoder.columns), len(fitted.encoder.features)
    encoded = "" if n_columns == n_features else f" ({times(n_features, 'number')} once encoded)"
    bounded = np.isfinite(table["lower"]) | np.isfinite(table["upper"])
    bounded |= table["lower"].isna() | table["upper"].isna()
    often = int(((table["at_lower"] + table["at_upper"]) >= _OFTEN).sum())
    return (
        f"The study predicts {times(len(table), 'outcome')} from "
        f"{times(n_columns, 'feature')}{encoded} in {count(fitted.n_rows, fewest)} rows. "
        f"{_bounds(len(table), int(bounded.sum()), often)}"
        f"{_held_out(fitted, fewest)}"
    )


def _held_out(fitted: FittedStudy, fewest: int) -> str:
    if fitted.streamed:
        return f"{held_out_by_lot(fitted)}; every number below is about them."
    return (
        f"Each row was predicted by a model that had not seen it{_groups(fitted, fewest)}; every "
        "number below is from these held-out predictions. The model itself was then refitted to "
        "all rows."
    )


def held_out_by_lot(fitted: FittedStudy) -> str:
    """Which rows of a table beyond memory the model is judged by, without a full stop."""
    alike = "" if fitted.n_groups is None else ", nor any other row of their groups"
    return (
        f"Of the rows, {fitted.n_held_out:,} were held out by lot: the model has not seen "
        f"them{alike}"
    )


def _bounds(n_outcomes: int, bounded: int, often: int) -> str:
    if bounded == 0:
        return ""
    subject, piled = _one_bounded(n_outcomes, often)
    if bounded > 1:
        subject = "All are" if bounded == n_outcomes else f"{bounded} of the {n_outcomes} are"
        some_of = "none" if often == 0 else str(often)
        piled = f"{some_of} of them {'have' if often > 1 else 'has'} 10 % or more of the values"
    return (
        f"{subject} recorded between bounds, and {piled} at one; the model takes such a value as "
        "“at least” or “at most”, not as exact. "
    )


def _one_bounded(n_outcomes: int, often: int) -> tuple[str, str]:
    subject = "It is" if n_outcomes == 1 else f"1 of the {n_outcomes} is"
    return subject, f"{'10 % or more' if often else 'less than 10 %'} of its values are"


def _groups(fitted: FittedStudy, fewest: int) -> str:
    if fitted.n_groups is None:
        return ""
    kept = f"{count(fitted.n_groups, fewest)} groups kept together"
    return f", nor any other row of its group ({kept})"


def the_result(table: pd.DataFrame) -> str:
    """How much is explained, of what most and of what least."""
    r2 = table["r2"].dropna()
    if r2.empty:
        return "No outcome varies enough to say how well it is predicted."
    if len(r2) == 1:
        return f"In rows it had not seen, the model {_explains(r2.iloc[0], str(r2.index[0]))}."
    best, worst = str(r2.idxmax()), str(r2.idxmin())
    return (
        f"{_explains_all(r2)} It predicts {best} best (R² {number(r2.max())}) and {worst} "
        f"{'not at all' if r2.min() <= 0.0 else 'least'} (R² {number(r2.min())})."
    )


def _explains_all(r2: pd.Series[float]) -> str:
    mean, across = float(r2.mean()), f"Across {len(r2)} outcomes the model"
    if mean <= 0.0:
        return (
            f"{across} does not explain the variance in rows it had not seen: on average it is no "
            f"better than predicting the mean (R² {number(mean)})."
        )
    return (
        f"{across} explains {percent(mean)} of the variance in rows it had not seen (without "
        "features: 0 %)."
    )


def _explains(r2: float, name: str) -> str:
    if r2 <= 0.0:
        return f"does not explain the variance of {name} (R² {number(r2)})"
    return f"explains {percent(r2)} of the variance of {name} (without features: 0 %)"


def key_figures(fitted: FittedStudy, table: pd.DataFrame) -> list[KeyFigure]:
    """Four numbers that a reader should remember."""
    change = (table["crps"] / table["null_crps"].where(table["null_crps"] > 0.0)).mean() - 1.0
    helped = len(table) - len(unhelped(table))
    promised = percent(fitted.held_out.coverage)
    return [
        KeyFigure(number(table["r2"].mean()), "mean R², the share of variance explained"),
        KeyFigure(f"{helped} of {len(table)}", "outcomes predicted better than without features"),
        KeyFigure(
            percent(abs(change), 1),
            f"{'higher' if change > 0.0 else 'lower'} CRPS, the error of the predicted "
            "distribution, than without features",
        ),
        KeyFigure(percent(table["coverage"].mean()), f"of values inside their {promised} interval"),
    ]


def unhelped(table: pd.DataFrame) -> list[str]:
    """Outcomes that the features do not help to predict."""
    better = (table["r2"] > 0.0) & (table["crps"] < table["null_crps"])
    return [str(name) for name in table.index[~better]]


def undercovered(table: pd.DataFrame, promised: float) -> list[str]:
    """Outcomes whose intervals hold fewer values than promised, by more than three deviations."""
    spread = np.sqrt(promised * (1.0 - promised) / np.maximum(table["entries"], 1))
    return [str(name) for name in table.index[table["coverage"] < promised - 3.0 * spread]]


def cautions(fitted: FittedStudy, table: pd.DataFrame) -> list[str]:
    """Where not to rely on the model."""
    found = []
    constant = [str(name) for name in table.index[table["r2"].isna()]]
    useless = [name for name in unhelped(table) if name not in constant]
    narrow = undercovered(table, fitted.held_out.coverage)
    if constant:
        found.append(
            f"All held-out values of {_which(constant, table)} are the same, so that there is "
            "nothing to explain and no R²."
        )
    if useless:
        found.append(
            f"The features do not help to predict {_which(useless, table)}: R² is not above 0, or "
            "the predicted distribution is no better than that of a model without features."
        )
    if narrow:
        promised = percent(fitted.held_out.coverage)
        found.append(
            f"The {promised} intervals of {_which(narrow, table)} are too narrow: they hold fewer "
            "values than chance explains. Do not read them as a range for one person."
        )
    return found


def _which(names: list[str], table: pd.DataFrame) -> str:
    return "any outcome" if len(names) == len(table) > 1 else some(names, 12)


def reliability_words(errors: dict[str, float | None]) -> str:
    """How far probabilities of the bounds are off; None where too few values would tell."""
    if not errors:
        return "No outcome has a bound, so there is no probability of one to check."
    told = [
        f"{number(100.0 * error, 1)} percentage points at the {side} bound"
        for side, error in errors.items()
        if error is not None
    ]
    few = [
        f"At the {side} bound, or off it, are too few values for a number."
        for side, error in errors.items()
        if error is None
    ]
    differ = [f"On average, predicted and observed shares differ by {' and '.join(told)}."]
    return " ".join((differ if told else []) + few)


def layer_words(errors: FloatArray) -> str:
    """What depth brings."""
    if len(errors) == 1:
        return "All models that predicted held-out rows have one layer."
    first, last = errors[0].mean(), errors[-1].mean()
    verb = "lowers" if last < first else "does not lower"
    return (
        f"Going from one layer to {len(errors)} {verb} the mean error: {number(first, 3)} after "
        f"the first, {number(last, 3)} after the last."
    )


def likeness_words(alike: Likeness) -> str:
    """Which outcomes go together, if any do."""
    both = f"{alike.first} and {alike.second}"
    if alike.cosine < _OPPOSITE:
        return (
            f"The features move {both} in opposite directions (cosine {number(alike.cosine)}): "
            "what raises one lowers the other."
        )
    if alike.cosine <= 0.0:
        return (
            f"The features move no two outcomes alike; {both} come closest (cosine "
            f"{number(alike.cosine)})."
        )
    return f"The features move {both} most alike (cosine {number(alike.cosine)})."
