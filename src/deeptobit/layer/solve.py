"""One layer to its optimum: null model, start, and Newton's method on U, V, intercepts and σ."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.layer.features import Layer
from deeptobit.layer.newton import NewtonResult, solve_newton
from deeptobit.layer.problem import LayerEvaluation, LayerProblem, SubspaceProblem
from deeptobit.layer.tobit import SIGMA_FLOOR, CensoringKinds, OlsenProblem, fit_constants

_NO_GRADIENT = 1e-6  # in standard units: below this, rounding is all there is
_LEAST_GRADIENT = 1e-14  # in standard units: no tolerance goes below rounding
_LONGEST_START = 1e3  # of a task, in its standard deviations
_CAUTION = 1.5  # on the count of parameters in the floor of σ; chosen on simulated small cohorts


@dataclass(frozen=True)
class NullLayer:
    """A layer at W = 0 in standard units, and the gradient by W there.

    Parameters
    ----------
    problem : SubspaceProblem
        With floors of σ; tasks whose likelihood has no maximum are missing.
    layer : Layer
    evaluation : LayerEvaluation
    gradient : array of shape (r, T)
        In an orthonormal basis of the features, transposed.
    kinds : CensoringKinds
    """

    problem: SubspaceProblem
    layer: Layer
    evaluation: LayerEvaluation
    gradient: FloatArray
    kinds: CensoringKinds

    @property
    def alpha_max(self) -> float:
        """The smallest alpha at which W = 0 is stationary against every direction.

        For the ridge this is the spectral norm of the gradient by W; for group sparsity the largest
        over the feature variances that the penalty may choose; inf for a penalty without variances.
        """
        variances = self.problem.penalty.leading_variances(self.gradient)
        if variances is None:
            return float("inf")
        return spectral_norm(np.sqrt(variances)[:, None] * self.gradient)

    def at(self, alpha: float) -> "NullLayer":
        """The same for another alpha, on which the floors of σ depend."""
        problem = replace(self.problem, alpha=alpha)
        entries = problem.total_weight * (problem.weight @ ~problem.targets.missing)
        floors = self.layer.log_sigma + np.log(sigma_floors(problem, entries))
        return replace(self, problem=replace(problem, min_log_sigma=floors))

    def of_rank(self, rank: int) -> "NullLayer":
        """The same with fewer components; floors of σ are those of the next alpha."""
        layer = self.layer._replace(U=self.layer.U[:, :rank], Z=self.layer.Z[:, :rank])
        return replace(self, problem=replace(self.problem, rank=rank), layer=layer)

    @property
    def gradient_scale(self) -> float:
        """Norm of the gradient by W, the unit of every tolerance; has a floor."""
        return max(float(np.linalg.norm(self.gradient)), _NO_GRADIENT)


def null_layer(problem: SubspaceProblem) -> NullLayer:
    """Fit intercepts and σ alone; tasks whose likelihood has no maximum become missing."""
    data = problem.features, problem.targets, problem.scaling, problem.noise
    olsen = OlsenProblem(*data, problem.fit_intercept, problem.free_sigma)
    olsen, intercept, sigma, kinds = fit_constants(olsen, problem.sigma, problem.total_weight)
    U, Z = (np.zeros((n, problem.rank)) for n in (problem.n_tasks, problem.features.rank))
    layer = Layer(U, Z, intercept, np.log(sigma))
    problem = replace(problem, targets=olsen.targets, free_sigma=olsen.free_sigma)
    evaluation = problem.evaluate(problem.pack(layer))
    null = NullLayer(problem, layer, evaluation, evaluation.coefficient_gradient(), kinds)
    return null.at(problem.alpha)


def sigma_floors(problem: LayerProblem, entries: FloatArray) -> FloatArray:
    """Floors of σ over that of the null model: 1.5 × parameters per entry, at most 1, (T,).

    ``entries`` (T,) is the weight of the known entries of every task. With more features than rows
    a task can be fitted exactly at a finite penalty, and the likelihood has no minimum: σ would run
    to 0. A fit with k parameters for n entries explains a share k/n of pure noise, so a σ far below
    k/n of the null model's is not credible.
    """
    n_tasks, rank = problem.n_tasks, problem.rank
    # Directions of the features that the penalty leaves free: Σ λ/(λ + α) over their variances λ.
    ridge = problem.alpha * problem.features.in_whitened_basis.squared_norms
    n_directions = max(float((1.0 / (1.0 + ridge)).sum()), float(rank))
    parameters = _CAUTION * rank * (n_directions + n_tasks - rank) / n_tasks
    return np.clip(parameters / np.maximum(entries, 1.0), SIGMA_FLOOR, 1.0)


def spectral_start(null: NullLayer) -> Layer:
    """The leading directions of one Newton step for every task from W = 0."""
    problem, features = null.problem, null.problem.features
    aligned = features.rotated is not None
    whitened = features.in_whitened_basis
    gradient = null.gradient * features.norms[:, None]
    if aligned:
        gradient = whitened.adjoint(gradient)
    # Where curvature vanishes, as of tasks that are nearly all censored, a step has no end.
    longest = np.linalg.norm(gradient, axis=0) / _LONGEST_START
    curvature = np.maximum(null.evaluation.total_curvature, longest)
    curvature = np.where(curvature > 0.0, curvature, 1.0)
    left, singular, right = np.linalg.svd(-gradient / np.sqrt(curvature), full_matrices=False)
    leading = slice(0, problem.rank)
    U = (right[leading].T * singular[leading]) / np.sqrt(curvature)[:, None]
    Z = left[:, leading]
    if aligned:
        Z = np.where(features.design.vanishing[:, None], 0.0, whitened.coefficients(Z))
        unused = ((0, 0), (0, problem.rank - Z.shape[1]))  # features may span fewer directions
        U, Z = np.pad(U, unused), np.pad(Z, unused)
    return problem.balance(null.layer._replace(U=U, Z=Z))


def spectral_norm(matrix: FloatArray) -> float:
    """The largest singular value; 0 of an empty matrix."""
    return float(np.linalg.norm(matrix, 2)) if matrix.size else 0.0


@dataclass(frozen=True)
class Step:
    """The state of the solver after a Newton step.

    Parameters
    ----------
    n_iter : int
        Steps taken.
    objective : float
        The penalised mean likelihood, in standard units; while features are being selected, with
        the penalty smoothed.
    gradient_norm : float
        Of the whole gradient, relative to that by W at W = 0.
    subspace_change : float
        ‖U_i − U_{i−1}‖/‖U_i‖, U_{i−1} being rotated towards U_i first: a rotation of both factors
        changes nothing.
    """

    n_iter: int
    objective: float
    gradient_norm: float
    subspace_change: float

    def text(self, tol: float) -> str:
        """How far it is, on a line of progress."""
        return f"{self.n_iter:,} Newton steps, gradient {self.gradient_norm:.1e} ({tol:.0e} wanted)"


@dataclass
class StepLog:
    """Steps as they are taken; ``watch`` is called with each, ``keep`` with the layer after it.

    ``n_restarts`` is how often vanished components were seeded again.
    """

    gradient_scale: float
    watch: Callable[[Step], None] | None = None
    keep: Callable[[Layer], None] = lambda layer: None
    steps: list[Step] = field(default_factory=list)
    n_restarts: int = 0

    def solve(self, problem: LayerProblem, start: Layer, tol: float, max_iter: int) -> NewtonResult:
        """Minimise a problem to a relative gradient norm of ``tol``, adding to the log."""
        before: FloatArray | None = None

        def add(point: FloatArray, value: FloatArray, norm: FloatArray) -> None:
            nonlocal before
            layer = problem.unpack(point)
            if before is not None:
                change, relative = subspace_change(before, layer.U), norm[0] / self.gradient_scale
                step = Step(len(self.steps) + 1, float(value[0]), float(relative), change)
                self.steps.append(step)
                if self.watch is not None:
                    self.watch(step)
                self.keep(layer)
            before = layer.U.copy()

        goal = np.array([max(tol * self.gradient_scale, _LEAST_GRADIENT)])
        return solve_newton(problem, problem.pack(start), tol=goal, max_iter=max_iter, watch=add)


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


@dataclass(frozen=True)
class SubspaceFit:
    """Where the batch solver ended.

    Parameters
    ----------
    layer : Layer
    objective : float
    gradient_norm : float
        Of the whole gradient (of the least subgradient where features have left: the residual of
        the optimality conditions), relative to that by W at W = 0.
    certificate : float
        Spectral norm of the gradient by W over alpha, in the metric of the penalty: at most 1 at
        the optimum of the trace-norm problem. 0 for alpha = 0 and for a penalty without variances.
    converged : bool
    steps : tuple of Step
        One per Newton step.
    n_restarts : int
        How often vanished components were seeded again.
    """

    layer: Layer
    objective: float
    gradient_norm: float
    certificate: float
    converged: bool
    steps: tuple[Step, ...]
    n_restarts: int

    @property
    def n_iter(self) -> int:
        """Newton steps taken."""
        return len(self.steps)

    @property
    def history(self) -> dict[str, Any]:
        """Where Newton's method ended, as ``history_`` of an estimator shows it."""
        names = "objective", "gradient_norm", "certificate", "converged", "n_restarts"
        return {name: getattr(self, name) for name in names} | {"course": list(self.steps)}


def solve_subspace(
    null: NullLayer,
    start: Layer,
    *,
    alpha: float,
    tol: float,
    max_iter: int,
    watch: Callable[[Step], None] | None = None,
) -> SubspaceFit:
    """Minimise the objective of rows in memory; see :func:`solve_layer`."""
    problem, log = replace(null.problem, alpha=alpha), StepLog(null.gradient_scale, watch)
    return solve_layer(problem, log, start, tol=tol, max_iter=max_iter)


_MAX_RESEEDINGS = 10


def solve_layer(
    problem: LayerProblem, log: StepLog, start: Layer, *, tol: float, max_iter: int
) -> SubspaceFit:
    """Minimise the objective from ``start`` to a relative gradient norm of ``tol``.

    A component that has vanished stays so even where it should not, because (0, 0) is stationary
    for it. While the certificate shows this, such components are seeded again. Every Newton step
    is added to the ``log``.
    """
    if problem.penalty.has_kinks:
        start = _select_features(problem, log, start)
    fit = _descend(problem, log, start, tol, max_iter)
    for _ in range(_MAX_RESEEDINGS):
        if fit.certificate <= _CERTIFIED or (seeded := reseed(problem, fit.layer)) is fit.layer:
            break
        log.n_restarts += 1
        fit = _descend(problem, log, seeded, tol, max_iter)
    return fit


def solve_path(
    null: NullLayer, alphas: FloatArray, *, tol: float, max_iter: int
) -> Iterator[SubspaceFit]:
    """Fits for decreasing alphas, each started from the one before.

    From ``null.alpha_max`` upwards the fit has no coefficients, whatever the feature sparsity.
    """
    layer = null.layer
    for alpha in alphas.tolist():
        fit = solve_subspace(null, layer, alpha=alpha, tol=tol, max_iter=max_iter)
        layer = fit.layer
        yield fit


def _descend(
    problem: LayerProblem, log: StepLog, start: Layer, tol: float, max_iter: int
) -> SubspaceFit:
    result = log.solve(problem, start, tol, max_iter)
    layer, objective = problem.unpack(result.point), float(result.value[0])
    if problem.penalty.has_kinks:
        layer = _drop_if_idle(problem, layer, objective)
    norm, converged = float(result.gradient_norm[0]), bool(result.converged[0])
    bound = certificate(problem.evaluate(problem.pack(layer)))
    steps = tuple(log.steps)
    norm /= log.gradient_scale
    return SubspaceFit(layer, objective, norm, bound, converged, steps, log.n_restarts)


# Which features stay: a smooth way to the support of a penalty with kinks.

_WIDTHS = (1.0, 0.2, 0.04, 0.008, 0.002)  # of the mean size of a column of V
_MAX_ITER = 30  # per width
_ROUNDING = 1e-12


def _select_features(problem: LayerProblem, log: StepLog, layer: Layer) -> Layer:
    """Go near the optimum with kinks smoothed less and less, and drop columns that became small.

    Newton's method at the kinks lets dozens of correlated features leave and enter by turns. With
    the kinks rounded off, all features are decided on together. What is left to the exact problem
    is the choice among the few whose columns are about as large as the last width.
    """
    unit = float(np.linalg.norm(layer.Z, axis=1).mean())
    for width in _WIDTHS if unit > 0.0 else ():
        smooth = replace(problem, penalty=problem.penalty.smoothed(width * unit))
        result = log.solve(smooth, layer, max(0.01 * width, 1e-4), _MAX_ITER)
        layer = smooth.unpack(result.point)
    sizes = np.linalg.norm(layer.Z, axis=1)[:, None]
    return layer._replace(Z=np.where(sizes < _WIDTHS[-1] * unit, 0.0, layer.Z))


def _drop_if_idle(problem: LayerProblem, layer: Layer, objective: float) -> Layer:
    """The layer without coefficients if that is no worse: they approach 0 but never reach it."""
    empty = layer._replace(U=np.zeros_like(layer.U), Z=np.zeros_like(layer.Z))
    value = float(problem.evaluate(problem.pack(empty)).value[0])
    return empty if value <= objective + _ROUNDING * abs(objective) else layer


# Components that have vanished, and whether they should have.

_CERTIFIED = 1.0 + 5e-4  # gradient norm over alpha at which no vanished component is missed
_VANISHED = 1e-5  # of the strongest component
_SHORTER, _MAX_SHORTENINGS = 0.1, 40
_LEAST_CURVATURE = 1e-6  # where it vanishes, no step would be long enough


def certificate(evaluation: LayerEvaluation) -> float:
    """Spectral norm of the gradient by W over alpha, in the metric of the penalty at this point.

    At most 1 where no component that has vanished would lower the objective; 0 for alpha = 0 and
    for a penalty without variances.
    """
    alpha = evaluation.problem.alpha
    return spectral_norm(_metric_gradient(evaluation)[1]) / alpha if alpha > 0.0 else 0.0


def reseed(problem: LayerProblem, layer: Layer) -> Layer:
    """Fill vanished components with the directions in which the objective falls fastest.

    Returns the layer itself if no component has vanished, or none could be filled.
    """
    strength = np.linalg.norm(layer.U, axis=0)
    empty = np.flatnonzero(strength <= _VANISHED * max(strength.max(initial=0.0), 1e-3))
    evaluation = problem.evaluate(problem.pack(layer))
    spread, gradient = _metric_gradient(evaluation)
    left, singular, right = np.linalg.svd(gradient, full_matrices=False)
    count = min(len(empty), int((singular > _CERTIFIED * problem.alpha).sum()))
    if count == 0:
        return layer
    curvature = max(float(evaluation.total_curvature.mean()), _LEAST_CURVATURE)
    size = np.sqrt((singular[:count] - problem.alpha) / curvature)
    for _ in range(_MAX_SHORTENINGS):
        U, Z = layer.U.copy(), layer.Z.copy()
        U[:, empty[:count]] = -right[:count].T * size
        Z[:, empty[:count]] = left[:, :count] * size * spread
        seeded = problem.balance(layer._replace(U=U, Z=Z))
        if problem.evaluate(problem.pack(seeded)).value[0] < evaluation.value[0]:
            return seeded
        size *= _SHORTER  # features that are not standardised have more curvature
    return layer


def _metric_gradient(evaluation: LayerEvaluation) -> tuple[FloatArray, FloatArray]:
    """Prior standard deviations of the rows of Z, (r, 1), and the gradient by W times them."""
    problem, gradient = evaluation.problem, evaluation.coefficient_gradient()
    variances = problem.penalty.variances(problem.orthonormal(evaluation.layer.Z))
    if variances is not None and not variances.any():  # no feature is in the model
        variances = problem.penalty.leading_variances(gradient)
    if variances is None:
        return np.zeros((len(gradient), 1)), np.zeros_like(gradient)
    spread = np.sqrt(variances)[:, None]
    return spread / problem.features.norms[:, None], gradient * spread
