"""Sizes of data that is drawn."""

from numbers import Integral
from typing import Any


def check_size(name: str, size: Any, least: int = 1) -> None:
    """A whole number that is large enough; the name is that of the argument.

    Examples
    --------
    >>> check_size("n_samples", 5.5)
    Traceback (most recent call last):
    ValueError: n_samples must be a whole number, at least 1; got 5.5
    """
    if not (isinstance(size, Integral) and int(size) >= least):
        raise ValueError(f"{name} must be a whole number, at least {least}; got {size!r}")
