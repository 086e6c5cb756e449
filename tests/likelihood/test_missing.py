import numpy as np
import pytest

from deeptobit import likelihood


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
    expected = likelihood.reference_missing_noise(noise, missing, correlation)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(noise, given)
