"""What is wrong with a model that is saved or loaded, in the words that users read."""

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.estimators import estimator_from_state, estimator_state
from deeptobit.estimators.checkpoint import Checkpoint
from deeptobit.exceptions import ModelFileError
from deeptobit.files import write_state
from deeptobit.files.values import RANDOM_STATE
from tests.estimators.problems import censored

X, Y = censored(n_samples=60, n_features=4, n_tasks=2)
SOUND = estimator_state(TobitRegressor(upper=3.0, noise="student_t").fit(X, Y))


def with_noise(packed: Any) -> dict[str, Any]:
    state = deepcopy(SOUND)
    state["model"]["fields"]["params"]["noise"] = packed
    return state


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ({"is": None}, "it contains an object without a type name"),
        ({"is": "os.system", "fields": {}}, "it contains an unknown type ('os.system')"),
        ({"is": "dict", "items": [1]}, "its dict is invalid"),
        ({"is": "StudentT", "fields": {"df": 1.0}}, "its StudentT is invalid: df must exceed 2"),
        ({"is": "StudentT", "fields": {"df": "4"}}, "is invalid: df cannot be of type str"),
        ({"is": "StudentT", "fields": {"df": 4.0, "x": 1}}, "is invalid: it has no 'x'"),
        ({"is": "FormulaDesign", "fields": {}}, "its FormulaDesign is invalid"),
    ],
)
def test_what_is_wrong_in_a_model_is_said(noise: Any, message: str) -> None:
    with pytest.raises(ModelFileError, match=re.escape(message)):
        estimator_from_state(with_noise(noise))


MODEL = {"is": "TobitRegressor", "fields": {"params": {}, "fitted": {}}}


@pytest.mark.parametrize(
    "noise", [MODEL, [{"a": MODEL}], {"is": "objects", "items": [0, MODEL]}], ids=range(3)
)
def test_a_model_is_no_parameter(noise: Any) -> None:
    with pytest.raises(ModelFileError, match="its TobitRegressor is invalid: a parameter is a m"):
        estimator_from_state(with_noise(noise))


def test_what_is_no_model_is_said() -> None:
    for nothing in ({}, {"model": {"is": "NextRegressor"}}):
        with pytest.raises(ModelFileError, match="it holds no model"):
            estimator_from_state(nothing)
    state = deepcopy(SOUND)
    state["model"]["fields"]["fitted"]["predict"] = 1
    with pytest.raises(ModelFileError, match="'predict' is not an attribute of a fitted model"):
        estimator_from_state(state)
    state = deepcopy(SOUND)
    state["model"]["fields"]["fitted"]["coef_"] = np.zeros((2, 3))
    with pytest.raises(ModelFileError, match=r"its parts do not fit together: coef_ is not an arr"):
        estimator_from_state(state)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"sigma": print},
            "builtin_function_or_method, and cannot be saved: a model file holds numbers",
        ),
        (
            {"upper": pd.Series({"y0": 3.0})},
            "params['upper'] is of type Series, and cannot be saved: a model file holds numbers, "
            "text, arrays and classes of deeptobit, nothing that would have to be executed. Before "
            "saving, replace it with set_params by a dict (.to_dict()) if it is by name, else by",
        ),
        ({"sigma": lambda: 1}, "with set_params by a number or a word that the parameter knows"),
        ({"sigma": object()}, "by one of these, or keep the model with pickle"),
        ({"sigma": {(1, print): 3.0}}, "builtin_function_or_method, and cannot be saved"),
        ({"sigma": np.ma.ones(2)}, "is of type MaskedArray, and cannot be saved"),
        ({"sigma": np.array([1j])}, "is an array of type complex128, which cannot be saved"),
    ],
)
def test_what_cannot_be_saved_is_said(params: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        estimator_state(TobitRegressor(**params))


def test_bounds_in_a_series_are_saved_as_the_advice_has_it() -> None:
    frame = pd.DataFrame(Y, columns=["MMSE", "errors"])
    upper = pd.Series({"errors": 3.0, "MMSE": 3.0})
    model = TobitRegressor(upper=upper).fit(X, frame)
    model.set_params(upper=upper.to_dict())
    again = estimator_from_state(estimator_state(model))
    assert again.upper == {"errors": 3.0, "MMSE": 3.0}
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_other_objects_and_broken_models_are_not_saved() -> None:
    with pytest.raises(TypeError, match="an object of type dict cannot be saved; estimators"):
        estimator_state({})
    model = TobitRegressor(upper=3.0).fit(X, Y)
    model.coef_ = np.zeros(7)
    with pytest.raises(ValueError, match="this TobitRegressor could not be loaded again: its"):
        estimator_state(model)


def test_random_numbers_are_saved_with_their_own_generator() -> None:
    other = np.random.RandomState(np.random.PCG64(0))
    with pytest.raises(ValueError, match="could not be loaded again: its RandomState is invalid"):
        estimator_state(SubspaceTobitRegressor(2, random_state=other))
    fields: Any = np.random.RandomState(0).get_state(legacy=False)
    fields["state"]["pos"] = 625
    with pytest.raises(ValueError, match="its position lies outside of its key"):
        RANDOM_STATE.make(fields)


def test_a_checkpoint_without_progress_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.checkpoint"
    write_state(path, "checkpoint", {"fit": {}, "progress": None})
    with pytest.raises(ModelFileError, match="cannot be resumed: it holds no progress"):
        Checkpoint(path, {}).read()
