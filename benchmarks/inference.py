"""How often intervals and tests keep their promise: coverage and size on generated data.

A range has two lines, one per end. Monte Carlo errors are in the name of the number.
"""

import warnings
from collections.abc import Iterator
from time import perf_counter
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.report import Number
from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.datasets import make_clinical_cohort, make_subspace
from deeptobit.datasets.clinical import ClinicalCohort
from deeptobit.datasets.subspace import SubspaceTruth
from deeptobit.estimators.inference import INTERCEPT, LOG_SIGMA
from deeptobit.exceptions import CensoringWarning
from deeptobit.inspection import align
from deeptobit.likelihood import Gaussian, Predictive

TASKS = 100  # outcomes drawn over one X, fitted together


class Setting(NamedTuple):
    """Rows, features, and where bounds cut latent scores of variance about 3."""

    n: int
    n_features: int
    intercept: float
    upper: float | None = None

    def draw(self, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """X (n, D), outcomes (n, TASKS) and the true coefficients (D,), the last of them 0."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(self.n, self.n_features))
        beta = np.r_[np.ones(self.n_features - 1), 0.0]
        noise = rng.normal(size=(self.n, TASKS))
        latent = (X @ beta + self.intercept)[:, None] + noise
        return X, np.clip(latent, 0.0, np.inf if self.upper is None else self.upper), beta


MEANS = {
    "n = 100, floor": Setting(100, 3, 1.0),
    "n = 150, heavy floor": Setting(150, 3, -1.5),
    "n = 200, heavy floor": Setting(200, 3, -1.5),
}
SMALL = {
    "not censored": Setting(30, 3, 20.0),
    "floor": Setting(30, 3, 0.5),
    "floor and ceiling": Setting(30, 3, 0.5, 3.0),
}


def measure(n_sets: int = 10_000) -> Iterator[Number]:
    """Every promise about intervals and tests."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", CensoringWarning)  # of samples that a floor determines
        for name, setting in MEANS.items():
            yield from _means(name, setting, n_sets // 5)
        for name, setting in SMALL.items():
            yield from _small(name, setting, n_sets)
        yield from _layer("alpha = 0", 0.0, n_sets // 20)
        yield from _layer("alpha = 'auto'", "auto", n_sets // 20)
        yield from _effects(n_sets // 250)
        yield from _network_effects(n_sets // 800)
        for name in DRAWN:
            yield from _stability(name, n_sets // 800)


def _means(name: str, setting: Setting, n_sets: int) -> Iterator[Number]:
    """Coverage of E[y|x] at fresh rows, and at those that are mostly at the floor."""
    hits, deep_hits = [], []
    for seed in range(n_sets // TASKS):
        X, Y, beta = setting.draw(seed)
        model = TobitRegressor(upper=setting.upper).fit(X, Y)
        rows = np.random.default_rng([seed, 1]).normal(size=(200, setting.n_features))
        latent = (rows @ beta + setting.intercept)[:, None]
        upper = np.inf if setting.upper is None else setting.upper
        truth = Predictive(Gaussian(), latent, np.ones(1), 0.0, upper)
        low, high = model.predict_mean_interval(rows)
        inside = (low <= truth.mean()) & (truth.mean() <= high)
        hits.append(inside.mean())
        deep_hits.append(inside[truth.at_lower()[:, 0] > 0.8].mean())
    for rows_of, shares in (("all rows", hits), ("rows with P(floor) > 0.8", deep_hits)):
        yield from _within(f"95 % mean intervals, {name}, {rows_of}", shares, 0.93, 0.97)


def _small(name: str, setting: Setting, n_sets: int) -> Iterator[Number]:
    wald, ratio, scale = [], [], []
    for seed in range(n_sets // TASKS):
        X, Y, _ = setting.draw(seed)
        model = TobitRegressor(upper=setting.upper).fit(X, Y)
        without = TobitRegressor(upper=setting.upper).fit(X[:, :-1], Y)
        table = model.summary()
        wald.append((table["p_value"].xs(f"x{setting.n_features - 1}", level="term") < 0.05).mean())
        ratio.append((model.likelihood_ratio_test(without)["p_value"] < 0.05).mean())
        ends = table.xs(LOG_SIGMA, level="term")
        scale.append(((ends["ci_low"] <= 0.0) & (ends["ci_high"] >= 0.0)).mean())
    yield from _within(f"Wald test at 5 %, n = 30, {name}", wald, 0.04, 0.06)
    yield from _within(f"likelihood ratio test at 5 %, n = 30, {name}", ratio, 0.04, 0.06)
    yield from _within(f"95 % interval of log σ, n = 30, {name}", scale, 0.92, 0.97)


def _layer(name: str, alpha: float | Literal["auto"], n_sets: int) -> Iterator[Number]:
    """A layer of rank 3, 500 × 20 × 10 with two bounds: coefficients, and the test of the rank."""
    n, n_features, n_tasks, rank = 500, 20, 10, 3
    hits, missed = [], []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        W = rng.normal(size=(n_tasks, rank)) @ rng.normal(size=(rank, n_features))
        W /= np.sqrt(n_features)
        X, sigma = rng.normal(size=(n, n_features)), rng.uniform(0.5, 1.5, n_tasks)
        latent = X @ W.T + 0.3 + sigma * rng.normal(size=(n, n_tasks))
        model = SubspaceTobitRegressor(rank, alpha=alpha, lower=-1.0, upper=2.0)
        model.fit(X, np.clip(latent, -1.0, 2.0))
        ends = model.conf_int().drop(index=[INTERCEPT, LOG_SIGMA], level="term")
        hits.append(((ends["ci_low"] <= W.ravel()) & (W.ravel() <= ends["ci_high"])).mean())
        missed.append(float(model.rank_test(n_draws=499)["p_value"] < 0.05))
    yield from _within(f"95 % intervals of W of rank 3, {name}", hits, 0.93, 0.97)
    yield from _within(f"test of rank 3 at 5 %, {name}", missed, 0.03, 0.07)


def _within(what: str, shares: list[float], low: float, high: float) -> Iterator[Number]:
    error = np.std(shares, ddof=1) / np.sqrt(len(shares))
    what, mean = f"{what} (± {error:.1g})", float(np.mean(shares))
    yield Number(what, mean, low, "at least")
    yield Number(what, mean, high, "at most")


def _effects(n_sets: int) -> Iterator[Number]:
    """Average marginal effects of the default, 500 × 138 × 30: coverage and time."""
    hits, largest, seconds = [], [], []
    for seed in range(n_sets):
        cohort = make_clinical_cohort(500, random_state=1000 + seed)
        truth = true_effects(cohort, 1000 + seed).ravel()
        model = AutoTobitRegressor(lower=cohort.lower, upper=cohort.upper, random_state=0)
        model.fit(cohort.X, cohort.Y)
        started = perf_counter()
        found = model.marginal_effects(n_boot=200, n_jobs=2)
        seconds.append(perf_counter() - started)
        inside = ((found["ci_low"] <= truth) & (truth <= found["ci_high"])).to_numpy()
        hits.append(inside.mean())
        largest.append(inside[found["z"].abs().to_numpy().argsort()[-len(inside) // 100 :]].mean())
    what = "effects of the default, 500 × 138 × 30, 200 draws"
    yield from _within(f"95 % intervals, {what}", hits, 0.90, 0.98)
    yield _at_least("the same, among the 1 % of the largest |z|", largest, 0.8)
    yield Number(f"{what}, two workers: longest, seconds", max(seconds), 480.0, "at most")


def true_effects(cohort: ClinicalCohort, seed: int) -> FloatArray:
    """Average effects on E[y|x] in a cohort, whose coefficients a larger one of its seed has."""
    large = make_clinical_cohort(4000, random_state=seed)
    ones = np.ones((len(large.X), 1))
    coef = np.linalg.lstsq(np.hstack([large.X, ones]), large.latent, rcond=None)[0][:-1].T
    noise, between = (large.uncensored - large.latent).to_numpy(), []
    for task, name in enumerate(cohort.Y.columns):
        errors, latent = np.sort(noise[:, task]), cohort.latent.to_numpy()[:, task]
        ends = cohort.lower[name] + 0.5, cohort.upper[name] - 0.5  # the rest is rounded to a bound
        below = [np.searchsorted(errors, end - latent) / len(errors) for end in ends]
        between.append((below[1] - below[0]).mean())
    return np.asarray(coef * np.array(between)[:, None])


def _network_effects(n_sets: int) -> Iterator[Number]:
    """Average marginal effects of networks, 500 × 10 × 6, two layers in truth and in the model."""
    hits: dict[str, list[float]] = {"layers as grown": [], "tuned together": []}
    for seed in range(n_sets):
        X, Y, made = make_subspace(
            500,
            10,
            6,
            2,
            n_layers=2,
            skip_connection=True,
            sigma=1.0,
            hidden_sigma=0.0,
            latent_sd=2.0,
            random_state=seed,
        )

        def mean(rows: FloatArray, made: SubspaceTruth = made) -> FloatArray:
            latent = made.predict(rows, "latent")
            of_rows = Predictive(Gaussian(), latent, np.ones(6), 0.0, np.inf).mean()
            return np.asarray(of_rows.mean(axis=0))

        steps = 1e-4 * np.eye(10)
        truth = np.array([(mean(X + step) - mean(X - step)) / 2e-4 for step in steps]).T.ravel()
        for tuned, (_, shares) in zip((False, True), hits.items(), strict=True):
            model = SubspaceNetworkRegressor(2, 2, joint_tuning=tuned, random_state=0).fit(X, Y)
            found = model.marginal_effects(n_boot=100, n_jobs=2)
            shares.append(((found["ci_low"] <= truth) & (truth <= found["ci_high"])).mean())
    for name, shares in hits.items():
        what = f"95 % intervals, effects of a network of two layers, {name}, 500 × 10 × 6"
        yield from _within(what, shares, 0.90, 0.98)


class Cohorts(NamedTuple):
    """Two cohorts of one population, one after the other, and the coefficients of their scores."""

    X: FloatArray
    Y: FloatArray
    lower: list[float]
    upper: list[float]
    coef: FloatArray


def clinical(n_people: int, seed: int) -> Cohorts:
    """Brains and bounded clinical scores, 138 and 30."""
    drawn = make_clinical_cohort(2 * n_people, random_state=seed)
    large = np.hstack([drawn.X, np.ones((len(drawn.X), 1))])
    coef = np.linalg.lstsq(large, drawn.latent, rcond=None)[0][:-1].T
    ends = [list(each.values()) for each in (drawn.lower, drawn.upper)]
    return Cohorts(drawn.X.to_numpy(), drawn.Y.to_numpy(), ends[0], ends[1], coef)


def sparse(n_people: int, seed: int) -> Cohorts:
    """Three components of 13 among 40 neighbouring features, 12 scores, errors with long tails."""
    n, n_features, n_tasks, rank = 2 * n_people, 40, 12, 3
    rng = np.random.default_rng(seed)
    neighbours = 0.6 ** np.abs(np.subtract.outer(np.arange(n_features), np.arange(n_features)))
    X = rng.normal(size=(n, n_features)) @ np.linalg.cholesky(neighbours).T
    V = np.zeros((rank, n_features))
    for r in range(rank):
        V[r, rng.choice(n_features, 13, replace=False)] = 1.5**-r * rng.normal(size=13)
    coef = rng.normal(size=(n_tasks, rank)) @ V
    coef /= (X @ coef.T).std(axis=0)[:, None]
    scores = X @ coef.T + 1.5 * rng.standard_t(6, size=(n, n_tasks)) / np.sqrt(1.5)
    ends = np.quantile(scores, [0.15, 0.95], axis=0)
    return Cohorts(X, np.clip(scores, *ends), ends[0].tolist(), ends[1].tolist(), coef)


DRAWN = {
    "clinical, 400 people": (clinical, 400),
    "clinical, 1600 people": (clinical, 1600),
    "sparse effects, 300 people": (sparse, 300),
}


class Component(NamedTuple):
    """Loadings of one separated component (D rows), those of the truth, and signs that held.

    ``truth`` is the component that the truth has closest to it, ``effects`` those of the truth on
    the same score of the outcomes. Signs are those of the fresh cohort's effects on that score, and
    of the component that it has itself closest.
    """

    loadings: pd.DataFrame
    truth: FloatArray
    effects: FloatArray
    held: BoolArray
    held_closest: BoolArray

    def large(self) -> BoolArray:
        """Where the true effects are beyond a tenth of the largest."""
        return np.asarray(np.abs(self.effects) > 0.1 * np.abs(self.effects).max())


def separated(cohorts: Cohorts) -> Iterator[Component]:
    """What the first cohort says of its components; the second says which signs hold."""
    half = len(cohorts.X) // 2
    model, fresh = (
        AutoTobitRegressor(
            members=["stack"], lower=cohorts.lower, upper=cohorts.upper, random_state=0
        ).fit(cohorts.X[rows], cohorts.Y[rows])
        for rows in (slice(half), slice(half, None))
    )
    found = model.subspace_stability(n_boot=100, n_components=4, n_jobs=2)
    unit = model.feature_scale_ / model.sigma_[:, None]
    effects, true, other = (coef * unit for coef in (model.coef_, cohorts.coef, fresh.coef_))
    u = align(effects, effects, 4).directions
    truth, closest = (align(effects, each, 4).loadings for each in (true, other))
    for number in found.components.index[found.components["separated"]]:
        table, r = found.loadings.loc[number], number - 1
        sign = np.sign(table["loading"].to_numpy())
        held, also = (np.sign(signs) == sign for signs in (u[:, r] @ other, closest[r]))
        length = np.linalg.norm(model.subspaces()[r].target_loadings)
        yield Component(table, truth[r] / length, u[:, r] @ true, held, also)


def _stability(name: str, n_sets: int) -> Iterator[Number]:
    """Bands of loadings, and signs of stable ones in a fresh cohort of the same size."""
    draw, n_people = DRAWN[name]
    covered, held, closest, kept = [], [], [], []
    for seed in range(3000, 3000 + n_sets):
        for one in separated(draw(n_people, seed)):
            stable = one.loadings["stable"].to_numpy()
            inside = (one.loadings["low"] <= one.truth) & (one.truth <= one.loadings["high"])
            covered.append(inside.mean())
            held.append(one.held[stable])
            closest.append(one.held_closest[stable])
            kept.append(stable[one.large()])
    name = f"{name}, {len(covered)} separated components of {n_sets} cohorts"
    yield from _within(f"90 % bands of loadings, {name}", covered, 0.84, 0.95)
    yield _at_least(f"stable at 95 %: signs that hold in a fresh cohort, {name}", held, 0.94)
    what = "the same, in the component that the fresh cohort has closest to it"
    yield _at_least(f"{what}, {name}", closest, 0.0)
    what = "stable among loadings beyond a tenth of the largest"
    yield _at_least(f"{what}, {name}", kept, 0.5 if "1600" in name else 0.0)


def _at_least(what: str, parts: list[FloatArray], low: float) -> Number:
    """The pooled share, with the error that independent sets, or components, leave."""
    sizes = np.array([np.size(part) for part in parts])
    sums = np.array([np.sum(part) for part in parts])
    share = sums.sum() / max(sizes.sum(), 1)
    error = np.linalg.norm(sums - share * sizes) / max(sizes.sum(), 1)
    return Number(f"{what} (± {error:.1g})", float(share), low, "at least")
