"""The numbers that the race is about: what was measured, what is wanted; real tables decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.race.data import SIMULATED
from benchmarks.race.missing import SHARES, name_of
from benchmarks.race.ours import NAME
from benchmarks.race.summary import Summary
from benchmarks.report import Number

_WORDS = {"centred_anmse": "centred ANMSE", "crps": "CRPS", "log_score": "log score"}
_LIMITS = {  # how far ahead a peer may be, and on which share of the tables it may be further
    "centred_anmse": ((0.01, 1 / 6), (0.03, 0.0)),
    "crps": ((0.005, 0.0),),
    "log_score": ((0.0, 0.0),),
}
_BOOSTING, _TIMES = "LightGBM", 1.5
_COVERAGE = 0.87, 0.95


class Loss(NamedTuple):
    """A peer that is significantly ahead on some data.

    Attributes
    ----------
    share : float
        By what share of our value; of the log score the difference itself.
    """

    data: str
    peer: str
    measure: str
    share: float


def real(summary: Summary) -> list[str]:
    """The data that are real tables."""
    return [data for data in summary.data if data not in SIMULATED]


def losses(summary: Summary) -> list[Loss]:
    """All peers with their own distributions that are significantly ahead, the furthest first."""
    found = []
    for data in real(summary):
        for measure in _WORDS:
            ours = _means(summary, data, measure)[NAME]
            unit = 1.0 if measure == "log_score" else ours
            for peer in summary.plain_names:
                if peer != NAME and peer in _means(summary, data, measure):
                    compared = summary.compare(data, peer, measure)
                    if compared.verdict == "ahead":
                        found.append(Loss(data, peer, measure, -compared.difference / unit))
    return sorted(found, key=lambda loss: -loss.share)


def wanted(summary: Summary) -> Iterator[Number]:
    """Every number, on the data and methods that are there."""
    lost = summary.data_without_result
    what = f"data without a result of {NAME}"
    yield Number(f"{what} ({', '.join(lost)})" if lost else what, len(lost), 0, "at most")
    if tables := real(summary):
        yield from _ahead(summary, tables)
        yield from _ranks(summary, tables)
    yield from _calibration(summary)
    yield from _time(summary, tables)
    yield from _missing(summary)


def _ahead(summary: Summary, tables: list[str]) -> Iterator[Number]:
    found = losses(summary)
    for measure, limits in _LIMITS.items():
        for least, share in limits:
            there = {one.data for one in found if one.measure == measure and one.share > least}
            by = "" if measure == "log_score" else f" by more than {100 * least:g} %"
            what = f"real tables of {len(tables)} where a peer is ahead in {_WORDS[measure]}{by}"
            name = f"{what} ({', '.join(sorted(there))})" if there else what
            yield Number(name, len(there), int(share * len(tables)), "at most")


def _ranks(summary: Summary, tables: list[str]) -> Iterator[Number]:
    for measure, words in _WORDS.items():
        names = summary.plain_names if measure == "centred_anmse" else summary.names
        average = summary.ranks(measure, names, tables).mean()
        others = average.drop(NAME)
        best = f"{others.idxmin()}, {others.min():.2f}" if len(others) else "none"
        what = f"average rank {average[NAME]:.2f} in {words}, less the best other's ({best})"
        gap = float(average[NAME] - others.min()) if len(others) else 0.0
        yield Number(what, gap, 0.0, "at most")


def _calibration(summary: Summary) -> Iterator[Number]:
    for data in summary.data:
        ours = {name: values.loc[NAME] for name, values in summary.on(data).items()}
        covered, distance = float(ours["randomised_coverage"]), float(ours["pit_distance"])
        what = f"{data}: 90 % intervals, randomised at bounds, cover"
        yield Number(what, covered, _COVERAGE[0], "at least")
        yield Number(what, covered, _COVERAGE[1], "at most")
        yield Number(f"{data}: distance of the pooled PIT from uniform", distance, 0.05, "at most")


def _time(summary: Summary, tables: list[str]) -> Iterator[Number]:
    for data in tables:
        ratio = _time_ratio(summary, data, _BOOSTING)
        if ratio is not None:
            what = f"{data}: time over that of {_BOOSTING}, tuned for every outcome"
            yield Number(what, ratio, _TIMES, "at most")


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
