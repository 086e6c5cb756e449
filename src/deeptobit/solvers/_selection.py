"""Which features stay: a smooth way to the support of the group penalty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deeptobit.objective import Layer, LayerProblem
from deeptobit.solvers._course import Course
from deeptobit.solvers._newton import solve_newton

_LEVELS = (1.0, 0.2, 0.04, 0.008, 0.002)  # of the mean size of a column of V
_MAX_ITER = 30  # per level
_ROUNDING = 1e-12


def select_features(problem: LayerProblem, course: Course, layer: Layer) -> Layer:
    r"""Go near the optimum with norms smoothed less and less, and drop what has become small.

    Newton's method at the kinks lets dozens of correlated features leave and enter by turns. With
    :math:`\sqrt{\|V_d\|^2 + \epsilon^2}` in place of each norm there is no kink, all features are
    decided on together, and what is left to the exact problem is the choice among the few whose
    columns are about as large as the last ε.
    """
    unit = float(np.linalg.norm(layer.Z, axis=1).mean())
    for level in _LEVELS if unit > 0.0 else ():
        smooth = replace(problem, smoothing=level * unit)
        result = solve_newton(
            smooth,
            smooth.pack(layer),
            tol=np.array([max(0.01 * level, 1e-4) * course.gradient_scale]),
            max_iter=_MAX_ITER,
            watch=course.follow(smooth),
        )
        layer = smooth.unpack(result.point)
    sizes = np.linalg.norm(layer.Z, axis=1)[:, None]
    return layer._replace(Z=np.where(sizes < _LEVELS[-1] * unit, 0.0, layer.Z))


def drop_if_idle(problem: LayerProblem, layer: Layer, objective: float) -> Layer:
    """The layer without coefficients if that is no worse: on the way to 0 they never arrive."""
    empty = layer._replace(U=np.zeros_like(layer.U), Z=np.zeros_like(layer.Z))
    value = float(problem.value(problem.pack(empty), np.zeros(1, dtype=np.intp))[0])
    return empty if value <= objective + _ROUNDING * abs(objective) else layer
