"""A comparison summarised: means over splits, best methods, ties, and tables."""

from collections import Counter
from math import floor, isnan, log10, nan
from typing import Any, NamedTuple

import pandas as pd

from deeptobit.app.study.evaluation import Evaluation
from deeptobit.app.study.measures import MEASURES, Cell


def _columns() -> dict[str, tuple[str, str]]:
    """Title of every measure and which value is better; seconds are compared beside them."""
    titles = {name: (of.title + " (sd)" * of.in_units, of.better) for name, of in MEASURES.items()}
    return {**titles, "seconds": ("seconds", "")}


def by_split(results: pd.DataFrame) -> pd.DataFrame:
    """Mean over targets of every measure, by method, share and repeat.

    Measures in units of the target, as CRPS, are divided by its standard deviation first, so that
    targets with large numbers do not dominate.
    """
    in_units = [name for name, measure in MEASURES.items() if measure.in_units]
    scaled = results.assign(**{name: results[name] / results["scale"] for name in in_units})
    return scaled.groupby(["method", "share", "repeat"], sort=False)[list(_columns())].mean()


def summarise(evaluation: Evaluation, *, over_shares: bool = False) -> pd.DataFrame:
    """Mean and standard deviation over splits of every measure.

    Parameters
    ----------
    over_shares : bool
        Whether to average over training shares as well.

    Returns
    -------
    DataFrame
        One row per method, share (unless averaged over) and measure, with ``mean``, ``sd`` (NaN
        for a single split), ``splits``, ``best``, and ``tie``: not distinguishable from the best
        (see :func:`_is_tied`).

    Examples
    --------
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.app.study import Protocol, data_of_cohort, evaluate, make_methods
    >>> data = data_of_cohort(make_clinical_cohort(80, random_state=0), "simulated")
    >>> found = evaluate(data, make_methods(["null"]), Protocol(train_shares=(0.5,), repeats=2))
    >>> summarise(found).loc[0, ["share", "method", "measure", "splits"]].to_list()
    [np.float64(0.5), 'null', 'mae', np.int64(2)]
    """
    table = by_split(evaluation.results)
    shares: Any = [("all", table)] if over_shares else list(table.groupby("share"))
    parts = []
    for name, (_, better) in _columns().items():
        for share, rows in shares:
            splits = rows[name].unstack("method", sort=False)
            mean = splits.mean()
            distance = mean * {"lower": 1.0, "higher": -1.0}.get(better, nan)
            if better == "nominal":
                distance = (mean - evaluation.protocol.coverage).abs()
            best = distance == distance.min()
            ahead = splits.loc[:, best].iloc[:, 0] if best.any() else nan
            ties = [not best[method] and _is_tied(splits[method] - ahead) for method in splits]
            numbers = {"mean": mean, "sd": splits.std(), "splits": len(splits), "best": best}
            part = pd.DataFrame({"measure": name, "share": share, **numbers, "tie": ties})
            parts.append(part.rename_axis("method").reset_index())
    found = pd.concat(parts, ignore_index=True)
    return found.drop(columns="share") if over_shares else found


def _is_tied(difference: "pd.Series[float]") -> bool:
    """Whether the mean of paired differences is within two standard errors of 0.

    Splits share training rows, so that n of them tell less than n; the variance is therefore
    multiplied by 1/n + test/train rows (Nadeau and Bengio, 2003). One split tells nothing.
    """
    known = difference.dropna()
    if len(known) < 2:
        return False
    share = float(known.index.get_level_values("share").to_numpy(dtype=float).mean())
    spread = float(known.var()) * (1.0 / len(known) + (1.0 - share) / share)
    return bool(abs(known.mean()) <= 2.0 * spread**0.5)


def verdict(evaluation: Evaluation) -> list[str]:
    """Which method is best at which shares, and for which targets."""
    results = evaluation.results
    if results["method"].nunique() < 2:
        return []
    anmse = by_split(results)["anmse"].groupby(["share", "method"], sort=False).mean().unstack()
    leaders = {
        "Lowest ANMSE": anmse.rename("{:.0%}".format).idxmin(axis=1),
        "Highest R² over all splits": targets_table(results).idxmax(axis=1),
    }
    sentences = []
    for title, leader in leaders.items():
        places = leader.index.to_series().groupby(leader, sort=False).agg(", ".join)
        named = (f"{method} ({where})" for method, where in places.items())
        sentences.append(f"{title}: {'; '.join(named)}.")
    return sentences


def targets_table(results: pd.DataFrame, measure: str = "r2") -> pd.DataFrame:
    """A measure over all splits, targets in rows and methods in columns."""
    return results.groupby(["target", "method"], sort=False)[measure].mean().unstack("method")


# Tables of a comparison.


class ComparisonTable(NamedTuple):
    """Cells as they are read; the best are marked ``best``, those that tie with them ``tie``."""

    title: str
    headings: list[str]
    rows: list[list[Cell]]


def table_by_share(evaluation: Evaluation, measure: str) -> ComparisonTable:
    """Methods in rows, shares in columns, as in the paper: mean±standard deviation."""
    summary = summarise(evaluation)
    summary = summary[summary["measure"] == measure]
    headings = {share: f"{share:.0%}" for share in summary["share"]}
    return _table(f"{_columns()[measure][0]} by share to train on", summary, "share", headings)


def table_of_measures(evaluation: Evaluation) -> ComparisonTable:
    """Methods in rows, measures in columns, means over all splits."""
    # A standard deviation over all splits would mix shares and chance.
    summary = summarise(evaluation, over_shares=True).assign(sd=nan)
    headings = {name: title for name, (title, _) in _columns().items()}
    return _table("Means over all splits", summary, "measure", headings)


def _table(title: str, found: pd.DataFrame, key: str, headings: dict[Any, str]) -> ComparisonTable:
    """Methods in rows, and in columns the values of a key of a summary."""
    rows = {method: [Cell(method, method)] for method in found["method"]}
    for value in headings:
        column = found[found[key] == value]
        largest = column["mean"].abs().max()
        # Three decimals, or as many as show three digits of the largest number.
        digits = max(3, 2 - floor(log10(largest))) if largest > 0.0 else 3
        for of in column.to_dict("records"):
            text = f"{of['mean']:.{digits}f}"
            text += "" if isnan(of["sd"]) else f"±{of['sd']:.{digits}f}"
            mark = "best" if of["best"] else "tie" if of["tie"] else ""
            rows[of["method"]].append(_number(text, of["mean"], mark))
    return ComparisonTable(title, ["method", *headings.values()], list(rows.values()))


def _number(text: str, value: float, mark: str) -> Cell:
    return Cell(text.replace("-", "−"), None if isnan(value) else value, mark)


def table_of_targets(evaluation: Evaluation, measure: str = "r2") -> ComparisonTable:
    """One measure of every target and method over all splits, in units of the target."""
    table, one, rows = targets_table(evaluation.results, measure), MEASURES[measure], []
    for name, values in table.iterrows():
        best = values.max() if one.better == "higher" else values.min()
        texts = values.map(("{:.3g}" if one.in_units else "{:.3f}").format)
        marks = values.eq(best).map({True: "best", False: ""})
        rows.append([Cell(str(name), str(name)), *map(_number, texts, values, marks)])
    unit = ", in points" if one.in_units else ""
    title = f"{one.title[:1].upper()}{one.title[1:]} by target{unit}, all splits"
    return ComparisonTable(title, ["target", *table.columns], rows)


def notes(evaluation: Evaluation) -> list[str]:
    """Sentences below the tables: verdict, protocol, warnings, and targets left out."""
    protocol, results = evaluation.protocol, evaluation.results
    lines = verdict(evaluation)
    n_splits = len(results[["share", "repeat"]].drop_duplicates())
    spread = (
        f"Mean ± standard deviation over splits ({n_splits} in all, seed {protocol.seed}); ≈ marks "
        "what these splits cannot tell from the best"
        if n_splits > results["share"].nunique()
        else f"One split per share (seed {protocol.seed}): differences may be chance"
    )
    units = "typical error, CRPS and width in standard deviations of a target"
    lines.append(f"{spread}; intervals of {protocol.coverage:.0%}; {units}.")
    per_fit = results.drop_duplicates(["share", "repeat", "method"])
    warned = per_fit[per_fit["warnings"] > 0]
    if len(warned):
        counts = warned.groupby("method", sort=False).size()
        named = ", ".join(f"{method} in {count}" for method, count in counts.items())
        lines.append(f"Warnings of fits: {named} of {n_splits} splits.")
    skipped = Counter((skipped.target, skipped.reason) for skipped in evaluation.skipped)
    return lines + [
        f"{target} is left out of {count} split(s), for all methods: {reason}."
        for (target, reason), count in skipped.items()
    ]


def all_tables(evaluation: Evaluation) -> list[ComparisonTable]:
    """All measures, by share and by target."""
    return [
        table_by_share(evaluation, "anmse"),
        table_of_measures(evaluation),
        *(table_by_share(evaluation, measure) for measure in _columns() if measure != "anmse"),
        table_of_targets(evaluation, "mae"),
        table_of_targets(evaluation),
    ]
