"""Optional packages: imported on use, and named in one sentence when they are missing."""

from importlib import import_module
from types import ModuleType

from deeptobit.exceptions import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional ``module``, or say which ``extra`` brings it.

    Examples
    --------
    >>> require("json", "app").dumps([1])
    '[1]'
    >>> require("no_such_package", "brain")
    Traceback (most recent call last):
        ...
    deeptobit.exceptions.MissingExtraError: no_such_package is not installed; it comes with \
the extra 'brain': pip install 'deeptobit[brain]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or module).split(".")[0]
        message = (
            f"{package} is not installed; it comes with the extra '{extra}': "
            f"pip install 'deeptobit[{extra}]'"
        )
        raise MissingExtraError(message) from None
