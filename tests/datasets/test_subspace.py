from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from deeptobit.datasets import make_subspace

SEEDS = (0, 1, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_layer_is_the_model_of_the_paper(seed: int) -> None:
    X, Y, truth = make_subspace(2000, 30, 20, rank=10, random_state=seed)
    assert X.shape == (2000, 30)
    assert (truth.U.shape, truth.V.shape) == ((20, 10), (10, 30))
    for gaussian, tolerance in ((X, 0.02), (truth.U, 0.2), (truth.V, 0.2)):
        assert abs(gaussian.mean()) < tolerance
        assert gaussian.std() == pytest.approx(1, abs=tolerance)
    np.testing.assert_allclose(truth.coef, truth.U @ truth.V, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(truth.latent, X @ truth.coef.T, rtol=1e-6, atol=1e-12)
    assert Y.min() == 0
    assert 0.4 < (Y == 0).mean() < 0.6
    # Far above the bound nothing is censored, so the whole noise shows.
    residuals = (Y - truth.latent)[truth.latent > 12]
    assert residuals.size > 1000
    assert residuals.mean() == pytest.approx(0, abs=0.15)
    assert residuals.std() == pytest.approx(truth.sigma, rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_truth_predicts_the_latent_of_one_layer_and_clips_it(seed: int) -> None:
    X, _, truth = make_subspace(50, 6, 4, rank=2, lower=-1, upper=2, random_state=seed)
    np.testing.assert_array_equal(truth.predict(X, kind="latent"), truth.latent)
    np.testing.assert_array_equal(truth.predict(X), np.clip(truth.latent, -1, 2))
    X_new = np.random.default_rng(seed).normal(size=(7, 6))
    assert truth.predict(X_new, kind="latent") == pytest.approx(X_new @ truth.coef.T)


@pytest.mark.parametrize("seed", SEEDS)
def test_layers_are_applied_to_the_censored_output_below(seed: int) -> None:
    X, Y, truth = make_subspace(40, 6, 4, rank=2, n_layers=3, sigma=0.0, random_state=seed)
    output = X
    for layer in truth.layers:
        latent = output @ (layer.U @ layer.V).T
        output = np.maximum(latent, 0)
    assert len(truth.layers) == 3
    assert [layer.V.shape[1] for layer in truth.layers] == [6, 4, 4]
    assert truth.latent == pytest.approx(latent)
    np.testing.assert_allclose(Y, output, atol=1e-12)
    assert truth.predict(X) == pytest.approx(output)
    assert output.max() > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_skip_connection_puts_the_output_before_the_features(seed: int) -> None:
    n_tasks, n_features = 3, 5
    X, Y, truth = make_subspace(
        60, n_features, n_tasks, 2, n_layers=2, skip_connection=True, sigma=0.0, random_state=seed
    )
    first, second = truth.layers
    assert second.V.shape == (2, n_tasks + n_features)
    output = np.maximum(X @ (first.U @ first.V).T, 0)
    on_output, on_features = np.split(second.V, [n_tasks], axis=1)
    latent = (output @ on_output.T + X @ on_features.T) @ second.U.T
    assert truth.latent == pytest.approx(latent)
    assert truth.predict(X) == pytest.approx(np.maximum(latent, 0))
    np.testing.assert_allclose(Y, np.maximum(latent, 0), atol=1e-12)
    assert first.U.shape == second.U.shape
    assert not np.allclose(first.U, second.U)


def test_hidden_noise_enters_the_latent_but_not_the_prediction() -> None:
    def draw(sigma: float, hidden_sigma: float | None) -> tuple[Any, ...]:
        return make_subspace(
            500, 6, 4, 2, n_layers=2, sigma=sigma, hidden_sigma=hidden_sigma, random_state=0
        )

    X, Y, truth = draw(2.0, 0.0)
    assert truth.latent == pytest.approx(truth.predict(X, kind="latent"))
    uncensored = Y > 0
    assert uncensored.sum() > 100
    assert not np.allclose(Y[uncensored], truth.latent[uncensored])

    X, Y, truth = draw(0.0, 2.0)
    np.testing.assert_allclose(Y, np.maximum(truth.latent, 0), atol=1e-12)
    assert not np.allclose(truth.latent, truth.predict(X, kind="latent"))

    np.testing.assert_array_equal(draw(2.0, None)[1], draw(2.0, 2.0)[1])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("skip_connection", [False, True])
def test_latent_sd_scales_every_layer_through_its_u(seed: int, skip_connection: bool) -> None:
    X, Y, truth = make_subspace(
        300,
        10,
        5,
        3,
        n_layers=3,
        skip_connection=skip_connection,
        sigma=0.0,
        latent_sd=2.5,
        random_state=seed,
    )
    inputs = X
    for layer in truth.layers:
        latent = layer.latent(inputs)
        assert latent.std() == pytest.approx(2.5)
        output = np.maximum(latent, 0)
        inputs = np.hstack([output, X]) if skip_connection else output
    np.testing.assert_allclose(Y, output, atol=1e-12)
    assert truth.latent == pytest.approx(latent)


def test_bounds_are_absent_common_or_one_per_task() -> None:
    def draw(lower: Any, upper: Any) -> tuple[Any, Any, Any]:
        return make_subspace(200, 4, 3, 2, lower=lower, upper=upper, random_state=0)

    _, free, truth = draw(None, None)
    assert free.min() < -3 < 3 < free.max()
    assert (truth.lower == -np.inf).all()
    assert (truth.upper == np.inf).all()

    lower, upper = [-1.0, -np.inf, 0.5], [1.0, 2.0, np.inf]
    _, bounded, truth = draw(lower, upper)
    np.testing.assert_array_equal(bounded, np.clip(free, lower, upper))
    assert truth.lower.tolist() == lower
    assert truth.upper.tolist() == upper
    np.testing.assert_array_equal(draw(-1, 1)[1], np.clip(free, -1, 1))
    for low, high in [([-1, None, 0.5], [1, 2, None]), ({"y0": -1, "y2": 0.5}, {"y0": 1, "y1": 2})]:
        np.testing.assert_array_equal(draw(low, high)[1], bounded)


def test_random_state_is_a_seed_a_generator_or_a_state() -> None:
    def draw(random_state: Any) -> Any:
        return make_subspace(5, 4, 3, 2, random_state=random_state)[1]

    np.testing.assert_array_equal(draw(3), draw(3))
    np.testing.assert_array_equal(draw(3), draw(np.random.RandomState(3)))
    assert not np.array_equal(draw(3), draw(4))
    assert not np.array_equal(draw(None), draw(None))
    generator = np.random.default_rng(3)
    first, second = draw(generator), draw(generator)
    np.testing.assert_array_equal(first, draw(np.random.default_rng(3)))
    assert not np.array_equal(first, second)


def test_truth_is_frozen() -> None:
    _, _, truth = make_subspace(5, 4, 3, 2, random_state=0)
    with pytest.raises(FrozenInstanceError):
        truth.sigma = 1.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        truth.layers[0].U = truth.V  # type: ignore[misc]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number, at least 1; got 0"),
        ({"n_samples": 5.5}, "n_samples must be a whole number, at least 1; got 5.5"),
        ({"n_tasks": "3"}, "n_tasks must be a whole number, at least 1; got '3'"),
        ({"n_features": 0}, "n_features must be a whole number, at least 1; got 0"),
        ({"n_tasks": -1}, "n_tasks must be a whole number, at least 1; got -1"),
        ({"n_layers": 0}, "n_layers must be a whole number, at least 1; got 0"),
        ({"rank": 0}, "rank must be a whole number, at least 1; got 0"),
        ({"rank": 4}, r"rank must be at most min\(n_features, n_tasks\) = 3, got 4"),
        ({"sigma": -1.0}, "sigma must be finite and not negative, got -1.0"),
        ({"sigma": np.nan}, "sigma must be finite and not negative, got nan"),
        ({"hidden_sigma": -2.0}, "hidden_sigma must be finite and not negative, got -2.0"),
        ({"latent_sd": 0.0}, "latent_sd must be finite and positive, got 0.0"),
        ({"upper": 0.0}, "target 'y0': the lower bound 0 is not below the upper bound 0"),
        ({"upper": [1, 2, -1]}, "target 'y2': the lower bound 0 is not below the upper bound -1"),
        ({"lower": np.nan}, "lower bound of target 'y0' is NaN; use None for an open side"),
        ({"lower": [0, 0]}, r"one value per target \(3\); got 2 values of shape \(2,\)"),
    ],
)
def test_bad_arguments_are_named(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"n_samples": 10, "n_features": 4, "n_tasks": 3, "rank": 2}
    with pytest.raises(ValueError, match=message):
        make_subspace(**arguments | change)


def test_latent_sd_needs_scores_that_differ() -> None:
    with pytest.raises(ValueError, match="whose latent scores are all equal"):
        make_subspace(1, 1, 1, 1, latent_sd=1.0, random_state=0)


def test_an_unknown_kind_of_prediction_is_named() -> None:
    X, _, truth = make_subspace(5, 4, 3, 2, random_state=0)
    with pytest.raises(ValueError, match="kind must be 'clip' or 'latent', got 'mean'"):
        truth.predict(X, kind="mean")  # type: ignore[arg-type]
