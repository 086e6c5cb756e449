"""How well one fitted method predicts the test rows, target by target."""

from __future__ import annotations

from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Predictive
from deeptobit.metrics import anmse, censored_log_score, centred_anmse, crps
from deeptobit.targets import CensoredTargets


def measure(
    model: Any, X: FloatArray, targets: CensoredTargets, coverage: float
) -> dict[str, FloatArray]:
    """Measures of a fitted estimator, each of shape (T,).

    ``width`` is that of the central intervals, ``coverage`` the share of entries that agree with
    theirs; the point prediction is what ``model.predict`` returns by default, within the bounds of
    each entry.
    """
    latent = model.predict(X, kind="latent")
    lower, upper = targets.lower_bounds, targets.upper_bounds
    predictive = Predictive(model.noise_, latent, model.sigma_, lower, upper)
    point = predictive.mean() if model.prediction == "mean" else np.clip(latent, lower, upper)
    relative = np.asarray(centred_anmse(targets, point, multioutput="raw_values"))
    scores = {"noise": model.noise_, "multioutput": "raw_values"}
    tail = 0.5 * (1.0 - coverage)
    low, high = predictive.quantile([tail, 1.0 - tail])
    known = ~targets.missing
    agrees = known & (low <= targets.high) & (high >= targets.low)
    n_known = known.sum(axis=0)
    return {
        "entries": n_known,
        "r2": 1.0 - relative,
        "anmse": np.asarray(anmse(targets, point, multioutput="raw_values")),
        "centred_anmse": relative,
        "crps": np.asarray(crps(targets, latent, model.sigma_, **scores)),
        "log_score": np.asarray(censored_log_score(targets, latent, model.sigma_, **scores)),
        "coverage": agrees.sum(axis=0) / n_known,
        "width": (known * (high - low)).sum(axis=0) / n_known,
    }
