"""The course of a batch solver, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.objective import Layer, LayerProblem


@dataclass(frozen=True)
class Step:
    """The state of the solver after a Newton step.

    Parameters
    ----------
    n_iter : int
        Steps taken.
    objective : float
        The penalised mean likelihood, in standard units; while features are being chosen, with
        the penalty smoothed.
    gradient_norm : float
        Of the whole gradient, relative to that by W at W = 0.
    subspace_change : float
        ‖U_i − U_{i−1}‖/‖U_i‖, U_{i−1} being turned towards U_i first: a rotation of both factors
        changes nothing.
    """

    n_iter: int
    objective: float
    gradient_norm: float
    subspace_change: float


@dataclass
class Course:
    """Steps as they are taken, each passed on to ``watch``, and where they led to ``keep``."""

    gradient_scale: float
    watch: Callable[[Step], None] | None = None
    keep: Callable[[Layer], None] | None = None
    steps: list[Step] = field(default_factory=list)

    def follow(self, problem: LayerProblem) -> Callable[[FloatArray, FloatArray, FloatArray], None]:
        """What to call with point, value and gradient norm: at the start, then after each step."""
        before: FloatArray | None = None

        def see(point: FloatArray, value: FloatArray, norm: FloatArray) -> None:
            nonlocal before
            layer = problem.unpack(point)
            if before is not None:
                self._add(float(value[0]), float(norm[0]), subspace_change(before, layer.U))
                if self.keep is not None:
                    self.keep(layer)
            before = layer.U.copy()

        return see

    def _add(self, objective: float, norm: float, change: float) -> None:
        step = Step(len(self.steps) + 1, objective, norm / self.gradient_scale, change)
        self.steps.append(step)
        if self.watch is not None:
            self.watch(step)


def subspace_change(before: FloatArray, after: FloatArray) -> float:
    """‖after − before·Q‖/‖after‖ with the rotation Q that makes it least; 0 if both are 0.

    Examples
    --------
    >>> U = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> subspace_change(U[:, ::-1], U), subspace_change(2.0 * U, U)
    (0.0, 1.0)
    """
    left, _, right = np.linalg.svd(before.T @ after)
    distance = float(np.linalg.norm(after - before @ (left @ right)))
    size = float(np.linalg.norm(after))
    return distance / size if size > 0.0 else float(np.sign(distance))
