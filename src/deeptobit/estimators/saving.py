"""Models to files and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, KFold

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators.auto import AutoTobitRegressor
from deeptobit.estimators.conformal import IntervalCalibration, TargetScores
from deeptobit.estimators.formula import FormulaDesign, StoredFormula, make_formula, take_formula
from deeptobit.estimators.inputs import check_kind
from deeptobit.estimators.lowrank import RowsBehind
from deeptobit.estimators.network import LayeredRegressor, SubspaceNetworkRegressor
from deeptobit.estimators.networkcv import SubspaceNetworkCV
from deeptobit.estimators.subspace import SubspaceTobitRegressor
from deeptobit.estimators.tobit import TobitRegressor
from deeptobit.exceptions import ModelFileError
from deeptobit.files import (
    Packer,
    SavedClass,
    Unpacker,
    fits,
    make_random_state,
    read_state,
    take_random_state,
    write_state,
)
from deeptobit.layer import Step
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    Noise,
    NoiseByTask,
    ScoreGrid,
    Spread,
    StandardNoise,
    StudentT,
    SymmetricNoise,
    TwoPiece,
    resolve_noise,
)
from deeptobit.network import ContinuedNetwork, NetworkLayer, NetworkStream
from deeptobit.online import (
    AdaptiveLearner,
    Evidence,
    FeatureMetric,
    History,
    Iterate,
    NullModel,
    OnlineResult,
    OnlineSettings,
    OnlineSolver,
    Pending,
    PlainLearner,
    RawRows,
    Record,
    RecursiveTobit,
    Units,
)

# Shapes of arrays from a file, in letters: D features, T targets, R components.


def require(holds: bool, otherwise: str) -> None:
    """Refuse the file unless a condition holds."""
    if not holds:
        raise ModelFileError(f"its parts do not fit together: {otherwise}")


def check_sizes(owner: Any, sizes: Mapping[str, int], shapes: Mapping[str, str]) -> None:
    """Arrays of numbers under the names of ``shapes``; a digit in a shape stands for itself.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> layer = SimpleNamespace(U=np.ones((3, 2)), V=np.ones((2, 5)))
    >>> check_sizes(layer, {"T": 3, "R": 2, "D": 4}, {"U": "TR", "V": "RD"})
    Traceback (most recent call last):
        ...
    deeptobit.exceptions.ModelFileError: its parts do not fit together: V is not an array of \
shape (2, 4)
    """
    for name, letters in shapes.items():
        shape = tuple(sizes[letter] if letter in sizes else int(letter) for letter in letters)
        array = getattr(owner, name, None)
        sound = isinstance(array, np.ndarray) and array.dtype.kind == "f" and array.shape == shape
        require(sound, f"{name} is not an array of shape {shape}")


def check_noise(found: Any, n_tasks: int) -> None:
    """A family for all targets, or one for each of them."""
    require(isinstance(found, StandardNoise | NoiseByTask), "its noise is none")
    known = not isinstance(found, NoiseByTask) or len(found.families) == n_tasks
    require(known, "its noise is not that of its targets")


# Whether what ``partial_fit`` goes on with is sound.

Sizes = dict[str, int]

_SHAPES: dict[type, dict[str, str]] = {
    Iterate: {"V": "RD", "Ut": "RT", "intercept": "T", "sigma": "T"},
    OnlineResult: {"U": "TR", "V": "RD", "intercept": "T", "sigma": "T"},
    NullModel: {"mean": "T", "log_sigma": "T", "curvature": "3T"},
    Evidence: {"pull": "T", "curvature": "T", "sigma": "T", "line": "3T", "race": "2T"},
    AdaptiveLearner: {"moments": "3T", "inverse": "RR"},
    PlainLearner: {"observed_share": "T"},
    Units: {
        **{"feature_mean": "D", "feature_scale": "D"},
        **{"target_mean": "T", "target_scale": "T"},
    },
}


def check_stream(model: Any, stream: Any, sizes: Sizes) -> None:
    """Refuse a stream that does not belong to its model."""
    match stream:
        case OnlineSolver():
            _check_solver(stream, sizes)
        case RecursiveTobit():
            _check_recursive(stream, sizes)
        case NetworkStream():
            _check_network(stream, sizes)
        case ContinuedNetwork():
            _check_continued(stream, sizes)
        case _:
            require(False, "what partial_fit goes on with is none of the solvers")


def _check_solver(solver: OnlineSolver, sizes: Sizes) -> None:
    same = solver.n_features == sizes["D"] and solver.n_tasks == sizes["T"]
    require(same and solver.settings.rank <= min(sizes["D"], sizes["T"]), "its solver is another's")
    require(solver._block_rows >= 1 and solver._n_processed >= 0, "its solver has no blocks")
    _check_pending(solver._pending, solver._capacity, sizes)
    own = sizes | {"R": solver.settings.rank}
    _check_parts((solver.settings, solver._units, solver._learner, solver._given), own)


def _check_parts(part: Any, sizes: Sizes) -> None:
    """Compare the arrays of a part and of all parts within."""
    if type(part) in _SHAPES:
        check_sizes(part, sizes, _SHAPES[type(part)])
    if isinstance(part, (OnlineSettings, AdaptiveLearner)) and part.sigma is not None:
        check_sizes(part, sizes, {"sigma": "T"})
    if isinstance(part, OnlineSettings):
        require(part.rank == sizes["R"], "its learner has another rank")
    if isinstance(part, FeatureMetric):
        shape = "DD" if part.is_full else "D"
        check_sizes(part, sizes, {"moments": shape, "inverse": shape})
    if isinstance(part, NullModel) and part.scored is not None:
        require(all(array.shape == (sizes["T"],) for array in part.scored), "scored is not (T,)")
    if is_dataclass(part):
        part = tuple(vars(part).values())
    if type(part) is tuple:
        for inner in part:
            _check_parts(inner, sizes)
    elif isinstance(part, Iterate):
        require(all(array.flags.c_contiguous for array in part), "an iterate is not in C order")


def _check_recursive(solver: RecursiveTobit, sizes: Sizes) -> None:
    require(solver._active.shape == (sizes["D"],), "its solver is another's")
    own = {"T": sizes["T"], "A": int(solver._active.sum()) + 1}
    check_sizes(solver, own, {"_W": "AT", "_mean_squares": "A", "_sigma": "T"})
    if solver._moments is not None:
        check_sizes(solver, own, {"_moments": "AA"})
    require(1 <= solver._rank <= sizes["T"], "its rank is not that of a solver")
    check_noise(solver._noise, sizes["T"])
    _check_pending(solver._pending, 512, sizes)


def _check_network(stream: NetworkStream, sizes: Sizes) -> None:
    n_layers, n_tasks = len(stream._solvers), sizes["T"]
    above = n_tasks + (sizes["D"] if stream._skip_connection else 0)
    for depth, solver in enumerate(stream._solvers):
        _check_solver(solver, {"T": n_tasks, "D": above if depth else sizes["D"]})
    _streams_check_layers(stream.learned_layers, sizes, above)
    require(len(stream.learned_layers) in (0, n_layers), "its stream lacks layers")
    check_sizes(stream, {"K": n_layers}, {"_losses": "K"})
    _check_bounds(stream._bounds, n_tasks)
    _check_pending(stream._pending, stream._segment, sizes)


def _check_continued(stream: ContinuedNetwork, sizes: Sizes) -> None:
    n_tasks = sizes["T"]
    above = n_tasks + (sizes["D"] if stream._skip_connection else 0)
    _streams_check_layers(stream._hidden, sizes, above)
    _check_bounds(stream._bounds, n_tasks)
    width = above if stream._hidden else sizes["D"]
    _check_recursive(stream._last, {"T": n_tasks, "D": width})


def _streams_check_layers(layers: tuple[NetworkLayer, ...], sizes: Sizes, above: int) -> None:
    for depth, layer in enumerate(layers):
        own = {"T": sizes["T"], "I": above if depth else sizes["D"], "R": layer.U.shape[-1]}
        check_sizes(layer, own, {"U": "TR", "V": "RI", "intercept": "T", "sigma": "T"})


def _check_bounds(bounds: tuple[Any, Any], n_tasks: int) -> None:
    require(all(bound.shape == (n_tasks,) for bound in bounds), "its stream has other bounds")


def _check_pending(pending: Pending, capacity: int, sizes: Sizes) -> None:
    """Rows that wait; a full block of them would wait for ever."""
    for rows in pending.parts:
        own = sizes | {"N": rows.weight.size}
        check_sizes(rows, own, {"X": "ND", "low": "NT", "high": "NT", "weight": "N"})
    n_rows = sum(rows.weight.size for rows in pending.parts)
    require(pending.n_rows == n_rows < capacity, "the number of waiting rows is another")


# Whether a model from a file is one: the sizes of all its parts agree.

_NEEDED = {"coef_": "TD", "intercept_": "T", "sigma_": "T", "lower_": "T", "upper_": "T"}
_LOW_RANK = {"U_": "TR", "V_": "RD"}
_OTHERS = {"feature_scale_": "D", "log_likelihood_": "T"}
_HEART: dict[Any, str] = {LayeredRegressor: "layers_", SubspaceNetworkCV: "best_estimator_"}
_STREAMING = ("_stream", "_rows_behind")


def check_model(model: Any) -> None:
    """Refuse an estimator whose parts do not belong together; an unfitted one has none."""
    check_kind(model.prediction)
    model._layer_noise()  # refuses an unknown noise
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


# Ways to take a class apart into fields, and to make it of them with every field checked.


def of_parameters(cls: type, **hints: Any) -> SavedClass:
    """A class whose constructor takes what it keeps under the same names."""

    def make(found: dict[str, Any]) -> Any:
        _check(found, hints)
        return cls(**found)

    return SavedClass((cls,), lambda value: {name: getattr(value, name) for name in hints}, make)


def of_record(cls: type) -> SavedClass:
    """A dataclass or a named tuple."""
    return of_parameters(cls, **get_type_hints(cls))


def of_attributes(cls: type, **hints: Any) -> SavedClass:
    """A class whose state are its attributes; no constructor runs, which might allocate."""

    def make(found: dict[str, Any]) -> Any:
        _check(found, hints)
        if found.keys() != hints.keys():
            raise ValueError(f"{', '.join(sorted(hints.keys() - found.keys()))} is missing")
        value: Any = object.__new__(cls)
        vars(value).update(found)
        return value

    return SavedClass((cls,), lambda value: {name: getattr(value, name) for name in hints}, make)


def _check(found: dict[str, Any], hints: dict[str, Any]) -> None:
    for name, value in found.items():
        if name not in hints:
            raise ValueError(f"it has no {name!r}")
        if not fits(value, hints[name]):
            raise ValueError(f"{name} cannot be of type {type(value).__name__}")


def _holds_a_model(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_a_model, value.values()))
    if isinstance(value, (list, tuple)) or (
        isinstance(value, np.ndarray) and value.dtype.hasobject
    ):
        return any(map(_holds_a_model, value))
    return isinstance(value, BaseEstimator)


def _update_search(params: dict[str, Any], fitted: dict[str, Any]) -> None:
    """SubspaceNetworkCV of 0.1 learned priors and chose the noise, as AutoTobitRegressor does."""
    best = fitted.get("best_estimator_")
    if isinstance(best, SubspaceNetworkRegressor) and "layers_" not in fitted:
        params["noise"] = best.noise
        names = ("layers_", "history_", "_chosen_noise")
        fitted |= {name: vars(best)[name] for name in names if name in vars(best)}


def of_estimator(cls: type) -> SavedClass:
    """Parameters and fitted attributes; training data stay behind."""

    def take(model: Any) -> dict[str, Any]:
        params = model.get_params(deep=False)
        state = model.__getstate__()
        fitted = {name: value for name, value in state.items() if name not in params}
        return {"params": params, "fitted": fitted}

    def make(found: dict[str, Any]) -> Any:
        _check(found, {"params": dict, "fitted": dict})
        if cls is SubspaceNetworkCV:
            _update_search(found["params"], found["fitted"])
        if _holds_a_model(found["params"]):  # whose text, in an error, may take for ever
            raise ValueError("a parameter is a model")
        model = cls(**found["params"])
        for name in found["fitted"]:
            if not (isinstance(name, str) and name.isidentifier()) or hasattr(cls, name):
                raise ValueError(f"{name!r} is not an attribute of a fitted model")
        vars(model).update(found["fitted"])
        check_model(model)
        return model

    return SavedClass((cls,), take, make)


# Every class whose objects a model file may hold, by a name that stays.

_STREAMS = {
    "OnlineSolver": of_attributes(
        OnlineSolver,
        settings=OnlineSettings,
        n_features=int,
        n_tasks=int,
        n_seen=int,
        _block_rows=int,
        _n_processed=int,
        _loss=float,
        _weight=float,
        _pending=Pending,
        _history=History,
        _units=Units,
        _given=OnlineResult | None,
        _learner=AdaptiveLearner | PlainLearner | None,
    ),
    "NetworkStream": of_attributes(
        NetworkStream,
        n_seen=int,
        _settings=OnlineSettings,
        _bounds=tuple[FloatArray, FloatArray],
        _skip_connection=bool,
        _solvers=list[OnlineSolver],
        learned_layers=tuple[NetworkLayer, ...],
        _losses=FloatArray,
        _segment=int,
        _pending=Pending,
    ),
    "ContinuedNetwork": of_attributes(
        ContinuedNetwork,
        _hidden=tuple[NetworkLayer, ...],
        _last=RecursiveTobit,
        _skip_connection=bool,
        _bounds=tuple[FloatArray, FloatArray],
    ),
    "RecursiveTobit": of_attributes(
        RecursiveTobit,
        _rank=int,
        _noise=Noise,
        _fit_intercept=bool,
        _learns_sigma=bool,
        _active=BoolArray,
        _W=FloatArray,
        _mean_squares=FloatArray,
        _sigma=FloatArray,
        _n=float,
        _moments=FloatArray | None,
        _pending=Pending,
    ),
}

_RECORDS: tuple[type, ...] = (
    *(NetworkLayer, OnlineResult, RowsBehind, Record, Step, IntervalCalibration, TargetScores),
    *(OnlineSettings, AdaptiveLearner, PlainLearner, Iterate, Units, NullModel),
    *(FeatureMetric, Evidence, History, Pending, RawRows),
)

ESTIMATORS: tuple[type, ...] = (
    AutoTobitRegressor,
    TobitRegressor,
    SubspaceTobitRegressor,
    SubspaceNetworkRegressor,
    SubspaceNetworkCV,
)

_SEED = int | np.random.RandomState | None
CLASSES: dict[str, SavedClass] = {
    "Gaussian": of_parameters(Gaussian),
    "Logistic": of_parameters(Logistic),
    "StudentT": of_parameters(StudentT, df=float),
    "TwoPiece": of_parameters(TwoPiece, base=SymmetricNoise, skew=float),
    "NoiseByTask": of_parameters(
        NoiseByTask, families=tuple[Noise, ...], spread=Spread | None, grid=ScoreGrid | None
    ),
    "ScoreGrid": of_parameters(ScoreGrid, step=FloatArray, origin=FloatArray),
    "Spread": of_parameters(Spread, growth=FloatArray, centre=FloatArray, width=FloatArray),
    "KFold": of_parameters(KFold, n_splits=int, shuffle=bool, random_state=_SEED),
    "GroupKFold": of_parameters(GroupKFold, n_splits=int, shuffle=bool, random_state=_SEED),
    "RandomState": SavedClass((np.random.RandomState,), take_random_state, make_random_state),
    "FormulaDesign": SavedClass((FormulaDesign, StoredFormula), take_formula, make_formula),
    **{cls.__name__: of_record(cls) for cls in _RECORDS},
    **_STREAMS,
    **{cls.__name__: of_estimator(cls) for cls in ESTIMATORS},
}


_KIND = "model"
_VERSION = 1


def estimator_state(model: Any) -> dict[str, Any]:
    """Everything a fitted estimator needs to predict and to go on learning, as plain state.

    Nested dicts and lists of text, numbers and arrays, to be embedded in other files by
    :func:`deeptobit.persistence.write_state`. Training data are left out. What cannot be stored
    is a ``TypeError`` that names the attribute.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> state = estimator_state(TobitRegressor(upper=30.0))
    >>> state["model"]["is"], state["model"]["fields"]["params"]["upper"]
    ('TobitRegressor', 30.0)
    >>> estimator_from_state(state)
    TobitRegressor(upper=30.0)
    """
    name = type(model).__name__
    if type(model) not in ESTIMATORS:
        raise TypeError(f"an object of type {name} cannot be saved; estimators of deeptobit can")
    state = {"version": _VERSION, "model": Packer(CLASSES).pack(model, name)}
    try:
        estimator_from_state(state)
    except ModelFileError as error:  # better now than when the model is needed
        raise ValueError(f"this {name} could not be loaded again: {error}") from None
    return state


def estimator_from_state(state: dict[str, Any]) -> Any:
    """The estimator of a state; :class:`ModelFileError` where it is not sound."""
    match state:
        case {"version": int(version), "model": {"is": str(name)} as packed}:
            if version > _VERSION:
                raise ModelFileError(
                    f"its model has version {version}, and this version of deeptobit reads up to "
                    f"{_VERSION}; upgrade deeptobit"
                )
            if version == _VERSION and name in {cls.__name__ for cls in ESTIMATORS}:
                return Unpacker(CLASSES).unpack(packed)
    raise ModelFileError("it holds no model")


def noise_state(noise: Noise) -> Any:
    """A noise family as plain state.

    Examples
    --------
    >>> from deeptobit.likelihood import StudentT
    >>> noise_from_state(noise_state(StudentT(2.5)))
    StudentT(df=2.5)
    """
    return Packer(CLASSES).pack(noise, "noise")


def noise_from_state(state: Any) -> Noise:
    """The noise family of a state, which may be a name."""
    try:
        return resolve_noise(Unpacker(CLASSES).unpack(state))
    except ValueError as error:
        raise ModelFileError(f"its noise is unknown: {error}") from None


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a file."""
    write_state(path, _KIND, estimator_state(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that its ``save`` wrote, by this version of deeptobit or an older one.

    Nothing in the file is executed, and only classes of deeptobit are made. Predictions are those
    of the saved model to the last bit, and ``partial_fit`` goes on where that one was.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator of the class that was saved

    Raises
    ------
    ModelFileError
        Whatever is wrong with the content of the file.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit import TobitRegressor, load
    >>> X = np.arange(20.0)[:, None]
    >>> y = np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10)
    >>> model = TobitRegressor(upper=10).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(Path(folder, "tobit.model"))
    ...     again = load(Path(folder, "tobit.model"))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    _, state = read_state(path, _KIND)
    try:
        return estimator_from_state(state)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)} cannot be loaded: {error}") from None
