"""Boosting with a noise scale: its settings, number of trees and scale, chosen by the folds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import logistic, norm

from benchmarks.race.forecast import Latent
from benchmarks.race.peers.tasks import Task
from benchmarks.race.peers.units import Family, Units
from deeptobit.arrays import FloatArray

ROUNDS = (0, 5, 10, 20, 40, 80, 160)
_SIGMAS = np.geomspace(0.1, 1.3, 14)  # 1 is the scale of the constant model

Setting = TypeVar("Setting", bound="HasFamily", contravariant=True)
Rows: TypeAlias = NDArray[np.intp]


class HasFamily(Protocol):
    """Settings of a censored boosting."""

    @property
    def family(self) -> Family:
        """Of the noise."""


class Ensemble(Protocol):
    """Boosted trees."""

    def __call__(self, X: FloatArray, n_rounds: int, /) -> FloatArray:
        """Scores of rows X in working units by the first trees."""


class Train(Protocol[Setting]):
    """Grow all trees on some rows of a task, starting from the score 0."""

    def __call__(self, task: Task, units: Units, rows: Rows, setting: Setting, /) -> Ensemble:
        """Grow max(ROUNDS) trees."""


@dataclass(frozen=True, eq=False)
class BoostedTask:
    """Scores of boosted trees with noise of one scale."""

    ensemble: Ensemble
    n_rounds: int
    sigma: float
    family: Family
    units: Units

    def latent(self, X: FloatArray, /) -> Latent:
        """The distribution of every row."""
        return self.units.latent(scores(self.ensemble, X, self.n_rounds), self.sigma, self.family)


def scores(ensemble: Ensemble, X: FloatArray, n_rounds: int) -> FloatArray:
    """Scores of the first trees; without any, 0."""
    return ensemble(X, n_rounds) if n_rounds else np.zeros(len(X))


class _Choice(NamedTuple):
    nll: float
    n_rounds: int
    sigma: float


def boost(
    task: Task, units: Units, settings: Iterable[Setting], train: Train[Setting]
) -> BoostedTask:
    """Choose by the held-out censored log score, then fit all rows.

    The scale of the predictive distribution is chosen together with the number of trees: it is not
    the one that training assumed, which is a setting like any other.
    """

    def judge(setting: Setting) -> _Choice:
        held_out = np.full((len(ROUNDS), len(task.y)), np.nan)
        for rows, test in task.folds:
            ensemble = train(task, units, rows, setting)
            held_out[:, test] = [scores(ensemble, task.X[test], n) for n in ROUNDS]
        nll = _nll(task, units, held_out[:, None], _SIGMAS[:, None], setting.family)
        n, s = np.unravel_index(np.argmin(nll), nll.shape)
        return _Choice(float(nll[n, s]), ROUNDS[n], float(_SIGMAS[s]))

    choices = [(judge(setting), setting) for setting in settings]
    choice, setting = min(choices, key=lambda pair: pair[0].nll)
    ensemble = train(task, units, task.known, setting)
    return BoostedTask(ensemble, choice.n_rounds, choice.sigma, setting.family, units)


def _nll(
    task: Task, units: Units, score: FloatArray, sigma: FloatArray, family: Family
) -> FloatArray:
    """Censored negative log-likelihood in working units, summed over the last axis."""
    noise = {"normal": norm, "logistic": logistic}[family]
    y, lower, upper = (units.standard(values) for values in (task.y, task.lower, task.upper))
    z = (y - score) / sigma
    log = np.where(
        y <= lower,
        noise.logcdf(z),
        np.where(y >= upper, noise.logsf(z), noise.logpdf(z) - np.log(sigma)),
    )
    return np.asarray(-np.nansum(log, axis=-1))
