"""Some of the targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Predictive, of_tasks
from deeptobit.targets import CensoredTargets


def some_targets(targets: CensoredTargets, tasks: Sequence[int]) -> CensoredTargets:
    """Outcomes of some tasks, with their bounds.

    Examples
    --------
    >>> both = CensoredTargets.from_bounds([[0.0, 3.0]], lower=[0, 1], names=["ADAS", "MMSE"])
    >>> one = some_targets(both, [1])
    >>> one.names, one.values, one.lower
    (('MMSE',), array([[3.]]), array([1.]))
    """
    chosen = list(tasks)

    def entries(limits: FloatArray | None) -> FloatArray | None:
        return None if limits is None else limits[:, chosen]

    return replace(
        targets,
        low=targets.low[:, chosen],
        high=targets.high[:, chosen],
        lower=targets.lower[chosen],
        upper=targets.upper[chosen],
        names=tuple(targets.names[task] for task in chosen),
        entry_lower=entries(targets.entry_lower),
        entry_upper=entries(targets.entry_upper),
    )


def some_predictive(predictive: Predictive, tasks: Sequence[int]) -> Predictive:
    """Predictive distributions of some tasks; bounds and σ are arrays, per task or per entry.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian
    >>> bounds = np.zeros(2), np.full(2, 9.0)
    >>> both = Predictive(Gaussian(), np.array([[1.0, 2.0]]), np.array([1.0, 3.0]), *bounds)
    >>> some_predictive(both, [1]).sigma
    array([3.])
    """
    chosen = list(tasks)
    return replace(
        predictive,
        noise=of_tasks(predictive.noise, chosen),
        latent=predictive.latent[:, chosen],
        sigma=predictive.sigma[..., chosen],
        lower=np.asarray(predictive.lower)[..., chosen],
        upper=np.asarray(predictive.upper)[..., chosen],
    )
