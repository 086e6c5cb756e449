"""The algorithm as printed, as the tables run it."""

from typing import Any

import numpy as np
import pytest

from deeptobit import CensoredTargets, SubspaceNetworkRegressor
from deeptobit.datasets import make_subspace
from deeptobit.published import PublishedSubspaceNetwork, PublishedSubspaceTobit
from paper.arrays import FloatArray
from paper.recipes import (
    CANDIDATES,
    CHOOSING_DEPTH,
    CHOSEN,
    PRINTED,
    PUBLISHED,
    Constants,
    InUnits,
    PrintedNetwork,
    PrintedPasses,
    as_printed,
    grown,
    least_squares_start,
)

CONSTANTS = PUBLISHED["table-synthetic"]


def _data() -> tuple[FloatArray, CensoredTargets]:
    X, Y, _ = make_subspace(300, 8, 5, 2, sigma=0.5, random_state=0)
    return X, CensoredTargets.from_bounds(Y, 0.0)


def test_a_network_is_that_of_the_published_algorithm() -> None:
    X, targets = _data()
    steps = [0.001, 1e-6, 1e-8]
    expected = PublishedSubspaceNetwork(
        2, 3, alpha=0.01, step_size_V=steps, step_size_U=steps, sigma=0.5,
        init=least_squares_start(X, targets.values, 2),
    ).fit(X, targets)  # fmt: skip
    found = PrintedNetwork(2, 3, CONSTANTS, 0.5).fit(X, targets)
    np.testing.assert_allclose(found.predict(X), expected.predict(X, kind="clip"))
    assert found.diverged_ == ""


def test_steps_shrink_in_the_layers_above_or_do_not() -> None:
    np.testing.assert_allclose(Constants(0.0, 0.1).steps(4), [0.1, 1e-4, 1e-6, 1e-6])
    assert Constants(0.0, 0.1, decay=False).steps(4) == [0.1] * 4
    assert len(set(CANDIDATES)) == 18
    assert CONSTANTS in CANDIDATES


def test_layers_below_a_divergence_stay() -> None:
    X, targets = _data()
    X = 0.1 * X  # outputs are much larger inputs
    network = PrintedNetwork(2, 3, Constants(0.0, 0.03, "least squares", decay=False), 0.5)
    stages = network.fit(X, targets).staged_predict(X)
    assert network.diverged_.startswith(f"layer {network.n_layers_ + 1} diverged")
    assert [bool(np.isfinite(stage).all()) for stage in stages] == [True, False, False]
    alone = PrintedNetwork(2, 1, network.constants, 0.5).fit(X, targets)
    np.testing.assert_array_equal(stages[0], alone.predict(X))


def test_what_diverges_in_the_first_layer_predicts_infinity() -> None:
    X, targets = _data()
    network = PrintedNetwork(2, 2, Constants(0.0, 10.0, "least squares"), 0.5).fit(X, targets)
    assert network.n_layers_ == 0
    assert np.isposinf(network.predict(X)).all()
    passes = PrintedPasses(2, CONSTANTS, 0.5, (10.0, 1.0)).fit(X, targets)
    assert np.isposinf(passes.predict(X, "clip")).all()


def test_passes_go_on_where_the_last_one_ended() -> None:
    X, targets = _data()
    found = PrintedPasses(2, CONSTANTS, 0.5, (0.001,) * 3).fit(X, targets)
    expected = PublishedSubspaceTobit(
        2, alpha=0.01, step_size_V=0.001, step_size_U=0.001, sigma=0.5, n_passes=3,
        init=least_squares_start(X, targets.values, 2),
    ).fit(X, targets)  # fmt: skip
    np.testing.assert_allclose(found.predict(X, "latent"), expected.predict(X, kind="latent"))
    once = PrintedPasses(2, CONSTANTS, 0.5, (0.001,)).fit(X, targets)
    assert not np.allclose(once.predict(X, "latent"), found.predict(X, "latent"))


def _scores() -> tuple[FloatArray, FloatArray]:
    """Scores from 0 to 10 with gaps, and features that do not begin at 0."""
    rng = np.random.default_rng(1)
    X = rng.normal(5.0, 2.0, (200, 4))
    Y = 5.0 + (X - 5.0) @ rng.normal(size=(4, 3)) + rng.normal(size=(200, 3))
    Y[rng.random(Y.shape) < 0.1] = np.nan
    return X, np.clip(Y, 0.0, 10.0)


@pytest.mark.parametrize("unit", ["each task", "all tasks"])
def test_real_data_are_learned_in_their_units(unit: Any) -> None:
    X, Y = _scores()
    model = InUnits(PrintedNetwork(2, 2, CONSTANTS, 1.0), unit)
    targets = CensoredTargets.from_bounds(Y, 0.0, 10.0)
    first = model.fit(X, targets).staged_predict(X)[-1]
    known = ~np.isnan(Y)
    # Without a column of ones, a network without intercept could not come near.
    assert np.mean((first - Y)[known] ** 2) < 0.5 * np.var(Y[known])
    # Points or percent, metres or feet: the same predictions.
    factors = 10.0 * np.ones(3)
    again = InUnits(PrintedNetwork(2, 2, CONSTANTS, 1.0), unit)
    other = CensoredTargets.from_bounds(factors * Y, 0.0, factors * 10.0)
    np.testing.assert_allclose(
        again.fit(3.0 * X + 1.0, other).staged_predict(3.0 * X + 1.0)[-1], factors * first
    )


def test_one_unit_for_all_is_not_a_unit_for_each() -> None:
    """With one σ, a task in percent counts more than the same task in points."""
    X, Y = _scores()
    factors = np.array([10.0, 1.0, 1.0])
    changed = []
    units: list[Any] = ["each task", "all tasks"]
    for unit in units:
        predictions = []
        for factor in (np.ones(3), factors):
            model = InUnits(PrintedNetwork(2, 2, CONSTANTS, 1.0), unit)
            targets = CensoredTargets.from_bounds(factor * Y, 0.0, factor * 10.0)
            predictions.append(model.fit(X, targets).staged_predict(X)[-1] / factor)
        changed.append(not np.allclose(predictions[0], predictions[1]))
    assert changed == [False, True]


def test_two_rows_share_the_depths_and_a_shallower_network_chooses() -> None:
    def network(n_layers: int, constants: Constants) -> PrintedNetwork:
        return PrintedNetwork(2, n_layers, constants, 0.5)

    shallow = as_printed(network, CONSTANTS, (1, 3))
    assert list(shallow) == [PRINTED, CHOSEN]
    assert list(shallow[CHOSEN].rows) == [f"{CHOSEN}, 1 layer", f"{CHOSEN}, 3 layers"]
    assert [one.constants for one in shallow[PRINTED].grid] == [CONSTANTS]
    assert [one.constants for one in shallow[CHOSEN].grid] == list(CANDIDATES)
    assert shallow[CHOSEN].trials == ()
    deep = as_printed(network, CONSTANTS, (1, 20))[CHOSEN]
    assert {one.n_layers for one in deep.grid} == {20}
    assert {one.n_layers for one in deep.trials} == {CHOOSING_DEPTH}
    X, targets = _data()
    fitted = network(3, CONSTANTS).fit(X, targets)
    np.testing.assert_array_equal(deep.rows[f"{CHOSEN}, 20 layers"](fitted, X), fitted.predict(X))


def test_depths_of_ours_are_those_of_networks_grown_alone() -> None:
    X, Y, _ = make_subspace(
        800, 20, 10, 2, n_layers=2, skip_connection=True, sigma=0.5, latent_sd=3.0,
        hidden_sigma=0.0, random_state=0,
    )  # fmt: skip
    targets = CensoredTargets.from_bounds(Y, 0.0)
    method = grown([SubspaceNetworkRegressor(4)], {n: str(n) for n in (1, 2, 3)})
    model = method.grid[0].fit(X, targets)
    for n in (1, 2, 3):
        alone = SubspaceNetworkRegressor(4, n, joint_tuning=False, prune_layers=False)
        expected = alone.fit(X, targets).predict(X, kind="clip")
        np.testing.assert_allclose(method.rows[str(n)](model, X), expected, rtol=1e-7, atol=1e-7)
