"""SubspaceTobitRegressor(penalty=...) and SubspaceNetworkRegressor(penalty=...)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor, load
from deeptobit.arrays import FloatArray
from deeptobit.penalties import Group, Penalty, Ridge


def data() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10))
    latent = X[:, :3] @ rng.normal(size=(3, 2)) @ rng.normal(size=(2, 4))
    return X, np.clip(latent + rng.normal(size=(120, 4)), 0.0, 3.0)


def layer(**params: Any) -> SubspaceTobitRegressor:
    return SubspaceTobitRegressor(2, upper=3.0, **({"alpha": 0.2} | params))


def network(**params: Any) -> SubspaceNetworkRegressor:
    return SubspaceNetworkRegressor(2, 2, upper=3.0, **({"alpha": 0.2} | params))


@dataclass(frozen=True)
class WeightedRidge(Penalty):
    """½ Σ_d c_d ‖V_d‖²."""

    costs: tuple[float, ...]

    def value(self, V: FloatArray) -> float:
        return 0.5 * float(np.square(V).sum(axis=0) @ self.costs)

    def gradient(self, V: FloatArray) -> FloatArray:
        return np.asarray(V * self.costs)

    def curvature(self, V: FloatArray, direction: FloatArray) -> FloatArray:
        return np.asarray(direction * self.costs)

    def variances(self, V: FloatArray) -> FloatArray:
        return 1.0 / np.asarray(self.costs)


@pytest.mark.parametrize(
    ("one", "same"),
    [
        ({"penalty": Ridge()}, {}),
        ({"penalty": "group"}, {"feature_sparsity": 0.5}),
        ({"penalty": Group(0.3)}, {"feature_sparsity": 0.3}),
        ({"penalty": "group", "feature_sparsity": 0.3}, {"feature_sparsity": 0.3}),
    ],
)
@pytest.mark.parametrize("make", [layer, network])
def test_names_objects_and_feature_sparsity_agree(
    make: Any, one: dict[str, Any], same: dict[str, Any]
) -> None:
    X, Y = data()
    np.testing.assert_array_equal(
        make(**one).fit(X, Y).coef_, make(**same).fit(X, Y).coef_, err_msg=str(one)
    )


def test_a_weighted_ridge_is_the_ridge_on_rescaled_features() -> None:
    X, Y = data()
    costs = np.linspace(0.25, 4.0, 10)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    options: dict[str, Any] = {"standardize": False, "tol": 1e-9}
    weighted = layer(penalty=WeightedRidge(tuple(costs)), **options).fit(X, Y)
    rescaled = layer(**options).fit(X / np.sqrt(costs), Y)
    np.testing.assert_allclose(
        weighted.coef_, rescaled.coef_ / np.sqrt(costs), rtol=1e-5, atol=1e-6
    )
    for key in ("objective", "alpha_max", "certificate"):
        np.testing.assert_allclose(weighted.history_[key], rescaled.history_[key], rtol=1e-4)


def test_it_is_a_parameter_as_scikit_learn_knows_them() -> None:
    X, Y = data()
    model = layer(penalty=Group(0.3))
    assert clone(model).get_params()["penalty"] == Group(0.3)
    search = GridSearchCV(layer(), {"penalty": ["ridge", "group", Group(0.9)]}, cv=2).fit(X, Y)
    assert len(search.cv_results_["params"]) == 3


@pytest.mark.parametrize("penalty", ["group", Group(0.3), Ridge()])
@pytest.mark.parametrize("make", [layer, network])
def test_penalties_that_ship_can_be_saved(make: Any, penalty: Any, tmp_path: Path) -> None:
    X, Y = data()
    model = make(penalty=penalty).fit(X, Y)
    model.save(tmp_path / "model.deeptobit")
    again = load(tmp_path / "model.deeptobit")
    assert again.penalty == penalty
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_one_of_your_own_cannot_be_saved(tmp_path: Path) -> None:
    X, Y = data()
    model = layer(penalty=WeightedRidge((1.0,) * 10)).fit(X, Y)
    with pytest.raises(TypeError, match="is of type WeightedRidge"):
        model.save(tmp_path / "model.deeptobit")


@pytest.mark.parametrize("make", [layer, network])
@pytest.mark.parametrize("penalty", ["group", WeightedRidge((1.0,) * 10)])
def test_a_solver_that_learns_row_by_row_says_that_it_cannot(make: Any, penalty: Any) -> None:
    X, Y = data()
    with pytest.raises(ValueError, match="solver='online' supports only penalty='ridge'"):
        make(penalty=penalty, solver="online").fit(X, Y)
    with pytest.raises(ValueError, match="partial_fit supports only penalty='ridge'"):
        make(penalty=penalty).partial_fit(X, Y)


@pytest.mark.parametrize("make", [layer, network])
def test_an_unknown_penalty_is_refused(make: Any) -> None:
    X, Y = data()
    with pytest.raises(ValueError, match="penalty must be 'ridge', 'group' or a deeptobit"):
        make(penalty="lasso").fit(X, Y)
    with pytest.raises(ValueError, match="feature_sparsity belongs to penalty='ridge'"):
        make(penalty=WeightedRidge((1.0,) * 10), feature_sparsity=0.5).fit(X, Y)
