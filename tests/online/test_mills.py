import numpy as np
import pytest

from deeptobit.likelihood import normal as special
from deeptobit.likelihood.kernels import log_ndtr_mills


@pytest.mark.parametrize("region", [(-60.0, -40.0), (-40.0, -8.0), (-8.0, 0.0), (0.0, 40.0)])
def test_table_is_the_special_function(region: tuple[float, float]) -> None:
    z = np.random.default_rng(0).uniform(*region, 20_000)
    found = np.array([log_ndtr_mills(value) for value in z])
    np.testing.assert_allclose(found[:, 0], special.log_ndtr(z), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found[:, 1], special.mills(z), rtol=1e-12, atol=1e-13)


def test_excess_keeps_its_digits_in_the_tail() -> None:
    z = np.linspace(-40.0, -1.0, 5001)
    found = np.array([log_ndtr_mills(value)[1] for value in z]) + z
    np.testing.assert_allclose(found, special.mills_excess(z), rtol=1e-11)


def test_cell_edges_join() -> None:
    edges = np.arange(-40.0, 9.0, 1.0 / 16.0)
    below, above = np.nextafter(edges, -100.0), np.nextafter(edges, 100.0)
    left = np.array([log_ndtr_mills(value) for value in below])
    right = np.array([log_ndtr_mills(value) for value in above])
    np.testing.assert_allclose(left, right, rtol=1e-12, atol=1e-13)
