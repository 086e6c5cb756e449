"""Which estimators can be saved, and what the parts of a loaded one must satisfy.

Sizes are letters: D features, T targets, R components, I inputs of a layer.
"""

from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import Any, get_type_hints

import numpy as np

from deeptobit.estimators import inputs
from deeptobit.estimators.auto import AutoTobitRegressor
from deeptobit.estimators.conformal import IntervalCalibration, TargetScores
from deeptobit.estimators.formula import SAVED_FORMULA
from deeptobit.estimators.inputs import RowsBehind
from deeptobit.estimators.mixed import MixedTobitRegressor
from deeptobit.estimators.network import SubspaceNetworkRegressor
from deeptobit.estimators.networkcv import SubspaceNetworkCV
from deeptobit.estimators.subspace import SubspaceTobitRegressor
from deeptobit.estimators.tobit import TobitRegressor
from deeptobit.files import models
from deeptobit.files.values import by_fields, check_sizes, ensure, fits
from deeptobit.likelihood import Noise, NoiseByTask
from deeptobit.mixed import Effects, EffectUnits, KnownPeople
from deeptobit.network import NetworkLayer
from deeptobit.penalties import PENALTIES

# What a fitted one must have, beside what all have.
_ESTIMATORS: dict[type, tuple[str, ...]] = {
    AutoTobitRegressor: ("layers_",),
    MixedTobitRegressor: ("_people", "_effects", "_units", "effects_"),
    TobitRegressor: ("coef_",),
    SubspaceTobitRegressor: ("V_", "_rows_behind"),
    SubspaceNetworkRegressor: ("layers_", "_rows_behind"),
    SubspaceNetworkCV: ("best_estimator_",),
}
_NEEDED = {"intercept_": "T", "sigma_": "T", "lower_": "T", "upper_": "T"}
_OF_FEATURES = ("coef_", "U_", "V_")  # which a model with trees has not
_OPTIONAL = {
    "feature_scale_": "D",
    "feature_mean_": "D",
    "mean_slopes_": "TD",
    "log_likelihood_": "T",
}
_LAYER = {"U": "TR", "V": "RI", "intercept": "T", "sigma": "T"}
Sizes = dict[str, int]


def check_model(model: Any, parts: tuple[str, ...]) -> None:
    """Refuse an estimator whose parts do not belong together; an unfitted one has none.

    A fitted one must have ``parts``, beside what all have.
    """
    inputs.check_choice("prediction", model.prediction, inputs.KINDS)
    model._layer_noise()  # refuses an unknown noise
    fitted = vars(model)
    if "sigma_" not in fitted:
        ensure("_rows_behind" not in fitted, "it has learned from rows and is not fitted")
        return
    needed = [*parts, "n_features_in_", "target_names_", "_one_dimensional"]
    needed += ["rank_"] if hasattr(model, "transform") else []
    for name in needed:
        ensure(name in fitted, f"{name} is missing")
    declared = get_type_hints(type(model))
    for name in declared.keys() & fitted.keys() - model.get_params(deep=False).keys():
        ensure(fits(fitted[name], declared[name]), f"{name} is of the wrong type")
    sizes = {"D": model.n_features_in_, "T": len(model.target_names_)}
    ensure(min(sizes.values()) >= 1, "it has no features or no targets")
    ensure(sizes["T"] == 1 or not model._one_dimensional, "a 1-d y has one target")
    trees = fitted.get("trees_")
    if trees is None:
        check_sizes(model, sizes, coef_="TD")
    else:
        ensure(not any(name in fitted for name in _OF_FEATURES), "it has coefficients and trees")
        widest = int(trees.feature.max(initial=0))
        fitting = widest < sizes["D"] and int(trees.tasks.max(initial=0)) < sizes["T"]
        ensure(fitting, "its trees have other features or targets")
    check_sizes(model, sizes, **_NEEDED)
    ensure(bool((model.sigma_ > 0.0).all()), "its noise scales are not positive")
    ensure(bool((model.lower_ < model.upper_).all()), "its bounds are not in order")
    optional = {name for name in _OPTIONAL if not isinstance(fitted.get(name, 0.0), float)}
    check_sizes(model, sizes, **{name: _OPTIONAL[name] for name in optional})
    if "rank_" in needed and trees is None:
        check_sizes(model, sizes | {"R": model.rank_}, U_="TR", V_="RD")
    for name, check in _PARTS.items():
        if name in fitted:
            check(model, fitted[name], sizes)


def _check_names(model: Any, names: Any, sizes: Sizes) -> None:
    known = isinstance(names, np.ndarray) and fits(names.tolist(), list[str])
    ensure(known and names.shape == (sizes["D"],), "feature_names_in_ are not D names")


def _check_limits(model: Any, limits: Any, sizes: Sizes) -> None:
    known = all(end.shape == (sizes["D"],) for end in limits)
    ensure(known and bool((limits[0] <= limits[1]).all()), "its feature limits are not in order")


def _check_noise(model: Any, noise: Any, sizes: Sizes) -> None:
    """A family for all targets, or one for each of them."""
    ensure(isinstance(noise, Noise), "its noise is not a noise family")
    known = not isinstance(noise, NoiseByTask) or len(noise.families) == sizes["T"]
    ensure(known, "its noise is not that of its targets")


def _check_layers(model: Any, layers: Any, sizes: Sizes) -> None:
    ensure(vars(model).get("n_layers_") == len(layers) > 0, "n_layers_ is not their number")
    trees = vars(model).get("trees_")
    check_widths(layers, sizes, 0 if trees is None else len(trees.start))


def _check_undone(model: Any, layers: Any, sizes: Sizes) -> None:
    for layer in layers:
        check_sizes(layer, {"T": sizes["T"]}, **_LAYER)


def check_widths(layers: Iterable[NetworkLayer], sizes: Sizes, n_below: int = 0) -> set[int]:
    """Refuse layers that cannot follow each other; returns what inputs the next may have.

    The first sees ``n_below`` outputs of trees in front of the features.
    """
    allowed = {n_below + sizes["D"]}
    for layer in layers:
        n_inputs = check_sizes(layer, {"T": sizes["T"]}, **_LAYER)["I"]
        ensure(n_inputs in allowed, "a layer has the wrong inputs")
        allowed = {sizes["T"], sizes["T"] + sizes["D"]}  # without skip connection, and with it
    return allowed


def _check_best(model: Any, best: Any, sizes: Sizes) -> None:
    network = isinstance(best, SubspaceNetworkRegressor) and "sigma_" in vars(best)
    ensure(network, "best_estimator_ is not a fitted network")
    same = (best.n_features_in_, best.target_names_) == (sizes["D"], model.target_names_)
    ensure(same, "best_estimator_ was fitted to other data")


def _check_calibration(model: Any, calibration: Any, sizes: Sizes) -> None:
    ensure(list(calibration.scores) == model.target_names_, "its calibration is of other targets")
    for target in calibration.scores.values():
        check_sizes(target, {}, between="N", at_bound="M")
        scores = np.concatenate([target.between, target.at_bound])  # logarithms of tails
        ensure(bool((scores >= 0.0).all()), "its calibration has scores below 0")


def _check_formula(model: Any, formula: Any, sizes: Sizes) -> None:
    ensure(list(formula.targets) == model.target_names_, "its formula is of other targets")
    ensure("feature_names_in_" in vars(model), "its formula has columns without names")


def _check_rows_behind(model: Any, rows: Any, sizes: Sizes) -> None:
    check_sizes(rows, sizes, mean_squares="D")


def _check_effects(model: Any, effects: Any, sizes: Sizes) -> None:
    """Random effects, and the people who have them."""
    sizes = check_sizes(effects, sizes, own="TQQ", shared="TQR", visit="TG", sigma="T")
    ensure(len(model.effects_) == sizes["Q"] <= 2, "effects_ are not its random effects")
    check_sizes(model._units, sizes | {"B": 2}, location="T", scale="T", time="B")
    people = model._people
    n_rows, starts = len(people.time), people.starts
    entries = dict.fromkeys(("low", "high", "mean", "tau", "nu"), "NT")
    check_sizes(people, sizes | {"N": n_rows}, z="NQ", **entries)
    whole = starts.shape == (len(people.labels) + 1,) and (starts[0], starts[-1]) == (0, n_rows)
    ensure(whole and bool((np.diff(starts) > 0).all()), "its people are not those of its rows")
    standard = *effects, people.z, people.tau, people.nu
    moderate = all(np.abs(part).max(initial=0.0) <= _LARGEST_STANDARD for part in standard)
    precise = people.tau.min(initial=0.0) >= -1e-9  # below zero by rounding at most
    ensure(moderate and bool(precise), "its random effects are out of range")


_LARGEST_STANDARD = 1e30  # of numbers in standard units: their products must not overflow
_PARTS = {
    "feature_names_in_": _check_names,
    "_feature_limits": _check_limits,
    "_chosen_noise": _check_noise,
    "layers_": _check_layers,
    "undone_layers_": _check_undone,
    "best_estimator_": _check_best,
    "_calibration": _check_calibration,
    "formula_": _check_formula,
    "_rows_behind": _check_rows_behind,
    "_effects": _check_effects,
}

_RECORDS = (
    *(RowsBehind, IntervalCalibration, TargetScores),
    *(Effects, EffectUnits, KnownPeople),
    *PENALTIES.values(),
)
models.CLASSES |= {each.cls.__name__: each for each in (*map(by_fields, _RECORDS), SAVED_FORMULA)}
for _cls, _needed in _ESTIMATORS.items():
    models.register_estimator(_cls, partial(check_model, parts=_needed))


def _register_published(name: str) -> None:
    cls = getattr(import_module("deeptobit.published"), name)
    models.register_estimator(cls, partial(check_model, parts=("layers_",)))


for _name in ("PublishedSubspaceTobit", "PublishedSubspaceNetwork"):
    models.LATER[_name] = partial(_register_published, _name)
