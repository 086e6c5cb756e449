"""One layer to its optimum by rounds: sums over all rows, then a Newton step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise
from deeptobit.network import NetworkLayer
from deeptobit.objective import Layer, to_standard, to_user
from deeptobit.scale._inputs import LayerInputs
from deeptobit.scale._moments import Moments, Shift, SumMoments
from deeptobit.scale._problem import ShardedProblem
from deeptobit.scale._rows import Rows
from deeptobit.scale._secants import Secants
from deeptobit.scale._start import Standardised, truncated
from deeptobit.scale._state import RoundState
from deeptobit.scale._sums import RowUnits
from deeptobit.solvers import CensoringKinds, Course, Step, SubspaceFit, floors_for, solve_layer


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
    course = Course(data.gradient_scale, watch, steps=list(state.steps))
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
    return replace(problem, min_log_sigma=np.log(floors_for(problem, data.moments.known)))


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
