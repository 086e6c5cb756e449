"""Sections of a study file: which keys there are, what each must hold, and errors that say so."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields
from sys import float_info
from typing import Any, TypeVar

from deeptobit.study._errors import did_you_mean, shown
from deeptobit.study._lines import Source

Section = TypeVar("Section")


def key(expected: str, holds: Callable[[Any], bool], default: Any = MISSING) -> Any:
    """A key of a section: what it must hold, in words and as a test; without default, required."""
    return field(default=default, metadata={"expected": expected, "holds": holds})


def read_section(
    kind: type[Section], values: Any, where: tuple[str, ...], source: Source, **given: Any
) -> Section:
    """Fill a dataclass of keys from a table of the study file, or name what is wrong with it."""
    known: dict[str, Field[Any]] = {
        item.name: item
        for item in fields(kind)  # type: ignore[arg-type]
        if item.metadata
    }
    title = f"[{'.'.join(where)}]"
    if not isinstance(values, Mapping):
        raise source.error(
            where, f"{where[-1]} must be a table, written {title}; got {shown(values)}"
        )
    for name, value in values.items():
        if name not in known:
            raise source.error(
                (*where, name),
                f"{title} has no key {name!r} (its keys are {', '.join(known)})"
                f"{did_you_mean(name, known)}",
            )
        if not known[name].metadata["holds"](value):
            expected = known[name].metadata["expected"]
            hint = did_you_mean(value, _choices(expected)) if isinstance(value, str) else ""
            raise source.error(
                (*where, name), f"{title} {name} must be {expected}; got {shown(value)}{hint}"
            )
    for name, item in known.items():
        if item.default is MISSING and name not in values:
            expected = item.metadata["expected"]
            raise source.error(where, f"{title} lacks the key {name!r}: {expected}")
    return kind(**given, **{name: _frozen(value) for name, value in values.items()})


def one_of(*words: str, default: Any = MISSING) -> Any:
    """A key that holds one of a few words."""
    return key(" or ".join(repr(word) for word in words), lambda value: value in words, default)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; true and false are not."""
    # Whole numbers have no largest, and compare with a float without becoming one.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and abs(value) <= float_info.max


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number that is not too small."""
    return is_number(value) and isinstance(value, int) and value >= least


def is_name(value: Any) -> bool:
    """Whether a value is text that is not empty."""
    return isinstance(value, str) and bool(value.strip())


def is_file_name(value: Any) -> bool:
    """Whether a value could be the name of a file."""
    return is_name(value) and "\0" not in value


def is_list(value: Any, holds: Callable[[Any], bool]) -> bool:
    """Whether a value is a list, every element of which passes a test."""
    return isinstance(value, list) and all(holds(element) for element in value)


def _choices(expected: str) -> list[str]:
    return [word.strip("'") for word in expected.split(" or ") if word.startswith("'")]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
