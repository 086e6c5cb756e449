import numpy as np
import pytest
from scipy.integrate import quad

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Gaussian, Noise, Predictive, evaluate
from tests.likelihood.families import ALL, SHIPPED

LATENT = np.array([[-4.0, 0.9], [-0.5, 1.7], [0.3, 6.0]])
SIGMA = np.array([1.2, 0.7])
BOUNDS = [(-1.0, 2.0), (-1.0, np.inf), (-np.inf, 2.0), (-np.inf, np.inf)]
Y = np.array([[-1.0, 1.0], [0.2, 2.0], [-0.9, 1.9]])
EVERY_BOUND = pytest.mark.parametrize(("lower", "upper"), BOUNDS)
EVERY_NOISE = pytest.mark.parametrize("noise", ALL, ids=repr)
LEVELS = np.array([0.05, 0.5, 0.9])
DRAWS = 100_000


def expected_shortfalls(y: Predictive, row: int, task: int) -> tuple[float, float]:
    """E[y − η] and E[(y − η)²] from the distribution function of y − η on each side of 0."""
    eta, sigma = LATENT[row, task], SIGMA[task]

    def above(t: float) -> float:
        return float(np.exp(y.noise.log_sf(np.array(t / sigma))))

    def below(t: float) -> float:
        return float(np.exp(y.noise.log_cdf(np.array(-t / sigma))))

    first = second = 0.0
    for sign, share, end in ((1, above, y.upper - eta), (-1, below, eta - y.lower)):
        # Beyond a bound at t = end the tail is cut off; where end < 0 all of y lies on one side.
        for start, stop in ((min(end, 0.0), 0.0), (0.0, min(10.0, end)), (10.0, end)):
            if start == stop or (start >= end and end > 0):
                continue
            tail = (lambda t: share(t) - 1.0) if end < 0 else share
            options = {"limit": 400, "epsabs": 1e-13, "epsrel": 1e-11}
            first += sign * quad(tail, start, stop, **options)[0]
            second += quad(lambda t, tail=tail: 2 * t * tail(t), start, stop, **options)[0]
    return first, second
