"""The race as one HTML page and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import jinja2

from benchmarks.race.critical_difference import compare_ranks
from benchmarks.race.environment import Facts
from benchmarks.race.ours import NAME
from benchmarks.race.picture import draw_ranks, ranks_as_png
from benchmarks.race.run import first_line
from benchmarks.race.summary import Summary
from benchmarks.race.tables import (
    as_markdown,
    table_of,
    table_of_missing,
    table_of_ranks,
    table_of_verdicts,
)
from benchmarks.race.trial import TRAIN_SHARE
from benchmarks.race.wanted import losses
from benchmarks.report import Number
from deeptobit.app.report.page import template_part
from deeptobit.app.report.words import plural

TITLE = "deeptobit against what people would use instead"
LEGEND = (
    "Lower is better in ANMSE (centred: squared error over variance), CRPS and log score; CRPS, "
    "width and the unit of the log score are standard deviations of the training rows. Coverage "
    "and width are of 90 % intervals. PIT is the largest distance of the pooled probability "
    "integral transform from uniform, Bounds the calibration error of probabilities at bounds. "
    "The best is bold. ▲: significantly ahead of deeptobit, ▼: behind (corrected resampled t-test "
    "over splits, 5 %). Seconds are of processor time, MB is peak "
    "memory of the fit beyond that of the process before it."
)
PROTOCOL = (
    f"Random splits with {100 * TRAIN_SHARE:g} % of the rows to train on, at most 5000. LightGBM "
    "and XGBoost are tuned for every outcome by itself: 4, 15 and 31 leaves, rates 0.03 and 0.1, "
    "early stopping. Every method chooses its "
    "settings by the same five folds of the training rows and has one thread. Methods without a "
    "distribution get two: Gaussian errors as wide as their held-out ones, clipped at the bounds, "
    "and the Tobit step, which is the error model of deeptobit. Both of ours predict whole scores "
    "where outcomes are; the distributions of other methods are taken as they come, continuous."
)
VERDICTS = (
    "On how many data sets deeptobit is significantly better than the method, level with it, and "
    "worse (corrected resampled t-test over splits, 5 %)."
)
MISSING_OUTCOMES = (
    "CRPS of deeptobit when outcomes of the training rows are deleted at random: left missing, or "
    "replaced by the mean of those that are left. The better of each pair is bold."
)
_TEMPLATES = Path(__file__).parent / "templates"


def render(
    summary: Summary, numbers: Sequence[Number], unavailable: Mapping[str, str], facts: Facts
) -> str:
    """One self-contained page: it loads nothing, and has no script."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("race.html.j2").render(
        title=TITLE,
        ours=NAME,
        lede=_lede(numbers),
        protocol=PROTOCOL,
        legend=LEGEND,
        style=template_part("style.css") + (_TEMPLATES / "race.css").read_text(encoding="utf-8"),
        numbers=_missed_first(numbers),
        n_reached=sum(number.reached for number in numbers),
        figures=[("data sets", len(summary.data)), ("methods", summary.n_methods)],
        rankings=[_draw(summary, key, *about) for key, about in _rankings(summary).items()],
        verdicts=table_of_verdicts(summary),
        data_tables=[table_of(summary, data) for data in summary.data],
        missing=table_of_missing(summary),
        about_missing=MISSING_OUTCOMES,
        about_verdicts=VERDICTS,
        failures=summary.failures.to_dict("records"),
        unavailable=unavailable,
        settings=facts,
    )


def render_markdown(
    summary: Summary, numbers: Sequence[Number], unavailable: Mapping[str, str], facts: Facts
) -> str:
    """The same without pictures."""
    parts = [f"# {TITLE}", PROTOCOL, _splits(summary), "## Where a peer is ahead"]
    parts += [_losses(summary), "## Numbers wanted", _lede(numbers)]
    parts.append("\n".join(f"- {number}" for number in _missed_first(numbers)))
    parts += ["## Wins, ties and losses of deeptobit", VERDICTS]
    parts.append(as_markdown(table_of_verdicts(summary), "Method"))
    for measure, (title, names) in _rankings(summary).items():
        table = table_of_ranks(summary, measure, title, names)
        parts += [f"## Ranks in {title}", as_markdown(table, "Method")]
    for data in summary.data:
        table = table_of(summary, data)
        parts += [f"## {data}", table.about, as_markdown(table, "Method")]
    parts.append(LEGEND)
    missing = table_of_missing(summary)
    if missing is not None:
        parts += ["## Missing outcomes", MISSING_OUTCOMES, as_markdown(missing, "Data")]
    failed = [
        f"- {row['name']} on {row['data']}, {plural(int(row['fits']), 'fit')}: "
        + first_line(row["message"])
        for row in summary.failures.to_dict("records")
    ]
    absent = [f"- {name} did not take part: {reason}" for name, reason in unavailable.items()]
    if failed or absent:
        parts += ["## What has no result", "\n".join([*absent, *failed])]
    parts += ["## Settings", "\n".join(f"- {key}: {value}" for key, value in facts)]
    return "\n\n".join(parts) + "\n"


def render_pictures(summary: Summary) -> dict[str, bytes]:
    """Its pictures, by the names of their files."""
    pictures = {}
    for measure, (title, names) in _rankings(summary).items():
        ranks = summary.ranks(measure, names)
        pictures[f"race_{measure}.png"] = ranks_as_png(ranks, compare_ranks(ranks), title)
    return pictures


def _rankings(summary: Summary) -> dict[str, tuple[str, list[str]]]:
    """Measures to be ranked by, their names, and who is ranked.

    Point predictions are compared as they are; distributions also with the error model of
    deeptobit in the hands of its peers.
    """
    return {
        "centred_anmse": ("centred ANMSE", summary.plain_names),
        "crps": ("CRPS", summary.names),
        "log_score": ("log score", summary.names),
    }


def _draw(summary: Summary, measure: str, title: str, names: list[str]) -> dict[str, Any]:
    ranks = summary.ranks(measure, names)
    found = compare_ranks(ranks)
    test = ""
    if not isnan(found.p_value):
        shown = "p < 0.001" if found.p_value < 0.001 else f"p = {found.p_value:.3f}"
        test = f"Friedman's test that all methods are alike: {shown}."
    return {
        "title": title[0].upper() + title[1:],
        "test": test,
        "picture": draw_ranks(ranks, found, f"ranks-{measure}", title),
        "table": table_of_ranks(summary, measure, f"Ranks in {title}", names),
    }


def _splits(summary: Summary) -> str:
    """How much was run: a page of few splits must not look like one of ten."""
    ours = summary.means["n_splits"].xs(NAME, level="name")
    least, most = int(ours.min()), int(ours.max())
    number = f"{least}" if least == most else f"{least} to {most}"
    return f"This page holds {number} split(s) of each of {len(ours)} data sets."


def _losses(summary: Summary) -> str:
    """Peers that are significantly ahead on real tables, the furthest first."""
    found = losses(summary)
    words = {"centred_anmse": "centred ANMSE", "crps": "CRPS", "log_score": "log score"}
    lines = [
        f"- {one.data}: {one.peer}, {words[one.measure]} lower by "
        + (f"{one.share:.3f}" if one.measure == "log_score" else f"{100 * one.share:.1f} %")
        for one in found
    ]
    return "\n".join(lines) or "No peer is significantly ahead on any real table."


def _missed_first(numbers: Sequence[Number]) -> list[Number]:
    return sorted(numbers, key=lambda number: number.reached)


def _lede(numbers: Sequence[Number]) -> str:
    reached = sum(number.reached for number in numbers)
    if reached == len(numbers):
        return f"With default settings, deeptobit reaches all {reached} numbers wanted of it."
    return (
        f"With default settings, deeptobit reaches {reached} of the {len(numbers)} numbers wanted "
        "of it. Those that it misses are listed first."
    )
