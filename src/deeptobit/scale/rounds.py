"""One layer to its optimum by rounds: sums over all rows, then a Newton step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer import (
    CensoringKinds,
    Layer,
    LayerEvaluation,
    LayerProblem,
    Step,
    StepLog,
    SubspaceFit,
    sigma_floors,
    solve_layer,
    to_standard,
    to_user,
)
from deeptobit.likelihood import Noise
from deeptobit.network import NetworkLayer, on_top
from deeptobit.scale.source import Rows
from deeptobit.scale.state import (
    Correction,
    DataSummary,
    FinishedLayer,
    Progress,
    RoundState,
    Secants,
)
from deeptobit.scale.sums import (
    LayerInputs,
    LayerSums,
    Moments,
    RowUnits,
    Shift,
    Standardised,
    SumLayer,
    SumMoments,
    truncated,
)

# One layer's problem on rows that are not in memory: a round per point.


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

    def evaluate(self, point: FloatArray, tasks: object = None) -> ShardedEvaluation:
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
        product = self._task_products(d_lines) + self._correction.apply(d_lines)
        by_W, by_intercept, by_scale = product[:-2], product[-2], product[-1]
        return Layer(
            problem.alpha * d.U + by_W.T @ layer.Z + self.slopes_by_coef.T @ d.Z,
            problem.penalty_product(layer.Z, d.Z) + by_W @ layer.U + self.slopes_by_coef @ d.U,
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
        by_W = self.axes @ by_line[:, :-1].T + self._variances * across * self.total_curvature
        by_scale = (sums.cross * line).sum(axis=1) + sums.scale_scale * d[-1]
        return np.vstack([by_W, by_line[:, -1], by_scale])


@dataclass(frozen=True)
class RoundSettings:
    """What the user asks of a layer.

    Parameters
    ----------
    rank : int
    alpha : function
        The penalty for given moments of the data; it may refuse them.
    noise : Noise
    sigma : array of shape (T,), optional
        Given noise scales in the user's units.
    fit_intercept, standardize : bool
    tol : float
        Norm of the gradient at which to stop, relative to that of least squares at W = 0.
    max_iter : int
        Newton steps, each of at least one round.
    """

    rank: int
    alpha: Callable[[Moments], float]
    noise: Noise
    sigma: FloatArray | None
    fit_intercept: bool
    standardize: bool
    tol: float
    max_iter: int


@dataclass(frozen=True)
class RoundsFit:
    """A layer in the user's units, and how it was found.

    Parameters
    ----------
    layer : NetworkLayer
    fit : SubspaceFit
        In standard units.
    alpha, nll : float
        The penalty, and the mean negative log likelihood of a row in standard units.
    data : Standardised
        Moments and units of its inputs.
    kinds : CensoringKinds
    """

    layer: NetworkLayer
    fit: SubspaceFit
    alpha: float
    nll: float
    data: Standardised
    kinds: CensoringKinds


def fit_layer(
    rows: Rows,
    inputs: LayerInputs,
    settings: RoundSettings,
    *,
    start: NetworkLayer | None = None,
    state: RoundState | None = None,
    keep: Callable[[RoundState], None] | None = None,
    watch: Callable[[Step], None] | None = None,
) -> RoundsFit:
    """Minimise a layer's objective; the first pass learns units and moments, each later one steps.

    Parameters
    ----------
    rows : Rows
    inputs : LayerInputs
    settings : RoundSettings
    start : NetworkLayer, optional
        Where to begin, in the user's units; by default from least squares.
    state : RoundState, optional
        Where an earlier fit was interrupted.
    keep, watch : functions, optional
        Called after the first pass and after every step.
    """
    if state is None:
        first = rows.first()
        shift = Shift.near(inputs(first.X), first.Y)
        state = RoundState(shift, rows.total(SumMoments(inputs, shift)))
    alpha = settings.alpha(state.moments)
    data = Standardised.of(
        state.moments,
        state.shift,
        fit_intercept=settings.fit_intercept,
        standardize=settings.standardize,
        n_outputs=inputs.n_outputs,
    )
    kinds = data.kinds()
    problem = _pose(rows, inputs, settings, alpha, data, kinds, state.secants)
    begin = state.layer or _begin(problem, settings, data, kinds, start)
    course = StepLog(data.gradient_scale, watch, steps=list(state.steps))
    if keep is not None:
        keep(replace(state, layer=begin))
        course.keep = lambda layer: keep(
            replace(state, layer=layer, steps=tuple(course.steps), secants=problem.secants)
        )
    fit = solve_layer(problem, course, begin, tol=settings.tol, max_iter=settings.max_iter)
    factors = to_user(data.features, data.scaling, fit.layer, settings.rank)
    nll = fit.objective - problem.penalty_value(fit.layer)
    return RoundsFit(NetworkLayer(*factors), fit, alpha, nll, data, kinds)


def _pose(
    rows: Rows,
    inputs: LayerInputs,
    settings: RoundSettings,
    alpha: float,
    data: Standardised,
    kinds: CensoringKinds,
    secants: Secants,
) -> ShardedProblem:
    """The layer's problem in standard units."""
    design, scaling = data.features.design, data.scaling
    n_tasks = len(scaling.scale)
    given = settings.sigma is not None
    problem = ShardedProblem(
        features=data.features,
        noise=settings.noise,
        rank=min(settings.rank, data.features.rank),
        alpha=alpha,
        fit_intercept=settings.fit_intercept,
        free_sigma=np.full(n_tasks, not given) & ~(kinds.one_sided | kinds.two_sided),
        min_log_sigma=np.full(n_tasks, -np.inf),
        fixed_log_sigma=(
            np.zeros(n_tasks) if settings.sigma is None else np.log(settings.sigma / scaling.scale)
        ),
        total_weight=data.moments.weight,
        total=rows.total,
        inputs=inputs,
        units=RowUnits(design.mean, design.scale, scaling.location, scaling.scale),
        silent=kinds.one_sided,
        secants=secants,
    )
    if given:
        return problem
    return replace(problem, min_log_sigma=np.log(sigma_floors(problem, data.moments.known)))


def _begin(
    problem: ShardedProblem,
    settings: RoundSettings,
    data: Standardised,
    kinds: CensoringKinds,
    start: NetworkLayer | None,
) -> Layer:
    """Where the solver begins, in standard units."""
    if start is not None:
        factors = start.U, start.V, start.intercept, start.sigma
        return problem.balance(to_standard(data.features, data.scaling, factors, problem.rank))
    slopes, intercept, sigma = data.line(kinds, settings.noise)
    if settings.sigma is not None:
        sigma = np.exp(problem.fixed_log_sigma)
    if not settings.fit_intercept:
        intercept = np.zeros_like(intercept)
    U, Z = truncated(slopes, sigma, problem.rank)
    log_sigma = np.maximum(np.log(sigma), problem.min_log_sigma)
    return problem.balance(Layer(U, Z, intercept, log_sigma))


# A network to the optimum of every layer, by rounds over all rows.

Keep = Callable[[Progress], None]


def grow_by_rounds(
    rows: Rows,
    bounds: tuple[FloatArray, FloatArray],
    settings: RoundSettings,
    *,
    n_layers: int,
    skip_connection: bool = True,
    progress: Progress | None = None,
    keep: Keep = lambda progress: None,
    watch: Callable[[int, Step], None] = lambda depth, step: None,
) -> Progress:
    """Fit layer after layer, each to its optimum on [f; x] of those below.

    Parameters
    ----------
    rows : Rows
    bounds : arrays of shape (T,)
        Lower and upper bounds at which outputs are censored.
    settings : RoundSettings
    n_layers : int
    skip_connection : bool
    progress : Progress, optional
        Where an earlier fit was interrupted.
    keep : function
        Called with the progress after every round.
    watch : function
        Called with the layer's number and every step.

    Returns
    -------
    Progress
        With ``n_layers`` finished layers.
    """
    progress = progress or Progress()
    n_features = len(rows.source.features)
    while len(progress.finished) < n_layers:
        layers, before = progress.layers, progress
        depth = len(layers)
        start = on_top(layers[-1], n_features) if layers and skip_connection else None
        found = fit_layer(
            rows,
            LayerInputs(*bounds, layers, skip_connection),
            settings,
            start=start,
            state=progress.now if isinstance(progress.now, RoundState) else None,
            keep=lambda state, before=before: keep(replace(before, now=state)),  # type: ignore[misc]
            watch=lambda step, depth=depth: watch(depth, step),  # type: ignore[misc]
        )
        progress = Progress(
            (*progress.finished, _finished(found)), None, progress.summary or _summary(found)
        )
        keep(progress)
    return progress


def _finished(found: RoundsFit) -> FinishedLayer:
    fit = found.fit
    history = {
        "objective": fit.objective,
        "gradient_norm": fit.gradient_norm,
        "certificate": fit.certificate,
        "converged": fit.converged,
        "course": list(fit.steps),
    }
    return FinishedLayer(found.layer, found.alpha, found.nll, fit.n_iter, history)


def _summary(found: RoundsFit) -> DataSummary:
    moments, shift = found.data.moments, found.data.shift
    mean = shift.X + moments.x / moments.weight
    variance = np.diagonal(moments.xx) / moments.weight - (moments.x / moments.weight) ** 2
    variance = np.maximum(variance, 0.0)
    return DataSummary(
        moments.n_rows,
        moments.weight,
        moments.known,
        variance + mean**2,
        np.sqrt(variance),
        found.kinds.one_sided,
        found.kinds.two_sided,
    )
