"""Intervals with a guarantee: conformal prediction with the model's own intervals."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor
from numbers import Real
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators import inputs
from deeptobit.estimators.inputs import Limits
from deeptobit.estimators.prediction import PredictiveRegressor
from deeptobit.exceptions import warn
from deeptobit.likelihood import Predictive, of_task
from deeptobit.targets import CensoredTargets

# How far held-out entries lie out, on the log scale of the model's own tails.

_MEDIAN = float(np.log(2.0))  # the score of an interval that is a point
_ROUNDING = 1e-9  # a value that ties with the threshold must not fall out by rounding


@dataclass(frozen=True, eq=False)
class TargetScores:
    r"""Scores of the n held-out entries of one target.

    An entry between its bounds counts as held from its score on. One at a bound is
    held by every interval that reaches the bound, true model or not, and would pull the others'
    intervals in; it counts instead for the chance that a latent score beyond the bound is held,

    .. math:: w(t) = \frac{\left(\min(p, 1 - t) - t\right)_+}{p} \le 1[t \le p],

    p being the mass at the bound. A true model then keeps its intervals. Conformal risk control
    (Angelopoulos et al., ICLR 2024) needs only that the count grows with the interval and never
    exceeds what is held.

    Parameters
    ----------
    between : array
        Ascending scores of entries between bounds; inf where an open-ended entry is held by no
        bounded interval.
    at_bound : array
        Scores −log p of entries at a bound.
    """

    between: FloatArray
    at_bound: FloatArray

    def __len__(self) -> int:
        """Count the entries, n."""
        return len(self.between) + len(self.at_bound)

    @property
    def n_open(self) -> int:
        """Entries that no bounded interval holds."""
        return int(np.isinf(self.between).sum())

    def share_inside(self, threshold: float) -> float:
        """Share of entries that the interval of that threshold holds."""
        inside = self._between_inside(threshold) + int((self.at_bound <= threshold).sum())
        return inside / len(self) if len(self) else np.nan

    def threshold(self, coverage: float) -> float:
        """The smallest at which (n + 1)·coverage entries count as held; inf if none is."""
        wanted = (len(self) + 1) * coverage - _ROUNDING
        if len(self) < self.n_needed(coverage) or len(self) - self.n_open < wanted:
            return np.inf
        low, high = _MEDIAN, 1.0
        while self._held(high) < wanted:
            low, high = high, 2.0 * high
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._held(middle) < wanted else (low, middle)
        return high

    def n_needed(self, coverage: float) -> int:
        """Entries without which the interval must be everything."""
        odds = coverage / (1.0 - coverage)
        # An entry at a bound counts as held in full by no bounded interval.
        return floor(odds + _ROUNDING) + 1 if len(self.at_bound) else ceil(odds - _ROUNDING)

    def _held(self, threshold: float) -> float:
        tail = np.exp(-threshold)
        within = np.minimum(1.0, (1.0 - tail) * np.exp(np.minimum(self.at_bound, 1.0)))
        beyond = np.exp(np.minimum(self.at_bound - threshold, 0.0))
        return self._between_inside(threshold) + float((within - beyond).sum())

    def _between_inside(self, threshold: float) -> int:
        return int(np.searchsorted(self.between, threshold, side="right"))


def score_targets(targets: CensoredTargets, predictive: Predictive) -> tuple[TargetScores, ...]:
    """Score every entry that is not missing, target by target.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> predictive = Predictive(Gaussian(), np.zeros((5, 1)), np.ones(1), lower=0.0)
    >>> y = CensoredTargets.from_bounds([0.0, 0.0, 40.0, 1.96, np.nan], lower=0)
    >>> (scores,) = score_targets(y, predictive)
    >>> scores.between.round(3).tolist(), scores.at_bound.round(3).tolist()
    ([3.689, 804.608], [0.693, 0.693])
    """
    scores, at_bound = nonconformity(targets, predictive)
    between = ~at_bound & ~targets.missing
    return tuple(
        TargetScores(np.sort(scores[between[:, task], task]), scores[at_bound[:, task], task])
        for task in range(scores.shape[1])
    )


def nonconformity(targets: CensoredTargets, predictive: Predictive) -> tuple[FloatArray, BoolArray]:
    """Scores, NaN where missing, and whether the entry is at a bound; each (N, T).

    With the entry known to lie in [low, high], cut at the bounds, the interval [q(t), q(1 − t)]
    holds all of it if F(low) ≥ t and 1 − F(high) ≥ t. At a bound one side holds by itself.
    """
    low = np.maximum(targets.low, predictive.lower)
    high = np.minimum(targets.high, predictive.upper)
    at_lower, at_upper = high <= predictive.lower, low >= predictive.upper
    between = (targets.low == targets.high) & ~(at_lower | at_upper)
    # An end of the interval that is recorded as a score holds it: the last that is, on either side.
    first, last = predictive.cell(np.where(between, low, predictive.latent))
    z_low = (np.where(between, last, low) - predictive.latent) / predictive.sigma
    z_high = (np.where(between, first, high) - predictive.latent) / predictive.sigma
    below = np.where(at_upper, 0.0, -predictive.noise.log_cdf(z_low))
    above = np.where(at_lower, 0.0, -predictive.noise.log_sf(z_high))
    return np.maximum(below, above), at_lower | at_upper


def central_interval(
    predictive: Predictive, thresholds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The model's intervals at tail probability exp(−threshold) per target, each end (N, T)."""
    ends = np.empty((2, len(thresholds)))
    for task, score in enumerate(thresholds.tolist()):
        noise = of_task(predictive.noise, task)
        ends[:, task] = _quantile(noise.log_cdf, -1.0, score), _quantile(noise.log_sf, 1.0, score)
    low, high = (predictive.recorded(predictive.latent + predictive.sigma * z) for z in ends)
    low, high = predictive.holding(low, high)
    return low, high


def _quantile(log_tail: Callable[[FloatArray], FloatArray], side: float, score: float) -> float:
    """The z at which the tail beyond has probability exp(−score), nudged outwards.

    Found on the log scale, where quantile functions have long rounded.
    """
    if np.isinf(score):
        return side * np.inf

    def excess(z: float) -> float:
        return float(log_tail(np.asarray(side * z))) + score

    wide = 1.0
    while not excess(-wide) >= 0.0 >= excess(wide):
        wide *= 2.0
    z = float(brentq(excess, -wide, wide))
    return side * (z + _ROUNDING * max(1.0, abs(z)))


REPORTED = (0.5, 0.8, 0.9, 0.95)
_DISTRIBUTION = ("mean", "low", "high", "p_lower", "p_upper")


@dataclass(frozen=True)
class IntervalCalibration:
    """What held-out entries say about the intervals of every target.

    Parameters
    ----------
    scores : dict of TargetScores by target name
    """

    scores: dict[str, TargetScores]

    def thresholds(self, coverage: float) -> FloatArray:
        """Per target the score up to which intervals reach, inf where that is everything, (T,)."""
        found = {name: target.threshold(coverage) for name, target in self.scores.items()}
        unbounded = [name for name, threshold in found.items() if np.isinf(threshold)]
        if unbounded:
            reasons = ", ".join(self._why_unbounded(name, coverage) for name in unbounded)
            warn(
                f"intervals of coverage {coverage:g} are the whole scale for {reasons}; "
                "calibrate on more rows, or ask for a lower coverage"
            )
        return np.array(list(found.values()))

    def table(self) -> pd.DataFrame:
        """Shares of the entries inside the intervals, by target and coverage."""
        rows = {}
        for name, target in self.scores.items():
            for coverage in REPORTED:
                threshold = target.threshold(coverage)
                rows[name, coverage] = {
                    "entries": len(target),
                    "model": target.share_inside(-np.log(0.5 * (1.0 - coverage))),
                    "conformal": target.share_inside(threshold),
                    "model_level": 1.0 - 2.0 * np.exp(-threshold),
                }
        index = pd.MultiIndex.from_tuples(rows, names=["target", "coverage"])
        return pd.DataFrame(list(rows.values()), index=index)

    def _why_unbounded(self, name: str, coverage: float) -> str:
        target = self.scores[name]
        needed = target.n_needed(coverage)
        if len(target) < needed:
            return f"{name!r} ({len(target)} calibration entries, {needed} needed)"
        return (
            f"{name!r} ({target.n_open} of {len(target)} calibration entries are known only as "
            "open intervals)"
        )


class ConformalMixin(PredictiveRegressor):
    """Prediction intervals, by the model or calibrated on held-out rows."""

    _calibration: IntervalCalibration

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, lower: Limits = None, upper: Limits = None
    ) -> tuple[FloatArray, FloatArray]:
        r"""Central intervals that hold y with the given probability, each end (N, T).

        They do so if the model is right, and after :meth:`calibrate_intervals` even if it is wrong.
        Ends are the quantiles of ``predict_quantile`` at :math:`\alpha/2` and
        :math:`1 - \alpha/2`. An interval that reaches a bound has all of its mass, and holds more.

        Where outcomes are whole scores, so are the ends. Quantiles would then hold more as well, on
        a scale of few scores 97 % in place of 90 %. The interval instead has the scores whose mid-p
        value :math:`P(Y < k) + P(Y = k)/2` is between :math:`\alpha/2` and :math:`1 - \alpha/2`:
        what it leaves out on either side is as near to :math:`\alpha/2` as scores allow, less for
        some rows and more for others. Intervals that were calibrated hold at least what is asked.
        Ends that are no whole numbers reach a rounding error further, to hold what is recorded.
        """
        low, high = self._interval(self._predictive(X, lower, upper), coverage)
        return self._drop_task_axis(low, X), self._drop_task_axis(high, X)

    def _interval(self, predictive: Predictive, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Central intervals, by the model or calibrated, each end (N, T)."""
        if not (isinstance(coverage, Real) and 0.0 < float(coverage) < 1.0):
            raise ValueError(f"coverage must lie between 0 and 1; got {coverage!r}")
        if hasattr(self, "_calibration"):
            return central_interval(predictive, self._calibration.thresholds(coverage))
        low, high = predictive.interval(coverage)
        return low, high

    def predict_distribution(
        self, X: Any, coverage: float = 0.9, *, lower: Limits = None, upper: Limits = None
    ) -> pd.DataFrame:
        """Everything that is predicted of an entry, as a table: a row for each row of X and target.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        coverage : float
            Of the interval, as in :meth:`predict_interval`.
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry.

        Returns
        -------
        DataFrame of N·T rows
            ``mean`` E[y|x], ``low`` and ``high``, the ends of the interval, ``p_lower`` and
            ``p_upper``, the probabilities of the bounds, and ``outside_the_data``: whether a
            feature of the row lies far outside the training rows, judged by their 1st and 99th
            percentiles. This is missing where percentiles are not known: for sparse rows, streams
            and fewer than 20 rows. The index holds that of X, or the number of the row, and the
            target.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 1))
        >>> y = np.clip(25 + 4 * X[:, 0] + 2 * rng.normal(size=300), 0, 30)
        >>> model = TobitRegressor(upper=30).fit(X, y)
        >>> model.predict_distribution([[-1.0], [1.5], [60.0]]).round(2)
                     mean    low   high  p_lower  p_upper  outside_the_data
        row target
        0   y       20.92  17.65  24.18      0.0     0.00             False
        1   y       29.64  27.83  30.00      0.0     0.71             False
        2   y       30.00  30.00  30.00      0.0     1.00              True
        """
        check_is_fitted(self)
        matrix = self._read_features(X)
        y = self._predictive_at(matrix, lower, upper)
        parts = [y.mean(), *self._interval(y, coverage), y.at_lower(), y.at_upper()]
        rows = X.index if hasattr(X, "columns") else pd.RangeIndex(len(y.latent), name="row")
        rows = rows.rename("row") if rows.name is None else rows
        targets = pd.Index(self.target_names_, name="target")
        found = dict(zip(_DISTRIBUTION, map(np.ravel, parts), strict=True))
        outside = pd.array(self._outside(matrix).repeat(len(targets)), dtype="boolean")
        index = pd.MultiIndex.from_product([rows, targets])
        return pd.DataFrame(found | {"outside_the_data": outside}, index=index)

    def _outside(self, matrix: Any) -> NDArray[Any]:
        """Whether a feature of each row is outside the data, (N,); None where that is unknown."""
        below, above = vars(self).get("_feature_limits", (np.inf, np.inf))
        if inputs.is_sparse(matrix) or not np.isfinite(below).any():
            return np.full(matrix.shape[0], None)
        return np.asarray(((matrix < below) | (matrix > above)).any(axis=1))

    def calibrate_intervals(
        self, X: Any, y: Any, *, lower: Limits = None, upper: Limits = None
    ) -> Self:
        r"""Make ``predict_interval`` keep its promise, using rows that ``fit`` did not see.

        Conformal prediction, target by target: ``predict_interval`` takes the model's central
        interval at the level that holds :math:`(n + 1)\,c` of the n entries given here. If these
        rows and the new one are exchangeable,

        .. math:: c \le P(y \in \mathrm{interval}) \;(\le c + 1/(n + 1) \text{ without bounds}),

        on average over rows and calibration sets, however wrong the noise, σ or the coefficients.
        Where outcomes are at a bound, intervals cover more than c, as those of the true model do.

        The promise is about y as recorded: predict with the same kind of limits as are given here.
        Visits of one person are not exchangeable with a new person's; calibrate on one visit each.
        A new fit discards the calibration.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, D)
        y : array, DataFrame or CensoredTargets of shape (n,) or (n, T)
            Missing entries are left out. An entry that is known as an interval counts as covered
            only if all of it is, which is conservative.
        lower, upper : arrays of shape (n, T), optional
            Bounds per entry.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(800, 1))
        >>> y = np.clip(2 + X[:, 0] + rng.exponential(size=800), 0, 6)
        >>> model = TobitRegressor(upper=6, sigma=0.5).fit(X[:400], y[:400])  # σ is 1 in truth
        >>> model.calibrate_intervals(X[400:], y[400:]).interval_calibration_.round(3)
                         entries  model  conformal  model_level
        target coverage
        y      0.50          400  0.262      0.502        0.794
               0.80          400  0.512      0.810        0.942
               0.90          400  0.682      0.905        0.992
               0.95          400  0.832      0.952        1.000
        """
        scores = score_targets(*self._compared(X, y, lower, upper))
        self._calibration = IntervalCalibration(dict(zip(self.target_names_, scores, strict=True)))
        return self

    @property
    def interval_calibration_(self) -> pd.DataFrame:
        """Coverage on the calibration rows, one row per (target, coverage).

        ``entries`` known, shares of them inside the intervals of the ``model`` and inside the
        ``conformal`` ones, and the ``model_level`` at which the conformal interval is the model's.
        """
        if not hasattr(self, "_calibration"):
            raise AttributeError("intervals are not calibrated; call calibrate_intervals first")
        return self._calibration.table()
