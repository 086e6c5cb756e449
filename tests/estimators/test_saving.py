from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, KFold

from deeptobit import (
    AutoTobitRegressor,
    CensoredTargets,
    SubspaceNetworkCV,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
    load,
)
from deeptobit.estimators import estimator_from_state, estimator_state
from deeptobit.exceptions import ModelFileError
from deeptobit.files import read_state, write_state
from deeptobit.likelihood import Gaussian, StudentT
from tests.estimators.problems import censored
from tests.estimators.saved import assert_same, round_trip

# Data with a floor serve here for outcomes without bounds.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(if the scale ends there|nothing to learn):deeptobit.exceptions.CensoringWarning"
)

X, Y = censored(n_samples=80, n_features=4, n_tasks=3)
MODELS = {
    "tobit": TobitRegressor(upper=3.0),
    "layer": SubspaceTobitRegressor(2, upper=3.0),
    "online": SubspaceTobitRegressor(2, upper=3.0, solver="online"),
    "network": SubspaceNetworkRegressor(2, 2, upper=3.0),
    "auto": AutoTobitRegressor(members=("stack",), cv=2, random_state=0, upper=3.0),
    "grid": SubspaceNetworkCV(
        cv=KFold(2, shuffle=True, random_state=np.random.RandomState(0)),
        ranks=[1, 2],
        alphas=(0.1, 1.0),
        max_layers=1,
        upper=[3.0, 3.0, None],
    ),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param]


def as_words(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=[f"region {column}" for column in range(X.shape[1])])


def assert_predicts_alike(model: Any, again: Any, X: Any) -> None:
    for kind in ("mean", "clip", "latent"):
        assert_same(model.predict(X, kind=kind), again.predict(X, kind=kind))
    assert_same(model.predict_interval(X), again.predict_interval(X))
    assert_same(model.predict_quantile(X, [0.1, 0.7]), again.predict_quantile(X, [0.1, 0.7]))
    assert_same(model.predict_bound_proba(X), again.predict_bound_proba(X))


def test_a_loaded_model_is_the_saved_one(model: Any, tmp_path: Path) -> None:
    """First on arrays, then after a frame, names of targets and calibrated intervals."""
    model = clone(model).fit(X, Y)
    again = round_trip(model, tmp_path)
    assert_same(model, again)
    assert_predicts_alike(model, again, X)
    frame = pd.DataFrame(Y[:, :2], columns=["MMSE", "is"]).clip(0.0, 2.0)
    model.set_params(upper={"MMSE": 2.0, "is": 2.5}).fit(as_words(X), frame)
    model.calibrate_intervals(as_words(X[40:]), frame[40:].reset_index(drop=True))
    again = round_trip(model, tmp_path)
    assert_same(model, again)
    assert_predicts_alike(model, again, as_words(X[:40]))
    pd.testing.assert_frame_equal(model.interval_calibration_, again.interval_calibration_)


@pytest.mark.parametrize("model", [MODELS["tobit"], MODELS["layer"], MODELS["network"]])
@pytest.mark.parametrize(
    "as_input",
    [np.asfortranarray, lambda X: X.astype(np.float32), csr_array],
    ids=["columns", "single", "sparse"],
)
def test_other_inputs_and_one_target(model: Any, as_input: Any, tmp_path: Path) -> None:
    features = as_input(X)
    model = clone(model).fit(features, Y[:, 0])
    again = round_trip(model, tmp_path)
    assert_same(model, again)
    assert again.predict(features).shape == (len(Y),)
    assert_predicts_alike(model, again, features)


def test_an_unfitted_model_is_its_parameters(model: Any, tmp_path: Path) -> None:
    again = round_trip(clone(model), tmp_path)
    assert_same(clone(model), again)
    with pytest.raises(NotFittedError):
        again.predict(X)


def test_a_loaded_model_can_be_fitted_again(tmp_path: Path) -> None:
    model = SubspaceNetworkRegressor(2, 2, upper=3.0).fit(X[:50], Y[:50])
    again = round_trip(model, tmp_path)
    assert_predicts_alike(model.fit(X, Y), again.fit(X, Y), X)


@pytest.mark.parametrize(
    "params",
    [
        {"noise": StudentT(df=5)},
        {"noise": Gaussian(), "sigma": (1.0, 2, np.float32(0.5))},
        {"sigma": np.array([1, 2, 3]), "max_iter": np.int64(50)},
        {"lower": [0.0, None, -np.inf], "upper": np.inf, "alpha": 1},
        {"random_state": np.random.RandomState(3), "solver": "online"},
        {"feature_sparsity": 0.7, "alpha": 0.5},
        {"prediction": "latent", "fit_intercept": False, "standardize": False},
    ],
    ids=lambda params: "-".join(params),
)
def test_parameters_keep_their_types(params: dict[str, Any], tmp_path: Path) -> None:
    model = SubspaceTobitRegressor(2, outside="clip").set_params(**params).fit(X, Y)
    again = round_trip(model, tmp_path)
    assert_same(model, again)
    assert_predicts_alike(model, again, X)


def test_networks_of_all_kinds_come_back(tmp_path: Path) -> None:
    for params in (
        {"skip_connection": False, "joint_tuning": False},
        {"early_stopping": True, "random_state": 0},
        {"sigma": "calibrate", "solver": "online"},
    ):
        model = SubspaceNetworkRegressor(2, 3, upper=3.0, **params).fit(X, Y)
        again = round_trip(model, tmp_path)
        assert_same(model, again)
        assert_same(list(model.staged_predict(X)), list(again.staged_predict(X)))


def test_folds_by_groups_or_by_hand_come_back(tmp_path: Path) -> None:
    halves = [(np.arange(40), np.arange(40, 80)), (np.arange(40, 80), np.arange(40))]
    for cv in (GroupKFold(2), halves):
        model = SubspaceNetworkCV(cv=cv, ranks=[1], alphas=[0.5], max_layers=1, upper=3.0)
        assert_same(model.fit(X, Y, groups=np.arange(80) // 2), round_trip(model, tmp_path))


def test_intervals_as_targets_and_pandas_output_come_back(tmp_path: Path) -> None:
    targets = CensoredTargets.from_intervals(np.where(Y > 0, Y, -np.inf), Y)
    model = SubspaceTobitRegressor(2).fit(X, targets).set_output(transform="pandas")
    again = round_trip(model, tmp_path)
    pd.testing.assert_frame_equal(model.transform(X), again.transform(X))


def test_names_from_arrays_become_text(tmp_path: Path) -> None:
    names = np.array(["MMSE", "ADAS", "CDR"])
    targets = CensoredTargets.from_bounds(Y, 0.0, dict.fromkeys(names, 3.0), names=list(names))
    model = TobitRegressor(upper=dict.fromkeys(names, 3.0), noise=np.str_("gaussian"))
    again = round_trip(model.fit(X, targets), tmp_path)
    assert again.target_names_ == ["MMSE", "ADAS", "CDR"]
    assert again.upper == {"MMSE": 3.0, "ADAS": 3.0, "CDR": 3.0}
    assert_predicts_alike(model, again, X)


def test_training_data_stay_behind(tmp_path: Path) -> None:
    model = TobitRegressor(upper=3.0).fit(X, Y)
    again = round_trip(model, tmp_path)
    with pytest.raises(ValueError, match="uses the training data"):
        again.summary()
    model.save(tmp_path / "a.model")
    content = (tmp_path / "a.model").read_bytes()
    assert X[7, 0].tobytes() not in content
    assert len(content) < 2500


def test_an_array_that_occurs_twice_is_stored_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(40, 800))
    model = SubspaceNetworkCV(ranks=[1], alphas=[5.0], cv=2, max_layers=1, upper=3.0)
    model.fit(wide, Y[:40]).save(tmp_path / "a.model")
    again = load(tmp_path / "a.model")
    assert again.coef_ is again.best_estimator_.coef_
    assert again._feature_limits[0] is again.best_estimator_._feature_limits[0]
    # coef_ (3, 800), V_ (1, 800), rows behind and scales (800,), and limits of features (2, 800) of
    # the search and of its best network: beside 8 kB of rest.
    assert (tmp_path / "a.model").stat().st_size < 8 * 800 * 10 + 10_000


class OwnNoise(Gaussian):
    """A family that no file knows."""


class OwnModel(TobitRegressor):
    """A subclass may know more than its parent."""


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (TobitRegressor(sigma=print), r"sigma'\] is of type builtin_function"),
        (TobitRegressor(noise=OwnNoise()), r"noise'\] is of type OwnNoise"),
        (TobitRegressor(lower=pd.Series([0.0])), r"lower'\] is of type Series"),
        (SubspaceTobitRegressor(random_state=np.random.default_rng(0)), "of type Generator"),
        (TobitRegressor(sigma=np.array(["2020"], dtype="M8[Y]")), r"sigma'\] is an array of type"),
        (OwnModel(), "OwnModel cannot be saved"),
    ],
)
def test_what_would_have_to_be_executed_is_refused_by_name(
    model: Any, named: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.model"
    path.write_text("before")
    with pytest.raises(TypeError, match=named):
        model.save(path)
    assert path.read_text() == "before"


def test_a_model_that_was_tampered_with_is_not_saved(tmp_path: Path) -> None:
    model = TobitRegressor(upper=3.0).fit(X, Y)
    model.coef_ = model.coef_[:, 1:]
    with pytest.raises(ValueError, match=r"coef_ is not an array of shape \(3, 4\)"):
        model.save(tmp_path / "a.model")


def test_paths_may_be_text_and_must_exist(tmp_path: Path) -> None:
    model = TobitRegressor()
    model.save(str(tmp_path / "a"))
    assert isinstance(load(str(tmp_path / "a")), TobitRegressor)
    with pytest.raises(FileNotFoundError, match="no folder"):
        model.save(tmp_path / "b" / "a")
    with pytest.raises(IsADirectoryError):
        model.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "b")
    with pytest.raises(ModelFileError, match="not a file"):
        load(tmp_path)


def test_state_can_be_embedded_in_other_files(tmp_path: Path) -> None:
    model = SubspaceNetworkRegressor(2, 2, upper=3.0).fit(X, Y)
    write_state(tmp_path / "a", "study", {"model": estimator_state(model), "seed": 1})
    with pytest.raises(ModelFileError, match="holds a 'study', where a 'model' is wanted"):
        load(tmp_path / "a")
    assert_same(model, estimator_from_state(read_state(tmp_path / "a")[1]["model"]))
