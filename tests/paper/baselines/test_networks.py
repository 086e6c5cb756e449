import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from deeptobit.arrays import FloatArray
from paper.baselines import networks as _network_training
from paper.baselines.base import Baseline
from paper.baselines.leastsquares import LeastSquaresBaseline
from paper.baselines.networks import (
    DeepBaseline,
    DenseLayer,
    FactorisedMLPBaseline,
    MLPBaseline,
    NetworkBaseline,
    Sample,
    Trainer,
    draw_layers,
    factorise,
    forward,
)

SMALL: dict[str, Any] = {"width": 8, "lower": 0.0}


def _problem(n_rows: int = 120) -> tuple[FloatArray, FloatArray]:
    """Outcomes that are not linear before they are censored at 0."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 3))
    Y = np.abs(X) @ np.array([[1.0, 0.0], [1.0, -1.0], [0.0, 1.0]]) - 0.3
    return X, np.maximum(Y + 0.05 * rng.standard_normal(Y.shape), 0.0)


@pytest.fixture
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what does not depend on how good a network is."""
    monkeypatch.setattr(_network_training, "_MAX_EPOCHS", 4)


def _training_loss(model: Baseline, X: FloatArray, Y: FloatArray) -> float:
    return float(np.square(model.predict(X) - Y).mean())


def test_a_network_beats_least_squares_where_the_truth_is_not_linear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_network_training, "_MAX_EPOCHS", 100)
    X, Y = _problem(300)
    least = LeastSquaresBaseline(lower=0).fit(X[:200], Y[:200])
    mlp = MLPBaseline(n_layers=2, **SMALL).fit(X[:200], Y[:200])
    assert mlp.score(X[200:], Y[200:]) > least.score(X[200:], Y[200:]) + 0.3
    assert mlp.score(X[200:], Y[200:]) > 0.7


@pytest.mark.slow
def test_retraining_repairs_what_truncation_broke() -> None:
    X, Y = _problem(200)
    mlp = MLPBaseline(**SMALL).fit(X, Y)
    cut = FactorisedMLPBaseline(2, **SMALL).fit(X, Y)
    again = FactorisedMLPBaseline(2, retrain=True, **SMALL).fit(X, Y)
    assert _training_loss(again, X, Y) < _training_loss(cut, X, Y)
    assert_array_equal(cut.course_, mlp.course_)
    for (U, V), (left, right) in zip(cut.layers_, mlp.layers_, strict=True):
        whole = DenseLayer((left @ right,), np.zeros(len(left)))
        assert_allclose(U @ V, factorise(whole, 2).weight, atol=1e-12)


@pytest.mark.usefixtures("_hasty")
def test_retraining_never_loses_what_it_started_from() -> None:
    X, Y = _problem()
    cut = FactorisedMLPBaseline(1, **SMALL).fit(X, Y)
    again = FactorisedMLPBaseline(1, retrain=True, **SMALL).fit(X, Y)
    assert _training_loss(again, X, Y) <= _training_loss(cut, X, Y)
    assert (again.sigma_**2 / Y.var(axis=0)).sum() <= (cut.sigma_**2 / Y.var(axis=0)).sum()


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize("retrain", [False, True])
def test_weights_have_the_rank_exactly(retrain: bool) -> None:
    X, Y = _problem()
    model = FactorisedMLPBaseline(1, retrain=retrain, **SMALL).fit(X, Y)
    for U, V in model.layers_:
        assert np.linalg.matrix_rank(U @ V) == 1
        assert U.shape[1] == V.shape[0] == 1


@pytest.mark.usefixtures("_hasty")
def test_the_factorised_network_of_full_rank_is_the_network() -> None:
    X, Y = _problem()
    whole = MLPBaseline(**SMALL).fit(X, Y)
    factorised = FactorisedMLPBaseline(8, **SMALL).fit(X, Y)
    assert_allclose(factorised.predict(X), whole.predict(X), atol=1e-12)
    assert_allclose(factorised.sigma_, whole.sigma_)
    for (U, V), layer in zip(whole.layers_, whole._dense, strict=True):
        assert_allclose(U @ V, layer.weight, atol=1e-12)


@pytest.mark.usefixtures("_hasty")
def test_the_deep_baselines_are_what_the_paper_says_they_are() -> None:
    X, Y = _problem()
    rows = X[:20]
    second = DeepBaseline("ii", **SMALL).fit(X, Y).predict(rows, kind="latent")
    assert_array_equal(MLPBaseline(**SMALL).fit(X, Y).predict(rows, kind="latent"), second)
    third = DeepBaseline("iii", rank=2, **SMALL).fit(X, Y).predict(rows)
    retrained = FactorisedMLPBaseline(2, retrain=True, **SMALL).fit(X, Y).predict(rows)
    assert_array_equal(third, retrained)
    first = DeepBaseline("i", **SMALL).fit(X, Y).predict(rows, kind="latent")
    assert not np.allclose(first, second)
    free = DeepBaseline("ii", width=8).fit(X, Y).predict(rows, kind="latent")
    assert_array_equal(first, free)  # without bounds there is nothing to clip
    with pytest.raises(ValueError, match="kind must be 'i', 'ii' or 'iii'; got 'iv'"):
        DeepBaseline("iv").fit(X, Y)  # type: ignore[arg-type]


@pytest.mark.usefixtures("_hasty")
@pytest.mark.parametrize(
    "kind", [MLPBaseline, partial(FactorisedMLPBaseline, 2, retrain=True), DeepBaseline]
)
def test_the_same_seed_gives_the_same_network(kind: Any) -> None:
    X, Y = _problem()
    model: NetworkBaseline = kind(random_state=3, **SMALL).fit(X, Y)
    torch.manual_seed(99)
    threads = torch.get_num_threads()
    again = clone(model).fit(X, Y)
    assert torch.get_num_threads() == threads
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.sigma_, model.sigma_)
    other = clone(model).set_params(random_state=4).fit(X, Y)
    assert not np.array_equal(other.predict(X), model.predict(X))


def test_missing_outcomes_teach_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_network_training, "_MAX_EPOCHS", 100)
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
def test_predictions_keep_bounds_gaps_and_groups() -> None:
    X, Y = _problem()
    Y = np.minimum(Y, 2.0)
    Y[5:40, 1] = np.nan
    untouched = Y.copy()
    groups = np.arange(len(X)) // 4
    model = MLPBaseline(width=4, lower=0, upper=[2.0, np.inf]).fit(X, Y, groups=groups)
    point = model.predict(10.0 * X)
    assert ((point >= 0.0) & (point <= [2.0, np.inf])).all()
    assert (model.sigma_ > 0.0).all()
    assert_array_equal(Y, untouched)
    lonely = MLPBaseline(cv=2).fit(X, Y[:, 0])
    assert lonely.predict(X).shape == (len(X),)
    assert [V.shape for _, V in lonely.layers_] == [(1, 3), (1, 1), (1, 1)]


@pytest.mark.usefixtures("_hasty")
def test_a_task_that_is_unknown_in_the_validation_split_borrows_its_noise() -> None:
    X, Y = _problem()
    folds = [(np.arange(90), np.arange(90, 120))]
    Y[90:, 1] = np.nan
    model = MLPBaseline(cv=folds, **SMALL).fit(X, Y)
    known = Y[:, 1][:90]
    assert_allclose(model.sigma_[1] / known.std(), model.sigma_[0] / Y[:, 0].std())


@pytest.mark.usefixtures("_hasty")
def test_units_do_not_matter() -> None:
    X, Y = _problem()
    model = MLPBaseline(**SMALL).fit(X, Y)
    scaled = MLPBaseline(width=8, lower=7.0).fit(64.0 * X, 1024.0 * Y + 7.0)
    assert_allclose(scaled.predict(64.0 * X), 1024.0 * model.predict(X) + 7.0, rtol=1e-3)


def test_layers_pass_on_what_is_positive() -> None:
    first = DenseLayer((np.array([[1.0], [-1.0]]),), np.zeros(2))
    second = DenseLayer((np.array([[2.0]]), np.array([[1.0, 1.0]])), np.array([-1.0]))
    assert_array_equal(forward([first, second], np.array([[-2.0], [3.0]])), [[3.0], [5.0]])


def test_torch_is_not_imported_before_it_is_needed() -> None:
    code = "import sys, deeptobit.baselines; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
