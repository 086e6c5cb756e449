"""Where the features of the training table lie, one by one and together.

A fitted study keeps these few numbers in place of the rows. The patient page takes its ranges from
them, and a prediction for a row far outside can say so.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.linalg import eigh

from deeptobit.app.study import columns
from deeptobit.app.study.data import Encoder
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators.inputs import limits_of, tail_share

_FARTHER = 1.25  # times the distance of nearly all rows, at which values together lie outside
_MOST_DIRECTIONS = 20
_ROWS_PER_DIRECTION = 10
_MOST_ROWS = 5000  # of which the covariance is learned
_FEWEST_CODES = 10  # different values; with no more, the range is that of all of them


@dataclass(frozen=True, eq=False)
class FeatureRanges:
    r"""Percentiles of every feature, and what a joint distance needs.

    Features in which a number would reveal a count below five have no range (NaN) and do not
    enter the distance. Missing cells count for no percentile.

    Attributes
    ----------
    names : list of str
        The encoded features, D of them.
    low, median, high : arrays of shape (D,)
        The 1st, 50th and 99th percentile, or those with five rows beyond them, whichever is
        further in. Smallest and largest value of a feature with at most ten different ones.
    tail : array of shape (D,)
        The share of known values beyond ``low``, and beyond ``high``.
    centre, scale : arrays of shape (D,)
        Mean and standard deviation.
    directions : array of shape (K, D)
        Leading eigenvectors of the correlations, at most 20.
    variances : array of shape (K,)
        Their eigenvalues.
    rest : float
        Mean variance of all other directions, 0 if there is none.
    usual : float
        The distance that 99 % of the rows stay within, or all but five.
    """

    names: list[str]
    low: FloatArray
    median: FloatArray
    high: FloatArray
    tail: FloatArray
    centre: FloatArray
    scale: FloatArray
    directions: FloatArray
    variances: FloatArray
    rest: float
    usual: float

    @property
    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Ends beyond which a single value is outside the data, each (D,); ∓inf where unknown."""
        return limits_of(self.low, self.median, self.high, self.tail)

    @property
    def farthest(self) -> float:
        """The distance beyond which values are outside the data together."""
        return _FARTHER * self.usual

    def outside(self, X: FloatArray) -> BoolArray:
        """Which values of rows (N, D) are outside the data, each by itself, (N, D)."""
        below, above = self.limits
        return ~((below <= X) & (above >= X))

    def distance(self, X: FloatArray) -> FloatArray:
        r"""How far rows (N, D) are from the centre of the data, (N,); about 1 is usual.

        The Mahalanobis distance :math:`\sqrt{z^\top R^{-1} z / D}` of standardised features, with
        the correlation R by its leading directions and one variance for all others.
        """
        used = self.scale > 0.0
        z = np.where(used, (X - self.centre) / np.where(used, self.scale, 1.0), 0.0)
        along = z @ self.directions.T
        total = (np.square(along) / self.variances).sum(axis=1)
        if self.rest > 0.0:
            beside = np.square(z).sum(axis=1) - np.square(along).sum(axis=1)
            total = total + np.maximum(beside, 0.0) / self.rest
        return np.asarray(np.sqrt(total / max(int(used.sum()), 1)))


def learn_ranges(X: pd.DataFrame, encoder: Encoder) -> FeatureRanges:
    """The ranges of encoded features of shape (N, D).

    Examples
    --------
    >>> from deeptobit.app.study.data import EncodedColumn
    >>> rng = np.random.default_rng(0)
    >>> age = rng.normal(70.0, 8.0, size=1000)
    >>> X = pd.DataFrame({"age": age, "years since 50": age - 50.0})
    >>> columns = (EncodedColumn(name, (), None, (70.0,), False, (False,)) for name in X)
    >>> ranges = learn_ranges(X, Encoder(tuple(columns), "impute"))
    >>> ranges.low.round(), ranges.high.round()
    (array([51.,  1.]), array([88., 38.]))
    >>> new = np.array([[70.0, 20.0], [120.0, 70.0], [80.0, 10.0]])
    >>> ranges.outside(new).tolist(), (ranges.distance(new) > ranges.farthest).tolist()
    ([[False, False], [True, True], [False, False]], [False, True, True])
    """
    matrix = X.to_numpy(dtype=np.float64)
    places = {str(name): place for place, name in enumerate(X.columns)}
    known = {
        name: matrix[:, places[column.features[-1]]] == 0.0
        for column in encoder.columns
        if column.indicator
        for name in column.features[:-1]
    }
    low, median, high, tail = np.full((4, len(places)), np.nan)
    for name, place in places.items():
        values = matrix[known[name], place] if name in known else matrix[:, place]
        beyond = tail_share(len(values))
        if beyond > 0.0 and not columns.reveals_small_count(values):
            tail[place] = beyond
            end = 0.0 if len(np.unique(values)) <= _FEWEST_CODES else beyond
            low[place], median[place], high[place] = np.quantile(values, (end, 0.5, 1.0 - end))
    rows, is_shown = matrix[:: -(-len(matrix) // _MOST_ROWS)], ~np.isnan(tail)
    scale = np.where(is_shown, rows.std(axis=0), 0.0)
    scale = np.where(scale > 1e-12 * np.abs(rows).max(axis=0, initial=0.0), scale, 0.0)
    centre = np.where(is_shown, rows.mean(axis=0), np.nan)
    used = np.flatnonzero(scale)
    z = (rows[:, used] - centre[used]) / scale[used]
    n_directions = min(_MOST_DIRECTIONS, len(used), len(rows) // _ROWS_PER_DIRECTION)
    n_rest = len(used) - n_directions
    directions, variances = np.zeros((n_directions, len(places))), np.ones(0)
    if n_directions:
        variances, vectors = eigh(z.T @ z / len(z), subset_by_index=(n_rest, len(used) - 1))
        directions[:, used] = vectors.T
    rest = max((len(used) - float(variances.sum())) / n_rest, 1e-3) if n_rest else 0.0
    # A direction that hardly varies would turn rounding into distance.
    variances = np.maximum(variances, 1e-3)
    spread = (centre, scale, directions, variances, rest)
    ranges = FeatureRanges(list(places), low, median, high, tail, *spread, usual=np.inf)
    share = 1.0 - np.nan_to_num(tail_share(len(matrix)), nan=0.5)
    usual = float(np.quantile(ranges.distance(matrix), share))
    return replace(ranges, usual=usual)
