"""Whether a model from a file is one: the sizes of all its parts agree."""

from __future__ import annotations

from typing import Any

import numpy as np

from deeptobit.estimators._conformal import IntervalCalibration
from deeptobit.estimators._low_rank import RowsBehind
from deeptobit.estimators._network import SubspaceNetworkRegressor
from deeptobit.estimators._network_cv import SubspaceNetworkCV
from deeptobit.estimators._settings import check_kind
from deeptobit.estimators.saving._formula import StoredFormula
from deeptobit.estimators.saving._sizes import check_noise, check_sizes, require
from deeptobit.estimators.saving._streams import check_stream
from deeptobit.estimators.saving._types import fits
from deeptobit.network import NetworkLayer

_NEEDED = {"coef_": "TD", "intercept_": "T", "sigma_": "T", "lower_": "T", "upper_": "T"}
_LOW_RANK = {"U_": "TR", "V_": "RD"}
_OTHERS = {"feature_scale_": "D", "log_likelihood_": "T"}
_HEART = {SubspaceNetworkRegressor: "layers_", SubspaceNetworkCV: "best_estimator_"}
_STREAMING = ("_stream", "_rows_behind")


def check_model(model: Any) -> None:
    """Refuse an estimator whose parts do not belong together; an unfitted one has none."""
    check_kind(model.prediction)
    model._families()  # refuses a noise that there is not
    fitted = vars(model)
    if "sigma_" not in fitted:
        require(not any(name in fitted for name in _STREAMING), "it learned nothing yet")
        return
    require(fits(fitted.get("n_features_in_"), int), "n_features_in_ is not a number")
    require(fits(fitted.get("target_names_"), list[str]), "target_names_ is not a list of names")
    require(fits(fitted.get("_one_dimensional"), bool), "the shape of y is not known")
    sizes = {"D": model.n_features_in_, "T": len(model.target_names_)}
    require(min(sizes.values()) >= 1, "it has no features or no targets")
    require(sizes["T"] == 1 or not model._one_dimensional, "a 1-d y has one target")
    check_sizes(model, sizes, _NEEDED)
    require(bool((model.lower_ < model.upper_).all()), "its bounds are not in order")
    check_sizes(model, sizes, {name: _OTHERS[name] for name in _OTHERS if name in fitted})
    if hasattr(model, "transform"):
        require(fits(fitted.get("rank_"), int), "rank_ is not a number")
        check_sizes(model, sizes | {"R": model.rank_}, _LOW_RANK)
    _check_names(model, sizes)
    for cls, name in _HEART.items():
        require(not isinstance(model, cls) or name in fitted, f"{name} is missing")
    for name, check in _PARTS.items():
        if name in fitted:
            check(model, fitted[name], sizes)


def _check_names(model: Any, sizes: dict[str, int]) -> None:
    if "feature_names_in_" in vars(model):
        names = model.feature_names_in_
        known = isinstance(names, np.ndarray) and fits(names.tolist(), list[str])
        require(known and names.shape == (sizes["D"],), "feature_names_in_ are not D names")


def _check_noise(model: Any, found: Any, sizes: dict[str, int]) -> None:
    check_noise(found, sizes["T"])


def _check_layers(model: Any, layers: Any, sizes: dict[str, int]) -> None:
    require(fits(layers, tuple[NetworkLayer, ...]) and bool(layers), "layers_ holds no layers")
    require(vars(model).get("n_layers_") == len(layers), "n_layers_ is not their number")
    below = 0
    for layer in layers:
        inputs = layer.V.shape[-1]
        require(inputs in ({sizes["D"] + below, below} - {0}), "a layer has the wrong inputs")
        own = {"T": sizes["T"], "I": inputs, "R": layer.U.shape[-1]}
        check_sizes(layer, own, {"U": "TR", "V": "RI", "intercept": "T", "sigma": "T"})
        below = sizes["T"]


def _check_best(model: Any, best: Any, sizes: dict[str, int]) -> None:
    network = isinstance(best, SubspaceNetworkRegressor) and "sigma_" in vars(best)
    require(network, "best_estimator_ is not a fitted network")
    same = (best.n_features_in_, best.target_names_) == (sizes["D"], model.target_names_)
    require(same, "best_estimator_ is of other data")


def _check_calibration(model: Any, found: Any, sizes: dict[str, int]) -> None:
    require(isinstance(found, IntervalCalibration), "its calibration is none")
    require(list(found.scores) == model.target_names_, "its calibration is of other targets")
    for target in found.scores.values():
        require(target.between.ndim == target.at_bound.ndim == 1, "its calibration has no scores")
        scores = np.concatenate([target.between, target.at_bound])  # logarithms of tails
        require(bool((scores >= 0.0).all()), "its calibration has scores below 0")


def _check_formula(model: Any, found: Any, sizes: dict[str, int]) -> None:
    require(isinstance(found, StoredFormula), "its formula is none")
    require(list(found.targets) == model.target_names_, "its formula is of other targets")
    require("feature_names_in_" in vars(model), "its formula has columns without names")


def _check_rows_behind(model: Any, found: Any, sizes: dict[str, int]) -> None:
    require(isinstance(found, RowsBehind), "the rows behind it are not known")
    check_sizes(found, sizes, {"mean_squares": "D"})


_PARTS = {
    "_chosen_noise": _check_noise,
    "layers_": _check_layers,
    "best_estimator_": _check_best,
    "_calibration": _check_calibration,
    "formula_": _check_formula,
    "_rows_behind": _check_rows_behind,
    "_stream": check_stream,
}
