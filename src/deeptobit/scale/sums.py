"""Sums over rows: the moments of the data, and a layer's objective with its derivatives."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import NamedTuple, Self

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer import BasisFeatures, CensoringKinds, Design, TargetScaling, newton, tobit
from deeptobit.network import LayerInputs
from deeptobit.online import OnlineSettings, RawRows
from deeptobit.scale.source import sum_of
from deeptobit.targets import recorded_values

_MOMENTS_ROWS = 2048


class Shift(NamedTuple):
    """Subtracted from inputs (D,) and outcomes (T,) before they are squared.

    Any numbers near the data will do; sums of squares about a far origin would lose digits.
    """

    X: FloatArray
    Y: FloatArray

    @classmethod
    def near(cls, inputs: FloatArray, Y: FloatArray) -> Self:
        """The means of some rows; 0 for an outcome that none of them has."""
        known = ~np.isnan(Y)
        count = np.maximum(known.sum(axis=0), 1)
        return cls(inputs.mean(axis=0), np.where(known, Y, 0.0).sum(axis=0) / count)


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows, about a common :class:`Shift`; those of shards add up.

    Parameters
    ----------
    n_rows, weight : float
    x, xx : arrays of shape (D,) and (D, D)
        Inputs and their products.
    known, y, yy : arrays of shape (T,)
        Weights of the entries that are not missing, their recorded values (a bound counts as its
        value) and squares.
    x_known, xy : arrays of shape (D, T)
        Inputs of these entries, and their products with the values.
    left, right : arrays of shape (T,)
        Weights of the entries that are censored at a bound.
    y_inside, yy_inside : arrays of shape (T,)
        Values and squares of those that are not.
    at_lower, at_upper : arrays of shape (2, T)
        Least and largest bound among the left- and the right-censored entries; inf and −inf where
        there are none.
    """

    n_rows: float
    weight: float
    x: FloatArray
    xx: FloatArray
    known: FloatArray
    y: FloatArray
    yy: FloatArray
    x_known: FloatArray
    xy: FloatArray
    left: FloatArray
    right: FloatArray
    y_inside: FloatArray
    yy_inside: FloatArray
    at_lower: FloatArray
    at_upper: FloatArray

    @property
    def inside(self) -> FloatArray:
        """Weights of the entries that are neither missing nor censored at a bound, (T,)."""
        return np.maximum(self.known - self.left - self.right, 0.0)

    def __add__(self, other: "Moments") -> "Moments":
        """The moments of both."""
        names = [field.name for field in fields(self)]
        parts = {name: getattr(self, name) + getattr(other, name) for name in names}
        for side in ("at_lower", "at_upper"):
            one, two = getattr(self, side), getattr(other, side)
            parts[side] = np.stack([np.minimum(one[0], two[0]), np.maximum(one[1], two[1])])
        return Moments(**parts)


@dataclass(frozen=True)
class SumMoments:
    """The moments of some rows, as inputs of a layer; a task for a shard."""

    inputs: LayerInputs
    shift: Shift

    def __call__(self, rows: RawRows) -> Moments:
        """Sum over blocks of the rows; numbers whose squares are infinite are refused."""
        with np.errstate(over="ignore", invalid="ignore"):
            total = sum_of(self._sum(part) for part in blocks_of(rows, _MOMENTS_ROWS))
        for what, squares in (("feature", total.xx.diagonal()), ("target", total.yy)):
            if not np.isfinite(squares).all():
                number = int(np.flatnonzero(~np.isfinite(squares))[0])
                raise ValueError(f"{what} number {number} is too large; rescale it")
        return total

    def _sum(self, rows: RawRows) -> Moments:
        x = self.inputs(rows.X) - self.shift.X
        values = recorded_values(rows.low, rows.high) - self.shift.Y
        known = np.where(np.isnan(values), 0.0, rows.weight[:, None])
        y = np.nan_to_num(values)
        left, right = np.isneginf(rows.low), np.isposinf(rows.high)
        heavy_y = known * y
        inside = np.where(left | right, 0.0, heavy_y)
        return Moments(
            n_rows=float(len(x)),
            weight=float(rows.weight.sum()),
            x=rows.weight @ x,
            xx=x.T @ (x * rows.weight[:, None]),
            known=known.sum(axis=0),
            y=heavy_y.sum(axis=0),
            yy=(heavy_y * y).sum(axis=0),
            x_known=x.T @ known,
            xy=x.T @ heavy_y,
            left=rows.weight @ left,
            right=rows.weight @ right,
            y_inside=inside.sum(axis=0),
            yy_inside=(inside * y).sum(axis=0),
            at_lower=_extremes(np.where(left, rows.high, np.nan)),
            at_upper=_extremes(np.where(right, rows.low, np.nan)),
        )


def blocks_of(rows: RawRows, size: int) -> Iterator[RawRows]:
    """Consecutive blocks of at most ``size`` rows; one, if there are none."""
    for start in range(0, max(len(rows.weight), 1), size):
        yield RawRows(*(part[start : start + size] for part in rows))


def _extremes(bounds: FloatArray) -> FloatArray:
    """Least and largest of some bounds, NaN not counting, (2, T); inf and −inf of none."""
    return np.stack(
        [np.fmin.reduce(bounds, initial=np.inf), np.fmax.reduce(bounds, initial=-np.inf)]
    )


_ROWS = 512  # a block of scores stays in the cache while the likelihood is evaluated on it


class LayerSums(NamedTuple):
    """Sums over rows at a point, each row counting with its weight; those of shards add up.

    Parameters
    ----------
    nll : array of shape ()
    by_coef : array of shape (D, T)
        Slopes by the coefficients W, transposed, of standardised inputs.
    by_intercept, by_scale, scale_scale : arrays of shape (T,)
        Slopes by intercept and log σ, and the curvature by log σ.
    curvature : array of shape (T, R + 1, R + 1)
        Σ c [q; 1][q; 1]ᵀ with the curvature c of an entry by its score.
    cross : array of shape (T, R + 1)
        The same sum between score and log σ.
    """

    nll: FloatArray
    by_coef: FloatArray
    by_intercept: FloatArray
    by_scale: FloatArray
    scale_scale: FloatArray
    curvature: FloatArray
    cross: FloatArray

    def __add__(self, other: object) -> "LayerSums":
        """The sums of both."""
        if not isinstance(other, LayerSums):
            return NotImplemented
        return LayerSums(*(one + two for one, two in zip(self, other, strict=True)))


@dataclass(frozen=True)
class SumLayer:
    """The sums of some rows at a point; a task for a shard.

    Scores are Sq + b with q = Qᵀx, where Q spans the rows of V: what a round needs to know of
    curvature within the subspace is then as small as the subspace is.

    Parameters
    ----------
    inputs : LayerInputs
    design : Design
        Units of the inputs; it has no matrix.
    scaling : TargetScaling
    noise : Noise
    censored : bool array of shape (T,)
        Tasks whose entries are all censored on the same side: they have no maximum and are left
        out.
    directions : array of shape (D, R)
        Q, of standardised inputs.
    slopes : array of shape (T, R)
        S.
    intercept, sigma : arrays of shape (T,)
    """

    inputs: LayerInputs
    design: Design
    scaling: TargetScaling
    noise: likelihood.Noise
    censored: BoolArray
    directions: FloatArray
    slopes: FloatArray
    intercept: FloatArray
    sigma: FloatArray

    def __call__(self, rows: RawRows) -> LayerSums:
        """Sum over blocks of the rows."""
        return sum_of(self._sum(part) for part in blocks_of(rows, _ROWS))

    def _sum(self, rows: RawRows) -> LayerSums:
        weight = rows.weight
        x = self.inputs(rows.X) - self.design.mean
        x /= self.design.scale
        q = np.hstack([x @ self.directions, np.ones((len(x), 1))])
        latent = q[:, :-1] @ self.slopes.T + self.intercept
        low, high = self.scaling.apply(rows.low), self.scaling.apply(rows.high)
        low[:, self.censored] = high[:, self.censored] = np.nan
        at = likelihood.evaluate(self.noise, low, high, latent, self.sigma)
        share = weight[:, None]
        pull, cross = at.latent * share, at.latent_log_sigma * share
        return LayerSums(
            nll=np.asarray(weight @ at.nll.sum(axis=1)),
            by_coef=x.T @ pull,
            by_intercept=pull.sum(axis=0),
            by_scale=weight @ at.log_sigma,
            scale_scale=weight @ at.log_sigma_log_sigma,
            curvature=_outer_sums(at.latent_latent * share, q),
            cross=cross.T @ q,
        )


def _outer_sums(weights: FloatArray, vectors: FloatArray) -> FloatArray:
    """Σ_i w_it v_i v_iᵀ for every column of weights, (T, P, P), as one matrix product."""
    size = vectors.shape[1]
    first, second = _upper_triangle(size)
    upper = weights.T @ (vectors[:, first] * vectors[:, second])
    sums = np.empty((weights.shape[1], size, size))
    sums[:, first, second] = sums[:, second, first] = upper
    return sums


_upper_triangle = cache(np.triu_indices)  # takes longer to find than to use on a block


_STEPS = 20
_LONGEST = 0.5  # step of the mean, in units of the spread, and of the spread's logarithm


def marginal(
    moments: Moments, shift: Shift, scaling: TargetScaling
) -> tuple[FloatArray, FloatArray]:
    """Mean and spread of every task's scores in standard units, by maximum likelihood, each (T,).

    The likelihood of the uncensored entries depends on their number, mean and variance alone, so
    that two entries in their place do as well; entries at a bound are counted. Where bounds differ
    from row to row, the middle is taken: it is a start. 0 and 1 where nothing is uncensored.
    """
    usable = moments.inside > 0.0
    inside = np.where(usable, moments.inside, 1.0)
    mean = moments.y_inside / inside + shift.Y
    variance = moments.yy_inside / inside - (moments.y_inside / inside) ** 2
    deviation = np.sqrt(np.maximum(variance, 0.0))
    # The middle of the bounds; 0 where there are none.
    below, above = (0.5 * _finite(at).sum(axis=0) for at in (moments.at_lower, moments.at_upper))
    never = np.full_like(mean, np.inf)
    low = scaling.apply(np.stack([mean - deviation, mean + deviation, -never, above]))
    high = scaling.apply(np.stack([mean - deviation, mean + deviation, below, never]))
    half = 0.5 * moments.inside
    weight = np.stack([half, half, moments.left, moments.right]) / np.maximum(moments.known, 1e-300)

    def objective(point: FloatArray) -> newton.Objective:
        latent = np.tile(point[0], (len(low), 1))
        at = likelihood.evaluate(likelihood.Gaussian(), low, high, latent, np.exp(point[1]))
        nll, *by, bend, cross, curve = ((weight * part).sum(axis=0) for part in at)
        return nll, lambda: (np.stack(by), np.array([[bend, cross], [cross, curve]]))

    start = np.stack([np.where(usable, low[:2].mean(axis=0), 0.0), np.zeros_like(mean)])
    found, _ = newton.minimize_each(objective, start, longest=_LONGEST, max_steps=_STEPS)
    return np.where(usable, found[0], 0.0), np.where(usable, np.exp(found[1]), 1.0)


def _finite(extremes: FloatArray) -> FloatArray:
    return np.where(np.isfinite(extremes), extremes, 0.0)


@dataclass(frozen=True)
class DataSummary:
    """The numbers of the rows that an estimator keeps.

    Parameters
    ----------
    n_rows, weight : float
        Rows of positive weight, and their total weight.
    known : array of shape (T,)
        Total weight of the entries that are not missing.
    mean_squares : array of shape (D,)
        Of the features.
    scale : array of shape (D,)
        Their standard deviations.
    one_sided, two_sided : bool arrays of shape (T,)
        Tasks whose entries leave something undetermined; False if unknown.
    """

    n_rows: float
    weight: float
    known: FloatArray
    mean_squares: FloatArray
    scale: FloatArray
    one_sided: BoolArray
    two_sided: BoolArray


_LEAST_SHARE = 0.1
_LEAST_VARIANCE = 0.01


@dataclass(frozen=True)
class Standardised:
    """The moments in standard units.

    Parameters
    ----------
    moments : Moments
    features : BasisFeatures
        Without a matrix.
    scaling : TargetScaling
    cross : array of shape (r, T)
        Mean products of the inputs, in the round basis, with recorded values; missing ones are 0.
    """

    moments: Moments
    shift: Shift
    features: BasisFeatures
    scaling: TargetScaling
    cross: FloatArray

    @classmethod
    def of(cls, moments: Moments, shift: Shift, settings: OnlineSettings, n_outputs: int) -> Self:
        """Units of inputs and outcomes; the first ``n_outputs`` inputs are outcomes too."""
        fit_intercept = settings.fit_intercept
        y_mean = moments.y / moments.known
        y_variance = np.maximum(moments.yy / moments.known - y_mean**2, 0.0)
        scaling = TargetScaling.of_moments(y_mean + shift.Y, y_variance, center=fit_intercept)
        mean = shift.X + moments.x / moments.weight
        origin = (mean if fit_intercept else 0.0) - shift.X
        location = scaling.location - shift.Y
        both = np.outer(moments.x / moments.weight, origin)
        second = moments.xx / moments.weight - both - both.T + np.outer(origin, origin)
        variance = np.diagonal(second) if fit_intercept else np.diagonal(second) - mean**2
        design = Design.of_moments(
            mean, variance, center=fit_intercept, standardize=settings.standardize
        )
        scale, vanishing = design.scale, design.vanishing
        scale[:n_outputs] = scaling.scale[:n_outputs]
        gram = np.where(np.logical_or.outer(vanishing, vanishing), 0.0, second)
        gram = gram / np.outer(scale, scale)
        features = BasisFeatures.whitened_by(design, gram)
        cross = moments.xy - np.outer(origin, moments.y)
        cross = cross - (moments.x_known - np.outer(origin, moments.known)) * location
        cross = cross / moments.weight / np.outer(scale, scaling.scale)
        return cls(moments, shift, features, scaling, features.adjoint(cross))

    @property
    def gradient_scale(self) -> float:
        """Norm of the gradient of least squares by W at W = 0, the unit of every tolerance."""
        relative = self.cross / self.features.norms[:, None]
        return max(float(np.linalg.norm(relative)), 1e-6)

    @cached_property
    def kinds(self) -> CensoringKinds:
        """Tasks whose entries leave something undetermined."""
        moments = self.moments
        left, right = np.isfinite(moments.at_lower[0]), np.isfinite(moments.at_upper[0])
        censored = moments.inside == 0.0
        extremes = _finite(moments.at_lower), _finite(moments.at_upper)
        constant = np.all([least == largest for least, largest in extremes], axis=0)
        return CensoringKinds(censored & ~(left & right), censored & left & right & constant)

    def closed_form(self, noise: likelihood.Noise) -> tuple[FloatArray, FloatArray, FloatArray]:
        r"""Where to begin: slopes (r, T), intercepts and σ (T,).

        For Gaussian features each has a closed form. Least squares on recorded values finds
        :math:`\beta` times the share of uncensored entries (Stein's lemma), and the scores are
        normal, with a mean and a variance that outcomes alone determine; what β does not explain
        of the variance is σ².
        """
        moments, kinds = self.moments, self.kinds
        usable = moments.inside > 0.0
        share = np.clip(moments.inside / moments.known, _LEAST_SHARE, 1.0)
        slopes = self.cross / (moments.known / moments.weight) / np.where(usable, share, 1.0)
        mean, spread = marginal(moments, self.shift, self.scaling)
        variance = spread**2
        explained = np.square(slopes).sum(axis=0)
        sigma = np.sqrt(np.maximum(variance - explained, _LEAST_VARIANCE * variance))
        undetermined = kinds.one_sided | kinds.two_sided
        sigma = np.where(undetermined, 1.0, sigma)
        slopes = np.where(kinds.one_sided, 0.0, slopes)
        return slopes, np.where(kinds.one_sided, self.beyond_the_bound(noise), mean), sigma

    def beyond_the_bound(self, noise: likelihood.Noise) -> FloatArray:
        """Constants for tasks that are censored throughout, on one side, at σ = 1."""
        moments, scaling = self.moments, self.scaling
        bounds = moments.at_lower[0], moments.at_upper[1]
        return scaling.apply(tobit.beyond_the_bound(*bounds, moments.known, scaling.scale, noise))

    def summary(self) -> DataSummary:
        """The numbers of the rows that an estimator keeps."""
        moments = self.moments
        mean = moments.x / moments.weight
        variance = np.maximum(np.diagonal(moments.xx) / moments.weight - mean**2, 0.0)
        squares, scale = variance + (self.shift.X + mean) ** 2, np.sqrt(variance)
        sides = self.kinds.one_sided, self.kinds.two_sided
        return DataSummary(moments.n_rows, moments.weight, moments.known, squares, scale, *sides)
