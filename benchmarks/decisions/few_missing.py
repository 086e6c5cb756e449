"""Few missing outcomes of wide data, left missing or imputed: over the race's splits and others."""

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.decisions.table import Table
from benchmarks.race import missing
from benchmarks.race.data import DATA
from benchmarks.race.measures import distribution
from benchmarks.race.trial import TRAIN_SHARE, Trial, draw_trials
from paper.verdicts import verdict_over_repeats

SEEDS = (0, 100)  # that of the race, and another
SPLITS = 10


def measure() -> Table:
    """CRPS in standard deviations, the difference, and its p in the corrected resampled t-test."""
    yield "splits from seed", "5 % left missing", "5 % imputed", "difference", "p"
    for seed in SEEDS:
        with threadpool_limits(1):
            pairs = np.array(
                [_scores(trial) for trial in draw_trials(DATA["wide"](), SPLITS, seed)]
            )
        difference = pairs[:, 0] - pairs[:, 1]
        ratio = (1.0 - TRAIN_SHARE) / TRAIN_SHARE
        judged = verdict_over_repeats(difference, test_to_train=ratio)
        yield seed, *pairs.mean(axis=0).tolist(), judged.mean, judged.p_value


def _scores(trial: Trial) -> tuple[float, ...]:
    problem = trial.problem
    scores = []
    for impute in (False, True):
        fitted = missing.fit_without(problem, share=0.05, impute=impute)
        found = distribution(fitted.predict(trial.X), problem.lower, problem.upper)
        scores.append(float(np.nanmean(found.crps(trial.Y), axis=0).mean()))
    return tuple(scores)
