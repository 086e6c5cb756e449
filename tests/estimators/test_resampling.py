"""Bootstrap effects: refits, slopes of the mean, draws of a known posterior, groups, refusals."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from deeptobit import (
    AutoTobitRegressor,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
)
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace


@cache
def data() -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(
        200, 6, 4, 2, n_layers=2, skip_connection=True, sigma=1.0, latent_sd=3.0, random_state=0
    )
    return X, np.round(Y, 1)


def models() -> list[Any]:
    stack = AutoTobitRegressor(members=["stack"], cv=2, random_state=0)
    return [
        SubspaceTobitRegressor(2),
        SubspaceNetworkRegressor(2, 2, joint_tuning=False),
        SubspaceNetworkRegressor(2, 2, joint_tuning=True),
        SubspaceNetworkCV(ranks=(2,), alphas=2, cv=2, max_layers=1),
        AutoTobitRegressor(members=["deeper"], cv=2, random_state=0),
        stack,
    ]


@pytest.mark.parametrize("model", models()[:5], ids=str)
def test_a_refit_to_the_same_rows_is_the_model(model: Any) -> None:
    model.fit(*data())
    redraw = model._redraw()
    again = model._with_layers(redraw.refit(*redraw.rows))
    np.testing.assert_allclose(again.predict(data()[0]), model.predict(data()[0]), atol=1e-4)


@pytest.mark.parametrize("model", models()[2:], ids=str)
def test_effects_are_slopes_of_predict(model: Any) -> None:
    X, Y = data()
    model.fit(X, Y)
    steps = 0.5e-4 * np.eye(X.shape[1])
    changes = [(model.predict(X + step) - model.predict(X - step)).mean(axis=0) for step in steps]
    slopes = np.array(changes).T / 1e-4
    found = model.marginal_effects(n_boot=2)["effect"].to_numpy().reshape(slopes.shape)
    # A network has kinks, at which a difference over a step is not the slope.
    np.testing.assert_allclose(found, slopes, atol=1e-3 * np.abs(slopes).max())


def test_draws_of_a_linear_model_are_those_of_its_posterior() -> None:
    """One task without bounds is a ridge regression; its posterior is known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [0.3, 0.0, -0.2] + rng.normal(size=400)
    model = AutoTobitRegressor(members=["stack"], lower=None, noise="gaussian", random_state=0)
    found = model.fit(X, y).marginal_effects(n_boot=150, random_state=1)
    np.testing.assert_allclose(found["effect"], model.coef_[0], rtol=1e-6)
    least_squares = model.sigma_[0] / np.sqrt(400)
    assert (found["std_err"] < 1.15 * least_squares).all()
    assert found["std_err"].iloc[0] > 0.7 * least_squares


def test_rows_of_one_person_count_once() -> None:
    X, Y = data()
    twice = np.repeat(np.arange(len(X)), 2)
    model = SubspaceNetworkRegressor(2, 1, alpha=1e-3).fit(X[twice], Y[twice])
    alone = model.marginal_effects(n_boot=40)["std_err"]
    together = model.marginal_effects(n_boot=40, groups=twice)["std_err"]
    assert 1.15 < (together / alone).median() < 1.75  # √2
    again = model.marginal_effects(n_boot=40, groups=twice)["std_err"]
    np.testing.assert_array_equal(together, again)


def test_intervals_of_a_network_have_room_for_the_bias_of_its_penalty() -> None:
    X, Y = data()
    model = SubspaceNetworkRegressor(2, 2, joint_tuning=False).fit(X, Y)
    found = model.marginal_effects(n_boot=3)
    redraw: Any = model._redraw()
    stronger = model._with_layers(redraw.fit(redraw.rows, 2.0))
    effects = stronger._mean_effects(X, None, None, None).ravel()
    assert np.square(effects).sum() < np.square(found["effect"]).sum()
    assert (found["std_err"] > np.abs(effects - found["effect"])).all()


def test_what_cannot_be_drawn_is_refused() -> None:
    X, Y = data()
    model = SubspaceNetworkRegressor(2, 1, solver="online").fit(X, Y)
    with pytest.raises(ValueError, match="solver='batch'"):
        model.marginal_effects(X)
    model = SubspaceNetworkRegressor(2, 1).fit(X, Y)
    assert "_trained" not in model.__getstate__()
    with pytest.raises(ValueError, match=r"one label per row \(200\)"):
        model.marginal_effects(X, groups=[1, 2])
    with pytest.raises(ValueError, match="n_boot must be"):
        model.marginal_effects(X, n_boot=1)


def test_a_model_is_recalibrated_for_another_site() -> None:
    X, Y = data()
    for model in (models()[4], models()[3]):
        model.fit(X, Y)
        elsewhere = model.recalibrate(X, np.where(Y > 0.0, Y + 2.0, 0.0))
        moved = elsewhere.predict(X) - model.predict(X)
        busy = model.predict(X) > 3.0
        assert abs(moved[busy].mean() - 2.0) < 0.5
        assert elsewhere.score(X, Y) < model.score(X, Y)


def test_effects_of_trees_are_differences_of_predict() -> None:
    """Where nothing is censored: E[y|x] is the score, and effects are exact differences."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    Y = np.sin(3.0 * X[:, [0]]) + 0.2 * rng.normal(size=(400, 2))
    model = AutoTobitRegressor(members=("trees",), lower=None, noise="gaussian", random_state=0)
    found = model.fit(X, Y).marginal_effects(n_boot=3)["effect"].to_numpy().reshape(2, 3)
    width = X.std(axis=0)
    for column, step in enumerate(np.diag(0.5 * width)):
        change = (model.predict(X + step) - model.predict(X - step)).mean(axis=0)
        np.testing.assert_allclose(found[:, column], change / width[column], atol=1e-6)
    stability = model.subspace_stability(n_boot=3, n_splits=2)
    assert set(stability.loadings.index.get_level_values("feature")) >= {"x0", "y0 (trees)"}
