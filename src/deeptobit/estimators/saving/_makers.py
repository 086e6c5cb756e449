"""Ways to take a class apart into fields, and to make it of them with every field checked."""

from __future__ import annotations

from typing import Any, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator

from deeptobit.estimators.saving._checks import check_model
from deeptobit.estimators.saving._types import fits
from deeptobit.estimators.saving._values import SavedClass


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


def of_estimator(cls: type) -> SavedClass:
    """Parameters and fitted attributes; training data stay behind."""

    def take(model: Any) -> dict[str, Any]:
        params = model.get_params(deep=False)
        state = model.__getstate__()
        fitted = {name: value for name, value in state.items() if name not in params}
        return {"params": params, "fitted": fitted}

    def make(found: dict[str, Any]) -> Any:
        _check(found, {"params": dict, "fitted": dict})
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
