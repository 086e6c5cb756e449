"""The log-normal accelerated failure time model of lifelines for every task.

Rows without a value of the task are dropped. Outcomes are on the scale of log(y − origin), with the
origin of :func:`~benchmarks.race.peers.units.find_log_units`; an entry at a bound is an interval
beyond it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.race.censored import Censored
from benchmarks.race.forecast import Latent
from benchmarks.race.peers.tasks import FittedTasks, Task, fit_tasks
from benchmarks.race.peers.units import LogUnits, find_log_units
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray

_PENALTIES = (1.0, 0.1, 0.01)
# An open end of an interval, in scales of the constant model: lifelines differentiates at it.
_FAR = 20.0


@dataclass(frozen=True, eq=False)
class _LinearTask:
    coef: FloatArray
    intercept: float
    sigma: float
    units: LogUnits

    def latent(self, X: FloatArray, /) -> Latent:
        return self.units.latent(X @ self.coef + self.intercept, self.sigma, "normal")


def fit_lifelines(problem: Problem) -> FittedTasks:
    """Intervals, a ridge on the coefficients; its strength is chosen by the held-out log score."""
    return fit_tasks(problem, _fit_task)


def _fit_task(task: Task) -> _LinearTask:
    units = find_log_units(task)
    bounds = np.array([task.lower]), np.array([task.upper])

    def nll(penalty: float) -> float:
        total = 0.0
        for train, test in task.folds:
            latent = _fit(task, units, train, penalty).latent(task.X[test])
            total += float(np.nansum(Censored(latent, *bounds).log_score(task.y[test])))
        return total

    return _fit(task, units, task.known, _first_minimum(_PENALTIES, nll))


def _first_minimum(penalties: Sequence[float], nll: Callable[[float], float]) -> float:
    """Weaken the penalty as long as that helps."""
    best, least = penalties[0], nll(penalties[0])
    for penalty in penalties[1:]:
        score = nll(penalty)
        if score >= least:
            break
        best, least = penalty, score
    return best


def _fit(task: Task, units: LogUnits, rows: NDArray[np.intp], penalty: float) -> _LinearTask:
    from lifelines import LogNormalAFTFitter

    varies = np.ptp(task.X[rows], axis=0) > 0.0
    n_features = int(varies.sum())
    table = _table(task, units, rows, varies)
    # The penalty spares the scale, which comes last; lifelines itself spares the intercept.
    model = LogNormalAFTFitter(penalizer=np.append(np.full(n_features, penalty), 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on standard errors, which are not used
        model.fit_interval_censoring(
            table,
            lower_bound_col="low",
            upper_bound_col="high",
            initial_point={"mu_": np.zeros(n_features + 1), "sigma_": np.zeros(1)},
            fit_options={"gtol": 1e-3},
        )
    mean = model.params_["mu_"]
    coef = np.zeros(task.X.shape[1])
    coef[varies] = mean[list(table.columns[:n_features])].to_numpy()  # lifelines sorts by name
    sigma = float(np.exp(model.params_["sigma_", "Intercept"]))
    return _LinearTask(coef, float(mean["Intercept"]), sigma, units)


def _table(
    task: Task, units: LogUnits, rows: NDArray[np.intp], varies: NDArray[np.bool_]
) -> pd.DataFrame:
    """Features that vary in these rows, for a constant one competes with the intercept."""
    y = task.y[rows]
    label = np.exp(units.standard(y))
    table = pd.DataFrame(task.X[np.ix_(rows, varies)]).add_prefix("x")
    return table.assign(
        low=np.where(y <= task.lower, np.exp(-_FAR), label),
        high=np.where(y >= task.upper, np.exp(_FAR), label),
    )
