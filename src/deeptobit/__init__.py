"""Multi-task censored regression.

The public names load on first use (PEP 562), so that ``import deeptobit`` and
``deeptobit --help`` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

if TYPE_CHECKING:
    from deeptobit import datasets, metrics
    from deeptobit.estimators import (
        AutoTobitRegressor,
        MixedTobitRegressor,
        SubspaceNetworkCV,
        SubspaceNetworkRegressor,
        SubspaceTobitRegressor,
        TobitRegressor,
        load,
    )
    from deeptobit.targets import CensoredTargets

__all__ = [
    "AutoTobitRegressor",
    "CensoredTargets",
    "MixedTobitRegressor",
    "SubspaceNetworkCV",
    "SubspaceNetworkRegressor",
    "SubspaceTobitRegressor",
    "TobitRegressor",
    "datasets",
    "load",
    "metrics",
]


def __getattr__(name: str) -> object:
    if name in ("datasets", "metrics"):
        return import_module(f"deeptobit.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'deeptobit' has no attribute {name!r}")
    room = import_module("deeptobit." + ("targets" if name == "CensoredTargets" else "estimators"))
    globals().update({public: vars(room)[public] for public in __all__ if public in vars(room)})
    return globals()[name]


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
