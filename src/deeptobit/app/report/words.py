"""What the numbers say, in sentences for someone who knows the outcomes and not the model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deeptobit.app.report.format import count, number, part, percent, some, times
from deeptobit.app.study import FEWEST, Finding
from deeptobit.arrays import FloatArray
from deeptobit.inspection import bound_calibrations, pit_values
from deeptobit.likelihood import Predictive
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.app.study import FittedStudy
    from deeptobit.app.study.fitted import StudyModel


# The directions that outcomes share, and which outcomes are moved alike.

_LISTED = 5  # loadings of each kind in a sentence
_LEAST = 0.005  # share of a component; below it is 0 %, whatever its loadings


class Directions(NamedTuple):
    """Loadings by component, strongest first.

    Parameters
    ----------
    features : DataFrame of shape (D, R)
    targets : DataFrame of shape (T, R)
    shares : list of R str
        Of all effects.
    """

    features: pd.DataFrame
    targets: pd.DataFrame
    shares: list[str]


class Component(NamedTuple):
    """A direction in words."""

    number: str
    share: str
    features: list[str]
    targets: list[str]


class Likeness(NamedTuple):
    """Two outcomes and the cosine between the effects that features have on them."""

    first: str
    second: str
    cosine: float


def shared_directions(
    model: StudyModel,
    most: int,
    rare: Mapping[str, str] | None = None,
) -> Directions | None:
    """Of the first layer, which reads the features; None if no feature has an effect.

    The features in ``rare`` are called by the names there.
    """
    import pandas as pd

    # Two rows that have the standard deviations of the table stand for all of it.
    spread = np.vstack([model.feature_scale_, -model.feature_scale_])
    rows = pd.DataFrame(spread, columns=model.feature_names_in_)
    strongest = model.subspaces(0, rows)[:most]
    found = [subspace for subspace in strongest if subspace.share >= _LEAST]
    if not found:
        return None
    table = np.column_stack([subspace.to_frame()["loading"].to_numpy() for subspace in found])
    n_features, numbers = len(found[0].features), [str(subspace.number) for subspace in found]
    features = [(rare or {}).get(name, name) for name in found[0].features]
    return Directions(
        pd.DataFrame(table[:n_features], index=features, columns=numbers),
        pd.DataFrame(table[n_features:], index=list(found[0].targets), columns=numbers),
        [percent(subspace.share) for subspace in found],
    )


def in_words(directions: Directions) -> list[Component]:
    """The largest loadings of every component, with their signs."""
    features, targets, shares = directions
    return [
        Component(number, share, _largest(features[number]), _largest(targets[number]))
        for number, share in zip(features.columns, shares, strict=True)
    ]


def _largest(loadings: pd.Series[float]) -> list[str]:
    """Names and signs; what is a tenth of the largest is left out."""
    sizes = loadings.abs()
    order = np.argsort(-sizes.to_numpy(), kind="stable")[:_LISTED]
    kept = [k for k in order if sizes.iloc[k] > 0.1 * sizes.max()]
    return [f"{'+' if loadings.iloc[k] > 0 else '−'}\u00a0{loadings.index[k]}" for k in kept]


def task_cosines(model: StudyModel) -> pd.DataFrame:
    """Cosines between the effects of the features on two outcomes, in the first layer, (T, T)."""
    import pandas as pd

    effects = model.coef_ * model.feature_scale_
    lengths = np.linalg.norm(effects, axis=1, keepdims=True)
    unit = effects / np.where(lengths > 0.0, lengths, 1.0)
    names = list(model.target_names_)
    return pd.DataFrame(np.clip(unit @ unit.T, -1.0, 1.0), index=names, columns=names)


def most_alike(cosines: pd.DataFrame) -> Likeness | None:
    """The two outcomes that are moved most alike; None where there is one alone."""
    values = cosines.to_numpy().copy()
    if len(values) < 2:
        return None
    np.fill_diagonal(values, -np.inf)
    first, second = sorted(int(k) for k in np.unravel_index(values.argmax(), values.shape))
    return Likeness(str(cosines.index[first]), str(cosines.index[second]), values[first, second])


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


# What ``check`` found, without what could point to a person.

_OF_GROUPS = re.compile(r"\b(\d+) of (\d+)(?= groups\b)")
_REWRITTEN = (
    (re.compile(r"(?:\bonly )?\b[1-4](?= (?:values|rows|groups)\b)"), f"fewer than {FEWEST}"),
    # A share near 1 of few rows tells how many the others are.
    (re.compile(r"^\d+%(?= of the values are at its )"), "nearly all"),
    (re.compile(r"^(its largest group has) \d+%(?= of the rows)"), r"\1 most"),
    (re.compile(rf"^(categories with fewer than {FEWEST} rows): .*"), r"\1"),
)


class Remark(NamedTuple):
    """A finding as it may be published."""

    level: str
    about: str
    message: str


def published(
    findings: Sequence[Finding], rare: Mapping[str, str] | None = None, fewest: int = FEWEST
) -> list[Remark]:
    """Warnings first; counts under five are left out, and categories of so few rows.

    Parameters
    ----------
    findings : sequence of Finding
    rare : mapping, optional
        Features that are to be called by other names.
    fewest : int
        With 1, everything is told.

    Examples
    --------
    >>> remarks = published([Finding("note", "rows", "3 rows have no outcome and are left out"),
    ...                      Finding("warning", "MMSE", "only 12 values lie between its bounds")])
    >>> [remark.message for remark in remarks]
    ['only 12 values lie between its bounds', 'fewer than 5 rows have no outcome and are left out']
    """
    ordered = sorted(findings, key=lambda finding: finding.level != "warning")
    if fewest < FEWEST:
        return [Remark(*finding) for finding in ordered]
    names = rare or {}
    return [
        Remark(level, names.get(about, about), _without_few(message, names))
        for level, about, message in ordered
    ]


def _without_few(message: str, names: Mapping[str, str]) -> str:
    message = _OF_GROUPS.sub(lambda n: f"{part(int(n[1]), int(n[2]))} of {n[2]}", message)
    for pattern, instead in _REWRITTEN:
        message = pattern.sub(instead, message)
    for name, instead in names.items():
        message = message.replace(repr(name), repr(instead))
    return message


# How far predicted probabilities of the bounds are from what happened.

N_BINS = 10
_COARSER = (N_BINS, 5, 2, 1)  # bins of the histogram, each of them neighbours merged


def bound_errors(
    targets: CensoredTargets, predictive: Predictive, fewest: int = FEWEST
) -> dict[str, float | None]:
    """Mean distance between predicted and observed shares, by the side that has bounds.

    None where fewer are at the bound, or off it, than are told: where the probability of a bound
    is next to 0, the distance is their share.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds([[0.0], [1.0], [0.0], [2.0]], lower=0)
    >>> predictive = Predictive(Gaussian(), np.zeros((4, 1)), np.ones(1), targets.lower)
    >>> bound_errors(targets, predictive), bound_errors(targets, predictive, fewest=1)
    ({'lower': None}, {'lower': 0.0})
    """
    errors: dict[str, float | None] = {}
    for side, found in bound_calibrations(targets, predictive, N_BINS).items():
        there = round(float(found.observed @ found.count))
        few = any(0 < n < fewest for n in (there, round(float(found.count.sum())) - there))
        errors[side] = None if few else found.expected_error
    return errors


def histogram_bins(targets: CensoredTargets, predictive: Predictive, fewest: int = FEWEST) -> int:
    """How many bins the histogram of places may have, so that none tells a small count.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> targets = CensoredTargets.from_bounds(np.linspace(-2.0, 2.0, 12)[:, None])
    >>> predictive = Predictive(Gaussian(), np.zeros((12, 1)), np.ones(1))
    >>> histogram_bins(targets, predictive), histogram_bins(targets, predictive, fewest=1)
    (2, 10)
    """
    places = pit_values(targets, predictive)
    for n_bins in _COARSER:
        counts, _ = np.histogram(places, n_bins, (0.0, 1.0))
        if not ((counts > 0) & (counts < fewest)).any():
            return n_bins
    return 1
