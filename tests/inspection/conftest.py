"""Every test draws without a screen, and leaves no figure open."""

from collections.abc import Iterator

import matplotlib
import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    plt.close("all")
