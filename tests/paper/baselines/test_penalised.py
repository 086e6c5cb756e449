from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso

from deeptobit import CensoredTargets, datasets
from deeptobit.app.study import inner_folds
from deeptobit.metrics import centred_anmse
from paper.arrays import FloatArray
from paper.baselines import penalised
from paper.baselines.norms import GroupNorm, SquaredProblem
from paper.baselines.penalised import (
    GroupLassoBaseline,
    PenalisedBaseline,
    TraceNormBaseline,
    choose_alpha,
    path,
)

KINDS = [TraceNormBaseline, GroupLassoBaseline]
from_bounds = CensoredTargets.from_bounds


def _standard(n_rows: int = 80) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((n_rows, 5))
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + 0.5 * rng.standard_normal((n_rows, 3))
    return (X - X.mean(axis=0)) / X.std(axis=0), (Y - Y.mean(axis=0)) / Y.std(axis=0)


def test_the_group_lasso_is_that_of_scikit_learn() -> None:
    X, Y = _standard()
    model = GroupLassoBaseline().fit(X, from_bounds(Y))
    reference = MultiTaskLasso(model.alpha_, tol=1e-8).fit(X, Y)
    assert_allclose(model.coef_, reference.coef_, atol=0.01)
    assert_allclose(model.predict(X), reference.predict(X), atol=0.01)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("censored", [False, True])
def test_certificate_and_path(kind: type[PenalisedBaseline], censored: bool) -> None:
    X, Y, _ = datasets.make_subspace(120, 8, 4, 2, random_state=1)
    model = kind(censored=censored, cv=3).fit(X, from_bounds(Y, 0))
    assert model.certificate_ <= 1e-5
    assert 1e-4 <= model.alpha_ / model.alpha_max_ * (1 + 1e-9) <= 1.0 + 2e-9
    assert model.coef_.shape == (4, 8)
    again = kind(censored=censored, cv=3).fit(X, from_bounds(Y, 0))
    assert_array_equal(again.coef_, model.coef_)
    assert_array_equal(again.sigma_, model.sigma_)


@pytest.mark.parametrize("kind", KINDS)
def test_the_censored_model_knows_what_is_behind_a_bound(kind: type[PenalisedBaseline]) -> None:
    X, Y, truth = datasets.make_subspace(300, 10, 6, 2, random_state=2)
    targets = from_bounds(Y, 0)
    plain = kind(cv=3).fit(X[:200], targets[:200])
    censored = kind(censored=True, cv=3).fit(X[:200], targets[:200])
    coef = truth.layers[0].U @ truth.layers[0].V
    assert np.linalg.norm(censored.coef_ - coef) < 0.5 * np.linalg.norm(plain.coef_ - coef)
    errors = [centred_anmse(Y[200:], model.predict(X[200:])) for model in (censored, plain)]
    assert errors[0] < errors[1] - 0.05
    assert_array_equal(censored.predict(X), censored.predict(X, kind="mean"))
    assert_array_equal(plain.predict(X), np.maximum(plain.predict(X, kind="latent"), 0.0))


@pytest.mark.parametrize("kind", KINDS)
def test_noise_alone_is_left_to_the_null_model(kind: type[PenalisedBaseline]) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 30)), rng.standard_normal((60, 4))
    for censored in (False, True):
        model = kind(censored=censored).fit(X, from_bounds(Y))
        assert model.alpha_ > 0.4 * model.alpha_max_
        assert_allclose(model.predict(X), Y.mean(axis=0) * np.ones_like(Y), atol=0.6)


def test_a_missing_entry_does_not_matter_whatever_hides_behind_it() -> None:
    X, Y = _standard()
    holes = np.random.default_rng(0).random(Y.shape) < 0.3
    targets = CensoredTargets.from_bounds(np.where(holes, np.nan, Y), lower=-9)
    for censored in (False, True):
        model = TraceNormBaseline(censored=censored, cv=3).fit(X, targets)
        assert centred_anmse(Y, model.predict(X)) < 0.5
        unbounded = TraceNormBaseline(censored=censored, cv=3).fit(X, from_bounds(targets.values))
        assert_allclose(unbounded.coef_, model.coef_, atol=1e-10)


def test_the_path_ends_once_errors_rise() -> None:
    X, Y = _standard()
    rng = np.random.default_rng(0)
    Y = rng.permutation(Y)
    folds = inner_folds(len(X), None, 4, random_state=0)
    whole = SquaredProblem(X, Y, GroupNorm())
    asked = []

    def error(solution: object, rows: object) -> float:
        asked.append(solution)
        return float(len(asked))  # worse and worse

    chosen = choose_alpha(
        lambda rows: SquaredProblem(X[rows], Y[rows], GroupNorm()), X, folds, path(whole), error
    )
    assert chosen.alpha == whole.alpha_max
    assert len(asked) == 4 * 4  # the first and three more, in four folds
    assert not np.isnan(chosen.held_out).any()


def test_an_optimum_that_is_not_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(penalised, "_TOLERANCE", 1e-30)
    X, Y = _standard()
    with pytest.warns(ConvergenceWarning, match="the certificate of optimality is"):
        GroupLassoBaseline().fit(X, from_bounds(Y))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("censored", [False, True])
def test_a_given_strength_is_the_one_that_is_used(
    kind: type[PenalisedBaseline], censored: bool
) -> None:
    X, Y, _ = datasets.make_subspace(120, 8, 4, 2, random_state=1)
    chosen = kind(censored=censored, cv=3).fit(X, from_bounds(Y, 0))
    given = kind(censored=censored, cv=3, alpha=chosen.alpha_).fit(X, from_bounds(Y, 0))
    assert given.alpha_ == chosen.alpha_
    assert given.alpha_max_ == chosen.alpha_max_
    # The optimum is the same from another start, to the tolerance of its certificate.
    assert_allclose(given.coef_, chosen.coef_, atol=0.02 * np.abs(chosen.coef_).max())
    assert_allclose(given.sigma_, chosen.sigma_, rtol=0.02)
    nothing = kind(censored=censored, alpha=1.01 * chosen.alpha_max_).fit(X, from_bounds(Y, 0))
    assert not nothing.coef_.any()
    weak = kind(censored=censored, alpha=1e-4 * chosen.alpha_max_).fit(X, from_bounds(Y, 0))
    assert weak.certificate_ <= 1e-5


def test_a_given_strength_is_that_of_scikit_learn() -> None:
    X, Y = _standard()
    model = GroupLassoBaseline(alpha=0.2).fit(X, from_bounds(Y))
    reference = MultiTaskLasso(0.2, tol=1e-8).fit(X, Y)
    assert_allclose(model.coef_, reference.coef_, atol=0.01)
    # σ is the error on rows which the fold's model did not see.
    errors = np.empty_like(Y)
    for train, test in inner_folds(len(X), random_state=0):
        errors[test] = Y[test] - MultiTaskLasso(0.2, tol=1e-8).fit(X[train], Y[train]).predict(
            X[test]
        )
    assert_allclose(model.sigma_, np.sqrt(np.square(errors).mean(axis=0)), rtol=0.02)


@pytest.mark.parametrize("alpha", [-1.0, 0.0, np.nan, np.inf, "auto"])
def test_a_strength_that_is_none_is_refused(alpha: Any) -> None:
    X, Y = _standard()
    with pytest.raises(ValueError, match=r"alpha must be a positive number, or None .*; got"):
        TraceNormBaseline(alpha=alpha).fit(X, from_bounds(Y))
