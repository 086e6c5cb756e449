"""Inputs and parameters of the estimators, read once and checked; errors say what and where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, issparse
from scipy.special import ndtri
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from deeptobit import arrays, metrics
from deeptobit.arrays import FloatArray
from deeptobit.exceptions import warn
from deeptobit.layer import column_moments
from deeptobit.penalties import PENALTIES, Group, Penalty, Ridge
from deeptobit.targets import BoundsLike, CensoredTargets, default_names, one_per_task

_LARGEST, _SMALLEST = 1e150, 1e-140  # beyond this, squares overflow or vanish
MOST_ALPHA = 1e100  # likewise
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100
_LARGEST_RAW, _SMALLEST_RAW = 1e30, 1e-30  # and so they do in single precision
_NO_NUMBER = ("real number", "could not convert", "array element")  # as NumPy complains


def read_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a float array or CSR matrix of shape (N, D); names and count are checked or stored.

    Rows are contiguous in memory: sums round by their order, and a data frame must give the same
    result as an array.
    """
    matrix = X if not reset and _is_ready(X, estimator) else _validated(estimator, X, reset=reset)
    raw = reset and not estimator.standardize
    most = _LARGEST_RAW if raw else _LARGEST
    values = matrix.data if is_sparse(matrix) else matrix
    if not max(float(values.max(initial=0.0)), -float(values.min(initial=0.0))) <= most:  # or NaN
        _refuse_non_finite(matrix, feature_names(estimator))
        _refuse_large(matrix, "feature", feature_names(estimator), most)
    if reset:
        least = _SMALLEST_RAW if raw else _SMALLEST
        refuse_small(matrix, "feature", feature_names(estimator), least)
    return matrix


def _is_ready(X: Any, estimator: Any) -> bool:
    """Whether X is what scikit-learn's checks, half the time of one row's ``predict``, give."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", None)
        and X.flags.c_contiguous
        and not hasattr(estimator, "feature_names_in_")
    )


def _validated(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as scikit-learn reads it, with errors that say where."""
    arrays.refuse_dates(X, "X")
    columns = getattr(X, "columns", None)
    if columns is not None and len(columns) == 0:
        raise ValueError("X has no column: there is no feature to learn from")
    try:
        return validate_data(
            estimator,
            arrays.with_names(arrays.without_mask(X)),
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
    except (TypeError, ValueError) as error:
        if any(words in str(error) for words in _NO_NUMBER):
            raise type(error)(_name_what_is_no_number(X, error)) from None
        raise


def feature_names(estimator: Any) -> list[str]:
    """Names of the features: those of the DataFrame, or x0, x1 and so on."""
    if hasattr(estimator, "feature_names_in_"):
        return [str(name) for name in estimator.feature_names_in_]
    return [f"x{column}" for column in range(estimator.n_features_in_)]


def read_targets(
    Y: Any, bounds: tuple[BoundsLike, BoundsLike], limits: tuple[Any, Any], **others: Any
) -> CensoredTargets:
    """Y as :class:`CensoredTargets`; one that is given as such keeps its own bounds.

    ``bounds`` are those of the tasks, ``limits`` those of every entry, if any; ``others`` as in
    ``CensoredTargets.from_bounds``.
    """
    if isinstance(Y, CensoredTargets):
        if any(limit is not None for limit in limits):
            raise ValueError(
                "Y is a CensoredTargets and brings its own bounds; pass lower and upper to "
                "CensoredTargets.from_bounds (entry_lower, entry_upper) instead"
            )
        targets = Y
    else:
        others |= dict(zip(("entry_lower", "entry_upper"), limits, strict=True))
        targets = CensoredTargets.from_bounds(Y, *bounds, **others)
    for ends in (targets.low, targets.high):
        if (np.isfinite(ends) & (np.abs(ends) > _LARGEST)).any():
            _refuse_large(np.where(np.isinf(ends), 0.0, ends), "target", targets.names, _LARGEST)
    return targets


def names_and_count(Y: Any) -> tuple[list[str] | None, int | None]:
    """Names of the outcomes, None if they have none; their number, None if Y is not a table."""
    try:
        shape = getattr(Y, "shape", None) or np.shape(Y)
    except ValueError:  # rows of different lengths, which are refused later
        shape = ()
    count = {1: 1, 2: shape[-1]}.get(len(shape)) if shape else None
    if isinstance(Y, CensoredTargets) and Y.names != default_names(len(Y.names)):
        return list(Y.names), count
    return arrays.column_names(Y), count


def read_weights(
    sample_weight: ArrayLike | None, n_samples: int, *, may_be_zero: bool = False
) -> FloatArray:
    """Row weights of shape (N,), checked as in the metrics; sums must not overflow."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = metrics.read_weights(sample_weight, n_samples, may_be_zero=may_be_zero)
    if weight.any() and not _LEAST_WEIGHT <= weight.max() <= _MOST_WEIGHT:
        raise ValueError(
            f"the largest sample_weight is {weight.max():g}; weights count rows, rescale them"
        )
    return weight


# Where the features of the training rows lie.

FEWEST_BEYOND = 5  # rows beyond either end of a range
_TAIL = 0.01  # their share
_MOST_TAIL = 0.25  # with fewer than 20 rows there are no percentiles
_FAR = 3.5  # standard deviations from the median
_MOST_ROWS = 500  # of which percentiles are taken
_FIRST_ROWS, _MOST_CODES = 100, 10  # rows with at most so many different values: codes


def tail_share(n_rows: int) -> float:
    """The share of rows beyond either end of a range: one percent, or five rows; NaN for few."""
    share = max(_TAIL, FEWEST_BEYOND / max(n_rows, 1))
    return share if share <= _MOST_TAIL else np.nan


def limits_of(low: Any, median: Any, high: Any, tail: Any) -> tuple[FloatArray, FloatArray]:
    """Ends beyond which a value is outside the data, ∓inf where nothing is known.

    They are 3.5 standard deviations from the median on either side, if the percentile on that
    side, with the share ``tail`` beyond it, is that of a normal distribution.
    """
    further = -_FAR / ndtri(tail)
    below = np.minimum(low, median - further * (median - low))
    above = np.maximum(high, median + further * (high - median))
    return np.nan_to_num(below, nan=-np.inf), np.nan_to_num(above, nan=np.inf)


def feature_limits(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Limits of features (N, D) as :func:`limits_of` has them, each (D,), from their percentiles.

    Features with at most ten different values, such as flags, have a smallest and a largest one.

    Examples
    --------
    >>> age = np.random.default_rng(0).normal(70.0, 8.0, size=(1000, 1))
    >>> [float(end.round()[0]) for end in feature_limits(age)]
    [40.0, 94.0]
    """
    rows = X[:: -(-len(X) // _MOST_ROWS)].astype(np.float64)
    tail = tail_share(len(rows))
    if np.isnan(tail):
        return np.full(X.shape[1], -np.inf), np.full(X.shape[1], np.inf)
    quantile = np.nanquantile if np.isnan(rows).any() else np.quantile
    in_order = np.sort(rows, axis=0)  # percentiles of columns in order take half the time
    low, median, high = quantile(in_order, (tail, 0.5, 1.0 - tail), axis=0)
    changes = np.diff(np.sort(rows[:_FIRST_ROWS], axis=0), axis=0) > 0.0
    coded = np.flatnonzero(changes.sum(axis=0) < _MOST_CODES)
    low[coded], high[coded] = np.nanmin(X[:, coded], axis=0), np.nanmax(X[:, coded], axis=0)
    return limits_of(low, median, high, tail)


def check_lengths(X: Any, targets: CensoredTargets) -> None:
    """X and Y must have the same rows."""
    if X.shape[0] != len(targets):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {X.shape[0]} rows but Y has {len(targets)}"
        )


def check_labels(X: Any, Y: Any, name: str = "Y") -> None:
    """Rows are matched by position: refuse the same labels in another order.

    Examples
    --------
    >>> X = pd.DataFrame({"age": [60, 70]}, index=["ann", "bob"])
    >>> check_labels(X, X["age"][::-1])
    Traceback (most recent call last):
        ...
    ValueError: X and Y have the same row labels in another order (row 0 is 'ann' in X and 'bob' \
in Y); rows are matched by position: pass Y.loc[X.index]
    """
    pandas = isinstance(X, pd.DataFrame) and isinstance(Y, pd.DataFrame | pd.Series)
    if not pandas or len(X) != len(Y) or X.index.equals(Y.index):
        return
    ours, theirs = X.index, Y.index
    if ours.is_unique and ours.isin(theirs).all():
        row = int(np.argmax(ours.to_numpy() != theirs.to_numpy()))
        label, other = ours[[row]].tolist() + theirs[[row]].tolist()
        raise ValueError(
            f"X and {name} have the same row labels in another order (row {row} is {label!r} in X "
            f"and {other!r} in {name}); rows are matched by position: pass {name}.loc[X.index]"
        )
    warn(f"X and {name} have different row labels; their rows are matched by position")


def feature_scale(matrix: Any, weight: FloatArray | None = None) -> FloatArray:
    """Standard deviations of the columns, dense or sparse, (D,).

    Examples
    --------
    >>> feature_scale(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([1., 0.])
    """
    if is_sparse(matrix):
        matrix = matrix.astype(np.float64)  # squares would overflow in single
    weight = np.ones(matrix.shape[0]) if weight is None else weight
    share = weight / weight.max()  # large weights would overflow
    _, variance = column_moments(matrix, share / share.sum())
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def _refuse_non_finite(matrix: Any, names: list[str]) -> None:
    found = coo_array(matrix)
    wrong = np.flatnonzero(~np.isfinite(found.data))
    for at in wrong[:1].tolist():
        what = "NaN" if np.isnan(found.data[at]) else "infinity (inf)"
        raise ValueError(
            f"X contains {what}: feature {names[found.col[at]]!r}, row {found.row[at]} "
            f"({len(wrong)} such values in all). Drop or impute them first, "
            "for example with sklearn.impute.SimpleImputer"
        )


def _refuse_large(matrix: Any, what: str, names: Sequence[str], most: float) -> None:
    found = coo_array(matrix)
    for at in np.flatnonzero(np.abs(found.data.astype(np.float64)) > most)[:1].tolist():
        raise ValueError(
            f"{what} {names[found.col[at]]!r} is too large in row {found.row[at]} "
            f"({found.data[at]:g}); rescale it"
        )


def refuse_small(matrix: Any, what: str, names: Sequence[str], least: float = _SMALLEST) -> None:
    """Refuse columns whose squares vanish; missing values do not count."""
    if is_sparse(matrix):
        largest = np.ravel(abs(matrix).max(axis=0).toarray())
    else:
        largest = np.fmax(np.fmax.reduce(matrix, axis=0), -np.fmin.reduce(matrix, axis=0))
    largest = largest.astype(np.float64)
    for column in np.flatnonzero((largest > 0.0) & (largest < least)).tolist():
        raise ValueError(
            f"{what} {names[column]!r} is too small (at most {largest[column]:g}); rescale it"
        )


def refuse_small_targets(targets: CensoredTargets) -> None:
    """Refuse outcomes whose squares vanish; two ends of each target mostly tell that none do."""
    ends = np.stack([np.fmax.reduce(targets.low, axis=0), np.fmin.reduce(targets.high, axis=0)])
    if not (np.isfinite(ends) & (np.abs(ends) >= _SMALLEST)).any(axis=0).all():
        refuse_small(targets.values, "target", targets.names)


def is_sparse(matrix: Any) -> bool:
    """Whether a matrix is sparse; its type stays what it is for mypy."""
    return bool(issparse(matrix))


def dense(matrix: Any) -> Any:
    """A matrix as an array, whether it is sparse or not."""
    return matrix.toarray() if is_sparse(matrix) else matrix


def _name_what_is_no_number(X: Any, error: Exception) -> str:
    """Name the first entry of X that is not a number."""
    found, names = arrays.first_not_a_number(X), arrays.column_names(X)
    if found is not None and len(found[0]) == 2:
        (row, column), value = found
        name = f"x{column}" if names is None else names[column]
        return (
            f"X must hold numbers; feature {name!r} holds {value!r} in row {row}. Encode "
            f"categories first, for example with sklearn.preprocessing.OneHotEncoder ({error})"
        )
    return "X must hold numbers, in rows by features; convert words to numbers first"


# Constructor parameters that estimators share, checked when they are first used.

Limits = ArrayLike | None  # bounds per entry, (N, T)
Rows = tuple[Any, CensoredTargets, FloatArray]  # features, outcomes and weights, checked
PredictionKind = Literal["mean", "clip", "latent"]
KINDS = get_args(PredictionKind)
_SWITCHES = ("fit_intercept", "standardize", "skip_connection", "prune_layers", "early_stopping")
_UNUSED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("batch", "the online solver", {"n_passes": 1, "batch_size": 1, "random_state": None}),
    ("online", "the batch solver", {"max_iter": 100}),
)


@dataclass(kw_only=True, eq=False, repr=False)
class CommonParameters:
    """Constructor parameters of every estimator; subclasses add theirs, as further fields."""

    # Quoted, so that signatures show the name and not what it stands for.
    lower: "BoundsLike" = 0.0
    upper: "BoundsLike" = None
    outside: Literal["raise", "clip"] = "raise"
    fit_intercept: bool = True
    standardize: bool = True
    prediction: PredictionKind = "mean"
    max_iter: int = 100
    tol: float = 1e-6
    verbose: int = 0


def check_settings(params: Mapping[str, Any]) -> None:
    """Constructor parameters, checked when they are first used (scikit-learn's convention).

    A word such as "no" would count as True where a parameter is on or off.

    Examples
    --------
    >>> check_settings({"prediction": "mean", "tol": 1e-6, "max_iter": 9, "fit_intercept": "no"})
    Traceback (most recent call last):
    ValueError: fit_intercept must be True or False; got 'no'
    """
    check_choice("prediction: the kind", params["prediction"], KINDS)
    for name, most in (("alpha", MOST_ALPHA), ("feature_sparsity", 1.0)):
        value = params.get(name, 0.0)
        if not (isinstance(value, Real) and 0.0 <= float(value) <= most):
            raise ValueError(f"{name} must be a number from 0 to {most:g}; got {value!r}")
    if not (isinstance(params["tol"], Real) and float(params["tol"]) > 0.0):
        raise ValueError(f"tol must be positive; got {params['tol']!r}")
    arrays.check_count("max_iter", params["max_iter"])
    for name in _SWITCHES:
        if name in params and not isinstance(params[name], (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False; got {params[name]!r}")
    try:
        check_random_state(params.get("random_state"))
    except ValueError:
        raise ValueError(
            "random_state must be None, a whole number from 0 to 2**32 - 1 or a RandomState; got "
            f"{params['random_state']!r}"
        ) from None
    for solver, other, defaults in _UNUSED if "solver" in params else ():
        unused = [name for name, default in defaults.items() if params[name] != default]
        if "random_state" in unused and params.get("early_stopping"):
            unused.remove("random_state")  # which draws the rows that are held out
        if unused and params["solver"] == solver:
            warn(f"solver={solver!r} does not use {' and '.join(unused)}, which {other} has")


def read_threads(n_jobs: Any) -> int:
    """How many threads ``n_jobs`` means: one where it is None, all cores where it is -1.

    Examples
    --------
    >>> read_threads(None), read_threads(3), read_threads(-1) >= 1
    (1, 3, True)
    """
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or int(n_jobs) == 0):
        raise ValueError(
            f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}; -1 takes all "
            "cores"
        )
    return int(effective_n_jobs(n_jobs))


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """One of several words; the name is that of the parameter.

    Examples
    --------
    >>> check_choice("scoring", "R2", ("r2", "log"))
    Traceback (most recent call last):
    ValueError: scoring must be 'r2' or 'log'; got 'R2'
    """
    if value not in allowed:
        *others, last = map(repr, allowed)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}; got {value!r}")


def read_layer(layer: Any, n_layers: int) -> int:
    """The index of a layer, counted from 0, or from the end if negative."""
    if not (isinstance(layer, Integral) and -n_layers <= int(layer) < n_layers):
        raise ValueError(f"layer must lie from {-n_layers} to {n_layers - 1}; got {layer!r}")
    return int(layer) % n_layers


def read_sigma(
    sigma: Any, names: tuple[str, ...], *, words: tuple[str, ...] = ("mle",)
) -> FloatArray | None:
    """Given noise scales of shape (T,), or ``None`` if they are to be estimated."""
    if isinstance(sigma, str):
        if sigma in words:
            return None
        known = ", ".join(map(repr, words))
        raise ValueError(f"sigma must be {known}, a number, one per task or a dict; got {sigma!r}")
    given = one_per_task(sigma, names, "sigma", default=np.nan)
    if not (np.isfinite(given) & (given > 0.0)).all():
        raise ValueError(f"sigma must be positive and finite for every target; got {sigma!r}")
    return given


def automatic_alpha(known: FloatArray, n_rows: float, n_features: int) -> float:
    r"""The largest alpha that ``alpha="auto"`` tries, from the size of the data alone.

    .. math::
        \alpha = \frac{n}{N}\,\frac{\sqrt D + \sqrt T}{2\sqrt n}\left(1 + \frac{2D}{n}\right)

    with n known entries per task in N rows, over which the likelihood is averaged. The factors in
    front are half the spectral norm that the gradient by W has on pure noise, so that noise is not
    fitted; they vanish as n grows. The last keeps cohorts with fewer rows than features close to
    the intercept-only model. A strong signal is shrunk by more than is good for it, and one layer
    in memory therefore goes on from here (:func:`deeptobit.layer.choose_alpha`).

    Parameters
    ----------
    known : array of shape (T,)
        Known entries of every task, or their weights; their mean is n.
    n_rows : float
        N, or the weight of all rows.

    Examples
    --------
    >>> whole, half = np.full(100, 4000.0), np.full(100, 2000.0)
    >>> automatic_alpha(whole, 4000, 200), automatic_alpha(half, 4000, 200)
    (0.2099..., 0.1619...)
    """
    n_entries = max(float(known.mean()), 1.0)
    noise = (np.sqrt(n_features) + np.sqrt(len(known))) / (2.0 * np.sqrt(n_entries))
    return float(n_entries / n_rows * noise * (1.0 + 2.0 * n_features / n_entries))


# Which solver suits the size of the data.

SolverName = Literal["auto", "batch", "online"]
BATCH_ENTRIES = 5e7  # entries of Y up to which the optimum takes less than a minute
BATCH_FEATURES = 2e8  # entries of X up to which its standardised copies fit comfortably


def read_penalty(penalty: Any, feature_sparsity: float = 0.0) -> Penalty:
    """The penalty behind a name, or the object itself.

    ``feature_sparsity`` is that of the group penalty; ``"ridge"`` with a feature sparsity above 0
    is the group penalty too, which mixes both.

    Examples
    --------
    >>> read_penalty("ridge"), read_penalty("ridge", 0.3), read_penalty("group")
    (Ridge(), Group(sparsity=0.3), Group(sparsity=0.5))
    """
    if feature_sparsity > 0.0:
        if penalty not in ("ridge", "group"):
            raise ValueError(
                "feature_sparsity belongs to penalty='ridge' and penalty='group'; with "
                f"penalty={penalty!r} leave it at 0"
            )
        return Group(float(feature_sparsity))
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, str) and penalty in PENALTIES:
        return PENALTIES[penalty]()
    names = ", ".join(map(repr, PENALTIES))
    raise ValueError(f"penalty must be {names} or a deeptobit.penalties.Penalty; got {penalty!r}")


def require_ridge(penalty: Penalty, what: str) -> None:
    """Refuse other penalties for a solver that supports the ridge alone; ``what`` names it."""
    if not isinstance(penalty, Ridge):
        raise ValueError(
            f"{what} supports only penalty='ridge' with feature_sparsity=0; {penalty} needs all "
            "rows at once: call fit with solver='batch' on rows in memory"
        )


def choose_solver(
    wanted: SolverName, shape: tuple[int, int], n_tasks: int, penalty: Penalty | None = None
) -> tuple[str, str]:
    """The solver for X of the given shape, and why.

    Examples
    --------
    >>> choose_solver("auto", (4000, 200), 100)
    ('batch', 'the data are small enough to go to the optimum')
    """
    check_choice("solver", wanted, get_args(SolverName))
    if penalty is not None and wanted == "online":
        require_ridge(penalty, "solver='online'")
    if wanted != "auto":
        return wanted, "as asked for"
    if not isinstance(penalty, Ridge | None):
        return "batch", "the penalty needs the batch solver"
    if shape[0] * n_tasks <= BATCH_ENTRIES and shape[0] * shape[1] <= BATCH_FEATURES:
        return "batch", "the data are small enough to go to the optimum"
    return "online", "the data are large: one pass instead of many"


class RowsBehind(NamedTuple):
    """How much a model has learned from: total weight, and mean squares of the features (D,)."""

    weight: float
    mean_squares: FloatArray

    def more(self, matrix: Any, weight: FloatArray) -> "RowsBehind":
        """With the rows of another chunk."""
        added = float(weight.sum())
        if added == 0.0:
            return self
        share = weight / weight.max()  # large weights would overflow
        if is_sparse(matrix):
            squares = matrix.multiply(matrix).T @ share
        else:
            squares = np.einsum("ij,ij,i->j", matrix, matrix, share, dtype=np.float64)
        total = self.weight + added
        change = (added / total) * (squares / share.sum() - self.mean_squares)
        return RowsBehind(total, self.mean_squares + change)
