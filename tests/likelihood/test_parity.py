from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT, olsen_rows
from deeptobit.likelihood.evaluate import OlsenRows, reference_olsen_rows
from tests.likelihood.entries import standard_entries
from tests.likelihood.families import Gumbel

SIGMA = np.array([0.3, 1.0, 25.0])
Layout = Callable[[FloatArray], FloatArray]


def every_entry(far: float = 1.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Every kind of entry, z up to ±30 × far, for three tasks of different scale: (N, 3) each."""
    rng = np.random.default_rng(0)
    a, b = standard_entries(Gaussian())
    order = rng.permuted(np.tile(np.arange(len(a)), (3, 1)), axis=1).T
    latent = rng.normal(size=order.shape) * SIGMA
    return latent + SIGMA * far * a[order], latent + SIGMA * far * b[order], latent


def every_other(array: FloatArray) -> FloatArray:
    """The same numbers as a view that is contiguous in no order."""
    spread = np.full((2 * array.shape[0], 2 * array.shape[1]), 7.0)
    spread[::2, ::2] = array
    return spread[::2, ::2]


def assert_same_rows(found: OlsenRows, expected: OlsenRows) -> None:
    np.testing.assert_allclose(found.pull, expected.pull, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(found.u_u, expected.u_u, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found.u_tau, expected.u_tau, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(found.sums, expected.sums, rtol=1e-11)
    assert found.u_u.dtype == found.u_tau.dtype == np.float32


LAYOUTS = pytest.mark.parametrize(
    "layout", [np.ascontiguousarray, np.asfortranarray, every_other], ids=["C", "F", "slice"]
)


@LAYOUTS
@pytest.mark.parametrize("far", [1.0, 1e3, 1e6])
def test_compiled_likelihood_is_its_reference(layout: Layout, far: float) -> None:
    low, high, latent = every_entry(far)
    found = likelihood.evaluate(Gaussian(), layout(low), layout(high), layout(latent), SIGMA)
    expected = likelihood.reference_evaluate(Gaussian(), low, high, latent, SIGMA)
    for compiled, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(compiled, reference, rtol=1e-11, atol=1e-11)


@LAYOUTS
@pytest.mark.parametrize("far", [1.0, 1e3, 1e6])
def test_moments_of_truncated_noise_are_derivatives_of_the_likelihood(
    layout: Layout, far: float
) -> None:
    low, high, latent = every_entry(far)
    ends, latent = (layout(low), layout(high)), latent / SIGMA
    mean, variance = likelihood.truncated_moments(*ends, layout(latent), SIGMA)
    at = likelihood.reference_evaluate(Gaussian(), low / SIGMA, high / SIGMA, latent, np.ones(3))
    np.testing.assert_allclose(mean, -at.latent, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(variance, 1.0 - at.latent_latent, atol=1e-11)
    assert (variance >= 0.0).all()


@LAYOUTS
@pytest.mark.parametrize("far", [1.0, 1e3])
def test_compiled_olsen_sums_are_their_reference(layout: Layout, far: float) -> None:
    low, high, latent = every_entry(far)
    weight = np.random.default_rng(2).uniform(size=len(low))
    u, theta = latent / SIGMA, 1.0 / SIGMA
    found = olsen_rows(Gaussian(), layout(low), layout(high), layout(u), theta, weight)
    assert_same_rows(found, reference_olsen_rows(Gaussian(), low, high, u, theta, weight))


def test_read_only_memory_maps_are_accepted(tmp_path: Path) -> None:
    arrays = every_entry()
    mapped = []
    for name, array in zip("abc", arrays, strict=True):
        np.save(tmp_path / f"{name}.npy", array)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    low, high, latent = mapped
    sigma, weight = SIGMA.copy(), np.ones(len(low))
    sigma.setflags(write=False)
    weight.setflags(write=False)
    expected = likelihood.evaluate(Gaussian(), *arrays, SIGMA)
    np.testing.assert_array_equal(
        likelihood.evaluate(Gaussian(), low, high, latent, sigma), expected
    )
    found = olsen_rows(Gaussian(), low, high, latent, sigma, weight)
    assert_same_rows(found, reference_olsen_rows(Gaussian(), *arrays, SIGMA, weight))


def test_a_missing_entry_contributes_exactly_nothing() -> None:
    missing, latent = np.full((4, 3), np.nan), np.arange(12.0).reshape(4, 3)
    assert (np.array(likelihood.evaluate(Gaussian(), missing, missing, latent, SIGMA)) == 0.0).all()
    rows = olsen_rows(Gaussian(), missing, missing, latent, SIGMA, np.ones(4))
    for part in (rows.pull, rows.u_u, rows.u_tau, rows.sums):
        assert (part == 0.0).all()


def test_missing_entries_leave_the_others_as_they_are() -> None:
    low, high, latent = every_entry()
    hidden = np.random.default_rng(3).uniform(size=low.shape) < 0.4
    whole = np.array(likelihood.evaluate(Gaussian(), low, high, latent, SIGMA))
    low[hidden] = high[hidden] = np.nan
    part = np.array(likelihood.evaluate(Gaussian(), low, high, latent, SIGMA))
    np.testing.assert_array_equal(part, np.where(hidden, 0.0, whole))


def test_sums_of_olsen_rows_are_sums_over_their_rows() -> None:
    low, high, latent = every_entry()
    weight = np.random.default_rng(4).uniform(size=len(low))
    u, theta = latent / SIGMA, 1.0 / SIGMA
    whole = olsen_rows(Gaussian(), low, high, u, theta, weight)
    blocks = np.array_split(np.arange(len(low)), [1, 50, 51, 200])
    parts = [olsen_rows(Gaussian(), low[i], high[i], u[i], theta, weight[i]) for i in blocks]
    np.testing.assert_allclose(sum(part.sums for part in parts), whole.sums, rtol=1e-12)
    np.testing.assert_array_equal(np.concatenate([part.pull for part in parts]), whole.pull)


def test_a_row_of_weight_two_is_the_row_twice() -> None:
    low, high, latent = every_entry()
    u, theta, once = latent / SIGMA, 1.0 / SIGMA, np.ones(len(low))
    heavy = olsen_rows(Gaussian(), low, high, u, theta, 2.0 * once)
    single = olsen_rows(Gaussian(), low, high, u, theta, once)
    twice: Any = [part + part for part in single]
    assert_same_rows(heavy, OlsenRows(*twice))


@pytest.mark.parametrize("noise", [Logistic(), StudentT(), Gumbel()], ids=repr)
def test_other_families_take_the_reference_path(noise: Noise) -> None:
    low = np.array([[1.0, -np.inf], [0.2, np.nan], [-0.4, 0.1]])
    high = np.array([[1.0, 0.0], [np.inf, np.nan], [0.9, 0.1]])
    latent, sigma, weight = np.full((3, 2), 0.3), np.array([0.8, 2.0]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_array_equal(
        likelihood.evaluate(noise, low, high, latent, sigma),
        likelihood.reference_evaluate(noise, low, high, latent, sigma),
    )
    found = olsen_rows(noise, low, high, latent, sigma, weight)
    assert_same_rows(found, reference_olsen_rows(noise, low, high, latent, sigma, weight))


@pytest.mark.parametrize("noise", [Gaussian(), Logistic(), StudentT()], ids=repr)
def test_olsen_sums_are_finite_differences_along_a_stretch(noise: Noise) -> None:
    """A change τ of log θ at a fixed line multiplies u and θ by the same factor."""
    low, high, latent = every_entry()
    weight = np.random.default_rng(5).uniform(size=len(low))
    u, theta, step = latent / SIGMA, 1.0 / SIGMA, 1e-3

    def nll(tau: float) -> FloatArray:
        rows = olsen_rows(noise, low, high, u * (1 + tau), theta * (1 + tau), weight)
        return np.asarray(rows.sums[0])

    _, by_tau, tau_tau = olsen_rows(noise, low, high, u, theta, weight).sums
    near, far = nll(step) - nll(-step), nll(2 * step) - nll(-2 * step)
    np.testing.assert_allclose((8.0 * near - far) / (12.0 * step), by_tau, rtol=1e-8)
    bend = (nll(step) - 2.0 * nll(0.0) + nll(-step)) / step**2
    np.testing.assert_allclose(bend, tau_tau, rtol=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_missing_noise_is_its_conditional_expectation(share: float) -> None:
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(7, 3))
    covariance = factor @ factor.T + 0.2 * np.eye(7)
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(scale, scale)
    missing = rng.uniform(size=(50, 7)) < share
    noise = np.where(missing, 0.0, rng.normal(size=(50, 7)))
    given = noise.copy()
    found = likelihood.missing_noise(noise, missing, correlation)
    expected = noise.copy()
    for row, gone in enumerate(missing):  # E[ε_m | ε_k] = R_mk R_kk⁻¹ ε_k
        between, within = (correlation[np.ix_(rows, ~gone)] for rows in (gone, ~gone))
        expected[row, gone] = between @ np.linalg.solve(within, noise[row, ~gone])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(noise, given)
