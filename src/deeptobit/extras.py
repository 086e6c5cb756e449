"""Optional packages: imported on use, with an error that names the extra if they are missing."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from deeptobit.exceptions import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import an optional ``module``, or raise an error that names its ``extra``.

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
        raise _missing((error.name or module).split(".")[0], extra) from None


def require_folder(package: str, extra: str) -> Path:
    """The folder of an optional ``package``, which is not imported: only its files are needed.

    Examples
    --------
    >>> (require_folder("json", "app") / "decoder.py").exists()
    True
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise _missing(package, extra)
    return Path(spec.origin).parent


def _missing(package: str, extra: str) -> MissingExtraError:
    """The error; pip adds an extra to the deeptobit that is installed, wherever that came from."""
    return MissingExtraError(
        f"{package} is not installed; it comes with the extra '{extra}': "
        f"pip install 'deeptobit[{extra}]'"
    )
