"""Shapes of arrays from a file, in letters: D features, T targets, R components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from deeptobit.exceptions import ModelFileError
from deeptobit.likelihood import NoiseByTask, StandardNoise


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
