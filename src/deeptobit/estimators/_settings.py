"""Constructor parameters that estimators share, checked when they are first used."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from joblib import cpu_count

from deeptobit.arrays import FloatArray
from deeptobit.targets import by_target

KINDS = ("mean", "clip", "latent")
_SWITCHES = (
    *("fit_intercept", "standardize", "skip_connection", "early_stopping"),
    *("averaging", "exact_sketch"),
)


def check_settings(alpha: Any, tol: Any, max_iter: Any, prediction: Any) -> None:
    """Constructor parameters, checked when they are first used (scikit-learn's convention)."""
    check_kind(prediction, "prediction: the kind")
    if not (isinstance(alpha, Real) and 0.0 <= float(alpha) < np.inf):
        raise ValueError(f"alpha must be a finite number, at least 0; got {alpha!r}")
    if not (isinstance(tol, Real) and float(tol) > 0.0):
        raise ValueError(f"tol must be positive; got {tol!r}")
    check_count("max_iter", max_iter)


def check_switches(params: Mapping[str, Any]) -> None:
    """Parameters that are on or off; a word such as "no" would be on.

    Examples
    --------
    >>> check_switches({"fit_intercept": "no", "tol": 1e-6})
    Traceback (most recent call last):
    ValueError: fit_intercept must be True or False; got 'no'
    """
    for name in _SWITCHES:
        if name in params and not isinstance(params[name], (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False; got {params[name]!r}")


def check_count(name: str, count: Any) -> None:
    """A whole number from 1; the name is that of the parameter.

    Examples
    --------
    >>> check_count("rank", 2.5)
    Traceback (most recent call last):
    ValueError: rank must be a whole number, at least 1; got 2.5
    """
    if not (isinstance(count, Integral) and int(count) >= 1):
        raise ValueError(f"{name} must be a whole number, at least 1; got {count!r}")


def read_threads(n_jobs: Any) -> int:
    """How many threads ``n_jobs`` means: one where it is None, all cores where it is -1.

    Examples
    --------
    >>> read_threads(None), read_threads(3), read_threads(-1) == cpu_count()
    (1, 3, True)
    """
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, Integral) or int(n_jobs) == 0:
        raise ValueError(
            f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}; -1 takes all "
            "cores"
        )
    given = int(n_jobs)
    return given if given > 0 else max(1, int(cpu_count()) + 1 + given)


def check_sparsity(sparsity: Any) -> None:
    """A number from 0 to 1."""
    if not (isinstance(sparsity, Real) and 0.0 <= float(sparsity) <= 1.0):
        raise ValueError(f"feature_sparsity must be a number from 0 to 1; got {sparsity!r}")


def check_kind(kind: Any, what: str = "kind") -> None:
    """One of the three kinds of prediction; ``what`` names the argument or parameter."""
    if kind not in KINDS:
        raise ValueError(f"{what} must be 'mean', 'clip' or 'latent'; got {kind!r}")


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
    sigma = by_target(sigma, names, "sigma")
    if isinstance(sigma, dict):
        if set(sigma) != set(names):
            raise ValueError(f"sigma must name every target once: {', '.join(map(repr, names))}")
        sigma = [sigma[name] for name in names]
    values = np.asarray(sigma, dtype=np.float64)
    if values.shape not in ((), (len(names),)):
        raise ValueError(
            f"sigma must hold one value per target ({len(names)}); got shape {values.shape}"
        )
    given = np.broadcast_to(values, (len(names),)).copy()
    if not (np.isfinite(given) & (given > 0.0)).all():
        raise ValueError(f"sigma must be positive and finite; got {sigma!r}")
    return given


def automatic_alpha(known: FloatArray, n_rows: float, n_features: int) -> float:
    r"""The stated rule for ``alpha="auto"``, from the size of the data alone.

    .. math::
        \alpha = \frac{n}{N}\,\frac{\sqrt D + \sqrt T}{2\sqrt n}\left(1 + \frac{2D}{n}\right)

    with n known entries per task in N rows, over which the likelihood is averaged. The factors in
    front are half the spectral norm that the gradient by W has on pure noise, so that noise is not
    fitted and a signal is shrunk by little; they vanish as n grows. The last keeps cohorts with
    fewer rows than features close to the intercept-only model.

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
