"""One layer's problem on rows that are not in memory: a round per point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.objective import Layer, LayerEvaluation, LayerProblem
from deeptobit.scale._inputs import LayerInputs
from deeptobit.scale._secants import Correction, Secants
from deeptobit.scale._sums import LayerSums, RowUnits, SumLayer


@dataclass(frozen=True, kw_only=True)
class ShardedProblem(LayerProblem):
    """A :class:`LayerProblem` whose sums come from one pass over shards of rows.

    Parameters
    ----------
    total : function
        Adds up a task's results over all rows.
    inputs, units, silent
        What the tasks need to know; see :class:`SumLayer`.
    features, noise, rank, alpha, …
        As in :class:`LayerProblem`; the features have no matrix.
    """

    total: Callable[[SumLayer], LayerSums]
    inputs: LayerInputs
    units: RowUnits
    silent: BoolArray
    secants: Secants = field(default_factory=Secants)
    last: list[ShardedEvaluation] = field(default_factory=list)

    def evaluate(self, point: FloatArray, tasks: object) -> ShardedEvaluation:
        """One round: objective, gradient and curvature at a point."""
        if self.last and np.array_equal(self.last[0].point, point):
            return self.last[0]  # a line search looks at the point it has chosen once more
        layer = self.unpack(point)
        axes, triangle = np.linalg.qr(layer.Z)
        sums = self.total(
            SumLayer(
                inputs=self.inputs,
                units=self.units,
                noise=self.noise,
                silent=self.silent,
                directions=self.features.coefficients(axes),
                slopes=layer.U @ triangle.T,
                intercept=layer.intercept,
                sigma=np.exp(layer.log_sigma),
            )
        )
        sums = LayerSums(*(part / self.total_weight for part in sums))
        by_W = self.features.adjoint(sums.by_coef)
        slopes = Layer(by_W.T @ layer.Z, by_W @ layer.U, sums.by_intercept, sums.by_scale)
        gradient, free = self.gradient_and_free(layer, slopes)
        value = np.array([float(sums.nll) + self.penalty_value(layer)])
        self.secants.add(
            np.vstack([layer.Z @ layer.U.T, layer.intercept, layer.log_sigma]),
            np.vstack([by_W, sums.by_intercept, sums.by_scale]),
        )
        here = ShardedEvaluation(
            self, layer, value, gradient, free, sums.scale_scale, point.copy(), axes, by_W, sums
        )
        self.last[:] = [here]
        return here

    def value(self, point: FloatArray, tasks: object) -> FloatArray:
        """The objective alone, (1,): a round as well, of which only the value is used."""
        return self.evaluate(point, tasks).value


@dataclass(frozen=True)
class ShardedEvaluation(LayerEvaluation):
    r"""A point of :class:`ShardedProblem`, with curvature from sums instead of rows.

    The Hessian of task t by its coefficients is :math:`\sum_i c_{it} x_i x_i^\top`, and T such
    matrices are too much to sum. Within the span Q of the current V (and for intercept and scale)
    they are summed exactly. Across it, :math:`\bar c_t \sum_i x_i x_i^\top` is taken: for Gaussian
    features that is exact too, because :math:`c_{it}` depends on x through Vx alone, and the rest
    of x is independent of it. So a round is a Newton step with a Hessian that is nearly right.

    Parameters
    ----------
    point : array of shape (P, 1)
    axes : array of shape (r, R)
        Q in the basis of Z, orthonormal.
    slopes_by_coef : array of shape (r, T)
    sums : LayerSums
        Divided by the total weight.
    """

    problem: ShardedProblem
    point: FloatArray
    axes: FloatArray
    slopes_by_coef: FloatArray
    sums: LayerSums

    @property
    def level(self) -> FloatArray:
        """Total curvature by the score of every task, (T,)."""
        return np.abs(self.sums.curvature[:, -1, -1])

    @property
    def second_moments(self) -> FloatArray:
        """Of the rows' coordinates Vx, (R, R)."""
        return np.asarray(self.layer.Z.T @ (self._variances * self.layer.Z))

    def by_coefficients(self) -> FloatArray:
        """The likelihood's gradient by W in the basis of Z, transposed, (r, T)."""
        return self.slopes_by_coef

    @property
    def _variances(self) -> FloatArray:
        """Second moments of the features in the basis of Z, which makes them round, (r, 1)."""
        return 1.0 - self.problem.features.ridge[:, None]

    def _smooth_product(self, direction: FloatArray) -> Layer:
        problem, layer = self.problem, self.layer
        d = problem.unpack(direction)
        d_lines = np.vstack([d.Z @ layer.U.T + layer.Z @ d.U.T, d.intercept, d.log_sigma])
        product = self._task_products(d_lines) + self._correction.apply(d_lines)
        by_W, by_intercept, by_scale = product[:-2], product[-2], product[-1]
        return Layer(
            problem.alpha * d.U + by_W.T @ layer.Z + self.slopes_by_coef.T @ d.Z,
            problem.alpha * problem.penalty.product(layer.Z, d.Z)
            + by_W @ layer.U
            + self.slopes_by_coef @ d.U,
            by_intercept,
            by_scale,
        )

    @cached_property
    def _correction(self) -> Correction:
        return self.problem.secants.correct(self._task_products)

    def _task_products(self, d: FloatArray) -> FloatArray:
        """Every task's Hessian times a change of W, intercept and log σ, (r + 2, T)."""
        sums = self.sums
        within = self.axes.T @ d[:-2]
        across = d[:-2] - self.axes @ within
        line = np.vstack([within, d[-2]]).T  # (T, R + 1)
        by_line = np.einsum("tij,tj->ti", sums.curvature, line) + sums.cross * d[-1][:, None]
        by_W = self.axes @ by_line[:, :-1].T + self._variances * across * self.level
        by_scale = (sums.cross * line).sum(axis=1) + sums.scale_scale * d[-1]
        return np.vstack([by_W, by_line[:, -1], by_scale])
