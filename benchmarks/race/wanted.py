"""The numbers that the race is about: what was measured, what is wanted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.race.missing import SHARES, name_of
from benchmarks.race.ours import NAME
from benchmarks.race.summary import Summary
from benchmarks.report import Number

_FLOORED = 0.1  # share of entries at a bound from which a distribution should pay
_SMALL = ("help", "licorice_gargle", "cohort", "cohort-nonlinear")
_WIDE = "wide"
_LASSO = "multi-task lasso"
_SLOW = ("GPBoost", "lifelines", "R VGAM")
_WORDS = {"crps": "CRPS", "log_score": "log score"}


def wanted(summary: Summary) -> Iterator[Number]:
    """Every number, on the data and methods that are there."""
    lost = summary.data_without_result
    what = f"data without a result of {NAME}"
    yield Number(f"{what} ({', '.join(lost)})" if lost else what, len(lost), 0, "at most")
    yield from _point(summary)
    for measure in _WORDS:
        yield from _distribution(summary, measure)
    yield from _calibration(summary)
    yield from _time(summary)
    yield from _missing(summary)


def _point(summary: Summary) -> Iterator[Number]:
    peers = [name for name in summary.plain_names if name != NAME]
    ratios = []
    for data in summary.data:
        means = _means(summary, data, "centred_anmse")
        there = [name for name in peers if name in means]
        ahead = [n for n in there if summary.compare(data, n, "centred_anmse").verdict == "ahead"]
        what = f"{data}: peers significantly ahead in centred ANMSE"
        yield Number(f"{what} ({', '.join(ahead)})" if ahead else what, len(ahead), 0, "at most")
        ratios.append(means[NAME] / min(means[name] for name in [NAME, *there]) - 1.0)
    yield Number(
        "centred ANMSE above the best method's, mean over data",
        float(np.mean(ratios)),
        0.01,
        "at most",
    )
    yield _rank(summary, "centred_anmse", summary.plain_names, summary.data, "centred ANMSE")


def _distribution(summary: Summary, measure: str) -> Iterator[Number]:
    floored = [data for data in summary.data if _means(summary, data, "at_bound")[NAME] > _FLOORED]
    for data in floored:
        means = _means(summary, data, measure)
        ours = means.pop(NAME)
        there = {name: means[name] for name in summary.plain_names if name in means}
        if there:
            best = min(there, key=lambda name: there[name])
            what = f"{data}: {_WORDS[measure]} {ours:.4f} less the best peer's ({best})"
            yield Number(what, ours - there[best], 0.0, "at most")
    if floored:
        words = f"{_WORDS[measure]}, peers with our error model too"
        yield _rank(summary, measure, summary.names, floored, words)


def _rank(summary: Summary, measure: str, names: list[str], data: list[str], words: str) -> Number:
    average = summary.ranks(measure, names, data).mean()
    others = average.drop(NAME)
    best = f"{others.idxmin()}, {others.min():.2f}" if len(others) else "none"
    what = f"average rank {average[NAME]:.2f} in {words}, less the best other's ({best})"
    gap = float(average[NAME] - others.min()) if len(others) else 0.0
    return Number(what, gap, 0.0, "at most")


def _calibration(summary: Summary) -> Iterator[Number]:
    for data in summary.data:
        ours = {name: values.loc[NAME] for name, values in summary.on(data).items()}
        yield Number(f"{data}: 90 % intervals cover", float(ours["coverage"]), 0.87, "at least")
        distance = float(ours["pit_distance"])
        yield Number(f"{data}: distance of the pooled PIT from uniform", distance, 0.05, "at most")


def _time(summary: Summary) -> Iterator[Number]:
    for data in [*_SMALL, _WIDE]:
        ratio = _time_ratio(summary, data, _LASSO)
        if ratio is not None:
            limit = 1.0 if data == _WIDE else 10.0
            yield Number(f"{data}: time over that of {_LASSO}", ratio, limit, "at most")
    for peer in _SLOW:
        ratios = {data: _time_ratio(summary, data, peer) for data in summary.data}
        known = {data: ratio for data, ratio in ratios.items() if ratio is not None}
        if known:
            worst = max(known, key=lambda data: known[data])
            what = f"time over that of {peer}, worst data ({worst})"
            yield Number(what, known[worst], 1.0, "at most")


def _time_ratio(summary: Summary, data: str, peer: str) -> float | None:
    """Our seconds over those of a peer, which counts with the limit where it was over it."""
    rows = summary.results[summary.results["data"] == data]
    theirs = rows[rows["name"].str.startswith(peer)].groupby("split")["seconds"].first().mean()
    ours = rows[rows["name"] == NAME].groupby("split")["seconds"].first().mean()
    return None if np.isnan(theirs) else float(ours / theirs)


def _missing(summary: Summary) -> Iterator[Number]:
    crps = summary.missing
    for share in SHARES:
        kept, imputed = (name_of(share, impute=impute) for impute in (False, True))
        if not {kept, imputed} <= set(crps.columns):
            continue
        for data, row in crps.iterrows():
            what = (
                f"{data}: loss in CRPS with {100 * share:g} % deleted, less that of imputing means"
            )
            yield Number(what, float(row[kept] - row[imputed]), 0.0, "at most")


def _means(summary: Summary, data: str, measure: str) -> dict[str, float]:
    """Means of all methods with a result on every split of some data, by name."""
    means = summary.complete.xs(data, level="data")[measure]
    return {str(name): float(value) for name, value in means.items()}
