"""Values of Python as plain state and back, without losing their types.

JSON and arrays have no tuples, no objects and no NumPy scalars. These become dicts with the key
``"is"``: ``{"is": "tuple", "items": […]}``, ``{"is": "StudentT", "fields": {"df": 4.0}}``. An array
that occurs again is stored once: ``{"is": "same", "as": 3}`` is the array with number 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from deeptobit.exceptions import ModelFileError

_KEYS = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class SavedClass:
    """How objects of a class become fields with names, and how they are made of them.

    Parameters
    ----------
    classes : tuple of type
        Exactly these; a subclass may know more than its fields.
    take : callable
        From an object to its fields.
    make : callable
        From fields of any kind and number to an object, or any ``ValueError`` or ``TypeError``.
    """

    classes: tuple[type, ...]
    take: Callable[[Any], dict[str, Any]]
    make: Callable[[dict[str, Any]], Any]


class Packer:
    """Values to plain state.

    Examples
    --------
    >>> Packer({}).pack({"nll": (1.5, 2.5), "rank": 3})
    {'nll': {'is': 'tuple', 'items': [1.5, 2.5]}, 'rank': 3}
    """

    def __init__(self, classes: Mapping[str, SavedClass]) -> None:
        self._names = {cls: name for name, saved in classes.items() for cls in saved.classes}
        self._classes = classes
        # By identity, and with the array itself: a number is not given twice while it lives.
        self._arrays: dict[int, tuple[int, Any]] = {}

    def pack(self, value: Any, where: str = "value") -> Any:
        """Plain state; ``where`` names the value in errors."""
        kind = type(value)
        if kind in (type(None), bool, int, float, str):
            return value
        if kind is np.str_:
            return str(value)
        if kind in self._names:
            return self._pack_object(self._names[kind], value, where)
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return {"is": "scalar", "value": np.asarray(value)}
        if kind is np.ma.MaskedArray:
            parts = [value.data, np.ma.getmaskarray(value)]
            return {"is": "masked", "parts": self.pack(parts, where)}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, where)
        if kind is list:
            return self._pack_each(value, where)
        if kind is tuple:
            return {"is": "tuple", "items": self._pack_each(value, where)}
        if kind is range:
            return {"is": "range", "ends": [value.start, value.stop, value.step]}
        if kind is dict:
            return self._pack_dict(value, where)
        raise TypeError(
            f"{where} is of type {kind.__name__}, and cannot be saved: a model file holds numbers, "
            "text, arrays and classes of deeptobit, nothing that would have to be executed. "
            f"Before saving, replace it with set_params by {_advice(value)}"
        )

    def _pack_each(self, items: Any, where: str) -> list[Any]:
        return [self.pack(item, f"{where}[{index}]") for index, item in enumerate(items)]

    def _pack_dict(self, value: dict[Any, Any], where: str) -> dict[str, Any]:
        if not all(isinstance(key, _KEYS) for key in value):
            raise TypeError(f"{where} has keys that are neither text nor numbers")
        items = {key: self.pack(item, f"{where}[{key!r}]") for key, item in value.items()}
        if "is" not in items and all(type(key) is str for key in items):
            return items
        return {"is": "dict", "items": [[key, item] for key, item in items.items()]}

    def _pack_array(self, array: Any, where: str) -> Any:
        if id(array) in self._arrays:
            return {"is": "same", "as": self._arrays[id(array)][0]}
        if array.dtype.kind == "O" and array.ndim == 1:
            return {"is": "objects", "items": self._pack_each(array.tolist(), where)}
        if array.dtype.kind not in "biufU":
            raise TypeError(f"{where} is an array of type {array.dtype}, which cannot be saved")
        self._arrays[id(array)] = len(self._arrays), array
        return array

    def _pack_object(self, name: str, value: Any, where: str) -> dict[str, Any]:
        fields = self._classes[name].take(value)
        packed = {field: self.pack(item, f"{where}.{field}") for field, item in fields.items()}
        return {"is": name, "fields": packed}


def _advice(value: Any) -> str:
    """What to set instead of a value that cannot be saved."""
    if hasattr(value, "to_dict") and hasattr(value, "index"):
        return "a dict (.to_dict()) if it is by name, else by an array (.to_numpy())"
    if callable(value) and not isinstance(value, type):
        return "a number or a word that the parameter knows"
    return "one of these, or keep the model with pickle"


class Unpacker:
    """Plain state to values; what is not sound is a :class:`ModelFileError`.

    Examples
    --------
    >>> Unpacker({}).unpack({"nll": {"is": "tuple", "items": [1.5, 2.5]}, "rank": 3})
    {'nll': (1.5, 2.5), 'rank': 3}
    """

    def __init__(self, classes: Mapping[str, SavedClass]) -> None:
        self._classes = classes
        self._arrays: list[Any] = []

    def unpack(self, plain: Any) -> Any:
        """The value that was packed."""
        if isinstance(plain, np.ndarray):
            self._arrays.append(plain)
            return plain
        if isinstance(plain, list):
            return [self.unpack(item) for item in plain]
        if not isinstance(plain, dict):
            return plain
        if "is" in plain:
            return self._unpack_tagged(plain["is"], plain)
        return {key: self.unpack(item) for key, item in plain.items()}

    def _unpack_tagged(self, tag: Any, plain: dict[str, Any]) -> Any:
        if not isinstance(tag, str):
            raise ModelFileError("it holds something without a name")
        match plain:
            case {"as": int(number)} if tag == "same" and 0 <= number < len(self._arrays):
                return self._arrays[number]
            case {"items": list(items)} if tag == "tuple":
                return tuple(self.unpack(item) for item in items)
            case {"value": np.ndarray(shape=()) as value} if tag == "scalar":
                return value[()]
            case {"ends": [int(start), int(stop), int(step)]} if tag == "range" and step:
                return range(start, stop, step)
            case {"items": list(pairs)} if tag == "dict":
                return self._unpack_dict(pairs)
            case {"items": list(items)} if tag == "objects":
                return self._unpack_objects(items)
            case {"parts": list(parts)} if tag == "masked":
                return _masked(self.unpack(parts))
            case {"fields": dict(fields)} if tag in self._classes:
                return self._unpack_object(tag, fields)
        raise ModelFileError(f"it holds something unknown ({tag[:80]!r})")

    def _unpack_dict(self, pairs: list[Any]) -> dict[Any, Any]:
        found = {}
        for pair in pairs:
            match pair:
                case [None | bool() | int() | float() | str() as key, item]:
                    found[key] = self.unpack(item)
                case _:
                    raise ModelFileError("a dict in it is not made of keys and values")
        return found

    def _unpack_objects(self, items: list[Any]) -> Any:
        array = np.empty(len(items), dtype=object)
        for index, item in enumerate(items):
            array[index] = self.unpack(item)
        return array

    def _unpack_object(self, name: str, fields: dict[str, Any]) -> Any:
        values = {field: self.unpack(item) for field, item in fields.items()}
        try:
            return self._classes[name].make(values)
        except ModelFileError:
            raise
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            raise ModelFileError(f"its {name} is not sound: {error}") from None


def _masked(parts: list[Any]) -> Any:
    match parts:
        case [np.ndarray() as data, np.ndarray(dtype=np.dtype(kind="b")) as mask]:
            if data.shape == mask.shape:
                return np.ma.MaskedArray(data, mask=mask)
    raise ModelFileError("a masked array has not the shape of its mask")


# Whether a value from a file is of the type that a class declares.


def fits(value: Any, hint: Any) -> bool:
    """Compare a value with a type hint, elements of lists, tuples and dicts included.

    Examples
    --------
    >>> fits([1, 2], list[int]), fits(None, int | None), fits("a", float), fits(3, float)
    (True, True, False, True)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in inner)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if origin is np.ndarray:
        (scalar,) = get_args(inner[1])
        return type(value) is np.ndarray and value.dtype == scalar
    if origin is tuple:
        return isinstance(value, tuple) and _each_fits(value, inner)
    if origin is list:
        return isinstance(value, list) and all(fits(item, inner[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items()
        )
    return isinstance(value, hint)


def _each_fits(items: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if hints[1:] == (...,):
        return all(fits(item, hints[0]) for item in items)
    return len(items) == len(hints) and all(map(fits, items, hints))


# The state of a random number generator.

_KEY_WORDS = 624  # of the Mersenne twister


def take_random_state(value: np.random.RandomState) -> dict[str, Any]:
    """Fields of a generator."""
    state: Any = value.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise TypeError("a RandomState can be saved only with its own generator, MT19937")
    return {
        "key": state["state"]["key"],
        "position": state["state"]["pos"],
        "has_gauss": state["has_gauss"],
        "gauss": state["gauss"],
    }


def make_random_state(found: dict[str, Any]) -> np.random.RandomState:
    """The generator of these fields; compiled code reads its key at any position it is given."""
    key, position = found["key"], found["position"]
    if not (isinstance(key, np.ndarray) and key.shape == (_KEY_WORDS,) and key.dtype == np.uint32):
        raise ValueError("its key is not that of a Mersenne twister")
    if not (fits(position, int) and 0 <= position <= _KEY_WORDS):
        raise ValueError("its position lies outside of its key")
    value = np.random.RandomState()
    value.set_state(("MT19937", key, position, found["has_gauss"], found["gauss"]))
    return value
