"""The check of noise families: those that ship pass, and each broken one is found."""

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.checks import check_noise
from deeptobit.likelihood import Derivatives, Gaussian, Noise
from tests.likelihood.families import ALL


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_a_family_keeps_its_promises(noise: Noise) -> None:
    with np.errstate(over="ignore"):  # of the lower tail of the Gumbel distribution
        check_noise(noise)


class OneSided(Gaussian):
    def log_sf(self, z: FloatArray) -> FloatArray:
        return super().log_sf(z) + 1e-3


class Unnormalised(Gaussian):
    def log_pdf(self, z: FloatArray) -> FloatArray:
        return super().log_pdf(z) + 0.1


class Steeper(Gaussian):
    def score(self, z: FloatArray) -> FloatArray:
        return 1.1 * super().score(z)


class Clipped(Gaussian):
    def log_cdf(self, z: FloatArray) -> FloatArray:
        return np.log(np.maximum(np.exp(super().log_cdf(z)), 1e-5))


class Twice(Gaussian):
    def interval(self, a: FloatArray, b: FloatArray) -> Derivatives:
        found = super().interval(a, b)
        return found._replace(log_sigma=2.0 * found.log_sigma)


class HeavierAbove(Gaussian):
    def upper_mean(self, z: FloatArray) -> FloatArray:
        return 1.01 * super().upper_mean(z)


class Wider(Gaussian):
    def sample(self, rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        return 1.1 * super().sample(rng, shape)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (OneSided(), "log_cdf and log_sf"),
        (Unnormalised(), "log_pdf and the slope of log_cdf do not agree"),
        (Steeper(), "score and the slope of log_pdf do not agree"),
        (Clipped(), "log_cdf stops falling far out"),
        (Twice(), "log_sigma is not the slope of nll"),
        (HeavierAbove(), "upper_mean"),
        (Wider(), "draws do not follow log_cdf"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_promise_is_found(noise: Noise, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_noise(noise)


def test_what_is_no_family_is_refused() -> None:
    with pytest.raises(TypeError, match="'gaussian' is not a noise family"):
        check_noise("gaussian")  # type: ignore[arg-type]
