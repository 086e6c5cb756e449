"""Checks for authors of noise families, and what scikit-learn's own suite may find."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad_vec
from scipy.stats import kstest

from deeptobit import estimators
from deeptobit.arrays import FloatArray
from deeptobit.estimators import SubspaceTobitRegressor, TobitRegressor
from deeptobit.likelihood import Noise
from deeptobit.penalties import Penalty

_LEVELS = np.array([0.001, 0.01, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 0.99, 0.999])
_FAR = 100.0  # quartile distances: a clipped likelihood has no gradient there
_STEP = 1e-5


def check_noise(noise: Noise) -> None:
    """Check that the functions of a noise family are those of one distribution.

    Both tails add up to one, and quantiles invert them. The density is the slope of the
    distribution function, the score that of the log density. Tails keep falling far out. The
    likelihood of every kind of entry has the derivatives that finite differences have, moments are
    their integrals, draws follow the distribution, and a fit finds the coefficients of data with
    this noise.

    Parameters
    ----------
    noise : Noise

    Raises
    ------
    AssertionError
        At the first check that fails, with what is wrong and by how much.

    Examples
    --------
    >>> import numpy as np
    >>> from deeptobit.likelihood import Gaussian
    >>> check_noise(Gaussian())
    >>> class Clipped(Gaussian):
    ...     def log_cdf(self, z):
    ...         return np.log(np.maximum(np.exp(super().log_cdf(z)), 1e-5))
    >>> check_noise(Clipped())
    Traceback (most recent call last):
    AssertionError: log_cdf stops falling far out...
    """
    if not isinstance(noise, Noise):
        raise TypeError(f"{noise!r} is not a noise family, a deeptobit.likelihood.Noise")
    _check_functions(noise)
    _check_tails(noise)
    _check_intervals(noise)
    _check_moments(noise)
    _check_draws(noise)
    _check_in_a_fit(noise)


def _check_functions(noise: Noise) -> None:
    r"""F(z) and 1 − F(z) add up to 1, ``ppf`` inverts F, and f and its score are slopes.

    .. math:: \frac{d}{dz}\log F = \frac{f}{F}, \qquad
        \frac{d}{dz}\log(1 - F) = -\frac{f}{1 - F}, \qquad \frac{d}{dz}\log f = -\mathrm{score}
    """
    z = noise.ppf(_LEVELS)
    assert (np.diff(z) > 0.0).all(), "ppf does not rise"
    log_pdf, log_cdf, log_sf = noise.log_pdf(z), noise.log_cdf(z), noise.log_sf(z)
    assert_allclose(np.exp(log_cdf) + np.exp(log_sf), 1.0, rtol=1e-10, err_msg="log_cdf and log_sf")
    assert_allclose(np.exp(log_cdf), _LEVELS, rtol=1e-8, err_msg="log_cdf of ppf")
    for what, of, expected in (
        ("log_pdf", "log_cdf", np.exp(log_pdf - log_cdf)),
        ("log_pdf", "log_sf", -np.exp(log_pdf - log_sf)),
        ("score", "log_pdf", -noise.score(z)),
        ("score_slope", "score", noise.score_slope(z)),
    ):
        slope = _slope(getattr(noise, of), z)
        message = f"{what} and the slope of {of} do not agree"
        assert_allclose(expected, slope, rtol=1e-4, atol=1e-6, err_msg=message)


def _check_tails(noise: Noise) -> None:
    """A censored entry that is predicted badly keeps its gradient: no clip or ``+ eps`` in a tail.

    log F and log(1 − F) are finite and strictly monotone a hundred units out, and the gradient by
    the latent score points to the entry.
    """
    z = np.linspace(0.0, _FAR * _unit(noise), 200)
    for side, log_tail in (("log_cdf", noise.log_cdf(-z)), ("log_sf", noise.log_sf(z))):
        assert np.isfinite(log_tail).all(), f"{side} is not finite far out"
        assert (np.diff(log_tail) < 0.0).all(), f"{side} stops falling far out"
    infinity = np.full_like(z, np.inf)
    left, right = noise.interval(-infinity, -z), noise.interval(z, infinity)
    for side, found, sign in (("left", left, 1.0), ("right", right, -1.0)):
        assert all(np.isfinite(field).all() for field in found), f"interval: {side} is not finite"
        assert (sign * found.latent > 0.0).all(), f"a {side}-censored entry far out has no gradient"


def _check_intervals(noise: Noise) -> None:
    r"""``interval`` is −log(F(b) − F(a)), and its derivatives are those by η and log σ.

    .. math:: (a, b) \mapsto \left(\frac{a - \eta}{\sigma}, \frac{b - \eta}{\sigma}\right)

    against central differences at η = 0 and σ = 1.
    """
    # Left-, right- and interval-censored entries, some of them narrow.
    z = noise.ppf(_LEVELS)
    first, second = np.triu_indices(len(z), 1)
    infinity = np.full_like(z, np.inf)
    a = np.concatenate([-infinity, z, z[first], z])
    b = np.concatenate([z, infinity, z[second], z + 0.01 * _unit(noise)])
    found = noise.interval(a, b)
    mass = np.exp(noise.log_cdf(b)) - np.exp(noise.log_cdf(a))
    assert_allclose(np.exp(-found.nll), mass, rtol=1e-7, err_msg="interval: nll")

    by_latent = [noise.interval(a - step, b - step) for step in (_STEP, -_STEP)]
    shrunk = np.exp(-_STEP), np.exp(_STEP)
    by_scale = [noise.interval(a * factor, b * factor) for factor in shrunk]
    for name, of, (after, before) in (
        ("latent", "nll", by_latent),
        ("log_sigma", "nll", by_scale),
        ("latent_latent", "latent", by_latent),
        ("latent_log_sigma", "log_sigma", by_latent),
        ("log_sigma_log_sigma", "log_sigma", by_scale),
    ):
        slope = (getattr(after, of) - getattr(before, of)) / (2.0 * _STEP)
        message = f"interval: {name} is not the slope of {of}"
        assert_allclose(getattr(found, name), slope, rtol=1e-4, atol=1e-5, err_msg=message)


def _check_moments(noise: Noise) -> None:
    r"""Mean, variance and the moments of both tails are their integrals.

    .. math:: E(\varepsilon - z)_+ = \int_z^\infty (1 - F), \quad
        \int_z^\infty (1 - F)^2

    and their mirror images. A family with heavy tails needs closed forms for them.
    """
    for z in noise.ppf(np.array([0.1, 0.5, 0.9])):
        mean, square = float(z), 0.0
        for side, sign in (("upper", 1.0), ("lower", -1.0)):
            integrals = _tail_integrals(noise, float(z), sign)
            for name in ("mean", "crps"):
                found = float(getattr(noise, f"{side}_{name}")(np.asarray(z)))
                assert_allclose(found, integrals[name], rtol=1e-5, err_msg=f"{side}_{name}")
            mean, square = mean + sign * integrals["mean"], square + integrals["square"]
        assert_allclose(noise.mean(), mean, atol=1e-5 * _unit(noise), err_msg="mean")
        variance = square - (mean - z) ** 2
        assert_allclose(noise.variance(), variance, rtol=1e-5, err_msg="variance")


def _check_draws(noise: Noise) -> None:
    """Draws have the asked shape, the distribution F, and come from the given generator alone."""
    draws = noise.sample(np.random.default_rng(0), (100, 200))
    assert draws.shape == (100, 200), f"sample returns shape {draws.shape}, not (100, 200)"
    again = noise.sample(np.random.default_rng(0), (100, 200))
    assert_array_equal(draws, again, err_msg="sample: the same seed, other draws")
    fit = kstest(np.exp(noise.log_cdf(draws.ravel())), "uniform")
    assert fit.pvalue > 1e-4, f"draws do not follow log_cdf (Kolmogorov–Smirnov p={fit.pvalue:.1g})"


def _check_in_a_fit(noise: Noise) -> None:
    """A Tobit with this noise finds the coefficients of 500 outcomes that have it."""
    rng = np.random.default_rng(0)
    X, truth = rng.standard_normal((500, 2)), np.array([1.0, -1.0])
    latent = X @ truth + 0.5 / _unit(noise) * noise.sample(rng, (500,))
    y = np.clip(latent, -1.5, 2.0)
    model = TobitRegressor(lower=-1.5, upper=2.0, noise=noise).fit(X, y)
    assert_allclose(model.coef_[0], truth, atol=0.2, err_msg="coefficients of a fit")
    assert np.isfinite(model.predict(1e3 * X)).all(), "predictions far out are not finite"


def _slope(of: Callable[[FloatArray], Any], at: FloatArray, along: FloatArray | float = 1.0) -> Any:
    """A central difference."""
    return (of(at + _STEP * along) - of(at - _STEP * along)) / (2.0 * _STEP)


def _unit(noise: Noise) -> float:
    """The distance between the quartiles."""
    low, high = noise.ppf(np.array([0.25, 0.75]))
    return float(high - low)


def _tail_integrals(noise: Noise, z: float, sign: float) -> dict[str, float]:
    r"""Integrals over the distance t ≥ 0 from z outward, of S(t) = P(±(ε − z) > t).

    .. math:: \int S, \quad \int 2tS, \quad \int S^2
    """
    log_tail = noise.log_sf if sign > 0.0 else noise.log_cdf

    def parts(t: float) -> FloatArray:
        tail = np.exp(log_tail(np.asarray(z + sign * t)))
        return np.array([tail, 2.0 * t * tail, tail**2])

    far = 20.0 * _unit(noise)
    body, _ = quad_vec(parts, 0.0, far, limit=400, epsrel=1e-9)
    rest, _ = quad_vec(parts, far, np.inf, limit=400, epsabs=1e-12, epsrel=1e-9)
    return dict(zip(("mean", "square", "crps"), (body + rest).tolist(), strict=True))


# Penalties: what a solver relies on.


def check_penalty(penalty: Penalty, n_features: int = 6) -> None:
    """Check that the functions of a penalty belong together, and that a layer can be fitted.

    Gradient and curvature are compared with finite differences, kinks with one-sided ones.
    Variances and invariance under rotations are checked if the penalty promises them.

    Parameters
    ----------
    penalty : Penalty
    n_features : int
        Columns of the V to check it at, for a penalty that has one parameter per feature.

    Raises
    ------
    AssertionError
        At the first check that fails, with what is wrong and by how much.

    Examples
    --------
    >>> from deeptobit.penalties import Group, Ridge
    >>> check_penalty(Group(0.5))
    >>> class Steep(Ridge):
    ...     def gradient(self, V):
    ...         return 2.0 * V
    >>> check_penalty(Steep())
    Traceback (most recent call last):
    AssertionError:
    Not equal to tolerance rtol=1e-05, atol=1e-06
    gradient and the slope of value do not agree
    ...
    """
    if not isinstance(penalty, Penalty):
        raise TypeError(f"{penalty!r} is not a deeptobit.penalties.Penalty")
    rng = np.random.default_rng(0)
    V, one, other = rng.normal(size=(3, 2, n_features))
    _check_derivatives(penalty, V, one, other)
    _check_kinks(penalty, V)
    _check_promises(penalty, V, rng)
    X, noise = rng.normal(size=(200, n_features)), rng.normal(size=(200, 3))
    Y = X @ rng.normal(size=(n_features, 2)) @ rng.normal(size=(2, 3)) + noise
    model = SubspaceTobitRegressor(2, alpha=0.1, penalty=penalty, lower=None).fit(X, Y)
    assert model.history_["converged"], "the batch solver does not converge with this penalty"


def _check_derivatives(penalty: Penalty, V: FloatArray, one: FloatArray, other: FloatArray) -> None:
    """∇P and its Hessian product are differences, and the Hessian is symmetric."""
    before = V.copy()
    gradient, product = penalty.gradient(V), penalty.curvature(V, one)
    assert_array_equal(V, before, err_msg="V was modified")
    assert gradient.shape == product.shape == V.shape, "gradient and curvature must be of V's shape"
    for name, of, found in (
        ("gradient and the slope of value", penalty.value, (gradient * one).sum()),
        ("curvature and the slope of gradient", penalty.gradient, product),
    ):
        message = f"{name} do not agree"
        assert_allclose(found, _slope(of, V, one), rtol=1e-5, atol=1e-6, err_msg=message)
    left, right = (product * other).sum(), (penalty.curvature(V, other) * one).sum()
    assert_allclose(left, right, rtol=1e-8, err_msg="curvature is not symmetric")


def _check_kinks(penalty: Penalty, V: FloatArray) -> None:
    """At a zero column the gradient is 0 and P rises by the threshold; smoothed, there is none."""
    V = V.copy()
    V[:, 1] = 0.0
    zeros = penalty.zeros(V)
    if not penalty.has_kinks:
        assert not zeros.any(), "zeros without has_kinks"
        return
    assert_array_equal(zeros, np.arange(V.shape[1]) == 1, err_msg="zeros")
    assert not penalty.gradient(V)[:, 1].any(), "the gradient is not 0 in a column at a kink"
    size = 1e-6
    nearby = V.copy()
    nearby[0, 1] = size
    rise = (penalty.value(nearby) - penalty.value(V)) / size
    message = "threshold and the slope at the kink"
    assert_allclose(penalty.threshold(V)[1], rise, rtol=1e-3, err_msg=message)
    smooth, message = penalty.smoothed(1e-3), "value of the smoothed penalty"
    kinks = smooth.has_kinks or smooth.zeros(V).any()
    assert not kinks, "the smoothed penalty has kinks"
    assert_allclose(smooth.value(V), penalty.value(V), rtol=0.01, err_msg=message)


def _check_promises(penalty: Penalty, V: FloatArray, rng: np.random.Generator) -> None:
    """Variances τ give value and gradient; a rotation changes nothing if it is said not to."""
    variances = penalty.variances(V)
    if variances is not None:
        value = 0.5 * (np.square(V).sum(axis=0) / variances).sum()
        assert_allclose(penalty.value(V), value, rtol=1e-8, err_msg="variances: value")
        gradient = penalty.gradient(V)
        assert_allclose(gradient, V / variances, rtol=1e-8, err_msg="variances: gradient")
    if penalty.rotation_invariant:
        rotation, _ = np.linalg.qr(rng.normal(size=(V.shape[1], V.shape[1])))
        value = penalty.value(V @ rotation)
        assert_allclose(value, penalty.value(V), rtol=1e-8, err_msg="rotation_invariant")


# What scikit-learn's own suite may find, and why.

_NEGATIVE = "the check's outcomes are negative, and values below lower = 0 are refused by default"
_TOO_FEW_ROWS = "the check has fewer rows than features; with alpha = 0 that is refused"

_ESTIMATORS = [name for name in vars(estimators) if name.endswith(("Regressor", "CV"))]
EXPECTED_FAILED_CHECKS = {name: {"check_regressor_multioutput": _NEGATIVE} for name in _ESTIMATORS}
EXPECTED_FAILED_CHECKS["TobitRegressor"] |= {
    "check_sample_weight_equivalence_on_dense_data": _TOO_FEW_ROWS,
    "check_sample_weight_equivalence_on_sparse_data": _TOO_FEW_ROWS,
}
"""By class name {check: reason}, as ``check_estimator(expected_failed_checks=...)`` takes it."""
