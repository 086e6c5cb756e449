"""Every check of a noise family on those that ship, and on two that are written in a few lines."""

import numpy as np
import pytest

from deeptobit.likelihood import Gaussian, Noise
from tests.conformance.suite import Check, all_checks
from tests.likelihood.families import ALL


@pytest.mark.parametrize("noise", ALL, ids=repr)
@pytest.mark.parametrize("check", [check for _, check in all_checks(Gaussian())])
def test_check(noise: Noise, check: Check) -> None:
    with np.errstate(over="ignore"):  # of the lower tail of the Gumbel distribution
        check(noise)
