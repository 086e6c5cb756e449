"""SubspaceNetworkRegressor: what it fits, what it keeps, what it predicts, what it refuses."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.estimators.inputs import PredictionKind, automatic_alpha
from deeptobit.exceptions import CensoringWarning
from deeptobit.network import latents
from tests.estimators.problems import assert_close

KINDS: tuple[PredictionKind, ...] = ("mean", "clip", "latent")
INSIDE: tuple[PredictionKind, ...] = ("mean", "clip")


@cache
def _draw(n_layers: int) -> tuple[FloatArray, FloatArray]:
    X, Y, _ = make_subspace(
        400,
        4,
        6,
        2,
        n_layers=n_layers,
        skip_connection=True,
        latent_sd=3.0,
        sigma=1.0,
        hidden_sigma=0.3,
        random_state=0,
    )
    return X, Y


def data(n_samples: int = 400, n_layers: int = 3) -> tuple[FloatArray, FloatArray]:
    """Six outcomes at or above 0 of four features; not linear in them for more than one layer."""
    X, Y = _draw(n_layers)
    return X[:n_samples].copy(), Y[:n_samples].copy()


def network(**options: Any) -> SubspaceNetworkRegressor:
    """Two layers of rank two."""
    defaults: dict[str, Any] = {"rank": 2, "n_layers": 2}
    return SubspaceNetworkRegressor(**(defaults | options))


def grown(**options: Any) -> SubspaceNetworkRegressor:
    """The same without tuning."""
    return network(**({"joint_tuning": False} | options))


@cache
def tuned() -> SubspaceNetworkRegressor:
    return network().fit(*data())


def test_tuning_is_kept_where_the_truth_is_bent_and_predicts_new_rows_better() -> None:
    X, Y, _ = make_subspace(
        1400,
        4,
        6,
        2,
        n_layers=3,
        skip_connection=True,
        latent_sd=3.0,
        sigma=1.0,
        hidden_sigma=0.3,
        random_state=0,
    )
    train, test = slice(0, 400), slice(400, None)
    models = [network(**kw) for kw in ({"n_layers": 1}, {"joint_tuning": False}, {})]
    shallow, deep, tuned = (model.fit(X[train], Y[train]) for model in models)
    assert tuned.history_["tuning"]["kept"] is True
    assert deep.history_["tuning"] == {"kept": False, "objective": ()}
    scores = [model.score_log(X[test], Y[test]) for model in (shallow, deep, tuned)]
    assert scores == sorted(scores)
    assert scores[2] > scores[0] + 0.02


def test_on_one_layers_truth_neither_depth_nor_tuning_is_kept() -> None:
    X, Y = data(n_layers=1)
    deep = network(n_layers=3, alpha=0.02).fit(X, Y)
    assert deep.history_["tuning"]["kept"] is False
    assert deep.history_["paying_depth"] == 1
    assert deep.n_layers_ == len(deep.layers_) == 3
    shallow = network(n_layers=1, alpha=0.02).fit(X, Y)
    for kind in KINDS:
        assert_close(deep.predict(X, kind), shallow.predict(X, kind), 1e-9)


@pytest.mark.parametrize("flag", [1, np.True_], ids=repr)
def test_flags_of_any_kind_are_understood(flag: Any) -> None:
    X, Y = data(60, n_layers=1)
    assert network(joint_tuning=flag).fit(X, Y).history_["tuning"]["kept"] is True
    off = network(joint_tuning=type(flag)(0)).fit(X, Y)
    assert off.history_["tuning"] == {"kept": False, "objective": ()}


@pytest.mark.parametrize("noise", ["gaussian", "student_t"])
def test_one_layer_is_the_subspace_tobit(noise: str) -> None:
    X, Y = data()
    Y[::7, 2] = np.nan
    options: dict[str, Any] = {"rank": 2, "alpha": 0.03, "noise": noise, "tol": 1e-8}
    one = SubspaceNetworkRegressor(n_layers=1, **options).fit(X, Y)
    other = SubspaceTobitRegressor(**options).fit(X, Y)
    assert_close(one.coef_, other.coef_)
    assert_close(one.intercept_, other.intercept_)
    assert_close(one.sigma_, other.sigma_)
    assert_close(one.predict(X), other.predict(X))
    assert_close(np.abs(one.transform(X)), np.abs(other.transform(X)), 1e-4)


def test_every_layer_has_the_automatic_penalty_of_its_inputs() -> None:
    X, Y = data(200)
    alphas = grown(n_layers=3).fit(X, Y).history_["alphas"]
    expected = [automatic_alpha(np.full(6, 200.0), 200, width) for width in (4, 10, 10)]
    assert alphas == pytest.approx(expected)
    model = grown(alpha=0.25).fit(X, Y)
    assert (model.history_["alphas"], model.alpha_) == ((0.25, 0.25), 0.25)


@pytest.mark.parametrize("joint_tuning", [False, True])
def test_naive_stacking_has_layers_on_outputs_alone(joint_tuning: bool) -> None:
    X, Y = data(200)
    model = network(skip_connection=False, joint_tuning=joint_tuning).fit(X, Y)
    assert [layer.V.shape for layer in model.layers_] == [(2, 4), (2, 6)]
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X, Y) > 0.3


def test_the_history_tells_how_it_came_about() -> None:
    history = tuned().history_
    assert (history["solver"], history["validation"]) == ("batch", None)
    assert [layer["converged"] for layer in history["layers"]] == [True, True]
    assert len(history["nll"]) == 2
    course = history["tuning"]["objective"]
    assert (np.diff(course) <= 0.0).all()
    assert tuned().n_iter_ > len(course)


@pytest.mark.parametrize("n_layers", [1, 3])
def test_pure_noise_is_not_fitted(n_layers: int) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1060, 15)), np.maximum(rng.normal(size=(1060, 5)), 0.0)
    null = SubspaceNetworkRegressor(n_layers=1, alpha=1e6).fit(X[:60], Y[:60])
    model = SubspaceNetworkRegressor(n_layers=n_layers).fit(X[:60], Y[:60])
    assert model.score_log(X[60:], Y[60:]) > null.score_log(X[60:], Y[60:]) - 0.02


def test_calibrated_scales_are_the_residuals_before_censoring() -> None:
    X, Y = data(200)
    model = grown(sigma="calibrate").fit(X, Y)
    residuals = Y - model.predict(X, kind="latent")
    assert_close(model.sigma_, np.sqrt(np.square(residuals).mean(axis=0)))
    assert (model.sigma_ != grown().fit(X, Y).sigma_).all()


@pytest.mark.parametrize("joint_tuning", [False, True])
def test_given_scales_are_kept_in_every_layer(joint_tuning: bool) -> None:
    X, Y = data(150)
    per_task = np.linspace(0.5, 1.5, 6)
    by_name = {f"y{task}": sigma for task, sigma in enumerate(per_task)}
    models = [network(sigma=sigma, joint_tuning=joint_tuning) for sigma in (0.7, by_name)]
    for model, expected in zip(models, (np.full(6, 0.7), per_task), strict=True):
        for layer in model.fit(X, Y).layers_:
            assert_close(layer.sigma, expected, 1e-12)


@pytest.mark.parametrize("joint_tuning", [False, True])
def test_a_task_at_its_bound_throughout_warns_and_predicts_the_bound(joint_tuning: bool) -> None:
    X, Y = data(200)
    Y[:, 2] = 0.0
    with pytest.warns(CensoringWarning, match="every entry is censored on the same side"):
        model = network(joint_tuning=joint_tuning).fit(X, Y)
    for stage in model.staged_predict(X):
        assert np.isfinite(stage).all()
        assert stage[:, 2].max() < 0.1


def test_a_task_of_zeros_and_ones_warns_and_keeps_its_scale() -> None:
    X, Y = data(200)
    Y[:, 1] = Y[:, 1] > np.median(Y[:, 1])
    upper = [np.inf, 1.0, *[np.inf] * 4]
    with pytest.warns(CensoringWarning, match="every entry is at a bound"):
        model = network(upper=upper, joint_tuning=True).fit(X, Y)
    assert model.sigma_[1] == pytest.approx(Y[:, 1].std(), rel=1e-6)
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("flat", [False, True], ids=["2-d", "1-d"])
def test_every_prediction_has_its_shape_and_is_finite(flat: bool) -> None:
    X, Y = data(150)
    model = grown(upper=5.0, outside="clip").fit(X, Y[:, 0] if flat else Y)
    shape = (150,) if flat else (150, 6)
    for kind in KINDS:
        assert model.predict(X, kind=kind).shape == shape
    for kind in INSIDE:
        inside = model.predict(X, kind=kind)
        assert ((inside >= 0.0) & (inside <= 5.0)).all()
    at_lower, at_upper = model.predict_bound_proba(X)
    assert at_lower.shape == at_upper.shape == shape
    assert ((at_lower >= 0.0) & (at_upper >= 0.0) & (at_lower + at_upper <= 1.0)).all()
    assert model.predict_quantile(X, 0.5).shape == shape
    low, middle, high = model.predict_quantile(X, [0.1, 0.5, 0.9])
    assert low.shape == shape
    assert ((low <= middle) & (middle <= high)).all()
    for end in model.predict_interval(X):
        assert end.shape == shape
        assert np.isfinite(end).all()
    assert model.sample_y(X, n_samples=3, random_state=0).shape == (*shape, 3)
    assert [stage.shape for stage in model.staged_predict(X)] == [shape, shape]
    assert model.rank_ == (1 if flat else 2)
    assert np.isfinite([model.score(X, np.minimum(Y[:, 0] if flat else Y, 5.0))]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_stage_is_the_prediction(kind: Any) -> None:
    X, _ = data()
    *_, last = tuned().staged_predict(X, kind=kind)
    assert_close(last, tuned().predict(X, kind=kind), 1e-12)


def test_stages_are_the_layers_in_the_users_units() -> None:
    X, _ = data()
    stages = tuned().staged_predict(X, kind="latent")
    by_hand = latents(tuned().layers_, X, np.zeros(6), np.full(6, np.inf))
    for stage, latent in zip(stages, by_hand, strict=True):
        assert_close(stage, latent, 1e-12)
    first = tuned().layers_[0]
    assert_close(tuned().coef_, first.U @ first.V, 1e-12)
    assert_close(tuned().intercept_, first.intercept, 1e-12)
    assert_close(tuned().sigma_, tuned().layers_[-1].sigma, 1e-12)


def test_hidden_layers_are_censored_at_the_tasks_bounds_not_at_row_limits() -> None:
    X, Y = data()
    limits = np.random.default_rng(0).uniform(0.0, 2.0, Y.shape)
    model = grown(alpha=0.01).fit(X, np.maximum(Y, limits), lower=limits)
    assert model.history_["paying_depth"] == 2
    np.testing.assert_array_equal(model.lower_, 0.0)
    first, second = model.layers_
    hidden = np.maximum(X @ first.coef.T + first.intercept, 0.0)
    expected = np.hstack([hidden, X]) @ second.coef.T + second.intercept
    for asked in (None, limits):
        assert_close(model.predict(X, "latent", lower=asked), expected, 1e-10)
    assert_close(model.predict(X, "clip", lower=limits), np.maximum(expected, limits), 1e-10)


def test_coordinates_of_every_layer_make_its_scores() -> None:
    X, _ = data()
    model = tuned()
    for depth, latent in enumerate(model.staged_predict(X, kind="latent")):
        layer = model.layers_[depth]
        coordinates = model.transform(X, layer=depth)
        assert coordinates.shape == (400, 2)
        assert_close(coordinates @ layer.U.T + layer.intercept, latent, 1e-10)
        np.testing.assert_array_equal(model.transform(X, layer=depth - 2), coordinates)
    np.testing.assert_array_equal(model.transform(X), model.transform(X, layer=1))


@pytest.mark.parametrize("layer", [2, -3, 0.5, "last"])
def test_a_layer_that_does_not_exist_is_named(layer: Any) -> None:
    with pytest.raises(ValueError, match=r"layer must lie from -2 to 1; got"):
        tuned().transform(data()[0], layer=layer)


def test_more_rows_than_a_chunk_are_predicted_alike() -> None:
    X, _ = data()
    many = np.tile(X, (25, 1))
    assert_close(tuned().predict(many), np.tile(tuned().predict(X), (25, 1)), 1e-12)
