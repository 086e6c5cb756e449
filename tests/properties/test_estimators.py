"""Problems of every kind end in a sentence or in numbers that can be used."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.properties.found import FOUND
from tests.properties.poison import poisoned_memory
from tests.properties.problems import Recipe
from tests.properties.properties import examine
from tests.properties.strategies import recipes

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

ALWAYS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@pytest.fixture(autouse=True, scope="module")
def _poison() -> Iterator[None]:
    with poisoned_memory():
        yield


def test_what_nobody_filled_is_seen() -> None:
    assert np.isnan([np.empty(3), np.empty_like(np.ones(3))]).all()


@ALWAYS
@given(recipe=recipes(("tobit",)))
def test_tobit(recipe: Recipe) -> None:
    examine(recipe)


@ALWAYS
@given(recipe=recipes(("subspace",)))
def test_subspace(recipe: Recipe) -> None:
    examine(recipe)


@settings(ALWAYS, max_examples=25)
@given(recipe=recipes(("network",)))
def test_network(recipe: Recipe) -> None:
    examine(recipe)


@settings(ALWAYS, max_examples=5)
@given(recipe=recipes(("auto",)))
def test_auto(recipe: Recipe) -> None:
    examine(recipe)


@pytest.mark.parametrize("recipe", FOUND, ids=range(len(FOUND)))
def test_what_was_found_once_stays_mended(recipe: Recipe) -> None:
    examine(recipe)
