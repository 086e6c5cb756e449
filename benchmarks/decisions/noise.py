"""Gaussian noise for everything, or the noise that held-out rows of a task favour."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.decisions.table import Table
from benchmarks.race.data import DATA
from deeptobit import AutoTobitRegressor
from deeptobit.app.study import EvaluationData, Protocol, draw_splits
from deeptobit.auto import HeldOutScores, fit_error_model
from deeptobit.auto.noise import ErrorModel
from deeptobit.likelihood import Gaussian, Noise, NoiseByTask, TwoPiece, of_task
from deeptobit.metrics import censored_log_score, centred_anmse, crps

NAMES = ("help", "licorice_gargle", "nmes1988", "cohort", "cohort-nonlinear", "wide")
PROTOCOL = Protocol(train_shares=(0.6,), repeats=3, seed=100)


def measure() -> Table:
    """Means over splits and outcomes; CRPS and log score in standard deviations of an outcome."""
    yield "data", "noise", "not Gaussian", "skewed", "growth", "centred ANMSE", "CRPS", "log score"
    for name in NAMES:
        data = DATA[name]()
        for label, (noise, change) in VARIANTS.items():
            with threadpool_limits(1), change():
                yield name, label, *np.mean(_fits(data, noise), axis=0).tolist()


@contextmanager
def _changed(change: Callable[[HeldOutScores], HeldOutScores]) -> Iterator[None]:
    """Error models of held-out scores that lack something."""

    def fit(scores: HeldOutScores, families: Sequence[Noise]) -> ErrorModel:
        return fit_error_model(change(scores), families)

    with (
        patch("deeptobit.auto.stack.fit_error_model", fit),
        patch("deeptobit.auto.fit_error_model", fit),
    ):
        yield


def _continuous(scores: HeldOutScores) -> HeldOutScores:
    return replace(scores, grid=None)


def _one_spread(scores: HeldOutScores) -> HeldOutScores:
    return _continuous(scores).without_growth()


VARIANTS: dict[str, tuple[str, Callable[[], AbstractContextManager[Any]]]] = {
    "Gaussian": ("gaussian", nullcontext),
    "tails and skew": ("auto", partial(_changed, _one_spread)),
    "spread too": ("auto", partial(_changed, _continuous)),
}


def _fits(data: EvaluationData, noise: str) -> list[tuple[float, ...]]:
    """Shares of outcomes with other noise, mean size of growths, and measures, of every split."""
    found: list[tuple[float, ...]] = []
    for split in draw_splits(len(data.targets), data.groups, PROTOCOL):
        X, train, test = data.features(split.train), *(data.targets[rows] for rows in split[2:])
        model = AutoTobitRegressor(noise=noise, random_state=0).fit(X[split.train], train)
        latent = model.predict(X[split.test], kind="latent")
        scale = np.nanstd(train.values, axis=0)
        inside = ~(test.at_lower | test.at_upper | test.missing)
        density = (inside.sum(axis=0) / (~test.missing).sum(axis=0)) * np.log(scale)
        by_task: dict[str, Any] = {"noise": model.noise_, "multioutput": "raw_values"}
        width = np.asarray(crps(test, latent, model.sigma_, **by_task)) / scale
        log_score = np.asarray(censored_log_score(test, latent, model.sigma_, **by_task)) - density
        error = float(centred_anmse(test, model.predict(X[split.test])))
        scores = (error, float(width.mean()), float(log_score.mean()))
        found.append((*_kinds(model, len(scale)), *scores))
    return found


def _kinds(model: AutoTobitRegressor, n_tasks: int) -> tuple[float, float, float]:
    families = [of_task(model.noise_, task) for task in range(n_tasks)]
    other = np.mean([not isinstance(family, Gaussian) for family in families])
    skewed = np.mean([isinstance(family, TwoPiece) for family in families])
    spread = model.noise_.spread if isinstance(model.noise_, NoiseByTask) else None
    growth = 0.0 if spread is None else float(np.abs(spread.growth).mean())
    return float(other), float(skewed), growth
