r"""Layers that the data and the learned priors leave possible, and those of the next sample.

A bootstrap of a layer that is shrunken towards 0 tells how it varies from sample to sample, not how
far it is from the truth. Here the centre of the prior moves as well. With weights g of the rows and
:math:`\Delta_0` drawn from the prior,

.. math:: \Delta^* = \Delta_0 + \hat\Delta_g(Z - X\Delta_0),

where :math:`\hat\Delta_g` is the fit to rows weighted by g. Without censoring, and with Gaussian
noise in place of g, this is a draw from the posterior: its mean is the fit, and its variance has
the squared bias of shrinkage in it (randomise, then optimise). Weights take errors of one row, or
of one group of rows, as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.auto import path
from deeptobit.auto.evidence import EvidenceProblem, Spectrum
from deeptobit.auto.path import EvidenceState, Expectation, Prior
from deeptobit.auto.recalibration import Recalibration
from deeptobit.network import NetworkLayer
from deeptobit.runtime import one_blas_thread
from deeptobit.targets import CensoredTargets

_STEPS = 5  # of learning the prior again
_MOST_STEPS = 40
_SETTLED = 1e-3  # change of the coefficients in one step of EM, relative to the largest


class WeighedPrior(NamedTuple):
    """A prior of the stack with its weight, and the state of the layer that was fitted under it."""

    prior: Prior
    strength: float
    weight: float
    state: EvidenceState


@dataclass(frozen=True)
class StackDraws:
    """Draws of the averaged layer; the weights of the priors and the error model stay.

    Every draw takes one prior with the probability of its weight: priors that disagree widen the
    distribution. Where it is ``learned`` again, in a few steps from what it is, its width and the
    covariance between tasks move with the rows. Effects are held often enough without that;
    the directions that tasks share would look more certain than they are.

    Parameters
    ----------
    rows : tuple
        The features (N, D), outcomes (N, T) and weights (N,) that the layer was fitted to.
    priors : sequence of WeighedPrior
    recalibration : Recalibration
    fit_intercept, standardize : bool
    """

    rows: tuple[Any, CensoredTargets, FloatArray]
    priors: Sequence[WeighedPrior]
    recalibration: Recalibration
    fit_intercept: bool
    standardize: bool

    def draw(
        self, weight: FloatArray, random: np.random.RandomState, *, learned: bool = False
    ) -> tuple[NetworkLayer, ...]:
        """A layer that may be the truth, given rows with these weights, (N,)."""
        X, targets, _ = self.rows
        return self._fit(X, targets, weight, random, around_zero=False, learned=learned)

    def refit(
        self,
        X: Any,
        targets: CensoredTargets,
        weight: FloatArray,
        random: np.random.RandomState,
    ) -> tuple[NetworkLayer, ...]:
        """The estimate from other rows."""
        return self._fit(X, targets, weight, random, around_zero=True, learned=True)

    def _fit(
        self,
        X: Any,
        targets: CensoredTargets,
        weight: FloatArray,
        random: np.random.RandomState,
        *,
        around_zero: bool,
        learned: bool,
    ) -> tuple[NetworkLayer, ...]:
        share = np.array([each.weight for each in self.priors])
        prior, strength, _, state = self.priors[random.choice(len(share), p=share / share.sum())]
        units = {"fit_intercept": self.fit_intercept, "standardize": self.standardize}
        with one_blas_thread():
            problem = EvidenceProblem.build(X, targets, weight, **units)
            variance = state.spectrum.feature_variance
            if not around_zero:  # a feature that has left may have effects too small to be seen
                variance = np.maximum(variance, min(variance.mean(), 1.0 / weight.sum()))
            state = replace(state, spectrum=Spectrum.build(problem, variance))
            if learned:
                one_width = prior._replace(feature_variance="shared")
                state = path.learn(problem, state, one_width, _STEPS)
            state = replace(state, spectrum=state.spectrum.scaled(strength))
            centre = np.zeros_like(state.coef)
            if not around_zero:
                centre = _draw_centre(problem, state, prior, random)
            found = path.to_user(problem, _fit_around(problem, state, prior, centre), {})
        U, intercept = self.recalibration.apply(np.eye(len(found.sigma)), found.intercept)
        return (NetworkLayer(U, found.coef, intercept, self.recalibration.sigma),)


def _draw_centre(
    problem: EvidenceProblem, state: EvidenceState, prior: Prior, random: np.random.RandomState
) -> FloatArray:
    """Δ₀ from the prior, (D, T)."""
    _, expected = path.expect(problem, state, correlated=prior.sharing.correlated)
    values, axes = np.linalg.eigh(path.task_prior(state, expected, prior.sharing.shrinkage))
    draws = random.normal(size=state.coef.shape) * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(np.sqrt(state.spectrum.feature_variance)[:, None] * draws @ axes.T)


def _fit_around(
    problem: EvidenceProblem, state: EvidenceState, prior: Prior, centre: FloatArray
) -> EvidenceState:
    """EM to its end under a prior with this mean, (D, T)."""
    of_centre = problem.weighted_matrix.T @ (problem.matrix @ centre)
    for _ in range(_MOST_STEPS):
        state, expected = path.expect(problem, state, correlated=prior.sharing.correlated)
        left = Expectation(expected.noise, expected.moments - of_centre, expected.intercept)
        fitted, _ = path.maximise(state, left, prior.sharing.shrinkage)
        before, state = state.coef, replace(fitted, coef=fitted.coef + centre)
        if np.abs(state.coef - before).max() <= _SETTLED * np.abs(state.coef).max():
            break
    return state
