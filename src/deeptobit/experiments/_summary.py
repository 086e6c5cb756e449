"""Mean and standard deviation over splits, and who is best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from deeptobit.experiments._methods import FLAGSHIP

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.experiments._evaluate import Evaluation


class Measure(NamedTuple):
    """How a measure is called and read."""

    title: str
    better: str  # "lower", "higher", "nominal" or ""


MEASURES: Mapping[str, Measure] = {
    "anmse": Measure("ANMSE", "lower"),
    "r2": Measure("R²", "higher"),
    "crps": Measure("CRPS (sd)", "lower"),
    "log_score": Measure("log score", "lower"),
    "coverage": Measure("coverage", "nominal"),
    "width": Measure("width (sd)", ""),
    "seconds": Measure("seconds", ""),
}


def by_split(results: pd.DataFrame) -> pd.DataFrame:
    """Mean over targets of every measure, by method, share and repeat.

    CRPS and width are divided by the standard deviation of their target first, so that a target
    with large numbers does not drown the others.
    """
    scaled = results.assign(
        crps=results["crps"] / results["scale"], width=results["width"] / results["scale"]
    )
    grouped = scaled.groupby(["method", "share", "repeat"], sort=False)
    return grouped[list(MEASURES)].mean()


def summarise(evaluation: Evaluation, *, over_shares: bool = False) -> pd.DataFrame:
    """Mean and standard deviation over splits of every measure.

    Parameters
    ----------
    over_shares : bool
        Whether shares are taken together, or kept apart.

    Returns
    -------
    DataFrame
        One row per method, share (unless taken together) and measure, with ``mean``, ``sd`` (NaN
        for a single split), ``splits`` and ``best``.

    Examples
    --------
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.experiments import Protocol, data_of_cohort, evaluate, make_methods
    >>> data = data_of_cohort(make_clinical_cohort(80, random_state=0), "simulated")
    >>> found = evaluate(data, make_methods(["null"]), Protocol(train_shares=(0.5,), repeats=2))
    >>> summarise(found).loc[0, ["share", "method", "measure", "splits"]].to_list()
    [np.float64(0.5), 'null', 'anmse', np.int64(2)]
    """
    import pandas as pd

    keys = ["method"] if over_shares else ["share", "method"]
    grouped = by_split(evaluation.results).groupby(keys, sort=False)
    parts = []
    for name, measure in MEASURES.items():
        column = grouped[name]
        part = pd.DataFrame({"mean": column.mean(), "sd": column.std(), "splits": column.size()})
        part = part.reset_index().assign(measure=name)
        distance = _distance(part["mean"], measure, evaluation.protocol.coverage)
        if over_shares:
            part["best"] = distance == distance.min()
        else:
            part["best"] = distance == distance.groupby(part["share"]).transform("min")
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def verdict(evaluation: Evaluation) -> list[str]:
    """Sentences that say where the network of deeptobit is ahead, and where it is not."""
    methods = list(dict.fromkeys(evaluation.results["method"]))
    if FLAGSHIP not in methods or len(methods) < 2:
        return []
    table = by_split(evaluation.results)["anmse"].groupby(["share", "method"], sort=False).mean()
    by_share = table.unstack("method")
    ahead, behind = [], []
    for share, row in by_share.iterrows():
        other = row.drop(FLAGSHIP)
        if row[FLAGSHIP] <= other.min():
            ahead.append(f"{share:.0%}")
        else:
            behind.append(
                f"{share:.0%}, where {other.idxmin()} is ahead ({other.min():.4f} against "
                f"{row[FLAGSHIP]:.4f})"
            )
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
    sentence = (
        f"By R² over all splits {FLAGSHIP} is best in {len(r2) - len(lost)} of {len(r2)} targets"
    )
    if lost.empty:
        return sentence + "."
    best = others.loc[lost.index].idxmax(axis=1)
    named = ", ".join(f"{target} ({method})" for target, method in best.items())
    return f"{sentence}; not in {named}."


def _distance(means: pd.Series[float], measure: Measure, coverage: float) -> pd.Series[float]:
    """How far from good; NaN where no value is better than another."""
    if measure.better == "lower":
        return means
    if measure.better == "higher":
        return -means
    if measure.better == "nominal":
        return (means - coverage).abs()
    return means * float("nan")
