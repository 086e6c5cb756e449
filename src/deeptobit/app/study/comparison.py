"""A comparison summarised: means over splits, best methods, and tables in Markdown and HTML."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from math import floor, isnan, log10, nan
from pathlib import Path

import pandas as pd

from deeptobit.app.study.evaluate import Evaluation
from deeptobit.app.study.measures import MEASURES
from deeptobit.app.study.methods import FLAGSHIP
from deeptobit.app.study.tables import write_whole


def _columns() -> dict[str, tuple[str, str]]:
    """Title of every measure and which value is better; seconds are compared beside them."""
    titles = {
        name: (f"{measure.title} (sd)" if measure.in_units else measure.title, measure.better)
        for name, measure in MEASURES.items()
    }
    return {**titles, "seconds": ("seconds", "")}


def by_split(results: pd.DataFrame) -> pd.DataFrame:
    """Mean over targets of every measure, by method, share and repeat.

    Measures in units of the target, as CRPS, are divided by its standard deviation first, so that
    targets with large numbers do not dominate.
    """
    in_units = [name for name, measure in MEASURES.items() if measure.in_units]
    scaled = results.assign(**{name: results[name] / results["scale"] for name in in_units})
    grouped = scaled.groupby(["method", "share", "repeat"], sort=False)
    return grouped[list(_columns())].mean()


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
        for a single split), ``splits`` and ``best``.

    Examples
    --------
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.app.study import Protocol, data_of_cohort, evaluate, make_methods
    >>> data = data_of_cohort(make_clinical_cohort(80, random_state=0), "simulated")
    >>> found = evaluate(data, make_methods(["null"]), Protocol(train_shares=(0.5,), repeats=2))
    >>> summarise(found).loc[0, ["share", "method", "measure", "splits"]].to_list()
    [np.float64(0.5), 'null', 'r2', np.int64(2)]
    """
    keys = ["method"] if over_shares else ["share", "method"]
    grouped = by_split(evaluation.results).groupby(keys, sort=False)
    parts = []
    for name, (_, better) in _columns().items():
        column = grouped[name]
        part = pd.DataFrame({"mean": column.mean(), "sd": column.std(), "splits": column.size()})
        part = part.reset_index().assign(measure=name)
        if better == "nominal":
            distance = (part["mean"] - evaluation.protocol.coverage).abs()
        else:
            distance = part["mean"] * {"lower": 1.0, "higher": -1.0}.get(better, nan)
        least = distance.min() if over_shares else distance.groupby(part["share"]).transform("min")
        parts.append(part.assign(best=distance == least))
    return pd.concat(parts, ignore_index=True)


def verdict(evaluation: Evaluation) -> list[str]:
    """Sentences on the shares and targets in which the network is best, and in which it is not."""
    methods = list(dict.fromkeys(evaluation.results["method"]))
    if FLAGSHIP not in methods or len(methods) < 2:
        return []
    table = by_split(evaluation.results)["anmse"].groupby(["share", "method"], sort=False).mean()
    by_share = table.unstack("method")
    ahead, behind = [], []
    for share, row in by_share.iterrows():
        other, ours = row.drop(FLAGSHIP), row[FLAGSHIP]
        if ours <= other.min():
            ahead.append(f"{share:.0%}")
        else:
            scores = f"{other.min():.4f} against {ours:.4f}"
            behind.append(f"{share:.0%}, where {other.idxmin()} is ahead ({scores})")
    sentences = []
    if ahead:
        sentences.append(f"{FLAGSHIP} has the lowest ANMSE at {', '.join(ahead)}.")
    if behind:
        sentences.append(f"{FLAGSHIP} does not win on ANMSE at {'; at '.join(behind)}.")
    return [*sentences, _by_target(evaluation.results)]


def targets_table(results: pd.DataFrame) -> pd.DataFrame:
    """R² over all splits, targets in rows and methods in columns."""
    grouped = results.groupby(["target", "method"], sort=False)["r2"].mean()
    return grouped.unstack("method")


def _by_target(results: pd.DataFrame) -> str:
    r2 = targets_table(results)
    others = r2.drop(columns=FLAGSHIP)
    lost = r2[others.max(axis=1) > r2[FLAGSHIP]]
    won = f"{len(r2) - len(lost)} of {len(r2)}"
    sentence = f"By R² over all splits {FLAGSHIP} is best in {won} targets"
    if lost.empty:
        return sentence + "."
    best = others.loc[lost.index].idxmax(axis=1)
    named = ", ".join(f"{target} ({method})" for target, method in best.items())
    return f"{sentence}; not in {named}."


# Tables of a comparison, as text.


@dataclass(frozen=True)
class TextTable:
    """Cells as text; ``best`` has the rows and columns of those to highlight."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]]

    def format(self, escape: Callable[[str], str], best: str) -> list[list[str]]:
        """Head and rows with escaped cells; ``best`` is a format such as ``**{}**``."""
        return [
            [
                best.format(escape(c)) if (i, j) in self.best else escape(c)
                for j, c in enumerate(row)
            ]
            for i, row in enumerate((self.head, *self.rows), start=-1)
        ]


def table_by_share(evaluation: Evaluation, measure: str) -> TextTable:
    """Methods in rows, shares in columns, as in the paper: mean±standard deviation."""
    summary = summarise(evaluation)
    summary = summary[summary["measure"] == measure]
    shares = list(dict.fromkeys(summary["share"]))
    return _table(
        summary,
        f"{_columns()[measure][0]} by share to train on",
        {f"{share:.0%}": summary["share"] == share for share in shares},
    )


def table_of_measures(evaluation: Evaluation) -> TextTable:
    """Methods in rows, measures in columns, means over all splits."""
    # A standard deviation over all splits would mix shares and chance.
    summary = summarise(evaluation, over_shares=True).assign(sd=nan)
    columns = {title: summary["measure"] == name for name, (title, _) in _columns().items()}
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
    """Sentences below the tables: verdict, protocol, warnings, and targets left out."""
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
    skipped = Counter((skipped.target, skipped.reason) for skipped in evaluation.skipped)
    return lines + [
        f"{target} is left out of {count} split(s), for all methods: {reason}."
        for (target, reason), count in skipped.items()
    ]


def _table(summary: pd.DataFrame, title: str, columns: "dict[str, pd.Series[bool]]") -> TextTable:
    rows, best = [], set()
    for i, method in enumerate(dict.fromkeys(summary["method"])):
        cells = [str(method)]
        for j, chosen in enumerate(columns.values(), start=1):
            entry = summary[chosen & (summary["method"] == method)].iloc[0]
            digits = _digits(summary[chosen]["mean"].abs().max())
            spread = "" if isnan(entry["sd"]) else f"±{entry['sd']:.{digits}f}"
            cells.append(f"{entry['mean']:.{digits}f}{spread}")
            if entry["best"]:
                best.add((i, j))
        rows.append(tuple(cells))
    return TextTable(title, ("method", *columns), tuple(rows), frozenset(best))


def _digits(largest: float) -> int:
    """Decimals: three, or as many as show three digits of the largest number."""
    return max(3, 2 - floor(log10(largest))) if largest > 0.0 else 3


# The tables in Markdown and HTML.

_STYLE = (
    "body{font:15px system-ui;margin:2em auto;padding:0 1.5em;max-width:70em}"
    "table{border-collapse:collapse}"
    "th,td{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "th:first-child,td:first-child{text-align:left}"
)


def write_summary(folder: Path, evaluation: Evaluation, name: str) -> None:
    """Write ``summary.md`` and ``summary.html``: all measures, by share and by target."""
    title = f"Methods compared on {name}"
    tables = [
        table_by_share(evaluation, "anmse"),
        table_of_measures(evaluation),
        *(table_by_share(evaluation, measure) for measure in _columns() if measure != "anmse"),
        table_of_targets(evaluation),
    ]
    lines = notes(evaluation)
    write_whole(folder / "summary.md", as_markdown(title, tables, lines))
    write_whole(folder / "summary.html", as_html(title, tables, lines))


def as_markdown(title: str, tables: list[TextTable], lines: list[str]) -> str:
    """Tables in Markdown, the best cells in bold."""
    parts = [f"# {_escape_markdown(title)}", *map(_escape_markdown, lines)]
    for table in tables:
        cells = table.format(_escape_markdown, "**{}**")
        head, *rows = [f"| {' | '.join(row)} |" for row in cells]
        rule = "|---|" + "---:|" * (len(table.head) - 1)
        parts += [f"## {_escape_markdown(table.title)}", "\n".join([head, rule, *rows])]
    return "\n\n".join(parts) + "\n"


def as_html(title: str, tables: list[TextTable], lines: list[str]) -> str:
    """Tables in a page without scripts or links."""
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in lines),
    ]
    for table in tables:
        head, *rows = table.format(escape, "<b>{}</b>")
        parts += [
            f"<h2>{escape(table.title)}</h2><table>",
            f"<tr><th>{'</th><th>'.join(head)}</th></tr>",
        ]
        parts += [f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows] + ["</table>"]
    return "\n".join(parts) + "\n</html>\n"


def _join(cells: list[str], tag: str) -> str:
    return "".join(f"<{tag}>{cell}</{tag}>" for cell in cells)


def _escape_markdown(text: str) -> str:
    """Text without markup, on one line."""
    marked = "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in text)
    return " ".join(marked.split())
