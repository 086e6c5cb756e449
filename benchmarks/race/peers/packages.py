"""Whether a peer can run here."""

from collections.abc import Callable
from importlib.util import find_spec


def importable(package: str) -> Callable[[], str | None]:
    """A question for the race: None if the package is installed, otherwise what is missing.

    Examples
    --------
    >>> importable("numpy")() is None
    True
    >>> importable("no_such_package")()
    'the package no_such_package is not installed'
    """

    def reason() -> str | None:
        return None if find_spec(package) else f"the package {package} is not installed"

    return reason
