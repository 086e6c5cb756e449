"""What a result was made with."""

import platform
from importlib.metadata import version


def versions() -> dict[str, str]:
    """Versions of Python, of deeptobit and of what its numbers depend on.

    Examples
    --------
    >>> list(versions())
    ['python', 'deeptobit', 'numpy', 'scipy', 'scikit-learn']
    """
    packages = ("deeptobit", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}
