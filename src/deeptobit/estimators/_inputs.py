"""What users pass, read once and checked with errors that say what and where."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from deeptobit.arrays import (
    BoolArray,
    FloatArray,
    column_names,
    refuse_dates,
    with_names,
    without_mask,
)
from deeptobit.targets import BoundsLike, CensoredTargets
from deeptobit.targets._read import default_names

_LARGEST, _SMALLEST = 1e150, 1e-140  # beyond this, squares overflow or vanish
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100
_LARGEST_RAW, _SMALLEST_RAW = 1e30, 1e-30  # and so they do in single precision


def read_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a float array or CSR matrix of shape (N, D); names and count are checked or stored.

    Rows are contiguous: sums round by the order in memory, and data frames are not to be answered
    differently from arrays.
    """
    refuse_dates(X, "X")
    columns = getattr(X, "columns", None)
    if columns is not None and len(columns) == 0:
        raise ValueError("X has no column: there is no feature to learn from")
    try:
        matrix = validate_data(
            estimator,
            with_names(without_mask(X)),
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            ensure_all_finite=False,
        )
    except TypeError as error:
        if "real number" in str(error):
            raise TypeError(_name_what_is_no_number(X, error)) from None
        raise
    except ValueError as error:
        if "could not convert" in str(error) or "array element" in str(error):
            raise ValueError(_name_what_is_no_number(X, error)) from None
        raise
    _refuse_non_finite(matrix, feature_names(estimator))
    raw = reset and not estimator.standardize
    _refuse_large(matrix, "feature", feature_names(estimator), _LARGEST_RAW if raw else _LARGEST)
    if reset:
        _refuse_small(matrix, feature_names(estimator), _SMALLEST_RAW if raw else _SMALLEST)
    return matrix


def feature_names(estimator: Any) -> list[str]:
    """Names of the features: those of the DataFrame, or x0, x1 and so on."""
    if hasattr(estimator, "feature_names_in_"):
        return [str(name) for name in estimator.feature_names_in_]
    return [f"x{column}" for column in range(estimator.n_features_in_)]


def read_targets(
    Y: Any,
    lower: BoundsLike,
    upper: BoundsLike,
    *,
    entry_lower: ArrayLike | None = None,
    entry_upper: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    outside: Any = "raise",
) -> CensoredTargets:
    """Y as :class:`CensoredTargets`; one that is given as such keeps its own bounds."""
    if isinstance(Y, CensoredTargets):
        if entry_lower is not None or entry_upper is not None:
            raise ValueError(
                "Y is a CensoredTargets and brings its own bounds; pass lower and upper to "
                "CensoredTargets.from_bounds (entry_lower, entry_upper) instead"
            )
        targets = Y
    else:
        targets = CensoredTargets.from_bounds(
            Y,
            lower,
            upper,
            entry_lower=entry_lower,
            entry_upper=entry_upper,
            names=names,
            outside=outside,
        )
    for ends in (targets.low, targets.high):
        _refuse_large(np.where(np.isinf(ends), 0.0, ends), "target", targets.names, _LARGEST)
    return targets


def count_targets(Y: Any) -> int | None:
    """How many targets outcomes have; None of what is no table and will be refused as such."""
    try:
        shape = getattr(Y, "shape", None) or np.shape(Y)
    except ValueError:  # rows of different lengths
        return None
    return {1: 1, 2: shape[-1]}.get(len(shape)) if shape else None


def names_of_targets(Y: Any) -> list[str] | None:
    """The names that outcomes came with; None where they have none."""
    if isinstance(Y, CensoredTargets):
        return None if Y.names == default_names(len(Y.names)) else list(Y.names)
    return column_names(Y)


def read_weights(
    sample_weight: ArrayLike | None, n_samples: int, *, may_be_zero: bool = False
) -> FloatArray:
    """Row weights of shape (N,), non-negative and, but for some rows of many, not all zero."""
    if sample_weight is None:
        return np.ones(n_samples)
    refuse_dates(sample_weight, "sample_weight")
    try:
        weight = np.asarray(without_mask(sample_weight), dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold numbers, one weight per row") from None
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must hold one weight per row, shape ({n_samples},); got {weight.shape}"
        )
    wrong = ~(np.isfinite(weight) & (weight >= 0.0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"sample_weight must be finite and not negative; row {row} has {weight[row]:g} "
            f"({int(wrong.sum())} such rows)"
        )
    if not weight.any():
        if may_be_zero:
            return weight
        raise ValueError("sample_weight is zero in every row: there is nothing to learn from")
    if not _LEAST_WEIGHT <= weight.max() <= _MOST_WEIGHT:
        raise ValueError(
            f"the largest sample_weight is {weight.max():g}; weights count rows, rescale them"
        )
    return weight


def check_lengths(X: Any, targets: CensoredTargets) -> None:
    """X and Y must have the same rows."""
    if X.shape[0] != len(targets):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {X.shape[0]} rows but Y has {len(targets)}"
        )


def _refuse_non_finite(matrix: Any, names: list[str]) -> None:
    wrong = ~np.isfinite(_stored(matrix))
    if not wrong.any():
        return
    row, column = _place(matrix, wrong)
    what = "NaN" if np.isnan(matrix[row, column]) else "infinity (inf)"
    raise ValueError(
        f"X contains {what}: feature {names[column]!r}, row {row} "
        f"({int(wrong.sum())} such values in all). Drop or impute them first, "
        "for example with sklearn.impute.SimpleImputer"
    )


def _refuse_large(matrix: Any, what: str, names: Sequence[str], most: float) -> None:
    values = _stored(matrix)
    highest, lowest = (end.reduce(values, None, initial=0.0) for end in (np.fmax, np.fmin))
    if max(float(highest), -float(lowest)) <= most:
        return
    row, column = _place(matrix, np.abs(values.astype(np.float64)) > most)
    raise ValueError(
        f"{what} {names[column]!r} is too large in row {row} ({matrix[row, column]:g}); rescale it"
    )


def _refuse_small(matrix: Any, names: Sequence[str], least: float) -> None:
    sparse = bool(issparse(matrix))
    largest = abs(matrix).max(axis=0)
    largest = np.ravel(largest.toarray() if sparse else largest).astype(np.float64)
    for column in np.flatnonzero((largest > 0.0) & (largest < least)).tolist():
        raise ValueError(
            f"feature {names[column]!r} is too small (at most {largest[column]:g}); rescale it"
        )


def _stored(matrix: Any) -> Any:
    """The numbers of a matrix, dense or sparse."""
    sparse = bool(issparse(matrix))
    return matrix.data if sparse else matrix


def _place(matrix: Any, wrong: BoolArray) -> tuple[int, int]:
    """Row and column of the first of the stored numbers that are wrong."""
    first = int(np.flatnonzero(wrong)[0])
    sparse = bool(issparse(matrix))
    if not sparse:
        row, column = divmod(first, int(matrix.shape[1]))
        return row, column
    entries = matrix.tocoo()
    return int(entries.row[first]), int(entries.col[first])


def _name_what_is_no_number(X: Any, error: Exception) -> str:
    """Name the first entry of X that is not a number."""
    columns = getattr(X, "columns", None)
    entries = np.asarray(X, dtype=object)
    for (row, column), value in np.ndenumerate(entries) if entries.ndim == 2 else ():
        try:
            float(value)
        except (TypeError, ValueError):
            name = f"x{column}" if columns is None else str(columns[column])
            return (
                f"X must hold numbers; feature {name!r} holds {value!r} in row {row}. Encode "
                f"categories first, for example with sklearn.preprocessing.OneHotEncoder ({error})"
            )
    return "X must hold numbers, in rows by features; convert words to numbers first"
