"""Python values as plain state and back, with their types.

JSON and arrays have no tuples, objects or NumPy scalars. These become dicts with the key ``"is"``:
``{"is": "tuple", "items": […]}``, ``{"is": "StudentT", "fields": {"df": 4.0}}``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from deeptobit.exceptions import ModelFileError

_UNSOUND = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
_KEYS = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class SavedClass:
    """How objects of a class become named fields, and how they are made from them.

    Parameters
    ----------
    cls : type
        Exactly this one; a subclass may have more state than its fields.
    take : callable
        From an object to its fields.
    make : callable
        From fields, whatever a file says they are, to an object or a ``ValueError``.
    """

    cls: type
    take: Callable[[Any], dict[str, Any]]
    make: Callable[[dict[str, Any]], Any]


def by_fields(cls: type, **hints: Any) -> SavedClass:
    """A class whose constructor takes what it keeps under the same names.

    Names and types are those of the fields of a dataclass or named tuple, or of the arguments of
    the constructor, unless they are given.

    Examples
    --------
    >>> from deeptobit.likelihood import StudentT
    >>> saved = by_fields(StudentT)
    >>> saved.take(StudentT(5)), saved.make({"df": 3.0})
    ({'df': 5.0}, StudentT(df=3))
    """
    if not hints:
        record = is_dataclass(cls) or issubclass(cls, tuple)
        hints = get_type_hints(cls if record else cls.__init__)  # type: ignore[misc]
        hints.pop("return", None)

    def make(found: dict[str, Any]) -> Any:
        check_types(found, hints)
        return cls(**found)

    return SavedClass(cls, lambda value: {name: getattr(value, name) for name in hints}, make)


def _items(value: Any) -> dict[str, Any]:
    return {"items": [*value]}


# What JSON and arrays have no word for, by its ``"is"``; the fields stand beside it.
_BUILT_IN = {
    "tuple": SavedClass(tuple, _items, lambda at: tuple(at["items"])),
    "dict": SavedClass(
        dict, lambda value: _items(map(list, value.items())), lambda at: dict(at["items"])
    ),
    "objects": SavedClass(np.ndarray, _items, lambda at: np.fromiter(at["items"], dtype=object)),
    "scalar": SavedClass(
        np.generic, lambda value: {"value": np.asarray(value)}, lambda at: at["value"][()]
    ),
}


def pack(value: Any, classes: Mapping[str, SavedClass], where: str = "value") -> Any:
    """Values to plain state; ``where`` names the value in errors. A range becomes a list.

    Examples
    --------
    >>> pack({"nll": (1.5, 2.5), "rank": 3}, {})
    {'nll': {'is': 'tuple', 'items': [1.5, 2.5]}, 'rank': 3}
    """
    kind = type(value)
    if kind in _KEYS:
        return value
    if kind is np.str_:
        return str(value)
    if kind in (list, range):
        return [pack(item, classes, f"{where}[{index}]") for index, item in enumerate(value)]
    if kind is dict and all(type(key) is str and key != "is" and key[:1] != "$" for key in value):
        return {key: pack(item, classes, f"{where}[{key!r}]") for key, item in value.items()}
    name = "scalar" if isinstance(value, np.generic) else kind.__name__
    if kind is np.ndarray:
        if value.dtype.kind in "biufU":
            return value
        if value.dtype.kind != "O" or value.ndim != 1:
            raise TypeError(f"{where} is an array of type {value.dtype}, which cannot be saved")
        name = "objects"
    if name in _BUILT_IN:
        parts = _BUILT_IN[name].take(value).items()
        return {"is": name} | {key: pack(item, classes, where) for key, item in parts}
    if name in classes and classes[name].cls is kind:
        taken = classes[name].take(value).items()
        fields = {key: pack(item, classes, f"{where}.{key}") for key, item in taken}
        return {"is": name, "fields": fields}
    raise TypeError(
        f"{where} is of type {name}, and cannot be saved: a model file holds numbers, text, "
        "arrays and classes of deeptobit, nothing that would have to be executed. Before saving, "
        f"replace it with set_params by {_advice(value)}"
    )


def _advice(value: Any) -> str:
    """What to set instead of a value that cannot be saved."""
    if hasattr(value, "to_dict") and hasattr(value, "index"):
        return "a dict (.to_dict()) if it is by name, else by an array (.to_numpy())"
    if callable(value) and not isinstance(value, type):
        return "a number or a word that the parameter knows"
    return "one of these, or keep the model with pickle"


def unpack(plain: Any, classes: Mapping[str, SavedClass]) -> Any:
    """Plain state to values; what is invalid is a :class:`ModelFileError`.

    Examples
    --------
    >>> unpack({"nll": {"is": "tuple", "items": [1.5, 2.5]}, "rank": 3}, {})
    {'nll': (1.5, 2.5), 'rank': 3}
    """
    if isinstance(plain, list):
        return [unpack(item, classes) for item in plain]
    if not isinstance(plain, dict):
        return plain
    found = {key: unpack(item, classes) for key, item in plain.items() if key != "is"}
    if "is" not in plain:
        return found
    name = plain["is"]
    if not isinstance(name, str):
        raise ModelFileError("it contains an object without a type name")
    # A tuple of the numbers of an array would take forty times its memory.
    if not isinstance(found.get("items", []), list):
        raise ModelFileError(f"the items of its {name[:80]!r} are no list")
    saved, fields = classes.get(name), found.get("fields")
    if name in _BUILT_IN:
        saved, fields = _BUILT_IN[name], found
    if saved is None or not isinstance(fields, dict):
        raise ModelFileError(f"it contains an unknown type ({name[:80]!r})")
    try:
        return saved.make(fields)
    except ModelFileError:
        raise
    except _UNSOUND as error:
        raise ModelFileError(f"its {name} is invalid: {error}") from None


# Whether values from a file are what their owner declares.


def check_types(found: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Refuse fields that are not declared, or not of their declared type."""
    for name, value in found.items():
        if name not in hints:
            raise ValueError(f"it has no {name!r}")
        if not fits(value, hints[name]):
            raise ValueError(f"{name} cannot be of type {type(value).__name__}")


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
    if hint in (int, float):
        number = Integral if hint is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if origin is np.ndarray:
        (scalar,) = get_args(inner[1])
        return type(value) is np.ndarray and value.dtype == scalar
    if origin is tuple and inner[1:] != (...,):
        same = isinstance(value, tuple) and len(value) == len(inner)
        return same and all(map(fits, value, inner))
    if origin in (tuple, list, Sequence):
        kind = (list, tuple) if origin is Sequence else origin
        return isinstance(value, kind) and all(fits(item, inner[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items()
        )
    return isinstance(value, hint)


def ensure(holds: bool, otherwise: str) -> None:
    """Refuse the file unless a condition holds."""
    if not holds:
        raise ModelFileError(f"its parts do not fit together: {otherwise}")


_MAY_BE_OPEN = {
    *("lower_", "upper_", "low", "high", "at_lower", "at_upper"),
    *("between", "at_bound", "log_likelihood_"),
}


def check_sizes(owner: Any, sizes: Mapping[str, int], **shapes: str) -> dict[str, int]:
    """Refuse an owner whose arrays are not finite numbers in the shapes given in letters.

    A digit stands for itself. A letter without a size takes that of its first array; the sizes are
    returned.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> layer = SimpleNamespace(U=np.ones((3, 2)), V=np.ones((2, 5)))
    >>> check_sizes(layer, {"T": 3}, U="TR", V="RD")
    {'T': 3, 'R': 2, 'D': 5}
    >>> check_sizes(layer, {"T": 3, "D": 4}, U="TR", V="RD")
    Traceback (most recent call last):
        ...
    deeptobit.exceptions.ModelFileError: its parts do not fit together: V is not an array of \
shape (2, 4)
    """
    known = dict(sizes)
    for name, letters in shapes.items():
        array: Any = getattr(owner, name, None)
        sound = isinstance(array, np.ndarray) and array.dtype.kind == "f"
        if sound and array.ndim == len(letters):
            for letter, size in zip(letters, array.shape, strict=True):
                known.setdefault(letter, int(letter) if letter.isdigit() else size)
        shape = tuple(known.get(letter, letter) for letter in letters)
        listed = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        ensure(sound and array.shape == shape, f"{name} is not an array of shape ({listed})")
        ensure(name in _MAY_BE_OPEN or bool(np.isfinite(array).all()), f"{name} is not finite")
    return known


# The state of a random number generator.

_KEY_WORDS = 624  # of the Mersenne twister


def _make_random_state(found: dict[str, Any]) -> np.random.RandomState:
    """The generator of a state; compiled code reads its key at any position it is given."""
    position = found["state"]["pos"]
    if not (fits(position, int) and 0 <= position <= _KEY_WORDS):
        raise ValueError("its position lies outside of its key")
    value = np.random.RandomState()
    value.set_state(found)
    return value


RANDOM_STATE = SavedClass(
    np.random.RandomState, lambda value: dict(value.get_state(legacy=False)), _make_random_state
)
