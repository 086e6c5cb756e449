"""SubspaceTobitRegressor among scikit-learn's tools: its checks, names, pipelines, searches."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_regressor_multioutput,
    parametrize_with_checks,
)

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.checks import EXPECTED_FAILED_CHECKS
from deeptobit.datasets import make_subspace
from tests.estimators.problems import assert_close
from tests.estimators.subspaces import data, fitted, subspace

EXPECTED = EXPECTED_FAILED_CHECKS["SubspaceTobitRegressor"]


def _expected_failures(estimator: Any) -> dict[str, str]:
    return EXPECTED if estimator.lower == 0.0 else {}


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [SubspaceTobitRegressor(), SubspaceTobitRegressor(lower=None, alpha=0.1)],
    expected_failed_checks=_expected_failures,
)
def test_scikit_learn_check(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_one_check_is_expected_to_fail_for_its_negative_outcomes() -> None:
    assert set(EXPECTED) == {"check_regressor_multioutput"}
    with pytest.raises(ValueError, match="lie below its lower bound"):
        check_regressor_multioutput("SubspaceTobitRegressor", SubspaceTobitRegressor())


def test_names_are_those_of_the_data_frames() -> None:
    X, Y = data()
    frame = pd.DataFrame(X, columns=list("abcde"))
    scores = pd.DataFrame(Y, columns=["MMSE", "ADAS", "SF36", "CDR"])
    named = subspace().fit(frame, scores)
    assert named.target_names_ == ["MMSE", "ADAS", "SF36", "CDR"]
    assert named.feature_names_in_.tolist() == list("abcde")
    assert_close(fitted(named), fitted(subspace().fit(X, Y)), 1e-9)
    with pytest.raises(ValueError, match="feature names"):
        named.transform(frame[list("edcba")])


def test_inputs_are_not_modified() -> None:
    X, Y = data()
    Y[3, 1] = np.nan
    weight = np.ones(len(X))
    copies = [array.copy() for array in (X, Y, weight)]
    for array in (X, Y, weight):
        array.flags.writeable = False
    model = subspace().fit(X, Y, sample_weight=weight)
    model.predict(X)
    model.transform(X)
    for array, copy in zip((X, Y, weight), copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_one_outcome_may_be_one_dimensional() -> None:
    X, Y = data()
    flat, column = subspace().fit(X, Y[:, 0]), subspace().fit(X, Y[:, [0]])
    assert flat.rank_ == 1
    assert flat.predict(X).shape == (len(X),)
    assert column.predict(X).shape == (len(X), 1)
    assert flat.coef_.shape == (1, 5)
    assert_close(fitted(flat), fitted(column), 1e-12)


def test_a_pickled_model_predicts_the_same() -> None:
    X, Y = data()
    model = subspace().fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.transform(X), model.transform(X))


def test_scaling_in_a_pipeline_changes_nothing() -> None:
    X, Y = data()
    piped = make_pipeline(StandardScaler(), subspace()).fit(100.0 * X, Y)
    assert_close(piped.predict(100.0 * X), subspace().fit(X, Y).predict(X), 1e-5)
    reduced = make_pipeline(subspace(), TobitRegressor(upper=3.0)).fit(X, Y)
    assert reduced[-1].coef_.shape == (4, 2)


def test_grid_search_finds_the_true_rank() -> None:
    X, Y, _ = make_subspace(300, 10, 8, 3, sigma=1.0, random_state=0)
    grid = {"rank": [1, 2, 3]}
    search = GridSearchCV(SubspaceTobitRegressor(), grid, cv=KFold(3)).fit(X, Y)
    assert search.best_params_ == {"rank": 3}
    means = search.cv_results_["mean_test_score"]
    assert means.tolist() == sorted(means)


def test_coordinates_are_named_after_the_class() -> None:
    X, Y = data()
    model = subspace().fit(X, Y).set_output(transform="pandas")
    names = ["subspacetobitregressor0", "subspacetobitregressor1"]
    frame = model.transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == names
    assert model.get_feature_names_out().tolist() == names
