"""Exceptions and warnings of deeptobit.

Errors in what a user passes are ``ValueError``, as in scikit-learn. The classes below are for
cases that a caller may want to tell apart.
"""

import os
import sys
import warnings
from types import FrameType

_PACKAGE = os.path.dirname(__file__) + os.sep


class MissingExtraError(ImportError):
    """An optional package is needed; the message names the extra that brings it."""


class ModelFileError(ValueError):
    """The file is not a model file, is damaged, or comes from a newer version."""


class DivergenceError(ArithmeticError):
    """The steps of a published algorithm were too long; the message names layer, row and step."""


class CensoringWarning(UserWarning):
    """The censoring pattern leaves something undetermined, and a convention filled it in."""


class SeparationWarning(UserWarning):
    """Some coefficients diverge: the data separate censored from observed rows."""


class CollinearityWarning(UserWarning):
    """Columns of X are constant or linearly dependent; the minimum-norm solution was taken."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the line of the user's code that led here, however deep in the package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
