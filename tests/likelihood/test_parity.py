from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT
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


def test_read_only_memory_maps_are_accepted(tmp_path: Path) -> None:
    arrays = every_entry()
    mapped = []
    for name, array in zip("abc", arrays, strict=True):
        np.save(tmp_path / f"{name}.npy", array)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    low, high, latent = mapped
    sigma = SIGMA.copy()
    sigma.setflags(write=False)
    expected = likelihood.evaluate(Gaussian(), *arrays, SIGMA)
    np.testing.assert_array_equal(
        likelihood.evaluate(Gaussian(), low, high, latent, sigma), expected
    )


def test_a_missing_entry_contributes_exactly_nothing() -> None:
    missing, latent = np.full((4, 3), np.nan), np.arange(12.0).reshape(4, 3)
    assert (np.array(likelihood.evaluate(Gaussian(), missing, missing, latent, SIGMA)) == 0.0).all()


def test_missing_entries_leave_the_others_as_they_are() -> None:
    low, high, latent = every_entry()
    hidden = np.random.default_rng(3).uniform(size=low.shape) < 0.4
    whole = np.array(likelihood.evaluate(Gaussian(), low, high, latent, SIGMA))
    low[hidden] = high[hidden] = np.nan
    part = np.array(likelihood.evaluate(Gaussian(), low, high, latent, SIGMA))
    np.testing.assert_array_equal(part, np.where(hidden, 0.0, whole))


@pytest.mark.parametrize("noise", [Logistic(), StudentT(), Gumbel()], ids=repr)
def test_other_families_take_the_reference_path(noise: Noise) -> None:
    low = np.array([[1.0, -np.inf], [0.2, np.nan], [-0.4, 0.1]])
    high = np.array([[1.0, 0.0], [np.inf, np.nan], [0.9, 0.1]])
    latent, sigma = np.full((3, 2), 0.3), np.array([0.8, 2.0])
    np.testing.assert_array_equal(
        likelihood.evaluate(noise, low, high, latent, sigma),
        likelihood.reference_evaluate(noise, low, high, latent, sigma),
    )


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
