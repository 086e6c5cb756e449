"""Arrays as raw little-endian bytes, with a description that is checked before it is believed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeptobit.exceptions import ModelFileError

AnyArray = NDArray[Any]
_DTYPES = re.compile(r"\|b1|\|[iu]1|<[iuf][248]|<U[1-9][0-9]{0,5}")
_MOST_DIMENSIONS = 32
_LARGEST = 2**48  # entries, an empty dimension counted as 1: far beyond any file, within int64
_LAST_CHARACTER = 0x10FFFF


@dataclass(frozen=True)
class ArraySpec:
    """Type, shape and memory order of an array.

    The order is kept because products round differently on rows than on columns.

    Parameters
    ----------
    dtype : str
        As NumPy writes it: bool, integers and floats up to 8 bytes, fixed-width text.
    shape : tuple of int
    order : {"C", "F"}

    Examples
    --------
    >>> spec = ArraySpec.of(np.ones((3, 2)).T)
    >>> spec, spec.n_bytes
    (ArraySpec(dtype='<f8', shape=(2, 3), order='F'), 48)
    """

    dtype: str
    shape: tuple[int, ...]
    order: str

    @classmethod
    def of(cls, array: AnyArray) -> ArraySpec:
        """Describe an array; ``TypeError`` where its type is none of ours."""
        dtype = array.dtype.newbyteorder("<").str
        if not _DTYPES.fullmatch(dtype):
            raise TypeError(f"an array of type {array.dtype}")
        strides = np.empty_like(array, order="K").flags
        return cls(dtype, array.shape, "C" if strides.c_contiguous else "F")

    @classmethod
    def parse(cls, description: Any) -> ArraySpec:
        """Read what a file says; nothing is allocated."""
        match description:
            case [str(dtype), [*shape], "C" | "F" as order] if _DTYPES.fullmatch(dtype):
                if len(shape) <= _MOST_DIMENSIONS and all(map(_is_size, shape)):
                    spec = cls(dtype, tuple(shape), order)
                    if math.prod(max(size, 1) for size in shape) <= _LARGEST:
                        return spec
        raise ModelFileError("an array has a type or shape that model files do not have")

    @property
    def n_bytes(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def describe(self) -> list[Any]:
        """What :meth:`parse` reads."""
        return [self.dtype, list(self.shape), self.order]

    def dump(self, array: AnyArray) -> memoryview:
        """The bytes of the array in its own order."""
        rows = array.T if self.order == "F" else array
        little = np.ascontiguousarray(rows, dtype=self.dtype)
        return little.reshape(-1).view(np.uint8).data

    def load(self, file: BufferedReader) -> AnyArray:
        """Read the array; the caller knows that the file holds that many bytes."""
        flat = np.empty(math.prod(self.shape), self.dtype)
        raw = flat.view(np.uint8)
        if file.readinto(raw.data) != self.n_bytes:
            raise ModelFileError("the file ends too early")
        if flat.dtype.kind == "b" and raw.max(initial=0) > 1:
            raise ModelFileError("an array of truth values holds something else")
        if flat.dtype.kind == "U" and raw.view("<u4").max(initial=0) > _LAST_CHARACTER:
            raise ModelFileError("an array of text holds something else")
        return flat.reshape(self.shape, order="F" if self.order == "F" else "C")


def _is_size(size: object) -> bool:
    return type(size) is int and size >= 0
