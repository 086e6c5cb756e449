"""Models to files and back."""

from __future__ import annotations

import os
from typing import Any

from deeptobit.estimators.saving._classes import CLASSES, ESTIMATORS
from deeptobit.estimators.saving._values import Packer, Unpacker
from deeptobit.exceptions import ModelFileError
from deeptobit.likelihood import Noise, resolve_noise
from deeptobit.persistence import read_state, write_state

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
