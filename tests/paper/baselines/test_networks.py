import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from deeptobit import CensoredTargets
from deeptobit.metrics import centred_anmse
from paper.arrays import FloatArray
from paper.baselines import LeastSquaresBaseline, MLPBaseline, networks
from paper.baselines.networks import (
    DenseLayer,
    Sample,
    Trainer,
    draw_layers,
    factorise,
    forward,
)

ROOT = Path(__file__).parents[3]
SMALL: dict[str, Any] = {"width": 8}
from_bounds = CensoredTargets.from_bounds


def _problem(n_rows: int = 120) -> tuple[FloatArray, FloatArray]:
    """Outcomes that are not linear before they are censored at 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 3))
    Y = np.abs(X) @ np.array([[1.0, 0.0], [1.0, -1.0], [0.0, 1.0]]) - 0.3
    return X, np.maximum(Y + 0.05 * rng.standard_normal(Y.shape), 0.0)


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what does not depend on how good a network is."""
    monkeypatch.setattr(networks, "_MAX_EPOCHS", 4)


def _training_loss(model: MLPBaseline, X: FloatArray, Y: FloatArray) -> float:
    return float(np.square(model.predict(X) - Y).mean())


def test_a_network_beats_least_squares_where_the_truth_is_not_linear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(networks, "_MAX_EPOCHS", 60)
    monkeypatch.setattr(networks, "_WEIGHT_DECAYS", (0.1,))
    X, Y = _problem(300)
    models = LeastSquaresBaseline(), MLPBaseline(n_layers=2, random_state=1, **SMALL)
    targets = from_bounds(Y[:200], 0)
    least, mlp = (
        centred_anmse(Y[200:], model.fit(X[:200], targets).predict(X[200:])) for model in models
    )
    assert mlp < min(least - 0.3, 0.3)


@pytest.mark.slow
def test_retraining_repairs_what_truncation_broke() -> None:
    X, Y = _problem(200)
    mlp = MLPBaseline(**SMALL).fit(X, from_bounds(Y, 0))
    cut = MLPBaseline(2, retrain=False, **SMALL).fit(X, from_bounds(Y, 0))
    again = MLPBaseline(2, **SMALL).fit(X, from_bounds(Y, 0))
    assert _training_loss(again, X, Y) < _training_loss(cut, X, Y)
    assert_array_equal(cut.losses_, mlp.losses_)
    for (U, V), (left, right) in zip(cut.layers_, mlp.layers_, strict=True):
        whole = DenseLayer((left @ right,), np.zeros(len(left)))
        assert_allclose(U @ V, factorise(whole, 2).weight, atol=1e-12)


@pytest.mark.usefixtures("_hasty")
def test_retraining_never_loses_what_it_started_from() -> None:
    X, Y = _problem()
    cut = MLPBaseline(1, retrain=False, **SMALL).fit(X, from_bounds(Y, 0))
    again = MLPBaseline(1, **SMALL).fit(X, from_bounds(Y, 0))
    assert _training_loss(again, X, Y) <= _training_loss(cut, X, Y)
    assert (again.sigma_**2 / Y.var(axis=0)).sum() <= (cut.sigma_**2 / Y.var(axis=0)).sum()


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("retrain", [False, True])
def test_weights_have_the_rank_exactly(retrain: bool) -> None:
    X, Y = _problem()
    model = MLPBaseline(1, retrain=retrain, **SMALL).fit(X, from_bounds(Y, 0))
    for U, V in model.layers_:
        assert np.linalg.matrix_rank(U @ V) == 1
        assert U.shape[1] == V.shape[0] == 1


@pytest.mark.usefixtures("_hasty")
def test_the_factorised_network_of_full_rank_is_the_network() -> None:
    X, Y = _problem()
    whole = MLPBaseline(**SMALL).fit(X, from_bounds(Y, 0))
    factorised = MLPBaseline(8, retrain=False, **SMALL).fit(X, from_bounds(Y, 0))
    assert_allclose(factorised.predict(X), whole.predict(X), atol=1e-12)
    assert_allclose(factorised.sigma_, whole.sigma_)
    for (U, V), layer in zip(whole.layers_, whole._dense, strict=True):
        assert_allclose(U @ V, layer.weight, atol=1e-12)


@pytest.mark.usefixtures("_hasty")
def test_clipping_in_training_matters_where_there_are_bounds() -> None:
    X, Y = _problem()
    clipped, plain = (
        MLPBaseline(clipped=clip, **SMALL).fit(X, from_bounds(Y, 0)) for clip in (True, False)
    )
    first = plain.predict(X, kind="latent")
    assert not np.allclose(first, clipped.predict(X, kind="latent"))
    unbounded = MLPBaseline(**SMALL).fit(X, from_bounds(Y))
    assert_array_equal(first, unbounded.predict(X, kind="latent"))


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("settings", [{}, {"rank": 2}, {"clipped": False}])
def test_the_same_seed_gives_the_same_network(settings: dict[str, Any]) -> None:
    import torch

    X, Y = _problem()
    model = MLPBaseline(random_state=3, **settings, **SMALL).fit(X, from_bounds(Y, 0))
    torch.manual_seed(99)
    threads = torch.get_num_threads()
    again = clone(model).fit(X, from_bounds(Y, 0))
    assert torch.get_num_threads() == threads
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.sigma_, model.sigma_)
    other = clone(model).set_params(random_state=4).fit(X, from_bounds(Y, 0))
    assert not np.array_equal(other.predict(X), model.predict(X))


def test_missing_outcomes_teach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "_MAX_EPOCHS", 60)
    X, Y = _problem()
    Y[::3, 0] = np.nan
    start = draw_layers([3, 2], np.random.default_rng(0))
    validation = Sample(X[:20], Y[:20])

    def learn(rows: FloatArray, outcomes: FloatArray) -> list[DenseLayer]:
        return Trainer(Sample(rows, outcomes), validation, None, 0).train(start, 0.0).layers

    alone = np.column_stack([Y[:, 0], np.full(len(Y), np.nan)])
    one = learn(X, alone)[0]
    assert_allclose(one.weight[1], start[0].weight[1], atol=1e-6)  # a task without any
    both = learn(X, Y)[0]
    assert not np.allclose(both.weight[1], start[0].weight[1], atol=1e-3)
    gone = np.isnan(Y[:, 0])
    least = np.linalg.lstsq(np.c_[X, np.ones(len(X))][~gone], Y[~gone, 0], rcond=None)[0]
    assert_allclose(both.weight[0], least[:3], atol=0.1)


@pytest.mark.usefixtures("_hasty")
def test_predictions_keep_bounds_and_skip_gaps() -> None:
    X, Y = _problem()
    Y = np.minimum(Y, 2.0)
    Y[5:40, 1] = np.nan
    model = MLPBaseline(width=4).fit(X, from_bounds(Y, 0, [2.0, np.inf]))
    point = model.predict(10.0 * X)
    assert ((point >= 0.0) & (point <= [2.0, np.inf])).all()
    assert (model.sigma_ > 0.0).all()
    one = MLPBaseline(cv=2).fit(X, from_bounds(Y[:, 0]))
    assert one.predict(X).shape == (len(X), 1)
    assert [V.shape for _, V in one.layers_] == [(1, 3), (1, 1), (1, 1)]


@pytest.mark.usefixtures("_hasty")
def test_a_task_that_is_unknown_in_the_validation_split_borrows_its_noise() -> None:
    X, Y = _problem()
    folds = [(np.arange(90), np.arange(90, 120))]
    Y[90:, 1] = np.nan
    model = MLPBaseline(cv=folds, **SMALL).fit(X, from_bounds(Y, 0))
    known = Y[:, 1][:90]
    assert_allclose(model.sigma_[1] / known.std(), model.sigma_[0] / Y[:, 0].std())


@pytest.mark.usefixtures("_hasty")
def test_units_do_not_matter() -> None:
    X, Y = _problem()
    model = MLPBaseline(**SMALL).fit(X, from_bounds(Y, 0))
    scaled = MLPBaseline(width=8).fit(64.0 * X, from_bounds(1024.0 * Y + 7.0, 7.0))
    assert_allclose(scaled.predict(64.0 * X), 1024.0 * model.predict(X) + 7.0, rtol=1e-3)


def test_layers_pass_on_what_is_positive() -> None:
    first = DenseLayer((np.array([[1.0], [-1.0]]),), np.zeros(2))
    second = DenseLayer((np.array([[2.0]]), np.array([[1.0, 1.0]])), np.array([-1.0]))
    assert_array_equal(forward([first, second], np.array([[-2.0], [3.0]])), [[3.0], [5.0]])


def test_torch_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, paper.registry; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0
