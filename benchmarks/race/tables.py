"""Tables of the race as text, for the page and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import NamedTuple

from benchmarks.race.missing import SHARES, name_of
from benchmarks.race.ours import NAME
from benchmarks.race.summary import RANKED, Summary
from deeptobit.app.report.words import UNKNOWN, number, percent
from deeptobit.app.report.words import plural as count_of

# Of a method compared with deeptobit; a method that is ahead is a loss of ours.
MARKS = {"behind": "▼", "level": "", "ahead": "▲"}


class Cell(NamedTuple):
    """A number as text, whether it is the best of its column, and how it compares with ours."""

    text: str
    best: bool = False
    verdict: str = "level"

    @property
    def mark(self) -> str:
        """A sign for the verdict."""
        return MARKS[self.verdict]


class Row(NamedTuple):
    """A method and its cells."""

    name: str
    cells: list[Cell]


class Table(NamedTuple):
    """A table with its heading."""

    title: str
    about: str
    columns: list[str]
    rows: list[Row]


_COLUMNS = {
    "centred_anmse": "ANMSE",
    "r2": "R²",
    "crps": "CRPS",
    "log_score": "Log score",
    "coverage": "Coverage",
    "width": "Width",
    "pit_distance": "PIT",
    "bound_error": "Bounds",
    "seconds": "Seconds",
    "megabytes": "MB",
}


def table_of(summary: Summary, data: str) -> Table:
    """All methods on one data set, best ANMSE first."""
    means = summary.on(data)
    n_splits = means["n_splits"].loc[NAME]
    rows = []
    for name, values in means.iterrows():
        cells = []
        for measure in _COLUMNS:
            value = float(values[measure])
            best = measure in RANKED and value == means[measure].min()
            verdict = "level"
            if measure in RANKED and name != NAME:
                verdict = summary.compare(data, str(name), measure).verdict
            cells.append(Cell(_text(measure, value), best, verdict))
        part = f" ({values['n_splits']:g} of {n_splits:g} splits)"
        rows.append(Row(str(name) + (part if values["n_splits"] < n_splits else ""), cells))
    return Table(data, _about(summary, data), list(_COLUMNS.values()), rows)


def table_of_ranks(summary: Summary, measure: str, title: str, names: Sequence[str]) -> Table:
    """Ranks on every data set and their average, best first."""
    ranks = summary.ranks(measure, list(names))
    average = ranks.mean().sort_values(kind="stable")
    rows = [
        Row(name, [Cell(number(average[name], 2)), *(Cell(f"{rank:g}") for rank in ranks[name])])
        for name in average.index
    ]
    return Table(title, "", ["Average", *ranks.index], rows)


def table_of_verdicts(summary: Summary) -> Table:
    """Wins, ties and losses of deeptobit against every method, over data sets."""
    rows = []
    for name in summary.names[1:]:
        cells = []
        there = [data for data in summary.data if (data, name) in summary.means.index]
        for measure in RANKED:
            found = [summary.compare(data, name, measure).verdict for data in there]
            counts = [found.count(verdict) for verdict in MARKS]
            cells.append(Cell(" / ".join(str(count) for count in counts)))
        rows.append(Row(name, cells))
    columns = [_COLUMNS[measure] for measure in RANKED]
    return Table("Wins, ties and losses", "", columns, rows)


def table_of_missing(summary: Summary) -> Table | None:
    """CRPS of deeptobit with outcomes deleted; None if that was not raced."""
    crps = summary.missing
    names = [name_of(share, impute=impute) for share in SHARES for impute in (False, True)]
    if not {NAME, *names} <= set(crps.columns):
        return None
    columns = ["All outcomes"]
    for share in SHARES:
        columns += [f"{100 * share:g} % missing", f"{100 * share:g} % imputed"]
    rows = []
    for data, values in crps.iterrows():
        cells = [Cell(number(float(values[NAME]), 4))]
        for place in range(0, len(names), 2):
            pair = [float(values[name]) for name in names[place : place + 2]]
            cells += [Cell(number(value, 4), value == min(pair)) for value in pair]
        rows.append(Row(str(data), cells))
    return Table("Missing outcomes", "", columns, rows)


def as_markdown(table: Table, first: str) -> str:
    """A table of Markdown; the best is bold, ▲ and ▼ are significant differences from ours."""
    head = [first, *table.columns]
    lines = [f"| {' | '.join(head)} |", "|---" + "|---:" * len(table.columns) + "|"]
    for row in table.rows:
        cells = [f"**{c.text}**" if c.best else c.text for c in row.cells]
        marked = [f"{text}{c.mark}" for text, c in zip(cells, row.cells, strict=True)]
        lines.append(f"| {' | '.join([row.name, *marked])} |")
    return "\n".join(lines)


def _about(summary: Summary, data: str) -> str:
    rows = summary.results[(summary.results["data"] == data) & (summary.results["name"] == NAME)]
    first = rows.iloc[0]
    share = percent(float(summary.on(data)["at_bound"].loc[NAME]))
    outcomes = rows.groupby("split")["target"].nunique().max()
    return (
        f"{first['n_train']:.0f} rows to train on, {first['n_test']:.0f} to test on, "
        f"{count_of(int(first['n_features']), 'feature')}, {count_of(int(outcomes), 'outcome')}, "
        f"{share} of entries at a bound; means over {count_of(rows['split'].nunique(), 'split')}."
    )


def _text(measure: str, value: float) -> str:
    if isnan(value):
        return UNKNOWN
    if measure == "coverage":
        return percent(value, 1)
    digits = {"seconds": 1, "megabytes": 0, "width": 2}
    return number(value, digits.get(measure, 3))
