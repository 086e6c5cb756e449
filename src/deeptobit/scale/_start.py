"""From the moments of the data to a layer's problem, and where to begin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise
from deeptobit.objective import BASIS_RIDGE, Design, RoundFeatures, TargetScaling
from deeptobit.scale._marginal import marginal
from deeptobit.scale._moments import Moments, Shift
from deeptobit.solvers import CensoringKinds

_LEAST_SHARE = 0.1
_LEAST_VARIANCE = 0.01


@dataclass(frozen=True)
class Standardised:
    """The moments in standard units.

    Parameters
    ----------
    moments : Moments
    features : RoundFeatures
        Without a matrix.
    scaling : TargetScaling
    cross : array of shape (r, T)
        Mean products of the inputs, in the round basis, with recorded values; missing ones are 0.
    """

    moments: Moments
    shift: Shift
    features: RoundFeatures
    scaling: TargetScaling
    cross: FloatArray

    @classmethod
    def of(
        cls,
        moments: Moments,
        shift: Shift,
        *,
        fit_intercept: bool,
        standardize: bool,
        n_outputs: int = 0,
    ) -> Standardised:
        """Units of inputs and outcomes; the first ``n_outputs`` inputs are outcomes too."""
        scaling = _scaling(moments, shift, center=fit_intercept)
        mean = shift.X + moments.x / moments.weight
        centre = mean if fit_intercept else np.zeros_like(mean)
        second = _about(moments, centre - shift.X)
        variance = np.diagonal(second) if fit_intercept else np.diagonal(second) - mean**2
        constant = variance <= (64 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
        vanishing = constant & (fit_intercept | (mean == 0.0))
        scale = np.sqrt(np.where(vanishing, 1.0, np.diagonal(second)))
        scale = scale if standardize else np.ones_like(scale)
        scale[:n_outputs] = scaling.scale[:n_outputs]
        gram = np.where(np.logical_or.outer(vanishing, vanishing), 0.0, second)
        gram = gram / np.outer(scale, scale)
        design = Design(None, centre, scale, np.empty(0), vanishing)
        features = RoundFeatures.of_gram(design, gram, BASIS_RIDGE)
        cross = _cross(moments, centre - shift.X, scaling.location - shift.Y)
        cross = cross / np.outer(scale, scaling.scale)
        return cls(moments, shift, features, scaling, features.adjoint(cross))

    @property
    def share(self) -> FloatArray:
        """Share of entries that are not missing, (T,)."""
        return self.moments.known / self.moments.weight

    @property
    def gradient_scale(self) -> float:
        """Norm of the gradient of least squares by W at W = 0, the unit of every tolerance."""
        norms = np.sqrt(self.features.squared_norms)[:, None]
        return max(float(np.linalg.norm(self.cross / norms)), 1e-6)

    def kinds(self) -> CensoringKinds:
        """Tasks whose entries leave something undetermined."""
        moments = self.moments
        left, right = np.isfinite(moments.at_lower[0]), np.isfinite(moments.at_upper[0])
        censored = moments.inside == 0.0
        constant = (np.diff(_finite(moments.at_lower), axis=0)[0] == 0.0) & (
            np.diff(_finite(moments.at_upper), axis=0)[0] == 0.0
        )
        return CensoringKinds(censored & ~(left & right), censored & left & right & constant)

    def line(
        self, kinds: CensoringKinds, noise: Noise
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""Where to begin: slopes (r, T), intercepts and σ (T,).

        For Gaussian features each has a closed form. Least squares on recorded values finds
        :math:`\beta` times the share of uncensored entries (Stein's lemma), and the scores are
        normal, with a mean and a variance that outcomes alone determine; what β does not explain
        of the variance is σ².
        """
        moments = self.moments
        usable = moments.inside > 0.0
        share = np.clip(moments.inside / moments.known, _LEAST_SHARE, 1.0)
        slopes = self.cross / self.share / np.where(usable, share, 1.0)
        mean, spread = marginal(moments, self.shift, self.scaling)
        variance = spread**2
        explained = np.square(slopes).sum(axis=0)
        sigma = np.sqrt(np.maximum(variance - explained, _LEAST_VARIANCE * variance))
        undetermined = kinds.one_sided | kinds.two_sided
        sigma = np.where(undetermined, 1.0, sigma)
        slopes = np.where(kinds.one_sided, 0.0, slopes)
        return slopes, np.where(kinds.one_sided, self._beyond_the_bound(noise), mean), sigma

    def _beyond_the_bound(self, noise: Noise) -> FloatArray:
        """Constants for tasks that are censored throughout, on one side, at σ = 1 (Jeffreys)."""
        moments = self.moments
        distance = -noise.ppf(0.5 / (moments.known + 1.0))
        lowest = self.scaling.apply(moments.at_lower[:1])[0] - distance
        highest = self.scaling.apply(moments.at_upper[1:])[0] + distance
        return np.asarray(np.where(np.isfinite(moments.at_lower[0]), lowest, highest))


def _finite(extremes: FloatArray) -> FloatArray:
    return np.where(np.isfinite(extremes), extremes, 0.0)


def _scaling(moments: Moments, shift: Shift, *, center: bool) -> TargetScaling:
    mean = moments.y / moments.known
    variance = np.maximum(moments.yy / moments.known - mean**2, 0.0)
    return TargetScaling.of_moments(mean + shift.Y, variance, center=center)


def _about(moments: Moments, origin: FloatArray) -> FloatArray:
    """Mean products of inputs about an origin that is relative to the shift, (D, D)."""
    mean = moments.x / moments.weight
    both = np.outer(mean, origin)
    return np.asarray(moments.xx / moments.weight - both - both.T + np.outer(origin, origin))


def _cross(moments: Moments, x_origin: FloatArray, y_origin: FloatArray) -> FloatArray:
    """Mean products of inputs and recorded values about origins, (D, T)."""
    total = moments.xy - np.outer(x_origin, moments.y)
    total = total - (moments.x_known - np.outer(x_origin, moments.known)) * y_origin
    return np.asarray(total / moments.weight)


def truncated(slopes: FloatArray, sigma: FloatArray, rank: int) -> tuple[FloatArray, FloatArray]:
    """U (T, R) and Z (r, R) nearest to slopes (r, T) in units of σ."""
    left, singular, right = np.linalg.svd(slopes / sigma, full_matrices=False)
    return (right[:rank].T * singular[:rank]) * sigma[:, None], left[:, :rank]
