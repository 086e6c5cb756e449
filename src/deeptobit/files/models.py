"""Models to files and back: the register of classes that a file may hold, ``save`` and ``load``.

A file names classes; those in the register are made, and no others. Estimators, and what only they
have, are registered by ``deeptobit.estimators``, which this room does not import.
"""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold, KFold

from deeptobit.exceptions import ModelFileError
from deeptobit.files.container import read_state, write_state
from deeptobit.files.values import RANDOM_STATE, SavedClass, by_fields, check_types, pack, unpack
from deeptobit.layer import Step
from deeptobit.likelihood import FAMILIES, NoiseByTask, ScoreGrid, Spread
from deeptobit.network import NetworkLayer, Trees
from deeptobit.online import Record

_KIND = "model"

_RECORDS: tuple[type, ...] = (NoiseByTask, ScoreGrid, Spread, NetworkLayer, Trees, Record, Step)
_FOLDS = {"n_splits": int, "shuffle": bool, "random_state": int | np.random.RandomState | None}

CLASSES: dict[str, SavedClass] = {
    **{cls.__name__: by_fields(cls) for cls in (*FAMILIES.values(), *_RECORDS)},
    **{cls.__name__: by_fields(cls, **_FOLDS) for cls in (KFold, GroupKFold)},
    "RandomState": RANDOM_STATE,
}
ESTIMATORS: list[type] = []  # those that are registered
LATER: dict[str, Callable[[], None]] = {}  # what registers an estimator on first use, by its name


def register_estimator(cls: type, check: Callable[[Any], None]) -> None:
    """Let model files hold estimators of a class.

    They are stored as parameters and fitted attributes; training data stay behind.

    Parameters
    ----------
    cls : type
    check : function
        Raises :class:`ModelFileError` unless the parts of a loaded estimator belong together.
    """

    def take(model: Any) -> dict[str, Any]:
        params = model.get_params(deep=False)
        left_out = {*params, "_stream"}
        fitted = {name: at for name, at in model.__getstate__().items() if name not in left_out}
        return {"params": params, "fitted": fitted}

    def make(found: dict[str, Any]) -> Any:
        check_types(found, {"params": dict, "fitted": dict})
        params, fitted = found["params"], found["fitted"]
        if _holds_a_model(params):  # printing it in an error could take very long
            raise ValueError("a parameter is a model")
        model = cls(**params)
        for name in fitted:
            taken = name == "_stream" or hasattr(cls, str(name))
            if not (isinstance(name, str) and name.isidentifier()) or taken:
                raise ValueError(f"{name!r} is not an attribute of a fitted model")
        vars(model).update(fitted)
        check(model)
        return model

    CLASSES[cls.__name__] = SavedClass(cls, take, make)
    ESTIMATORS.append(cls)


def _register_now(name: str) -> None:
    if name in LATER:
        LATER.pop(name)()


def _holds_a_model(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_a_model, value.values()))
    objects = isinstance(value, np.ndarray) and value.dtype.hasobject
    if objects or isinstance(value, (list, tuple)):
        return any(map(_holds_a_model, value))
    return isinstance(value, BaseEstimator)


def estimator_state(model: Any) -> dict[str, Any]:
    """Everything a fitted estimator needs to predict and to go on learning, as plain state.

    Nested dicts and lists of text, numbers and arrays, to be embedded in other files by
    :func:`deeptobit.files.write_state`. Training data are left out. What cannot be stored is a
    ``TypeError`` that names the attribute.

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
    _register_now(name)
    if type(model) not in ESTIMATORS:
        raise TypeError(f"an object of type {name} cannot be saved; estimators of deeptobit can")
    state = {"model": pack(model, CLASSES, name)}
    try:
        estimator_from_state(state)
    except ModelFileError as error:  # better now than when the model is needed
        raise ValueError(f"this {name} could not be loaded again: {error}") from None
    return state


def estimator_from_state(state: dict[str, Any]) -> Any:
    """The estimator of a state; :class:`ModelFileError` where it is invalid."""
    match state:
        case {"model": {"is": str(name)} as packed}:
            _register_now(name)
            if name in {cls.__name__ for cls in ESTIMATORS}:
                return unpack(packed, CLASSES)
    raise ModelFileError("it holds no model")


def save_model(model: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator to a file."""
    write_state(path, _KIND, estimator_state(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator that its ``save`` wrote.

    Nothing in the file is executed, and only classes of deeptobit are made. Predictions are those
    of the saved model to the last bit. ``partial_fit`` goes on as from a fitted model: the rows
    learned before saving count as much as new ones.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    estimator of the class that was saved

    Raises
    ------
    ModelFileError
        If anything is wrong with the content of the file.

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
