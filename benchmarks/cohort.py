"""Cross-validated networks against tuned peers on simulated cohorts of patients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from benchmarks.report import Number
from deeptobit import AutoTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.auto import HeldOutScores, fit_error_model
from deeptobit.datasets import make_clinical_cohort, make_subspace
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import centred_anmse, crps
from deeptobit.targets import CensoredTargets
from paper.baselines.base import Folds
from paper.baselines.leastsquares import (
    predict_held_out,
    tune_forest,
    tune_lasso,
    tune_multi_task_lasso,
    tune_ridge,
)

if TYPE_CHECKING:
    import pandas as pd

SPLITS = range(10)
TRAIN = 0.6
COHORTS: dict[str, dict[str, Any]] = {
    "linear": {},
    "non-linear": {"nonlinear": True},
    "small": {"n_subjects": 300},
}
OURS, FAIR = "ours", "multi-task lasso, recalibrated"


class Split(NamedTuple):
    """Training and test rows in standard units of the training rows, with bounds and folds."""

    X: FloatArray
    Y: FloatArray
    X_test: FloatArray
    Y_test: FloatArray
    lower: FloatArray
    upper: FloatArray
    folds: Folds


class Scores(NamedTuple):
    """Centred ANMSE, and CRPS in standard deviations."""

    anmse: float
    crps: float


def measure() -> Iterator[Number]:
    """Every promise about cross-validation: ahead of every peer, and fast."""
    with threadpool_limits(1):
        yield _seconds()
    for name, settings in COHORTS.items():
        tables = Parallel(n_jobs=2)(delayed(race)(seed, settings) for seed in SPLITS)
        yield from _compare(name, tables)


def race(seed: int, settings: dict[str, Any]) -> dict[str, Scores]:
    """All models on one split of one cohort."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of a lasso on the smallest alphas
        split = draw(seed, settings)
        table = {OURS: _ours(split)}
        for name, tune in PEERS.items():
            table |= _peer(name, tune, split)
    return table


def draw(seed: int, settings: dict[str, Any]) -> Split:
    """A cohort without missing scores, which the peers could not use; 60 % of it to train."""
    cohort = make_clinical_cohort(missing=0.0, random_state=seed, **settings)
    return split_cohort(cohort.X.to_numpy(), cohort.Y, cohort.lower, cohort.upper, seed)


def split_cohort(
    X: FloatArray,
    Y: pd.DataFrame,
    lower: Mapping[str, float],
    upper: Mapping[str, float],
    seed: int,
) -> Split:
    """60 % of the rows to train on, everything in their standard units."""
    order = np.random.default_rng(seed).permutation(len(X))
    n_train = int(TRAIN * len(order))
    train, test = order[:n_train], order[n_train:]
    spread = X[train].std(axis=0)
    X = (X - X[train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    values = Y.to_numpy(dtype=float)
    centre, scale = values[train].mean(axis=0), values[train].std(axis=0)
    bounds = (np.array([bound[str(task)] for task in Y]) for bound in (lower, upper))
    values, low, high = ((part - centre) / scale for part in (values, *bounds))
    folds = list(KFold(5, shuffle=True, random_state=0).split(X[train]))
    return Split(X[train], values[train], X[test], values[test], low, high, folds)


def _ours(split: Split) -> Scores:
    # Gaussian as the peers' errors: what a choice of the family adds, ``decisions noise`` measures.
    model = AutoTobitRegressor(
        lower=split.lower, upper=split.upper, cv=split.folds, noise="gaussian"
    )
    model.fit(split.X, split.Y)
    latent = model.predict(split.X_test, kind="latent")
    return _score(split, model.predict(split.X_test), latent, model.sigma_, bounded=True)


def _peer(
    name: str, tune: Callable[[FloatArray, FloatArray, Folds], Any], split: Split
) -> dict[str, Scores]:
    """A tuned peer, clipped to the bounds, with Gaussian errors as wide as its held-out ones."""
    model = tune(split.X, split.Y, split.folds)
    held_out = predict_held_out(model, split.X, split.Y, split.folds)
    latent = model.fit(split.X, split.Y).predict(split.X_test)
    sigma = np.sqrt(np.square(split.Y - held_out).mean(axis=0))
    clipped = np.clip(latent, split.lower, split.upper)
    table = {name: _score(split, clipped, latent, sigma, bounded=False)}
    if name == "multi-task lasso":
        table[FAIR] = _recalibrated(split, held_out, latent, sigma)
    return table


def _recalibrated(
    split: Split, held_out: FloatArray, latent: FloatArray, sigma: FloatArray
) -> Scores:
    """The same peer with the error model of the stack."""
    n_samples, n_tasks = split.Y.shape
    errors = HeldOutScores.build(
        held_out,
        CensoredTargets.from_bounds(split.Y, split.lower, split.upper),
        np.ones(n_samples),
        sigma,
        np.ones(n_tasks, dtype=np.bool_),
        fit_intercept=True,
    )
    line, _ = fit_error_model(errors, (Gaussian(),))
    scores = line.level + line.slope * latent
    mean = Predictive(Gaussian(), scores, line.sigma, split.lower, split.upper).mean()
    return _score(split, mean, scores, line.sigma, bounded=True)


def _score(
    split: Split, mean: FloatArray, latent: FloatArray, sigma: FloatArray, *, bounded: bool
) -> Scores:
    lower, upper = (split.lower, split.upper) if bounded else (None, None)
    return Scores(
        float(centred_anmse(split.Y_test, mean)),
        float(crps(split.Y_test, latent, sigma, lower=lower, upper=upper)),
    )


def _compare(cohort: str, tables: list[dict[str, Scores]]) -> Iterator[Number]:
    for place, measure_name in enumerate(Scores._fields):
        means = {name: float(np.mean([t[name][place] for t in tables])) for name in tables[0]}
        ours, fair = means.pop(OURS), means.pop(FAIR)
        best = min(means, key=lambda name: means[name])
        label = f"{cohort} cohort, {measure_name}"
        what = f"{label} {ours:.4f} less that of the best peer ({best}, {means[best]:.4f})"
        yield Number(what, ours - means[best], 0.0, "at most")
        yield Number(f"{label} less that of {FAIR} ({fair:.4f})", ours - fair, 0.0, "at most")


def _seconds() -> Number:
    X, Y, _ = make_subspace(500, 150, 30, 5, sigma=3.0, random_state=0)
    AutoTobitRegressor(random_state=0).fit(X[:50], Y[:50])  # kernels compile
    started = perf_counter()
    AutoTobitRegressor(random_state=0, n_jobs=2).fit(X, Y)
    return Number("seconds for 500 × 150 × 30", perf_counter() - started, 60.0, "at most")


PEERS: dict[str, Callable[[FloatArray, FloatArray, Folds], Any]] = {
    "ridge": tune_ridge,
    "lasso": tune_lasso,
    "multi-task lasso": tune_multi_task_lasso,
    "random forest": tune_forest,
}
