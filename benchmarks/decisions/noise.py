"""Gaussian noise for everything, or the tails and skew that held-out rows of a task favour."""

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.decisions.table import Table
from benchmarks.race.data import DATA
from deeptobit import SubspaceNetworkCV
from deeptobit.experiments import EvaluationData, Protocol, draw_splits
from deeptobit.likelihood import Gaussian, TwoPiece, of_task
from deeptobit.metrics import censored_log_score, centred_anmse, crps

NAMES = ("help", "licorice_gargle", "nmes1988", "cohort", "cohort-nonlinear")
PROTOCOL = Protocol(train_shares=(0.6,), repeats=3, seed=100)


def measure() -> Table:
    """Means over splits and outcomes; CRPS and log score in standard deviations of an outcome."""
    yield "data", "noise", "not Gaussian", "skewed", "centred ANMSE", "CRPS", "log score"
    for name in NAMES:
        data = DATA[name]()
        for noise in ("gaussian", "auto"):
            with threadpool_limits(1):
                yield name, noise, *np.mean(_fits(data, noise), axis=0).tolist()


def _fits(data: EvaluationData, noise: str) -> list[tuple[float, ...]]:
    """Shares of outcomes with other noise, and the measures, of every split."""
    found: list[tuple[float, ...]] = []
    for split in draw_splits(len(data.targets), data.groups, PROTOCOL):
        X, train, test = data.features(split.train), *(data.targets[rows] for rows in split[2:])
        model = SubspaceNetworkCV(noise=noise, random_state=0).fit(X[split.train], train)
        latent = model.predict(X[split.test], kind="latent")
        scale = np.nanstd(train.values, axis=0)
        inside = ~(test.at_lower | test.at_upper | test.missing)
        density = (inside.sum(axis=0) / (~test.missing).sum(axis=0)) * np.log(scale)
        by_task: dict[str, Any] = {"noise": model.noise_, "multioutput": "raw_values"}
        spread = np.asarray(crps(test, latent, model.sigma_, **by_task)) / scale
        log_score = np.asarray(censored_log_score(test, latent, model.sigma_, **by_task)) - density
        error = float(centred_anmse(test, model.predict(X[split.test])))
        families = [of_task(model.noise_, task) for task in range(len(scale))]
        other = np.mean([not isinstance(family, Gaussian) for family in families])
        skewed = np.mean([isinstance(family, TwoPiece) for family in families])
        scores = (error, float(spread.mean()), float(log_score.mean()))
        found.append((float(other), float(skewed), *scores))
    return found
