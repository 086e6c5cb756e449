"""How entries at a bound count in the calibration of intervals: as held, or by chance."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.decisions.table import Table
from deeptobit import TobitRegressor
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators.conformal import TargetScores, central_interval, score_targets
from deeptobit.likelihood import Gaussian, Predictive
from deeptobit.targets import CensoredTargets

N_TASKS, N_SETS, N_CALIBRATION, N_TEST, N_TRAIN = 20, 50, 99, 500, 400


class Outcomes(NamedTuple):
    """Rows with what a model says of them; ``sigma`` is the model's, not the truth."""

    Y: FloatArray
    latent: FloatArray
    sigma: float | FloatArray
    bounds: tuple[float, float]

    def scored(self, rows: slice) -> tuple[CensoredTargets, Predictive]:
        """Outcomes of some rows and the model's distribution."""
        model = Predictive(Gaussian(), self.latent[rows], np.asarray(self.sigma), *self.bounds)
        return CensoredTargets.from_bounds(self.Y[rows], *self.bounds), model


class PlainScores(TargetScores):
    """Entries at a bound count as held by every interval that reaches the bound."""

    def _held(self, threshold: float) -> float:
        return self._between_inside(threshold) + float((self.at_bound <= threshold).sum())


def measure() -> Table:
    """Coverage of all rows / of rows far from a bound, and mean width, by rule."""
    yield "outcomes, model", "wanted", "model alone", "plain rule", "by chance (taken)"
    for name, draw in PROBLEMS.items():
        for coverage in (0.5, 0.9):
            sets = np.array([list(_rules(draw(seed), coverage)) for seed in range(N_SETS)])
            yield name, f"{coverage:.0%}", *(_cell(sets[:, rule]) for rule in range(3))


def _cell(judged: FloatArray) -> str:
    holds, far, width = judged.T
    known = far[~np.isnan(far)]
    beside = f" / {known.mean():.1%}" if len(known) else ""
    return f"{holds.mean():.1%}{beside}, {width.mean():.2f}"


def _rules(outcomes: Outcomes, coverage: float) -> Iterator[tuple[float, float, float]]:
    targets, model = outcomes.scored(slice(N_CALIBRATION))
    scores = score_targets(targets, model)
    plain = [PlainScores(target.between, target.at_bound) for target in scores]
    yield _judged(outcomes, np.full(N_TASKS, -np.log(0.5 * (1.0 - coverage))))
    yield _judged(outcomes, np.array([target.threshold(coverage) for target in plain]))
    yield _judged(outcomes, np.array([target.threshold(coverage) for target in scores]))


def _judged(outcomes: Outcomes, thresholds: FloatArray) -> tuple[float, float, float]:
    targets, model = outcomes.scored(slice(N_CALIBRATION, None))
    low, high = central_interval(model, thresholds)
    inside = (targets.values >= low) & (targets.values <= high)
    far = _far_from_bounds(model)
    return (
        float(inside.mean()),
        float(inside[far].mean()) if far.any() else np.nan,
        float((high - low).mean()),
    )


def _far_from_bounds(model: Predictive) -> BoolArray:
    return np.asarray(model.at_lower() + model.at_upper() < 0.01)


def _true_line(seed: int, sigma: float) -> Outcomes:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N_CALIBRATION + N_TEST, 1))
    latent = np.broadcast_to(3.0 + 2.5 * x, (len(x), N_TASKS))
    Y = np.clip(latent + 0.7 * rng.normal(size=latent.shape), 0.0, 6.0)
    return Outcomes(Y, latent, sigma, (0.0, 6.0))


def _bent(seed: int, sigma: float | None) -> Outcomes:
    """A curved mean and skewed noise, of which the model knows nothing but a line."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N_TRAIN + N_CALIBRATION + N_TEST, 1))
    noise = rng.exponential(size=(len(x), N_TASKS)) - 1.0
    Y = np.clip(1.7 + 0.5 * x**2 + noise, 1.0, 3.0)
    model = TobitRegressor(lower=1.0, upper=3.0, sigma="mle" if sigma is None else sigma)
    model.fit(x[:N_TRAIN], Y[:N_TRAIN])
    latent = model.predict(x[N_TRAIN:], kind="latent")
    return Outcomes(Y[N_TRAIN:], latent, model.sigma_, (1.0, 3.0))


PROBLEMS: dict[str, Callable[[int], Outcomes]] = {
    "0–6, true model": partial(_true_line, sigma=0.7),
    "the same, σ half of the truth": partial(_true_line, sigma=0.35),
    "1–3, curved mean, skewed noise, σ = 0.3": partial(_bent, sigma=0.3),
    "the same, σ estimated": partial(_bent, sigma=None),
}
