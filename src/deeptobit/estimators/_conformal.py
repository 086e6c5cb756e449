"""Intervals with a guarantee: conformal prediction with the model's own intervals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray
from deeptobit.estimators._nonconformity import TargetScores, central_interval, score_targets
from deeptobit.estimators._prediction import PredictiveRegressor

if TYPE_CHECKING:
    import pandas as pd

REPORTED = (0.5, 0.8, 0.9, 0.95)


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
            warnings.warn(
                f"intervals of coverage {coverage:g} are the whole scale for {reasons}; "
                "calibrate on more rows, or ask for a lower coverage",
                stacklevel=3,
            )
        return np.array(list(found.values()))

    def table(self) -> pd.DataFrame:
        """Shares of the entries inside the intervals, by target and coverage."""
        import pandas as pd

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
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Central intervals that hold y with at least the given probability, each end (N, T).

        As far as the model is true; after :meth:`calibrate_intervals` whether or not it is.
        ``predict_quantile`` always answers by the model.
        """
        if not (isinstance(coverage, Real) and 0.0 < float(coverage) < 1.0):
            raise ValueError(f"coverage must lie between 0 and 1; got {coverage!r}")
        predictive = self._predictive(X, lower, upper)
        if hasattr(self, "_calibration"):
            low, high = central_interval(predictive, self._calibration.thresholds(coverage))
        else:
            tail = 0.5 * (1.0 - coverage)
            low, high = predictive.quantile([tail, 1.0 - tail])
        return self._drop_task_axis(low, X), self._drop_task_axis(high, X)

    def calibrate_intervals(
        self,
        X: Any,
        y: Any,
        *,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> Self:
        r"""Make ``predict_interval`` keep its promise, using rows that ``fit`` did not see.

        Conformal prediction, target by target: ``predict_interval`` takes the model's central
        interval at the level that holds :math:`(n + 1)\,c` of the n entries given here. If these
        rows and the new one are exchangeable,

        .. math:: c \le P(y \in \mathrm{interval}) \;(\le c + 1/(n + 1) \text{ without bounds}),

        on average over rows and calibration sets, however wrong the noise, σ or the coefficients.
        With outcomes at a bound the intervals hold more than c, as those of a true model do.

        The promise is about y as recorded: predict with the same kind of limits as are given here.
        Visits of one person are not exchangeable with a new person's; calibrate on one visit each.
        Fitting again forgets the calibration.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, D)
        y : array, DataFrame or CensoredTargets of shape (n,) or (n, T)
            Missing entries are left out; of an entry known as an interval the whole must be held,
            which errs on the safe side.
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
        targets = self._read_again(y, lower, upper)
        scores = score_targets(targets, self._predictive_for(X, targets))
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
