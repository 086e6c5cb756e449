"""Features that tell the outcome, and features that tell each other."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.linalg import eigvalsh, qr

from deeptobit.app.study.doctor.registry import SHOWN, Case, Finding, exclude, rule
from deeptobit.arrays import FloatArray, listed

_MOST_ROWS = 10_000  # that correlations are computed from
_NEAR = 0.98  # correlation, or held-out R²
_FEWEST = 10  # rows


def pair_correlations(X: FloatArray, Y: FloatArray) -> FloatArray:
    """Correlations of columns of X (N, D) and Y (N, T) where both are known, (D, T); 0 if unknown.

    Examples
    --------
    >>> x = np.r_[0.0:20.0]
    >>> pair_correlations(x[:, None], np.where(x > 17, np.nan, -x)[:, None])
    array([[-1.]])
    """
    (A, known_A), (B, known_B) = ((_standardised(Z), ~np.isnan(Z) * 1.0) for Z in (X, Y))
    known = known_A.T @ known_B
    n = np.maximum(known, 1.0)
    mean_A, mean_B = A.T @ known_B / n, known_A.T @ B / n
    variance_A = np.square(A).T @ known_B / n - mean_A**2
    variances = variance_A * (known_A.T @ np.square(B) / n - mean_B**2)
    usable = (known >= _FEWEST) & (variances > 1e-12)
    covariance = A.T @ B / n - mean_A * mean_B
    return np.where(usable, covariance / np.sqrt(np.where(usable, variances, 1.0)), 0.0)


def _standardised(Z: FloatArray) -> FloatArray:
    """Columns of mean 0 and standard deviation 1; 0 where unknown, and where they are constant."""
    n = np.maximum((~np.isnan(Z)).sum(axis=0), 1)
    mean = np.nansum(Z, axis=0) / n
    centred = np.nan_to_num(Z - mean)
    spread = np.sqrt(np.square(centred).sum(axis=0) / n)
    return np.asarray(centred / np.where(spread > 1e-12 * np.abs(mean), spread, np.inf))


@rule(
    harm="The model looks perfect, and fails on people whose outcome is not known yet.",
    fix="`[features] exclude`",
)
def find_leak(case: Case) -> Iterator[Finding]:
    """A copy or near copy of a target among the features, or features that it is the sum of."""
    data = case.built
    rows = slice(None, None, -(-len(data.X) // _MOST_ROWS))
    encoded = (column.name for column in data.encoder.columns if column.reference is None)
    X = pd.DataFrame({name: case.values(name)[rows] for name in encoded}, dtype=np.float64)
    Y = pd.DataFrame(data.targets.values[rows])
    both = [(X, Y), (X.rank(), Y.rank())] if X.shape[1] else []
    pairs = [np.abs(pair_correlations(x.to_numpy(), y.to_numpy())) for x, y in both]
    copies = set()
    for name, found in zip(X.columns, np.maximum.reduce(pairs) if pairs else (), strict=True):
        share, target = found.max(), data.targets.names[int(found.argmax())]
        if share > _NEAR:
            what = "a copy" if share > 0.9999 else "nearly a copy"
            message = f"is {what} of the target {target!r} (correlation {share:.3f})"
            copies.add(name)
            yield Finding("error", name, message, edits=exclude([name]))
    yield from _sums(case, copies, rows)


_MOST_FEATURES = 1000
_FOLDS = 3
_SUGGESTIVE = 0.8
_SHARE = 0.1  # of the largest coefficient


def _sums(case: Case, copies: set[str], rows: slice) -> Iterator[Finding]:
    """Targets that a linear model of the features predicts nearly without error."""
    data = case.built
    kept = [column for column in data.encoder.columns if column.name not in copies]
    owner = {feature: column.name for column in kept for feature in column.features}
    if not 0 < len(owner) <= _MOST_FEATURES:
        return
    columns = np.array(list(owner.values()), dtype=object)
    X = _standardised(data.X[list(owner)].to_numpy(dtype=np.float64)[rows])
    for target, y in zip(case.study.targets, data.targets.values[rows].T, strict=True):
        used, at = ~np.isnan(y), np.arange(len(columns))
        share, slopes, names = 0.0, np.zeros(0), list[str]()
        # All features, then twice those that count, where none of their cells is blank.
        for attempt in range(3):
            if attempt:
                at = at[np.abs(slopes) > _SHARE * np.abs(slopes).max()]
                names = list(dict.fromkeys(columns[at]))
                cells = (case.values(name)[rows] for name in names)
                complete = [~np.isnan(found) for found in cells if not np.isnan(found).all()]
                used = np.logical_and.reduce([~np.isnan(y), *complete])
            if used.sum() < 2 * _FEWEST or np.ptp(y[used]) == 0.0:
                break
            share, slopes = _held_out(X[np.ix_(used, at)], y[used])
            if share < _SUGGESTIVE:
                break
        if share > _NEAR:
            yield Finding(
                "error",
                names[0] if len(names) == 1 else target.name,
                f"features predict the target {target.name!r} nearly without error (held-out R² "
                f"{share:.3f} of a straight line): {listed(names, SHOWN)}",
                evidence="is it their sum or mean?" if len(names) > 1 else "",
                edits=exclude(names),
            )


def _held_out(X: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
    """Held-out R² of least squares with a slight ridge, and the slopes of all rows, (D,)."""
    y = y - y.mean()
    folds = [np.arange(len(y)) % _FOLDS == k for k in range(_FOLDS)]
    grams = [X[fold].T @ X[fold] for fold in folds]
    products = [X[fold].T @ y[fold] for fold in folds]
    gram = np.sum(grams, axis=0) + 1e-6 * len(y) * np.eye(X.shape[1])
    product = np.sum(products, axis=0)
    error = 0.0
    for fold, own_gram, own_product in zip(folds, grams, products, strict=True):
        slopes = np.linalg.solve(gram - own_gram, product - own_product)
        error += float(np.square(y[fold] - X[fold] @ slopes).sum())
    return 1.0 - error / float(np.square(y).sum()), np.linalg.solve(gram, product)


# Collinear features.

MOST_FEATURES = 2000  # beyond it the correlations take longer than the model
_SAME = 0.999
_NOTHING_LEFT = 1e-8


def dependences(X: pd.DataFrame) -> tuple[list[tuple[str, str, float]], list[str]]:
    """Pairs of features that are nearly the same, and linear combinations among the others.

    Pairs have an absolute correlation of 0.999 or more. With fewer rows than features no
    combination is looked for.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"left": [1.0, 2, 4, 1], "right": [3.0, 1, 2, 2]})
    >>> dependences(X.assign(grams=1000 * X.left, both=X.left + X.right))
    ([('left', 'grams', 1.0)], ['both'])
    """
    names, Z = list(map(str, X.columns)), _standardised(X.to_numpy(dtype=np.float64))
    correlation = Z.T @ Z / len(Z)
    places = np.argwhere(np.triu(np.abs(correlation) >= _SAME, k=1))
    pairs = [(names[i], names[j], round(float(correlation[i, j]), 4)) for i, j in places]
    left = np.setdiff1d(np.flatnonzero(np.diagonal(correlation) > 0.5), places[:, 1])
    # The smallest eigenvalue is cheap and settles most cases; pivoted QR then finds the names.
    if not 0 < len(left) < len(X) or eigvalsh(correlation[np.ix_(left, left)])[0] > _NOTHING_LEFT:
        return pairs, []
    R, order = qr(Z[:, left] / np.sqrt(len(Z)), mode="r", pivoting=True)
    dependent = left[order[np.abs(np.diag(R)) <= _NOTHING_LEFT]]
    return pairs, sorted(names[place] for place in dependent)


@rule(
    harm="Coefficients of the two are arbitrary, though predictions are not.",
    fix="`[features] exclude` one of them",
)
def find_collinear(case: Case) -> Iterator[Finding]:
    """A feature that is nearly equal to another, or a linear combination of others."""
    X, encoder = case.built.X, case.built.encoder
    # Columns of one examination are missing together, so that their indicators are equal.
    X = X.drop(columns=encoder.indicators).iloc[:: -(-len(X) // _MOST_ROWS)]
    if X.shape[1] > MOST_FEATURES:
        yield Finding("note", "features", f"over {MOST_FEATURES}: not checked for collinearity")
        return
    pairs, dependent = dependences(X)
    whole = {column.name for column in encoder.columns}  # a category is no column
    for first, second, value in pairs[:SHOWN]:
        edits = exclude([second]) if second in whole else ()
        message = f"correlation {value:g} with {first!r}; exclude one"
        yield Finding("warning", second, message, edits=edits)
    if len(pairs) > SHOWN:
        message = f"{len(pairs) - SHOWN} more pairs are as collinear"
        yield Finding("warning", "features", message)
    if dependent:
        message = f"linear combinations of other features: {listed(dependent, SHOWN)}"
        yield Finding("warning", "features", message)
