"""What the numbers say, in sentences for someone who knows the outcomes and not the model."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from deeptobit.app.report.privacy import count
from deeptobit.app.study import FEWEST, MEASURES, FittedStudy

UNKNOWN = "–"
OFTEN = 0.1  # share of the values at a bound


def number(value: float, digits: int = 2) -> str:
    """A number with a fixed number of decimals and a real minus sign.

    Examples
    --------
    >>> number(-0.126), number(-0.001), number(float("nan"))
    ('−0.13', '0.00', '–')
    """
    return UNKNOWN if np.isnan(value) else f"{value:z,.{digits}f}".replace("-", "−")


def significant(value: float) -> str:
    """Three significant digits, for measures in units of their outcome.

    Examples
    --------
    >>> significant(0.012345), significant(1.5), significant(12345.6)
    ('0.0123', '1.50', '12,346')
    """
    magnitude = abs(value)
    if magnitude < 0.1:
        return f"{value:.3g}".replace("-", "−")
    return number(value, 0 if magnitude >= 100.0 else 1 if magnitude >= 10.0 else 2)


def percent(value: float, digits: int = 0) -> str:
    """A share as a percentage.

    Examples
    --------
    >>> percent(0.1234), percent(0.905, 1), percent(float("nan"))
    ('12 %', '90.5 %', '–')
    """
    return UNKNOWN if np.isnan(value) else f"{number(100.0 * value, digits)} %"


def measured(name: str, value: float) -> str:
    """The value of one of the measures, in the style of that measure.

    Examples
    --------
    >>> measured("r2", 0.4567), measured("crps", 0.4567), measured("coverage", 0.4567)
    ('0.46', '0.46', '46 %')
    """
    measure = MEASURES[name]
    if measure.style == "decimal":
        return number(value, measure.digits)
    return significant(value) if measure.style == "significant" else percent(value)


def bound(value: float) -> str:
    """A bound of a scale: a number, ``open``, or ``by row`` if it differs from row to row.

    Examples
    --------
    >>> bound(30.0), bound(float("inf")), bound(float("nan"))
    ('30', 'open', 'by row')
    """
    if np.isnan(value):
        return "by row"
    return f"{value:g}".replace("-", "−") if np.isfinite(value) else "open"


def listed(names: Sequence[str], shown: int = 6) -> str:
    """The first names, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], shown=1), listed(["a"])
    ('a, b and c', 'a and 2 more', 'a')
    """
    parts = list(names[:shown])
    if len(names) > shown:
        parts.append(f"{len(names) - shown} more")
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def plural(value: int, noun: str) -> str:
    """A number and its noun, in the plural unless the number is one.

    Examples
    --------
    >>> plural(1, "outcome"), plural(30, "outcome")
    ('1 outcome', '30 outcomes')
    """
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


# What was done.


def count_bounded(table: pd.DataFrame) -> tuple[int, int]:
    """How many outcomes are recorded between bounds, and how many are often at one of them."""
    ends = table[["lower", "upper"]]
    bounded = (np.isfinite(ends) | ends.isna()).any(axis=1)  # NaN: they differ by row
    often = table["at_lower"] + table["at_upper"] >= OFTEN
    return int(bounded.sum()), int(often.sum())


def held_out_rows(fitted: FittedStudy, min_count: int = FEWEST) -> str:
    """Which rows a model is measured on, without a full stop."""
    n_groups = fitted.n_groups
    if fitted.mixed:
        rows = f"The last visits of people ({fitted.n_held_out:,}) were forecast from their earlier"
        return f"{rows} ones, by models that had not seen them"
    if fitted.streamed:
        others = "" if n_groups is None else ", nor any other row of their groups"
        rows = f"Of the rows, {fitted.n_held_out:,} were held out at random: the model has not seen"
        return f"{rows} them{others}"
    kept = "" if n_groups is None else f"{count(n_groups, min_count)} groups kept together"
    others = f", nor any other row of its group ({kept})" if kept else ""
    return f"Each row was predicted by a model that had not seen it{others}"


# How well it went.


def without_gain(table: pd.DataFrame) -> list[str]:
    """Outcomes that the features do not help to predict."""
    better = (table["r2"] > 0.0) & (table["crps"] < table["null_crps"])
    return [str(name) for name in table.index[~better]]


def undercovered(table: pd.DataFrame, coverage: float) -> list[str]:
    """Outcomes whose coverage is below the nominal one by over three standard deviations."""
    spread = np.sqrt(coverage * (1.0 - coverage) / np.maximum(table["entries"], 1))
    return [str(name) for name in table.index[table["coverage"] < coverage - 3.0 * spread]]


def cautions(fitted: FittedStudy, table: pd.DataFrame) -> list[str]:
    """Where not to rely on the model."""
    constant = [str(name) for name in table.index[table["r2"].isna()]]
    useless = [name for name in without_gain(table) if name not in constant]
    narrow = undercovered(table, fitted.held_out.coverage)

    leaks = [finding.about for finding in fitted.findings if finding.kind == "leak"]

    coverage = percent(fitted.held_out.coverage)
    sentences = {
        "Too good to be true: {} may tell the outcome itself, which is not known of new people. "
        "See the warnings about the data.": list(dict.fromkeys(leaks)),
        "All held-out values of {} are the same, so there is no variance to explain.": constant,
        "The features do not help to predict {}: R² is not above 0, or the predicted distribution "
        "is no better than that of a model without features.": useless,
        f"The {coverage} intervals of {{}} are too narrow: they hold fewer values than chance "
        "explains. Do not read them as a range for one person.": narrow,
    }
    several = list(table.index) if len(table) > 1 else []
    return [
        text.replace("{}", "any outcome" if names == several else listed(names, 12))
        for text, names in sentences.items()
        if names
    ]


# What the pictures show.


def reliability_words(errors: dict[str, float | None]) -> str:
    """How far predicted probabilities of the bounds are off; None if there are too few values."""
    if not errors:
        return "No outcome has a bound, so there is no probability of one to check."
    told = {side: number(100.0 * error, 1) for side, error in errors.items() if error is not None}
    distances = [f"{points} percentage points at the {side} bound" for side, points in told.items()]
    few = "Too few values are at the {} bound, or off it, for a number.".format
    sentences = [few(side) for side in errors if side not in told]
    if told:
        both = " and ".join(distances)
        sentences.insert(0, f"On average, predicted and observed shares differ by {both}.")
    return " ".join(sentences)
