"""The tables of a comparison, as text."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, isnan, log10, nan
from typing import TYPE_CHECKING

from deeptobit.experiments._summary import MEASURES, summarise, targets_table, verdict

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.experiments._evaluate import Evaluation


@dataclass(frozen=True)
class TextTable:
    """Cells as text; the best ones are marked."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]]


def table_by_share(evaluation: Evaluation, measure: str) -> TextTable:
    """Methods in rows, shares in columns, as in the paper: mean±standard deviation."""
    summary = summarise(evaluation)
    summary = summary[summary["measure"] == measure]
    shares = list(dict.fromkeys(summary["share"]))
    return _table(
        summary,
        f"{MEASURES[measure].title} by share to train on",
        {f"{share:.0%}": summary["share"] == share for share in shares},
    )


def table_of_measures(evaluation: Evaluation) -> TextTable:
    """Methods in rows, measures in columns, means over all splits."""
    # A spread would mix what shares and chance do.
    summary = summarise(evaluation, over_shares=True).assign(sd=nan)
    columns = {m.title: summary["measure"] == name for name, m in MEASURES.items()}
    return _table(summary, "Means over all splits", columns)


def table_of_targets(evaluation: Evaluation) -> TextTable:
    """R² of every target and method, over all splits."""
    r2 = targets_table(evaluation.results)
    rows = tuple(
        (str(name), *(f"{value:.3f}" for value in row))
        for name, row in zip(r2.index, r2.to_numpy(), strict=True)
    )
    winners = r2.to_numpy().argmax(axis=1)
    best = frozenset((row, int(column) + 1) for row, column in enumerate(winners))
    return TextTable("R² by target, all splits", ("target", *map(str, r2.columns)), rows, best)


def notes(evaluation: Evaluation) -> list[str]:
    """What a reader of the tables should know."""
    protocol, results = evaluation.protocol, evaluation.results
    lines = verdict(evaluation)
    n_splits = len(results[["share", "repeat"]].drop_duplicates())
    lines.append(
        f"Mean ± standard deviation over splits ({n_splits} in all, seed {protocol.seed}); "
        f"intervals of {protocol.coverage:.0%}; CRPS and width in standard deviations of a target."
    )
    per_fit = results.drop_duplicates(["share", "repeat", "method"])
    warned = per_fit[per_fit["warnings"] > 0]
    if len(warned):
        counts = warned.groupby("method", sort=False).size()
        named = ", ".join(f"{method} in {count}" for method, count in counts.items())
        lines.append(f"Warnings of fits: {named} of {n_splits} splits.")
    reasons: dict[tuple[str, str], int] = {}
    for skipped in evaluation.skipped:
        key = (skipped.target, skipped.reason)
        reasons[key] = reasons.get(key, 0) + 1
    lines += [
        f"{target} is left out of {count} split(s), for all methods: {reason}."
        for (target, reason), count in reasons.items()
    ]
    return lines


def _table(summary: pd.DataFrame, title: str, columns: dict[str, pd.Series[bool]]) -> TextTable:
    methods = list(dict.fromkeys(summary["method"]))
    digits = [_digits(summary[chosen]["mean"].abs().max()) for chosen in columns.values()]
    rows, best = [], set()
    for i, method in enumerate(methods):
        cells = [str(method)]
        for j, chosen in enumerate(columns.values(), start=1):
            entry = summary[chosen & (summary["method"] == method)].iloc[0]
            places = digits[j - 1]
            spread = "" if isnan(entry["sd"]) else f"±{entry['sd']:.{places}f}"
            cells.append(f"{entry['mean']:.{places}f}{spread}")
            if entry["best"]:
                best.add((i, j))
        rows.append(tuple(cells))
    return TextTable(title, ("method", *columns), tuple(rows), frozenset(best))


def _digits(largest: float) -> int:
    """Places after the point: three, or as many as show three digits of the largest number."""
    return max(3, 2 - floor(log10(largest))) if largest > 0.0 else 3
