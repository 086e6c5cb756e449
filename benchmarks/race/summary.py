"""What the results say: averages, comparisons with deeptobit, and ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.race.error_models import ERROR_MODELS
from benchmarks.race.measures import distance_from_uniform
from benchmarks.race.missing import MISSING
from benchmarks.race.ours import NAME
from benchmarks.race.store import DONE
from benchmarks.race.trial import TRAIN_SHARE
from deeptobit.arrays import FloatArray
from paper.verdicts import verdict_over_repeats

if TYPE_CHECKING:
    import pandas as pd

RANKED = ("centred_anmse", "crps", "log_score")
AVERAGED = (
    *(*RANKED, "r2", "coverage", "randomised_coverage", "width", "bound_error"),
    *("seconds", "megabytes", "at_bound"),
)
_TOBIT_STEP = list(ERROR_MODELS)[1]


class Comparison(NamedTuple):
    """A method against deeptobit: its value less ours, and whether that is luck.

    Attributes
    ----------
    difference : float
        Positive where deeptobit is ahead.
    verdict : {"behind", "level", "ahead"}
        Of the method; level unless p < 0.05 in the corrected resampled t-test.
    p_value : float
    """

    difference: float
    verdict: str
    p_value: float


@dataclass(frozen=True, eq=False)
class Summary:
    """The results of a race, from the tidy table.

    Attributes
    ----------
    results : DataFrame
        A row for every data set, split, method, error model and outcome, and for every fit that
        failed.
    """

    results: pd.DataFrame

    @cached_property
    def by_split(self) -> pd.DataFrame:
        """Means over outcomes, indexed by data, name and split."""
        done = self._done[~self._done["method"].isin(MISSING)]
        return _mean_over_outcomes(done)

    @cached_property
    def means(self) -> pd.DataFrame:
        """Means over splits, indexed by data and name, with ``pit_distance`` and ``n_splits``."""
        grouped = self.by_split.groupby(["data", "name"], sort=False)
        means = grouped.mean().assign(n_splits=grouped.size())
        transforms = self._done.groupby(["data", "name"], sort=False)["pit"]
        return means.assign(pit_distance=transforms.agg(_pooled_distance))

    @cached_property
    def missing(self) -> pd.DataFrame:
        """Means over outcomes and splits of deeptobit with outcomes deleted, CRPS by data."""
        done = self._done[self._done["method"].isin(MISSING) | (self._done["name"] == NAME)]
        by_split = _mean_over_outcomes(done)["crps"].unstack("name")
        return by_split.dropna().groupby("data", sort=False).mean()

    @cached_property
    def complete(self) -> pd.DataFrame:
        """Those means that are over as many splits as deeptobit's on the same data."""
        ours = self.means["n_splits"].xs(NAME, level="name")
        there = self.means[self.means.index.get_level_values("data").isin(ours.index)]
        wanted = ours.loc[there.index.get_level_values("data")].to_numpy()
        return there[there["n_splits"] >= wanted]

    @property
    def data(self) -> list[str]:
        """Names of the data on which deeptobit has a result, in the order of the race."""
        return list(dict.fromkeys(self._done.loc[self._done["name"] == NAME, "data"]))

    @property
    def data_without_result(self) -> list[str]:
        """Names of the others."""
        return [data for data in dict.fromkeys(self.results["data"]) if data not in self.data]

    @property
    def names(self) -> list[str]:
        """Methods with their error models that have any result, deeptobit first."""
        found = self.means.index.get_level_values("name")
        return [NAME, *(name for name in dict.fromkeys(found) if name != NAME)]

    @property
    def n_methods(self) -> int:
        """How many methods were raced, deeptobit included."""
        return len(set(self.results["method"]) - set(MISSING))

    @property
    def plain_names(self) -> list[str]:
        """The same without peers that were given the error model of deeptobit."""
        return [name for name in self.names if not name.endswith(f"+ {_TOBIT_STEP}")]

    @property
    def failures(self) -> pd.DataFrame:
        """Fits that have no result, and why."""
        failed = self.results[self.results["status"] != DONE]
        columns = ["data", "name", "message"]
        return failed.groupby(columns, sort=False).size().rename("fits").reset_index()

    def on(self, data: str) -> pd.DataFrame:
        """Means of all methods on some data, best centred ANMSE first."""
        here = self.means.index.get_level_values("data") == data
        return self.means[here].droplevel("data").sort_values("centred_anmse")

    def compare(self, data: str, name: str, measure: str) -> Comparison:
        """One method against deeptobit on the splits that both have."""
        values = self.by_split.xs(data, level="data")[measure].unstack("name")
        differences = (values[name] - values[NAME]).dropna().to_numpy()
        if not len(differences):
            return Comparison(np.nan, "level", np.nan)
        ratio = (1.0 - TRAIN_SHARE) / TRAIN_SHARE
        judged = verdict_over_repeats(differences, test_to_train=ratio)
        words = {"holds": "behind", "does not hold": "ahead", "cannot be told": "level"}
        return Comparison(judged.mean, words[judged.verdict], judged.p_value)

    def ranks(self, measure: str, names: list[str], data: list[str] | None = None) -> pd.DataFrame:
        """Ranks of methods on every data set, 1 is best; whoever lacks a split is last."""
        values = (
            self.complete[measure].unstack("name").reindex(index=data or self.data, columns=names)
        )
        return values.rank(axis=1, na_option="bottom")

    @property
    def _done(self) -> pd.DataFrame:
        return self.results[self.results["status"] == DONE]


def _mean_over_outcomes(done: pd.DataFrame) -> pd.DataFrame:
    return done.groupby(["data", "name", "split"], sort=False)[list(AVERAGED)].mean()


def _pooled_distance(transforms: Iterable[FloatArray]) -> float:
    return distance_from_uniform(list(transforms))
