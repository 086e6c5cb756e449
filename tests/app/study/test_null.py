import numpy as np
import pytest

from deeptobit.app.study.predict import predict_null
from deeptobit.likelihood import Gaussian, NoiseByTask, StudentT, TwoPiece
from deeptobit.targets import CensoredTargets

SKEWED = TwoPiece(StudentT(2.5), 0.7)


@pytest.mark.parametrize("noise", [Gaussian(), StudentT(), SKEWED], ids=repr)
def test_the_mean_is_that_of_the_outcomes_whatever_the_noise(noise: Gaussian) -> None:
    rng = np.random.default_rng(0)
    y = CensoredTargets.from_bounds(np.clip(rng.normal(4.0, 3.0, 400), 0.0, 10.0), 0.0, 10.0)
    null = predict_null(noise, y, y[:3])
    assert null.latent.shape == null.sigma.shape == (3, 1)
    np.testing.assert_allclose(null.mean(), y.values.mean(), atol=0.05)


@pytest.mark.filterwarnings("ignore:.*every entry is at a bound")
def test_outcomes_at_their_bounds_alone_keep_their_shares() -> None:
    ends = np.where(np.arange(400) < 257, 0.0, 10.0)
    between = np.clip(np.random.default_rng(0).normal(4.0, 3.0, 400), 0.0, 10.0)
    y = CensoredTargets.from_bounds(np.column_stack([ends, between]), 0.0, 10.0)
    null = predict_null(NoiseByTask([SKEWED, Gaussian()]), y, y[:1])
    gaussian = predict_null(Gaussian(), y, y[:1])
    np.testing.assert_allclose(null.mean(), gaussian.mean(), atol=0.7)
    np.testing.assert_allclose(null.at_lower(), gaussian.at_lower(), atol=0.15)
