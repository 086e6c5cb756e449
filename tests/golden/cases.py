"""Fixed small problems, and the numbers that every estimator gives on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
)
from deeptobit.arrays import FloatArray

Numbers = dict[str, list[Any]]
_N_SHOWN = 3


def problem(n_rows: int = 120, n_tasks: int = 4) -> tuple[FloatArray, FloatArray]:
    """Rank 2, on a scale from 0 to 3, without random numbers; some outcomes are missing."""
    index = np.arange(1.0, n_rows + 1.0)[:, None]
    X = np.sin(index * [1.0, 1.7, 2.9, 4.3, 5.1] + [0.0, 0.5, 1.0, 1.5, 2.0])
    U = np.cos(np.arange(1.0, 2.0 * n_tasks + 1.0)).reshape(n_tasks, 2)
    V = np.sin(np.arange(1.0, 11.0)).reshape(2, 5)
    noise = 0.8 * np.sin(index * (7.3 + np.arange(n_tasks)))
    Y = np.clip(1.2 + 1.5 * X @ V.T @ U.T + noise, 0.0, 3.0)
    Y[::17, 0] = np.nan
    return X, Y


def _fit(model: Any) -> Numbers:
    X, Y = problem()
    return _numbers(model.fit(X, Y), X)


def _numbers(model: Any, X: FloatArray) -> Numbers:
    """What is identified; U and V are not, their product is."""
    rows = X[:_N_SHOWN]
    found = {
        "coef": model.coef_,
        "intercept": model.intercept_,
        "sigma": model.sigma_,
        "mean": model.predict(rows),
        "latent": model.predict(rows, kind="latent"),
        "at_bounds": model.predict_bound_proba(rows),
        "interval": model.predict_interval(rows),
    }
    return {name: np.asarray(value).tolist() for name, value in found.items()}


def _stream() -> Numbers:
    """One pass, row by row, in two pieces."""
    X, Y = problem()
    model = SubspaceTobitRegressor(2, upper=3.0, random_state=0)
    model.partial_fit(X[:50], Y[:50])
    return _numbers(model.partial_fit(X[50:], Y[50:]), X)


def _calibrated() -> Numbers:
    X, Y = problem()
    model = TobitRegressor(upper=3.0).fit(X[:80], Y[:80])
    return _numbers(model.calibrate_intervals(X[80:], Y[80:]), X)


def _standard_errors() -> Numbers:
    X, Y = problem()
    summary = TobitRegressor(upper=3.0).fit(X, Y).summary()
    return {"std_err": summary["std_err"].tolist()}


CASES: dict[str, Callable[[], Numbers]] = {
    "tobit": lambda: _fit(TobitRegressor(upper=3.0)),
    "tobit_ridge": lambda: _fit(TobitRegressor(upper=3.0, alpha=0.1)),
    "tobit_logistic": lambda: _fit(TobitRegressor(upper=3.0, noise="logistic")),
    "tobit_student_t": lambda: _fit(TobitRegressor(upper=3.0, noise="student_t")),
    "tobit_calibrated": _calibrated,
    "tobit_standard_errors": _standard_errors,
    "subspace": lambda: _fit(SubspaceTobitRegressor(2, upper=3.0, solver="batch", alpha=0.1)),
    "subspace_online": lambda: _fit(
        SubspaceTobitRegressor(2, upper=3.0, solver="online", random_state=0)
    ),
    "subspace_stream": _stream,
    "network": lambda: _fit(SubspaceNetworkRegressor(2, 2, upper=3.0, alpha=0.1, random_state=0)),
    "auto": lambda: _fit(AutoTobitRegressor(members=("stack",), cv=3, upper=3.0, random_state=0)),
}
