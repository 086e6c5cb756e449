"""What a network refuses, warns of and reports."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from tests.estimators.test_network import data, grown, network


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_layers": 0}, "n_layers must be a whole number, at least 1; got 0"),
        ({"n_layers": 2.0}, "n_layers must be a whole number, at least 1"),
        ({"rank": 0}, "rank must be a whole number, at least 1; got 0"),
        ({"alpha": "x"}, "alpha must be 'auto' or a number; got 'x'"),
        ({"alpha": -1.0}, "alpha must be a number from 0"),
        ({"alpha": 1e308}, r"alpha must be a number from 0 to 1e\+100; got 1e\+308"),
        ({"random_state": "x"}, "random_state must be None, a whole number from 0 .*; got 'x'"),
        ({"random_state": -1}, "random_state must be None, a whole number from 0 .*; got -1"),
        ({"feature_sparsity": 3}, "feature_sparsity must be a number from 0 to 1; got 3"),
        ({"feature_sparsity": -0.1}, "feature_sparsity must be a number from 0 to 1"),
        ({"feature_sparsity": "x"}, "feature_sparsity must be a number from 0 to 1"),
        (
            {"feature_sparsity": 0.5, "solver": "online"},
            "solver='online' supports only penalty='ridge'",
        ),
        ({"joint_tuning": "yes"}, "joint_tuning must be 'auto' or a bool; got 'yes'"),
        ({"joint_tuning": None}, "joint_tuning must be 'auto' or a bool; got None"),
        ({"validation_fraction": 2, "early_stopping": True}, "validation_fraction must lie"),
        ({"validation_fraction": "x", "early_stopping": True}, "validation_fraction must lie"),
        ({"validation_fraction": 0.999, "early_stopping": True}, "not enough to learn from"),
        ({"solver": "x"}, "solver must be 'auto', 'batch' or 'online'; got 'x'"),
        ({"n_passes": 0}, "n_passes must be a whole number, at least 1; got 0"),
        ({"n_passes": 1.5}, "n_passes must be a whole number, at least 1"),
        ({"batch_size": 0}, "batch_size"),
        ({"prune_layers": "x"}, "prune_layers must be True or False"),
        ({"sigma": "x"}, "sigma must be 'mle'"),
        ({"sigma": [1.0, 2.0]}, "sigma must be a number, .* or one value per target"),
        ({"sigma": 0.0}, "sigma must be positive"),
        ({"noise": "x"}, "noise must be one of"),
        ({"outside": "x"}, "outside must be"),
        ({"prediction": "x"}, "kind must be 'mean', 'clip' or 'latent'; got 'x'"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False; got 'no'"),
        ({"max_iter": 0}, "max_iter must be a whole number, at least 1"),
        ({"lower": [0.0, 1.0]}, "lower"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_named(options: dict[str, Any], message: str) -> None:
    X, Y = data(100)
    with pytest.raises(ValueError, match=message):
        network(**options).fit(X, Y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"solver": "batch", "n_passes": 2, "batch_size": 8},
            "'batch' .* n_passes and batch_size,",
        ),
        ({"solver": "batch", "random_state": 0}, "'batch' does not use random_state, which the on"),
        ({"solver": "online", "max_iter": 7}, "'online' does not use max_iter, which the batch"),
    ],
    ids=str,
)
def test_settings_of_another_solver_are_named(options: dict[str, Any], message: str) -> None:
    X, Y = data(100)
    for make in (network, partial(SubspaceTobitRegressor, 1)):
        with pytest.warns(UserWarning, match=f"solver={message}"):
            make(**options).fit(X, Y)


def test_settings_that_are_used_are_not_named() -> None:
    X, Y = data(100)
    network(solver="batch", early_stopping=True, random_state=0, max_iter=200).fit(X, Y)
    network(solver="online", n_passes=2, random_state=0).fit(X, Y)


def test_what_is_not_fitted_says_so() -> None:
    X, Y = data(100)
    calls: tuple[Callable[[SubspaceNetworkRegressor], Any], ...] = (
        lambda model: model.predict(X),
        lambda model: model.transform(X),
        lambda model: next(model.staged_predict(X)),
        lambda model: model.score(X, Y),
    )
    for call in calls:
        with pytest.raises(NotFittedError):
            call(network())


def test_an_unfinished_layer_warns_with_advice() -> None:
    X, Y = data(150)
    with pytest.warns(ConvergenceWarning, match=r"layer [12] did .* after 1 Newton steps .*incr"):
        model = grown(max_iter=1, tol=1e-9).fit(X, Y)
    assert np.isfinite(model.predict(X)).all()


def test_progress_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    X, Y = data(100)
    grown().fit(X, Y)
    assert capsys.readouterr() == ("", "")
    network(verbose=1, joint_tuning=True).fit(X, Y)
    shown = capsys.readouterr().err
    for stage in ("layer 1", "layer 2", "tuning"):
        assert stage in shown
