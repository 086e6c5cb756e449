"""Features that tell the outcome, and features that tell each other."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.linalg import eigvalsh, qr
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler

from deeptobit.app.study.data import Encoder
from deeptobit.app.study.doctor.registry import SHOWN, Case, Edit, Finding, rule
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
    both = (~np.isnan(X)).astype(np.float64), (~np.isnan(Y)).astype(np.float64)
    known = both[0].T @ both[1]
    A, B = (np.nan_to_num((Z - np.nanmean(Z, axis=0)) / _spread(Z)) for Z in (X, Y))
    n = np.maximum(known, 1.0)
    means = A.T @ both[1] / n, both[0].T @ B / n
    variances = np.square(A).T @ both[1] / n - means[0] ** 2
    variances *= both[0].T @ np.square(B) / n - means[1] ** 2
    covariance = A.T @ B / n - means[0] * means[1]
    usable = (known >= _FEWEST) & (variances > 1e-12)
    return np.where(usable, covariance / np.sqrt(np.where(usable, variances, 1.0)), 0.0)


def _spread(Z: FloatArray) -> FloatArray:
    spread = np.nanstd(Z, axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def _ranks(Z: FloatArray) -> FloatArray:
    return np.asarray(rankdata(Z, axis=0, nan_policy="omit"), dtype=np.float64)


@rule(
    "leak",
    harm="The model looks perfect, and fails on people whose outcome is not known yet.",
    fix="`[features] exclude`",
)
def find_leaks(case: Case) -> Iterator[Finding]:
    """A copy or near copy of a target among the features, or features that it is the sum of."""
    data, study = case.built, case.study
    numeric = [column.name for column in data.encoder.columns if column.reference is None]
    rows = slice(None, None, -(-len(data.X) // _MOST_ROWS))
    Y = data.targets.values[rows]
    varied = np.nanmax(Y, axis=0, initial=-np.inf) > np.nanmin(Y, axis=0, initial=np.inf)
    copies: dict[str, tuple[str, float]] = {}
    if numeric and varied.any():
        X = np.column_stack([case.values(name)[rows] for name in numeric])
        Y = np.where(varied, Y, 0.0)
        known = np.flatnonzero((~np.isnan(X)).any(axis=0))
        X, numeric = X[:, known], [numeric[at] for at in known]
        found = np.maximum(
            np.abs(pair_correlations(X, Y)), np.abs(pair_correlations(_ranks(X), _ranks(Y)))
        )
        for place, task in np.argwhere(found > _NEAR).tolist():
            share = float(found[place, task])
            if share > copies.get(numeric[place], ("", 0.0))[1]:
                copies[numeric[place]] = (study.targets[task].name, share)
    for name, (target, share) in copies.items():
        what = "a copy" if share > 0.9999 else "nearly a copy"
        yield _leak(name, f"is {what} of the target {target!r} (correlation {share:.3f})", [name])
    yield from _sums(case, set(copies), rows)


def _leak(about: str, message: str, names: list[str], evidence: str = "") -> Finding:
    edits = (Edit(("features",), "exclude", tuple(names)),)
    return Finding("error", about, message, "leak", evidence, edits)


_MOST_FEATURES = 1000
_FOLDS = 3
_SUGGESTIVE = 0.8
_SHARE = 0.1  # of the largest coefficient


def _sums(case: Case, copies: set[str], rows: slice) -> Iterator[Finding]:
    """Targets that a linear model of the features predicts nearly without error."""
    data = case.built
    kept = [
        name
        for column in data.encoder.columns
        if column.name not in copies
        for name in column.features
    ]
    owner = {name: column.name for column in data.encoder.columns for name in column.features}
    if not kept or len(kept) > _MOST_FEATURES:
        return
    X = data.X[kept].to_numpy(dtype=np.float64)[rows]
    X = (X - X.mean(axis=0)) / _spread(X)
    for task, target in enumerate(case.study.targets):
        y, at = data.targets.values[rows, task], np.arange(len(kept))
        known = ~np.isnan(y)
        if known.sum() < 2 * _FEWEST or np.ptp(y[known]) == 0.0:
            continue
        share, slopes = _held_out(X[known], y[known])
        for _ in range(2):  # again with the features that count, where none of their cells is blank
            if share < _SUGGESTIVE:
                break
            at = at[np.abs(slopes) > _SHARE * np.abs(slopes).max()]
            names = list(dict.fromkeys(owner[kept[place]] for place in at.tolist()))
            cells = (case.table.parse(name)[0][rows] for name in names)
            used = [~np.isnan(found) for found in cells if not np.isnan(found).all()]
            complete = known & np.logical_and.reduce(used) if used else known
            if complete.sum() < 2 * _FEWEST or np.ptp(y[complete]) == 0.0:
                break
            share, slopes = _held_out(X[np.ix_(complete, at)], y[complete])
        if share > _NEAR:
            about = names[0] if len(names) == 1 else target.name
            yield _leak(
                about,
                f"features predict the target {target.name!r} nearly without error (held-out R² "
                f"{share:.3f} of a straight line): {listed(names, SHOWN)}",
                names,
                "is it their sum or mean?" if len(names) > 1 else "",
            )


def _held_out(X: FloatArray, y: FloatArray) -> tuple[float, FloatArray]:
    """Held-out R² of least squares with a slight ridge, and the slopes of all rows, (D,)."""
    fold = np.arange(len(y)) % _FOLDS
    grams = [X[fold == k].T @ X[fold == k] for k in range(_FOLDS)]
    centred = y - y.mean()
    products = [X[fold == k].T @ centred[fold == k] for k in range(_FOLDS)]
    ridge = 1e-6 * len(y) * np.eye(X.shape[1])
    gram, product = np.sum(grams, axis=0) + ridge, np.sum(products, axis=0)
    error = 0.0
    for k in range(_FOLDS):
        slopes = np.linalg.solve(gram - grams[k], product - products[k])
        error += float(np.square(centred[fold == k] - X[fold == k] @ slopes).sum())
    return 1.0 - error / float(np.square(centred).sum()), np.linalg.solve(gram, product)


# Collinear features.

MOST_FEATURES = 2000  # beyond it the correlations take longer than the model
_SAME = 0.999
_NOTHING_LEFT = 1e-8


def same_pairs(X: pd.DataFrame) -> list[tuple[str, str, float]]:
    """Pairs of features with an absolute correlation of 0.999 or more.

    Examples
    --------
    >>> import pandas as pd
    >>> same_pairs(pd.DataFrame({"kg": [1.0, 2, 4], "g": [1e3, 2e3, 4e3], "age": [3.0, 1, 2]}))
    [('kg', 'g', 1.0)]
    """
    return _same_pairs(_correlations(X), X.columns)


def dependent_features(X: pd.DataFrame) -> list[str]:
    """Features that are exact linear combinations of others; none if there are too few rows.

    Examples
    --------
    >>> import pandas as pd
    >>> total = pd.DataFrame({"left": [1.0, 2, 4, 1], "right": [3.0, 1, 2, 2]})
    >>> dependent_features(total.assign(both=total.left + total.right))
    ['both']
    """
    return _dependent(X, _correlations(X))


def _correlations(X: pd.DataFrame) -> FloatArray:
    """Of all pairs of features, (D, D); 0 for a constant."""
    Z = StandardScaler().fit_transform(X)
    return np.asarray(Z.T @ Z / len(Z))


def _same_pairs(correlation: FloatArray, names: "pd.Index[str]") -> list[tuple[str, str, float]]:
    first, second = np.nonzero(np.triu(np.abs(correlation) >= _SAME, k=1))
    return [
        (str(names[i]), str(names[j]), round(float(correlation[i, j]), 4))
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]


def _dependent(X: pd.DataFrame, correlation: FloatArray) -> list[str]:
    varies = np.flatnonzero(np.diagonal(correlation) > 0.5)  # 1, or 0 for a constant
    # The smallest eigenvalue is cheap and settles most cases; pivoted QR then finds the names.
    if not 0 < len(varies) < len(X):
        return []
    if eigvalsh(correlation[np.ix_(varies, varies)])[0] > _NOTHING_LEFT:
        return []
    X = X.iloc[:, varies]
    R, order = qr(StandardScaler().fit_transform(X) / np.sqrt(len(X)), mode="r", pivoting=True)
    left = np.abs(np.diag(R))
    return sorted(str(X.columns[order[k]]) for k in np.flatnonzero(left <= _NOTHING_LEFT).tolist())


@rule(
    "collinear",
    harm="Coefficients of the two are arbitrary, though predictions are not.",
    fix="`[features] exclude` one of them",
)
def find_collinear(case: Case) -> Iterator[Finding]:
    """A feature that is nearly equal to another, or a linear combination of others."""
    yield from collinear_in(case.built.X, case.built.encoder)


def collinear_in(X: pd.DataFrame, encoder: Encoder) -> Iterator[Finding]:
    """The same for encoded features."""
    # Columns of one examination are missing together, so that their indicators are equal.
    X = X.drop(columns=encoder.indicators).iloc[:: -(-len(X) // _MOST_ROWS)]
    owner = {name: column.name for column in encoder.columns for name in column.features}

    def finding(about: str, message: str, names: list[str]) -> Finding:
        edits = (Edit(("features",), "exclude", tuple(owner[name] for name in names)),)
        return Finding("warning", about, message, "collinear", edits=edits if names else ())

    if X.shape[1] > MOST_FEATURES:
        message = f"over {MOST_FEATURES}: not checked for collinearity"
        yield Finding("note", "features", message, "collinear")
        return
    correlation = _correlations(X)
    pairs = _same_pairs(correlation, X.columns)
    for first, second, value in pairs[:SHOWN]:
        names = [second] if owner[second] == second else []  # a category is no column
        yield finding(second, f"correlation {value:g} with {first!r}; exclude one", names)
    if len(pairs) > SHOWN:
        yield finding("features", f"{len(pairs) - SHOWN} more pairs are as collinear", [])
    left = ~X.columns.isin({second for _, second, _ in pairs})
    dependent = _dependent(X.loc[:, left], correlation[np.ix_(left, left)])
    if dependent:
        message = f"linear combinations of other features: {listed(dependent, SHOWN)}"
        yield finding("features", message, [])
