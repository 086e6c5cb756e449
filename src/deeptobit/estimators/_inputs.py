"""What users pass, read once and checked with errors that say what and where."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from deeptobit.arrays import FloatArray
from deeptobit.targets import BoundsLike, CensoredTargets

_LARGEST = 1e150  # beyond this, squares overflow


def read_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a float array or CSR matrix of shape (N, D); names and count are checked or stored."""
    try:
        matrix = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
    except ValueError as error:
        if "could not convert" in str(error):
            raise ValueError(_name_the_word(X)) from None
        raise
    _refuse_non_finite(matrix, feature_names(estimator))
    return matrix


def is_single_precision(X: Any) -> bool:
    """Whether X came in single precision, array or data frame."""
    dtypes = getattr(X, "dtypes", None)
    found = [getattr(X, "dtype", None)] if dtypes is None else list(dtypes)
    return bool(found) and all(dtype == np.float32 for dtype in found)


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
    if np.fmax.reduce(targets.low, None) > _LARGEST or (
        np.fmin.reduce(targets.high, None) < -_LARGEST
    ):
        row, task = np.argwhere(np.abs(targets.values) > _LARGEST)[0].tolist()
        raise ValueError(
            f"target {targets.names[task]!r} is too large in row {row} "
            f"({targets.values[row, task]:g}); rescale it"
        )
    return targets


def read_weights(sample_weight: ArrayLike | None, n_samples: int) -> FloatArray:
    """Row weights of shape (N,), non-negative and not all zero."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = np.asarray(sample_weight, dtype=np.float64)
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
        raise ValueError("sample_weight is zero in every row: there is nothing to learn from")
    return weight


def check_lengths(X: Any, targets: CensoredTargets) -> None:
    """X and Y must have the same rows."""
    if X.shape[0] != len(targets):
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {X.shape[0]} rows but Y has {len(targets)}"
        )


def _refuse_non_finite(matrix: Any, names: list[str]) -> None:
    sparse = bool(issparse(matrix))
    values = matrix.data if sparse else matrix
    if np.isfinite(values).all():
        return
    first = np.flatnonzero(~np.isfinite(values))[0]
    if sparse:
        entries = matrix.tocoo()
        row, column = entries.row[first], entries.col[first]
    else:
        row, column = divmod(first, matrix.shape[1])
    value = matrix[row, column]
    what = "NaN" if np.isnan(value) else "infinity (inf)"
    raise ValueError(
        f"X contains {what}: feature {names[column]!r}, row {row} "
        f"({int((~np.isfinite(values)).sum())} such values in all). Drop or impute them first, "
        "for example with sklearn.impute.SimpleImputer"
    )


def _name_the_word(X: Any) -> str:
    """Name the first entry of X that is not a number."""
    columns = getattr(X, "columns", None)
    for (row, column), value in np.ndenumerate(np.asarray(X, dtype=object)):
        try:
            float(value)
        except (TypeError, ValueError):
            name = f"x{column}" if columns is None else str(columns[column])
            return (
                f"X must hold numbers; feature {name!r} holds {value!r} in row {row}. Encode "
                "categories first, for example with sklearn.preprocessing.OneHotEncoder"
            )
    return "X must hold numbers"
