"""The layers of a network by rounds: sums over all rows of a source, then a Newton step."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.layer import Layer, LayerEvaluation, LayerProblem, features, solve
from deeptobit.network import LayerInputs, NetworkLayer
from deeptobit.online import OnlineSettings
from deeptobit.scale.source import Rows
from deeptobit.scale.state import FinishedLayer, Progress, RoundState, Secants
from deeptobit.scale.sums import LayerSums, Moments, Shift, Standardised, SumLayer, SumMoments


@dataclass(frozen=True, kw_only=True)
class ShardedProblem(LayerProblem):
    """A :class:`LayerProblem` whose sums come from one pass over shards of rows.

    Parameters
    ----------
    sums_at : function
        The sums over all rows for the ``directions``, ``slopes``, ``intercept`` and ``sigma`` of a
        :class:`SumLayer`.
    secants : Secants
    features, noise, rank, alpha, …
        As in :class:`LayerProblem`; the features have no matrix.
    """

    sums_at: Callable[[FloatArray, FloatArray, FloatArray, FloatArray], LayerSums]
    secants: Secants = field(default_factory=Secants)
    last: "list[ShardedEvaluation]" = field(default_factory=list)

    def evaluate(self, point: FloatArray, tasks: object = None) -> "ShardedEvaluation":
        """One round: objective, gradient and curvature at a point."""
        if self.last and np.array_equal(self.last[0].point, point):
            return self.last[0]  # a line search evaluates the point it has chosen once more
        layer = self.unpack(point)
        axes, triangle = np.linalg.qr(layer.Z)
        directions, slopes_in = self.features.coefficients(axes), layer.U @ triangle.T
        sums = self.sums_at(directions, slopes_in, layer.intercept, np.exp(layer.log_sigma))
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


@dataclass(frozen=True)
class ShardedEvaluation(LayerEvaluation):
    r"""A point of :class:`ShardedProblem`, whose curvature comes from sums, not from rows.

    The Hessian of task t by its coefficients is :math:`\sum_i c_{it} x_i x_i^\top`, and T such
    matrices are too much to sum. Within the span Q of the current V (and for intercept and scale)
    they are summed exactly. Across it, :math:`\bar c_t \sum_i x_i x_i^\top` is taken: for Gaussian
    features that is exact too, because :math:`c_{it}` depends on x through Vx alone, and the rest
    of x is independent of it. So a round is a Newton step with a Hessian that is nearly exact.

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
    def total_curvature(self) -> FloatArray:
        """Sum over rows of the curvature by the score of every task, (T,)."""
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
        product = self._task_products(d_lines) + self._correction(d_lines)
        by_W, by_intercept, by_scale = product[:-2], product[-2], product[-1]
        return Layer(
            problem.alpha * d.U + by_W.T @ layer.Z + self.slopes_by_coef.T @ d.Z,
            problem.penalty_product(layer.Z, d.Z) + by_W @ layer.U + self.slopes_by_coef @ d.U,
            by_intercept,
            by_scale,
        )

    @cached_property
    def _correction(self) -> Callable[[FloatArray], FloatArray]:
        return self.problem.secants.correct(self._task_products)

    def _task_products(self, d: FloatArray) -> FloatArray:
        """Every task's Hessian times a change of W, intercept and log σ, (r + 2, T)."""
        sums = self.sums
        within = self.axes.T @ d[:-2]
        across = d[:-2] - self.axes @ within
        line = np.vstack([within, d[-2]]).T  # (T, R + 1)
        by_line = np.einsum("tij,tj->ti", sums.curvature, line) + sums.cross * d[-1][:, None]
        by_W = self.axes @ by_line[:, :-1].T + self._variances * across * self.total_curvature
        by_scale = (sums.cross * line).sum(axis=1) + sums.scale_scale * d[-1]
        return np.vstack([by_W, by_line[:, -1], by_scale])


@dataclass
class FitByRounds:
    """The ``fit_layer`` of :func:`grow` that makes rounds over all rows of a source.

    The first pass finds units and moments, each later one makes a Newton step.

    Parameters
    ----------
    rows : Rows
    settings : OnlineSettings
        Of which rank, noise, sigma, intercept and standardisation are used.
    alpha : function
        The penalty for given moments of the data; it may refuse them.
    tol : float
        Norm of the gradient at which to stop, relative to that of least squares at W = 0.
    max_iter : int
        Newton steps, each of at least one round.
    progress : Progress
        Where the fit stands.
    keep : function
        Called with the progress after every round.
    watch : function
        Called with the layer's number and every step.
    """

    rows: Rows
    settings: OnlineSettings
    alpha: Callable[[Moments], float]
    tol: float
    max_iter: int
    progress: Progress
    keep: Callable[[Progress], None]
    watch: Callable[[int, solve.Step], None]

    def __call__(self, inputs: LayerInputs, start: NetworkLayer | None) -> FinishedLayer:
        """The layer at its optimum, in the user's units."""
        before, settings = self.progress, self.settings
        state = before.now
        if not isinstance(state, RoundState):
            first = self.rows.source.first()
            self.rows.reader(first)  # which refuses what has no mean
            shift = Shift.near(inputs(first.X), first.Y)
            state = RoundState(shift, self.rows.total(SumMoments(inputs, shift)))
        alpha = self.alpha(state.moments)
        data = Standardised.of(state.moments, state.shift, settings, inputs.n_outputs)
        problem = self._problem(inputs, alpha, data, state.secants)
        begin = state.layer or self._begin(problem, data, start)
        watch = partial(self.watch, len(inputs.layers))
        log = solve.StepLog(data.gradient_scale, watch, n_restarts=state.n_restarts)
        log.steps.extend(state.steps)

        def remember(layer: Layer) -> None:
            now = replace(state, layer=layer, steps=tuple(log.steps), n_restarts=log.n_restarts)
            self.keep(replace(before, now=replace(now, secants=problem.secants)))

        remember(begin)
        log.keep = remember
        fit = solve.solve_layer(problem, log, begin, tol=self.tol, max_iter=self.max_iter)
        factors = features.to_user(data.features, data.scaling, fit.layer, settings.rank)
        nll = fit.objective - problem.penalty_value(fit.layer)
        finished = FinishedLayer(NetworkLayer(*factors), alpha, fit.n_iter, fit.history, nll)
        summary = before.summary or data.summary()
        self.progress = Progress((*before.finished, finished), None, summary)
        self.keep(self.progress)
        return finished

    def _problem(
        self, inputs: LayerInputs, alpha: float, data: Standardised, secants: Secants
    ) -> ShardedProblem:
        """The layer's problem in standard units."""
        settings, scale, kinds = self.settings, data.scaling.scale, data.kinds
        sigma = None if settings.sigma is None else settings.sigma / scale
        fixed = data.features.design, data.scaling, settings.noise, kinds.one_sided

        def sums_at(*point: FloatArray) -> LayerSums:
            return self.rows.total(SumLayer(inputs, *fixed, *point))

        problem = ShardedProblem(
            features=data.features,
            noise=settings.noise,
            rank=min(settings.rank, data.features.rank),
            alpha=alpha,
            fit_intercept=settings.fit_intercept,
            free_sigma=(sigma is None) & ~(kinds.one_sided | kinds.two_sided),
            total_weight=data.moments.weight,
            sigma=sigma,
            sums_at=sums_at,
            secants=secants,
        )
        if sigma is not None:
            return problem
        floors = solve.sigma_floors(problem, data.moments.known)
        return replace(problem, min_log_sigma=np.log(floors))

    def _begin(
        self, problem: ShardedProblem, data: Standardised, start: NetworkLayer | None
    ) -> Layer:
        """Where the solver begins, in standard units."""
        if start is not None:
            units = data.features, data.scaling
            return problem.balance(features.to_standard(*units, start.factors, problem.rank))
        slopes, intercept, sigma = data.closed_form(self.settings.noise)
        if problem.sigma is not None:
            sigma = problem.sigma
        if not self.settings.fit_intercept:
            intercept = np.zeros_like(intercept)
        # U and Z nearest to the slopes in units of σ.
        left, singular, right = np.linalg.svd(slopes / sigma, full_matrices=False)
        U = (right[: problem.rank].T * singular[: problem.rank]) * sigma[:, None]
        log_sigma = np.maximum(np.log(sigma), problem.min_log_sigma)
        return problem.balance(Layer(U, left[:, : problem.rank], intercept, log_sigma))
