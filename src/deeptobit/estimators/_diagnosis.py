"""Whether a problem is determined, and if not, which target or feature is at fault."""

import warnings

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.exceptions import CollinearityWarning
from deeptobit.objective import RoundFeatures
from deeptobit.targets import CensoredTargets

_NAMES_SHOWN = 10


def check_determined(
    targets: CensoredTargets, weight: FloatArray, n_features: int, alpha: float
) -> None:
    """Every task needs an entry, and without a penalty at least as many as there are features."""
    present = weight > 0.0
    counts = (~targets.missing[present]).sum(axis=0)
    for task in np.flatnonzero(counts == 0).tolist():
        raise ValueError(
            f"target {targets.names[task]!r} has no entry (all are missing"
            f"{' or have weight 0' if not present.all() else ''}); drop it"
        )
    if alpha > 0.0:
        return
    n_rows = int(present.sum())
    if n_rows < n_features:
        raise ValueError(
            f"{n_rows} row(s) (n_samples = {n_rows}) cannot determine {n_features} features "
            "without a penalty; set alpha > 0, for example TobitRegressor(alpha=0.1)"
        )
    for task in np.flatnonzero(counts < n_features).tolist():
        raise ValueError(
            f"target {targets.names[task]!r} has {counts[task]} entries for {n_features} features; "
            "set alpha > 0, or drop it"
        )


def warn_of_collinearity(features: RoundFeatures, names: list[str], alpha: float) -> None:
    """Name the columns that are constant or depend linearly on others."""
    if alpha > 0.0 or features.n_dropped == 0:
        return
    involved = [names[column] for column in np.flatnonzero(features.dependent_columns()).tolist()]
    shown = ", ".join(map(repr, involved[:_NAMES_SHOWN]))
    more = f" and {len(involved) - _NAMES_SHOWN} more" if len(involved) > _NAMES_SHOWN else ""
    warnings.warn(
        f"features {shown}{more} are constant or linearly dependent ({features.n_dropped} "
        "redundant direction(s)); the coefficients of minimum norm were taken. Drop the redundant "
        "columns, or set alpha > 0",
        CollinearityWarning,
        stacklevel=3,
    )
