"""What a baseline chose for itself, against the searches of scikit-learn."""

import numpy as np
import pytest
from sklearn.linear_model import LassoCV, MultiTaskLassoCV, RidgeCV

from deeptobit.arrays import FloatArray
from paper.baselines import leastsquares as _tuning
from paper.baselines.base import inner_folds
from paper.baselines.leastsquares import (
    ForestBaseline,
    LassoBaseline,
    LeastSquaresBaseline,
    MultiTaskLassoBaseline,
    RidgeBaseline,
)
from paper.baselines.networks import MLPBaseline
from paper.baselines.tobit import InterceptOnly, RidgeTobit, TobitBaseline


def _standard() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    Y = X @ rng.standard_normal((4, 2)) + rng.standard_normal((80, 2))
    return (X - X.mean(axis=0)) / X.std(axis=0), (Y - Y.mean(axis=0)) / Y.std(axis=0)


def test_strengths_are_those_of_scikit_learn() -> None:
    X, Y = _standard()
    folds = inner_folds(len(X), random_state=0)
    ridge = RidgeCV(np.logspace(0, 5, 30), cv=folds).fit(X, Y)
    assert RidgeBaseline().fit(X, Y).chosen_["alpha"] == pytest.approx(ridge.alpha_)
    lassos = [LassoCV(alphas=30, eps=0.02, cv=folds).fit(X, y).alpha_ for y in Y.T]
    assert LassoBaseline().fit(X, Y).chosen_["alpha"] == pytest.approx(lassos)
    both = MultiTaskLassoCV(alphas=30, eps=0.02, cv=folds, tol=1e-3).fit(X, Y)
    assert MultiTaskLassoBaseline().fit(X, Y).chosen_["alpha"] == pytest.approx(both.alpha_)


def test_others_name_what_they_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tuning, "_LEAVES", (7,))
    X, Y = _standard()
    tobit = RidgeTobit(cv=2).fit(X, Y)
    assert tobit.chosen_ == {"alpha": tobit.alpha_}
    for outcomes in (Y, Y[:, 0]):
        assert ForestBaseline(cv=2).fit(X, outcomes).chosen_ == {"min_samples_leaf": 7}
    for kind in (InterceptOnly, LeastSquaresBaseline, TobitBaseline):
        assert kind(cv=2).fit(X, Y).chosen_ == {}


@pytest.mark.slow
def test_networks_name_their_weight_decay() -> None:
    pytest.importorskip("torch")
    X, Y = _standard()
    model = MLPBaseline(cv=2).fit(X, Y)
    assert model.chosen_ == {"weight_decay": model.weight_decay_}
