"""Python values as plain state and back, with their types.

JSON and arrays have no tuples, objects or NumPy scalars. These become dicts with the key ``"is"``:
``{"is": "tuple", "items": […]}``, ``{"is": "StudentT", "fields": {"df": 4.0}}``. An array that
occurs again is stored once: ``{"is": "same", "as": 3}`` is the array with number 3.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from deeptobit.exceptions import ModelFileError

_UNSOUND = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)
_LONGEST_RANGE = 10_000
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


class Packer:
    """Values to plain state.

    Examples
    --------
    >>> Packer({}).pack({"nll": (1.5, 2.5), "rank": 3})
    {'nll': {'is': 'tuple', 'items': [1.5, 2.5]}, 'rank': 3}
    """

    def __init__(self, classes: Mapping[str, SavedClass]) -> None:
        self._classes = {saved.cls: (name, saved) for name, saved in classes.items()}
        # By identity, and with the array itself: an id is not used again while its object lives.
        self._arrays: dict[int, tuple[int, Any]] = {}

    def pack(self, value: Any, where: str = "value") -> Any:
        """Plain state; ``where`` names the value in errors."""
        kind = type(value)
        if kind in _KEYS:
            return value
        if kind is np.str_:
            return str(value)
        if kind in self._classes:
            name, saved = self._classes[kind]
            taken = saved.take(value).items()
            fields = {key: self.pack(item, f"{where}.{key}") for key, item in taken}
            return {"is": name, "fields": fields}
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return {"is": "scalar", "value": np.asarray(value)}
        if kind is np.ma.MaskedArray:
            return {"is": "masked", "parts": self.pack([value.data, np.ma.getmaskarray(value)])}
        if isinstance(value, np.ndarray):
            return self._pack_array(value, where)
        if kind in (list, tuple):
            items = self._pack_each(value, where)
            return items if kind is list else {"is": "tuple", "items": items}
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
        if "is" not in plain:
            return {key: self.unpack(item) for key, item in plain.items()}
        tag = plain["is"]
        if not isinstance(tag, str):
            raise ModelFileError("it holds something without a name")
        match plain:
            case {"as": int(number)} if tag == "same" and 0 <= number < len(self._arrays):
                return self._arrays[number]
            case {"items": list(items)} if tag == "tuple":
                return tuple(self.unpack(items))
            case {"value": np.ndarray(shape=()) as value} if tag == "scalar":
                return value[()]
            case {"ends": [int(start), int(stop), int(step)]} if tag == "range" and step:
                if len(found := range(start, stop, step)) <= _LONGEST_RANGE:
                    return found
                raise ModelFileError("a range in it is longer than any setting")
            case {"items": list(pairs)} if tag == "dict":
                return self._unpack_dict(pairs)
            case {"items": list(items)} if tag == "objects":
                array = np.empty(len(items), dtype=object)
                for index, item in enumerate(items):
                    array[index] = self.unpack(item)
                return array
            case {"parts": list(parts)} if tag == "masked":
                match self.unpack(parts):
                    case [np.ndarray() as data, np.ndarray(dtype=np.dtype(kind="b")) as mask]:
                        if data.shape == mask.shape:
                            return np.ma.MaskedArray(data, mask=mask)
                raise ModelFileError("a masked array and its mask differ in shape")
            case {"fields": dict(fields)} if tag in self._classes:
                values = {field: self.unpack(item) for field, item in fields.items()}
                try:
                    return self._classes[tag].make(values)
                except ModelFileError:
                    raise
                except _UNSOUND as error:
                    raise ModelFileError(f"its {tag} is not sound: {error}") from None
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


def _take_random_state(value: np.random.RandomState) -> dict[str, Any]:
    state: Any = value.get_state(legacy=False)
    if state.pop("bit_generator") != "MT19937":
        raise TypeError("a RandomState can be saved only with its own generator, MT19937")
    inner = state.pop("state")
    return {"key": inner["key"], "position": inner["pos"], **state}


def _make_random_state(found: dict[str, Any]) -> np.random.RandomState:
    """The generator of these fields; compiled code reads its key at any position it is given."""
    key, position = found["key"], found["position"]
    if not (isinstance(key, np.ndarray) and key.shape == (_KEY_WORDS,) and key.dtype == np.uint32):
        raise ValueError("its key is not that of a Mersenne twister")
    if not (fits(position, int) and 0 <= position <= _KEY_WORDS):
        raise ValueError("its position lies outside of its key")
    value = np.random.RandomState()
    value.set_state(("MT19937", key, position, found["has_gauss"], found["gauss"]))
    return value


RANDOM_STATE = SavedClass(np.random.RandomState, _take_random_state, _make_random_state)
