"""Continuous forecasts of whole scores, and forecasts on the scores that there are.

XGBoost takes part where it is installed, as in the environment of the race.
"""

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.decisions.table import Table
from benchmarks.race import missing, ours
from benchmarks.race.data import DATA
from benchmarks.race.forecast import Forecast
from benchmarks.race.measures import distribution
from benchmarks.race.peers import PEERS
from benchmarks.race.trial import Trial, draw_trials
from deeptobit.auto import recalibration
from deeptobit.likelihood import ScoreGrid
from deeptobit.metrics import centred_anmse

SPLITS = {"licorice_gargle": 20, "nmes1988": 10, "help": 5, "cohort": 5}
SEED = 100
PEER_ON = "nmes1988"  # where it is ahead of continuous forecasts
_BOOSTED = PEERS["XGBoost AFT"]


def measure() -> Table:
    """Means over splits and outcomes; CRPS and log score in standard deviations of an outcome."""
    yield "data", "forecasts", "P(lower), observed", "P(lower)", "ANMSE", "CRPS", "log score"
    for name, n_splits in SPLITS.items():
        rows: dict[str, list[tuple[float, ...]]] = {}
        for trial in draw_trials(DATA[name](), n_splits, SEED):
            with threadpool_limits(1):
                for label, forecast in _forecasts(trial, boosted=name == PEER_ON):
                    rows.setdefault(label, []).append(_scores(forecast, trial))
        for label, scores in rows.items():
            yield name, label, *np.mean(scores, axis=0).tolist()


def _forecasts(trial: Trial, *, boosted: bool) -> Iterator[tuple[str, Forecast]]:
    yield "continuous", _continuous(trial)
    yield "whole scores", _whole(trial)
    yield "moved to scores, 5 % imputed by means", _moved(_imputed(trial), trial)
    if boosted and _BOOSTED.available() is None:
        forecast = _BOOSTED.fit(trial.problem).predict(trial.X)
        yield "XGBoost AFT", forecast
        yield "XGBoost AFT, moved to scores", _moved(forecast, trial)


def _whole(trial: Trial) -> Forecast:
    return ours.fit(trial.problem).predict(trial.X)


def _continuous(trial: Trial) -> Forecast:
    with patch.object(recalibration, "_find_grid", return_value=None):
        return _whole(trial)


def _imputed(trial: Trial) -> Forecast:
    """Fitted to means in place of 5 % of the outcomes."""
    problem = trial.problem
    deleted = missing.delete(problem.Y, 0.05, problem.seed)
    changed = missing.impute_means(problem._replace(Y=deleted))
    return _continuous(trial._replace(problem=changed))


def _moved(forecast: Forecast, trial: Trial) -> Forecast:
    """A forecast on the scores of the training rows, as if its method knew of them."""
    grid = ScoreGrid(trial.step, np.nanmin(trial.problem.Y, axis=0))
    return Forecast(forecast.point, forecast.latent, grid)


def _scores(forecast: Forecast, trial: Trial) -> tuple[float, ...]:
    problem, Y = trial.problem, trial.Y
    found, known = distribution(forecast, problem.lower, problem.upper), ~np.isnan(Y)
    return (
        float((problem.lower >= Y)[known].mean()),
        float(found.at_lower()[known].mean()),
        float(centred_anmse(Y, np.clip(forecast.point, problem.lower, problem.upper))),
        float(np.nanmean(found.crps(Y), axis=0).mean()),
        float(np.nanmean(found.log_score(Y), axis=0).mean()),
    )
