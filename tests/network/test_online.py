"""Growing a network in one pass over the rows for each layer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.layer import TargetScaling
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.network import NetworkLayer, TrainedNetwork, grow_online, latents
from deeptobit.network.grow import calibrate
from deeptobit.online import OnlineSettings, OnlineSolver
from deeptobit.targets import CensoredTargets

SETTINGS = OnlineSettings(rank=2)


def data(n_samples: int = 1500, n_layers: int = 2) -> tuple[FloatArray, CensoredTargets]:
    X, Y, _ = make_subspace(
        n_samples,
        5,
        4,
        2,
        n_layers=n_layers,
        skip_connection=True,
        latent_sd=3.0,
        sigma=0.5,
        hidden_sigma=0.1,
        random_state=0,
    )
    return X, CensoredTargets.from_bounds(Y, 0.0)


def grown(X: Any, targets: CensoredTargets, **options: Any) -> TrainedNetwork:
    defaults: dict[str, Any] = {
        "weight": np.ones(len(targets)),
        "settings": SETTINGS,
        "n_layers": 2,
        "skip_connection": True,
        "n_passes": 1,
        "calibrated": False,
    }
    return grow_online(X, targets, **(defaults | options))


def candidates(network: TrainedNetwork) -> list[NetworkLayer]:
    """All layers as they were learned, whether they pay or not."""
    return [found.layer for found in network.grown]


def test_the_first_layer_is_what_the_solver_finds_on_x() -> None:
    X, targets = data()
    solver = OnlineSolver(SETTINGS, 5, 4)
    solver.learn(X, targets.low, targets.high, np.ones(len(X)))
    first = candidates(grown(X, targets))[0]
    np.testing.assert_array_equal(first.coef, solver.result().U @ solver.result().V)


def test_the_second_layer_predicts_from_the_outputs_beside_x() -> None:
    X, targets = data()
    first, second = candidates(grown(X, targets))
    assert second.V.shape == (2, 9)
    below = np.clip(first.latent(X), targets.lower, targets.upper)
    observed = targets.observed
    values = targets.values

    def error(latent: FloatArray) -> float:
        return float(np.square(np.maximum(latent, 0.0) - values)[observed].mean())

    assert error(second.latent(X, below)) < 0.9 * error(first.latent(X))


def test_depth_is_judged_by_the_likelihood_of_the_rows() -> None:
    X, targets = data(500)
    network = grown(X, targets)
    scores = latents(candidates(network), X, targets.lower, targets.upper)
    for nll, layer, latent in zip(network.nlls, candidates(network), scores, strict=True):
        at = evaluate(Gaussian(), targets.low, targets.high, latent, layer.sigma)
        assert nll == pytest.approx(at.nll.sum(axis=1).mean(), rel=1e-6)


def test_depth_pays_where_the_truth_is_bent() -> None:
    network = grown(*data())
    assert network.nlls[1] < network.nlls[0]
    assert network.depth == 2


def test_depth_that_does_not_pay_is_undone() -> None:
    X, targets = data(n_layers=1)
    network = grown(X, targets, n_layers=3)
    assert (network.depth, len(network.layers), len(network.grown)) == (1, 3, 3)
    *_, latent = latents(network.layers, X, targets.lower, targets.upper)
    np.testing.assert_allclose(latent, candidates(network)[0].latent(X), rtol=1e-10)


@pytest.mark.parametrize("skip_connection", [True, False], ids=["skip", "naive"])
def test_sparse_features_are_dense_features(skip_connection: bool) -> None:
    X, targets = data(700)
    X = np.where(X > 0.0, X, 0.0)
    dense = grown(X, targets, skip_connection=skip_connection)
    sparse = grown(csr_matrix(X), targets, skip_connection=skip_connection)
    widths = [5, 9 if skip_connection else 4]
    assert [layer.V.shape[1] for layer in dense.layers] == widths
    for one, two in zip(dense.layers, sparse.layers, strict=True):
        np.testing.assert_allclose(two.coef, one.coef, rtol=1e-6, atol=1e-8)


def test_rows_of_no_weight_are_not_asked_whether_depth_pays() -> None:
    X, targets = data(1024)
    weight = np.tile([0.0, 1.0], 512)
    network = grown(X, targets, weight=weight)
    assert np.isfinite(network.nlls).all()
    present = targets[weight > 0.0]
    scores = latents(candidates(network), X[1::2], targets.lower, targets.upper)
    for nll, layer, latent in zip(network.nlls, candidates(network), scores, strict=True):
        at = evaluate(Gaussian(), present.low, present.high, latent, layer.sigma)
        assert nll == pytest.approx(at.nll.sum(axis=1).mean(), rel=1e-6)


def test_calibration_takes_the_residuals_in_the_users_units() -> None:
    X, targets = data(700)
    units = np.array([1.0, 10.0, 0.1, 1.0])
    scaled = replace(targets, low=targets.low * units, high=targets.high * units)
    first = candidates(grown(X, scaled, calibrated=True))[0]
    plain = TargetScaling(np.zeros(4), np.ones(4))
    expected = calibrate(scaled, np.ones(700), first.latent(X), plain)
    np.testing.assert_allclose(first.sigma, expected, rtol=1e-9)


def test_passes_and_progress() -> None:
    X, targets = data(600)
    seen: list[tuple[int, int]] = []
    network = grown(X, targets, n_passes=2, progress=lambda layer, done: seen.append((layer, done)))
    assert seen == [(0, 600), (0, 1200), (1, 600), (1, 1200)]
    assert 600 < network.grown[0].history["course"][-1].n_rows <= 1200
