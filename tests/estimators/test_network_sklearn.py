"""SubspaceNetworkRegressor among scikit-learn's tools."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_regressor_multioutput, parametrize_with_checks

from deeptobit import SubspaceNetworkRegressor
from deeptobit.checks import EXPECTED_FAILED_CHECKS
from tests.estimators.problems import assert_close
from tests.estimators.test_network import data, grown, network, tuned

EXPECTED = EXPECTED_FAILED_CHECKS["SubspaceNetworkRegressor"]


def _expected_failures(estimator: Any) -> dict[str, str]:
    return EXPECTED if estimator.lower == 0.0 else {}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        SubspaceNetworkRegressor(),
        SubspaceNetworkRegressor(
            rank=2, n_layers=2, lower=-500.0, alpha=0.1, joint_tuning=False, outside="clip"
        ),
    ],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_one_check_is_expected_to_fail_for_its_negative_outcomes() -> None:
    assert set(EXPECTED) == {"check_regressor_multioutput"}
    with pytest.raises(ValueError, match="lie below its lower bound"):
        check_regressor_multioutput("SubspaceNetworkRegressor", SubspaceNetworkRegressor())


def test_a_pickled_network_predicts_the_same() -> None:
    X, _ = data()
    copy = pickle.loads(pickle.dumps(tuned()))
    np.testing.assert_array_equal(copy.predict(X), tuned().predict(X))
    np.testing.assert_array_equal(copy.transform(X, layer=0), tuned().transform(X, layer=0))
    assert repr(copy.history_) == repr(tuned().history_)


def test_every_parameter_is_cloned_and_settable() -> None:
    model = network(alpha=0.1, feature_sparsity=0.3, sigma=[1.0, 2.0], validation_fraction=0.2)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(n_layers=7, skip_connection=False).n_layers == 7
    assert clone(tuned()).get_params() == tuned().get_params()
    assert not hasattr(clone(tuned()), "layers_")


def test_a_grid_over_depth_finds_that_it_pays() -> None:
    X, Y = data()
    grid = {"n_layers": np.array([1, 2]), "joint_tuning": np.array([False])}
    search = GridSearchCV(network(alpha=0.02), grid, cv=KFold(3)).fit(X, Y)
    assert search.best_params_["n_layers"] == 2
    assert search.best_estimator_.history_["tuning"]["objective"] == ()


def test_cross_validation_scores_folds() -> None:
    scores = cross_validate(grown(), *data(), cv=3)["test_score"]
    assert scores.shape == (3,)
    assert (scores > 0.3).all()


def test_scaling_in_a_pipeline_changes_nothing() -> None:
    X, Y = data(200)
    piped = make_pipeline(StandardScaler(), grown()).fit(100.0 * X, Y)
    assert_close(piped.predict(100.0 * X), grown().fit(X, Y).predict(X), 1e-5)
    reduced = make_pipeline(grown(), grown(n_layers=1)).fit(X, Y)
    assert reduced[-1].coef_.shape == (6, 2)


def test_names_are_those_of_the_data_frames() -> None:
    X, Y = data(200)
    frame, scores = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=list("uvwxyz"))
    named = grown(lower=dict.fromkeys("uvwxyz", 0.0)).fit(frame, scores)
    assert named.feature_names_in_.tolist() == list("abcd")
    assert named.target_names_ == list("uvwxyz")
    assert_close(named.predict(frame), grown().fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[list("dcba")])
    with pytest.raises(ValueError, match="the columns of y are"):
        named.score(frame, scores[list("zyxwvu")])


def test_coordinates_are_named_after_the_class() -> None:
    X, Y = data(150)
    model = grown().fit(X, Y).set_output(transform="pandas")
    names = ["subspacenetworkregressor0", "subspacenetworkregressor1"]
    for layer in (0, 1):
        assert list(model.transform(X, layer=layer).columns) == names
    assert model.get_feature_names_out().tolist() == names
