"""What a continuous forecast of whole scores loses, and why imputed means seem to help it."""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.decisions.table import Table
from benchmarks.race import missing, ours
from benchmarks.race.censored import Censored
from benchmarks.race.data import DATA
from benchmarks.race.trial import Trial, draw_trials
from deeptobit.arrays import FloatArray

SPLITS = {"licorice_gargle": 20, "nmes1988": 5, "help": 5, "cohort": 5}
SEED = 100
_MOST_STEPS = 1000


def measure() -> Table:
    """CRPS in standard deviations, of forecasts as they are and moved to the scores there are."""
    yield "data", "fitted to", "P(lower), observed", "P(lower)", "CRPS", "CRPS on the grid"
    for name, n_splits in SPLITS.items():
        trials = list(draw_trials(DATA[name](), n_splits, SEED))
        for label, impute in (("all outcomes", False), ("5 % imputed by means", True)):
            with threadpool_limits(1):
                rows = [_scores(trial, impute=impute) for trial in trials]
            yield name, label, *np.mean(rows, axis=0).tolist()


def _scores(trial: Trial, *, impute: bool) -> tuple[float, ...]:
    problem, Y = trial.problem, trial.Y
    if impute:
        deleted = missing.delete(problem.Y, 0.05, problem.seed)
        problem = missing.impute_means(problem._replace(Y=deleted))
    latent = ours.fit(problem).predict(trial.X).latent
    assert latent is not None
    forecast = Censored(latent, problem.lower, problem.upper)
    on_grid = np.isfinite(problem.lower) & (trial.step > 0.0)
    smooth, known = forecast.crps(Y), ~np.isnan(Y)
    return (
        float((problem.lower >= Y)[known].mean()),
        float(forecast.at_lower()[known].mean()),
        float(np.nanmean(smooth, axis=0).mean()),
        float(np.nanmean(np.where(on_grid, _crps_on_grid(forecast, trial), smooth), axis=0).mean()),
    )


def _crps_on_grid(forecast: Censored, trial: Trial) -> FloatArray:
    """CRPS if what lies between two scores counts for the nearer, and for no bound.

    A sum over the scores of a task, h (P(Y ≤ s) − 1[y ≤ s])²; the mass at a bound stays as it is.
    """
    Y, step, lower, upper = trial.Y, trial.step, forecast.lower, forecast.upper
    last = np.minimum(upper, np.fmax(np.nanmax(Y, axis=0), lower + 20.0))
    n_steps = np.ceil((last - lower) / np.where(step > 0.0, step, np.inf) - 1e-6)
    total = np.zeros_like(Y)
    for k in range(min(int(np.nanmax(n_steps)), _MOST_STEPS)):
        score = lower + k * step
        edge = np.where(score + 1.5 * step > upper, upper, score + (0.5 if k else 0.0) * step)
        happened = score + 0.25 * step >= Y
        part = step * np.square(forecast.latent.cdf(edge) - happened)
        total += np.where(k < n_steps, part, 0.0)
    return np.where(np.isnan(Y), np.nan, total)
