"""What a fitted study keeps of its rows: where features lie, what they do, and errors in subgroups.

A fitted study does not keep the rows themselves; so all three are computed when it is fitted. The
patient page takes its ranges from the first, and a prediction for a row far outside can say so.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import eigh

from deeptobit.app.study import columns
from deeptobit.app.study.data import Encoder
from deeptobit.app.study.measures import HeldOut, Predicted, covered, recorded_errors
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators import MixedTobitRegressor, TobitRegressor
from deeptobit.estimators.inputs import limits_of, tail_share
from deeptobit.estimators.resampling import EffectsRegressor

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
    return replace(ranges, usual=float(np.quantile(ranges.distance(matrix), share)))


# What features do to outcomes, in their units.

_MOST_NUMBERS = 1_000_000  # predictions whose differences are averaged
_MOST_FEATURES = 1000  # of a model whose score is not linear; beyond, effects are left out
# What intervals are computed for; those of more take longer than half a minute.
_MOST_WITH_INTERVALS = 300  # features
_MOST_RESAMPLED = 10_000_000  # rows times features times outcomes
_MOST_OF_MIXED = 400  # parameters
_N_DRAWS, _N_SPLITS = 100, 5  # of the bootstrap
_FEWEST_TO_SPLIT = 100  # rows; quarters of fewer say nothing


@dataclass(frozen=True, eq=False)
class Effects:
    """How many points a step in a feature moves E[y|x], on average over the rows.

    Attributes
    ----------
    step : array of shape (D,)
        The power of ten next to the standard deviation; 1 for a category, against the most
        frequent one.
    effect : array of shape (T, D)
        In units of the outcomes.
    low, high : arrays of shape (T, D)
        Ends of 95 % confidence intervals, NaN where the model has none.
    """

    step: FloatArray
    effect: FloatArray
    low: FloatArray
    high: FloatArray


def learn_effects(model: Any, X: pd.DataFrame, encoder: Encoder, **resampling: Any) -> Effects:
    """Average effects over the rows of X, or over some of them where they are many.

    ``resampling`` are ``n_jobs`` and the ``groups`` of the rows, which intervals keep together.

    Examples
    --------
    >>> from deeptobit.app.study.data import EncodedColumn
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.normal(70.0, 8.0, size=300)})
    >>> model = TobitRegressor(lower=None).fit(X, 50 - 0.4 * X["age"] + rng.normal(size=300))
    >>> column = EncodedColumn("age", (), None, (70.0,), False, (False,))
    >>> found = learn_effects(model, X, Encoder((column,), "impute"))
    >>> found.step, found.effect.round(1), found.low.round(1)
    (array([10.]), array([[-3.9]]), array([[-4.1]]))
    """
    deviation = X.to_numpy(dtype=np.float64).std(axis=0)
    known = np.where(deviation > 0.0, deviation, 1.0)
    step, place = np.power(10.0, np.round(np.log10(known)), dtype=np.float64), 0
    levels: dict[int, slice] = {}  # of the category that a feature belongs to
    for column in encoder.columns:
        own, end = slice(place, place + len(column.levels)), place + len(column.features)
        levels |= dict.fromkeys(range(own.start, own.stop), own)
        step[own] = step[end - column.indicator : end] = 1.0
        place = end
    n_tasks, n_features = len(model.target_names_), X.shape[1]
    effect, slope = np.full((n_tasks, n_features), np.nan), _slope_of_scores(model, X)
    if slope is not None:
        effect = model.coef_ * slope[:, None] * step
    elif n_features <= _MOST_FEATURES:
        n_rows = int(np.clip(_MOST_NUMBERS // effect.size, 20, len(X)))
        rows = X.iloc[:: -(-len(X) // n_rows)]
        for feature in range(n_features):
            effect[:, feature] = _difference(model, rows, feature, levels.get(feature), step)
    with warnings.catch_warnings(action="ignore"):  # of what has no interval
        reach = _half_widths(model, X, slope, **resampling) * step
    return Effects(step, effect, effect - reach, effect + reach)


def _half_widths(
    model: Any, X: pd.DataFrame, slope: FloatArray | None, **resampling: Any
) -> FloatArray:
    """Half of the 95 % intervals of effects per unit, (T, D); NaN where they take too long.

    Those of a mixed model come from the standard errors of its coefficients, the slope of E[y|x] by
    the score being taken as known.
    """
    is_mixed = isinstance(model, MixedTobitRegressor) and hasattr(model, "_trained")
    pairs, factor = pd.MultiIndex.from_product([model.target_names_, X.columns]), np.ones(1)
    if isinstance(model, TobitRegressor) and X.shape[1] <= _MOST_WITH_INTERVALS:
        table = model.marginal_effects(X)
    elif can_resample(model, X):
        rows = X.iloc[:: -(-len(X) // _MOST_ROWS)]
        table = model.marginal_effects(rows, n_boot=_N_DRAWS, **resampling)
    elif slope is not None and is_mixed and model._trained.n_parameters <= _MOST_OF_MIXED:
        table, factor = model.summary(), slope
    else:
        table = pd.DataFrame(columns=["ci_low", "ci_high"], dtype=np.float64)
    ends = table[["ci_low", "ci_high"]].reindex(pairs).to_numpy()
    return np.asarray(0.5 * (ends[:, 1] - ends[:, 0]).reshape(-1, X.shape[1]) * factor[:, None])


def can_resample(model: Any, X: pd.DataFrame) -> bool:
    """Whether fits to other rows are quick, and the rows of the fit in memory."""
    is_small = X.shape[1] <= _MOST_WITH_INTERVALS
    is_quick = is_small and X.size * len(model.target_names_) <= _MOST_RESAMPLED
    return is_quick and isinstance(model, EffectsRegressor) and hasattr(model, "_trained")


def _slope_of_scores(model: Any, rows: pd.DataFrame) -> FloatArray | None:
    """Average slope of E[y|x] by the score, (T,); None if the score is not linear in x."""
    if not hasattr(model, "coef_"):
        return None
    mixed = isinstance(model, MixedTobitRegressor)
    y = (model._at(rows, None, None) if mixed else model)._predictive(rows)
    linear = rows.to_numpy(dtype=np.float64) @ model.coef_.T + model.intercept_
    if not np.allclose(y.latent, linear, rtol=1e-6, atol=1e-6 * float(model.sigma_.min())):
        return None
    slopes = y.mean_slopes()[0] if mixed else model._slopes_of_mean(y.latent)
    return np.asarray(slopes.mean(axis=0))


def _difference(
    model: Any, rows: pd.DataFrame, feature: int, category: slice | None, step: FloatArray
) -> FloatArray:
    """Average difference of E[y|x] by a step, half of it on either side, (T,)."""
    means = []
    for sign in (-1.0, 1.0):
        moved = rows.astype(np.float64)
        if category is None:
            moved.iloc[:, feature] += 0.5 * sign * step[feature]
        else:
            moved.iloc[:, category] = 0.0
            moved.iloc[:, feature] = float(sign > 0.0)
        means.append(model.predict(moved).reshape(len(rows), -1).mean(axis=0))
    return np.asarray(means[1] - means[0])


# Directions that outcomes share.


def stable_loadings(model: Any, X: pd.DataFrame, **resampling: Any) -> BoolArray | None:
    """Which loadings of the features on shared directions would keep their sign, (D, R).

    Those of the first layer, in another sample of this size. None where that is not known: trees
    stay as they were grown, and refits of large models take too long. ``resampling`` as in
    :func:`learn_effects`.
    """
    if not can_resample(model, X) or hasattr(model, "trees_") or len(X) < _FEWEST_TO_SPLIT:
        return None
    with warnings.catch_warnings(action="ignore"):  # of quarters of the rows
        try:
            found = model.subspace_stability(0, n_boot=_N_DRAWS, n_splits=_N_SPLITS, **resampling)
        except ValueError:  # no feature has an effect, or a quarter of the rows cannot be fitted
            return None
    return np.asarray(found.stable().reindex(list(map(str, X.columns))).to_numpy(dtype=np.bool_))


# Subgroups.

FEWEST_IN_PART = 20  # rows; errors of fewer are chance
_MOST_PARTS = 20


class Part(NamedTuple):
    """Held-out errors in a subgroup of the rows: a category of a column, or a large group.

    Attributes
    ----------
    column, level : str
        What the subgroup is.
    rows : float
        Number of rows, to the nearest ten.
    error : array of shape (T,)
        Mean absolute error; NaN where fewer than 20 values are known.
    bias : array of shape (T,)
        Mean of prediction less value, likewise.
    coverage : array of shape (T,)
        Share of values inside their prediction interval, likewise.
    """

    column: str
    level: str
    rows: float
    error: FloatArray
    bias: FloatArray
    coverage: FloatArray


def measure_parts(
    held_out: HeldOut,
    X: pd.DataFrame,
    encoder: Encoder,
    groups: tuple[str, NDArray[Any]] | None = None,
) -> tuple[Part, ...]:
    """Errors by category of each column, and by group if there are few large ones.

    ``groups`` are the name of their column and the labels of the rows.
    """
    labels: list[tuple[str, NDArray[Any]]] = []
    for column in encoder.columns:
        if column.reference is not None:
            flags = X[column.features[: len(column.levels)]].set_axis(list(column.levels), axis=1)
            known = pd.from_dummies(flags == 1.0, default_category=column.reference)
            found = known.iloc[:, 0].to_numpy(dtype=object, copy=True)
            if column.indicator:
                found[X[column.features[-1]].to_numpy() == 1.0] = ""
            labels.append((column.name, found))
    if groups is not None and len(set(groups[1])) <= _MOST_PARTS:
        labels.append((groups[0], np.asarray(groups[1], dtype=object)))
    targets, point = held_out.targets, held_out.predictive.mean()
    inside = covered(Predicted(targets, held_out.predictive, point, held_out.coverage))
    difference = recorded_errors(targets, point)
    parts = []
    for name, found in labels:
        for level in sorted(set(found) - {""}):
            rows = found == level
            if rows.sum() >= FEWEST_IN_PART:
                tables = (pd.DataFrame(of[rows]) for of in (np.abs(difference), difference, inside))
                means = (of.mean().where(of.count() >= FEWEST_IN_PART).to_numpy() for of in tables)
                parts.append(Part(name, str(level), float(np.round(rows.sum(), -1)), *means))
    nothing_to_compare = len({part.column for part in parts}) == len(parts)
    return () if nothing_to_compare else tuple(parts)
