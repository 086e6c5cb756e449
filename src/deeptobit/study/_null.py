"""The model without features, to which every other is compared."""

from __future__ import annotations

import numpy as np

from deeptobit.estimators import (
    HeldOutScores,
    Line,
    TobitRegressor,
    carry_quartiles,
    fit_errors,
)
from deeptobit.likelihood import Gaussian, Noise, Predictive, of_task, with_one_spread
from deeptobit.targets import CensoredTargets


def predict_null(noise: Noise, train: CensoredTargets, test: CensoredTargets) -> Predictive:
    """The same distribution for every row of ``test``, with the noise of another model.

    Tasks of which ``train`` has no value between the bounds have the quartiles of a Gaussian fit.

    Examples
    --------
    >>> y = CensoredTargets.from_bounds(np.array([0.0, 1.0, 2.0, 3.0, 4.0]))
    >>> predict_null(Gaussian(), y, y[:2]).mean().round(1).ravel()
    array([2., 2.])
    """
    # A feature that is 0 everywhere leaves the intercepts; the ridge says what it should be.
    null = TobitRegressor(alpha=1.0).fit(np.zeros((len(train), 1)), train)
    level = np.broadcast_to(null.intercept_, train.shape)
    free = np.asarray(train.observed.any(axis=0))
    scores = HeldOutScores.build(
        level, train, np.ones(len(train)), null.sigma_, free, fit_intercept=True
    )
    noise = with_one_spread(noise)
    line, _ = fit_errors(scores, (noise,))
    families = [of_task(noise, task) for task in range(train.shape[1])]
    carried = carry_quartiles(line, [Gaussian()] * len(families), families)
    line = Line(*(np.where(free, *both) for both in zip(line, carried, strict=True)))
    latent = np.broadcast_to(line.level + line.slope * null.intercept_, test.shape)
    sigma = np.broadcast_to(line.sigma, test.shape)
    return Predictive(noise, latent, sigma, test.lower_bounds, test.upper_bounds)
