"""Multi-task censored regression.

The public names load on first use (PEP 562), so that ``import deeptobit`` and
``deeptobit --help`` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from deeptobit import datasets, metrics
    from deeptobit.estimators import (
        AutoTobitRegressor,
        SubspaceNetworkCV,
        SubspaceNetworkRegressor,
        SubspaceTobitRegressor,
        TobitRegressor,
        load,
    )
    from deeptobit.targets import CensoredTargets

_HOME = {
    "AutoTobitRegressor": "deeptobit.estimators",
    "CensoredTargets": "deeptobit.targets",
    "SubspaceNetworkCV": "deeptobit.estimators",
    "SubspaceNetworkRegressor": "deeptobit.estimators",
    "SubspaceTobitRegressor": "deeptobit.estimators",
    "TobitRegressor": "deeptobit.estimators",
    "load": "deeptobit.estimators",
}
_ROOMS = ("datasets", "metrics")

__all__ = [
    "AutoTobitRegressor",
    "CensoredTargets",
    "SubspaceNetworkCV",
    "SubspaceNetworkRegressor",
    "SubspaceTobitRegressor",
    "TobitRegressor",
    "datasets",
    "load",
    "metrics",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in _ROOMS:
        return import_module(f"deeptobit.{name}")
    raise AttributeError(f"module 'deeptobit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
