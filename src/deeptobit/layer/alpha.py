r"""How much to shrink: a short path of fits, and the corrected Akaike criterion to choose from it.

The penalty pulls W towards 0 while σ is free, so that too large an alpha makes both too small, and
none leaves noise in. :func:`choose_alpha` goes from the largest alpha downwards and stops where
predictions of new rows would become worse. Where the rank is larger than it need be, no alpha is
right: one that keeps noise out of the needless components shrinks the others. The path is then
followed once more with as many components as pay (:func:`paying_components`).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.layer.features import Layer
from deeptobit.layer.problem import SubspaceEvaluation, SubspaceProblem
from deeptobit.layer.solve import NullLayer, Step, solve_subspace, spectral_start
from deeptobit.penalties import Ridge

# Shares of the largest alpha that are tried, in turn.
PATH = (1.0, 0.75, 0.5, 0.3, 0.15, 0.06, 0.03, 0.01)
_TOL = 1e-3  # relative gradient norm along the path
_GAIN = 1e-4  # in the criterion, per entry, below which the path ends
_VANISHED = 1e-3  # of the strongest component
_MAX_PAIRS = 2e7  # parameters of U times those of V up to which their coupling is computed
_ROUNDING = 1e-9
_NO_CURVATURE = 1e-10  # in standard units: below this, a task says nothing of W


def choose_alpha(
    null: NullLayer, *, max_iter: int, watch: Callable[[str], None] = lambda text: None
) -> tuple[NullLayer, Layer, list[dict[str, float]]]:
    """Fit along :data:`PATH`, from the problem's alpha downwards, until new rows would not gain.

    Every fit starts from the one before and stops early; the criterion is
    :func:`corrected_akaike`. Where fewer components than those in use pay, the rest of the path is
    followed with these alone, and taken if the criterion is lower. The problem's own alpha stays,
    and nothing is tried, where degrees of freedom cannot be counted: with penalties other than the
    ridge (features that are chosen count for more than they use), features too many to be whitened,
    or a coupling of U and V too large.

    Returns
    -------
    null : NullLayer
        The problem with the chosen alpha.
    layer : Layer
        Near its optimum.
    tried : list of dict
        One entry per fit: ``alpha``, ``rank`` (the components it may use), ``criterion`` (estimated
        negative log likelihood of an entry of new rows, in standard units) and
        ``degrees_of_freedom`` of all tasks.

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor, datasets
    >>> X, Y, _ = datasets.make_subspace(300, 20, 10, 2, random_state=0)
    >>> model = SubspaceTobitRegressor(rank=4).fit(X, Y)  # calls this
    >>> for tried in model.history_["alphas"]:
    ...     print(*(f"{name} {value:.4g}" for name, value in tried.items()), sep=", ")
    alpha 0.2498, rank 4, criterion 0.9124, degrees_of_freedom 69.77
    alpha 0.1873, rank 4, criterion 0.9102, degrees_of_freedom 83.16
    alpha 0.1249, rank 4, criterion 0.9095, degrees_of_freedom 97.38
    alpha 0.07493, rank 4, criterion 0.9093, degrees_of_freedom 106.5
    alpha 0.03747, rank 4, criterion 0.9103, degrees_of_freedom 113.8
    alpha 0.07493, rank 2, criterion 0.9025, degrees_of_freedom 55.69
    alpha 0.03747, rank 2, criterion 0.9019, degrees_of_freedom 56.41
    alpha 0.01499, rank 2, criterion 0.9019, degrees_of_freedom 56.87
    """
    tried: list[dict[str, float]] = []
    start = spectral_start(null)
    if not _is_countable(null):
        return null, start, tried

    def show(step: Step) -> None:
        watch(f"alpha {len(tried) + 1} of at most {2 * len(PATH)}, {step.text(_TOL)}")

    def follow(null: NullLayer, layer: Layer, alphas: Iterable[float]) -> _Best:
        best: _Best | None = None
        for alpha in alphas:
            at = null.at(alpha)
            problem, start = at.problem, _start(layer, at.problem.min_log_sigma)
            layer = solve_subspace(
                at, start, alpha=alpha, tol=_TOL, max_iter=max_iter, watch=show
            ).layer
            evaluation = problem.evaluate(problem.pack(layer))
            freedom = degrees_of_freedom(evaluation)
            found = _Best(corrected_akaike(evaluation, freedom), at, evaluation)
            tried.append({"alpha": alpha, "rank": problem.rank, "criterion": found.criterion})
            tried[-1]["degrees_of_freedom"] = float(freedom.sum())
            if best is not None and not found.criterion < best.criterion - _GAIN:
                break
            best = found
        assert best is not None
        return best

    alphas = [share * null.problem.alpha for share in PATH]
    best = follow(null, start, alphas)
    layer, alpha = best.evaluation.layer, best.null.problem.alpha
    paying = paying_components(best.evaluation)
    if 0 < paying < _alive(layer).sum():
        strongest = layer._replace(U=layer.U[:, :paying], Z=layer.Z[:, :paying])
        fewer = follow(null.of_rank(paying), strongest, (a for a in alphas if a <= alpha))
        best = min(best, fewer, key=lambda each: each.criterion)
    return best.null, best.evaluation.layer, tried


class _Best(NamedTuple):
    """The lowest criterion on a path, and where it is."""

    criterion: float
    null: NullLayer
    evaluation: SubspaceEvaluation


def _start(layer: Layer, min_log_sigma: FloatArray) -> Layer:
    """A layer with σ above its floors, and without components that have all but vanished.

    These would count as converged; components of exactly 0 are seeded again where they should be.
    """
    alive, log_sigma = _alive(layer), np.maximum(layer.log_sigma, min_log_sigma)
    return layer._replace(U=layer.U * alive, Z=layer.Z * alive, log_sigma=log_sigma)


def _alive(layer: Layer) -> BoolArray:
    """Components that have not all but vanished, (R,)."""
    strength = np.linalg.norm(layer.U, axis=0)
    return np.asarray(strength > _VANISHED * max(strength.max(initial=0.0), 0.1))


def _is_countable(null: NullLayer) -> bool:
    """Whether degrees of freedom can be computed: a ridge, whitened features, not too many."""
    problem, layer = null.problem, null.layer
    whitened = isinstance(problem.penalty, Ridge) and problem.features.basis.ndim == 2
    return whitened and layer.U.size * layer.Z.size <= _MAX_PAIRS


def corrected_akaike(evaluation: SubspaceEvaluation, freedom: FloatArray) -> float:
    r"""Estimated negative log likelihood of an entry of new rows, in standard units.

    .. math::
        \frac1T \sum_t \Big(\mathrm{nll}_t + \frac{n_t}{N} \cdot
        \frac12\Big(\frac{n_t + k_t}{n_t - k_t - 2} - 1\Big)\Big)

    with n known entries and k degrees of freedom per task, ``freedom`` (T,), and one more for an
    intercept: what the likelihood of a Gaussian regression with estimated σ gains on its own rows
    and loses on new ones. It tends to k/n, Akaike's term, which is also the one for a given σ.
    """
    problem = evaluation.problem
    nll = float(evaluation.value[0]) - problem.penalty_value(evaluation.layer)
    return (nll + _excess(problem, freedom)) / problem.n_tasks


def _excess(problem: SubspaceProblem, freedom: FloatArray) -> float:
    """By how much the negative log likelihood of a row is larger for new rows, all tasks."""
    share = problem.weight @ ~problem.targets.missing
    n, k = problem.total_weight * share, freedom + problem.fit_intercept
    excess = 0.5 * ((n + k) / np.maximum(n - k - 2.0, 1.0) - 1.0)
    return float(share @ np.where(problem.free_sigma, excess, k / np.maximum(n, 1.0)))


def paying_components(evaluation: SubspaceEvaluation) -> int:
    r"""The number of components with the lowest criterion if none were shrunk, at most R.

    Near a point the likelihood is :math:`\tfrac12 \sum_t c_t \|w_t - \tilde w_t\|^2` in whitened
    features, with the curvature c of a task averaged over rows and :math:`\tilde w_t` one Newton
    step away. A W of rank r lowers it by :math:`\tfrac12 \sum_{j \le r} d_j^2`, d being the
    singular values of the :math:`\sqrt{c_t}\, \tilde w_t`, (D, T), and uses

    .. math:: r \max(D, T) + \sum_{j \le r < l} \frac{d_j^2 + d_l^2}{d_j^2 - d_l^2}

    degrees of freedom: r(D + T − r) where the components stand out, more where they do not.
    """
    problem, layer = evaluation.problem, evaluation.layer
    root = np.sqrt(evaluation.total_curvature)
    known = root > _NO_CURVATURE
    step = evaluation.by_coefficients() / np.where(known, root, np.inf)
    W = layer.Z @ layer.U.T * np.where(known, root, 0.0) - step
    squares = np.square(np.linalg.svd(W, compute_uv=False))
    criteria = []
    for rank in range(min(problem.rank, len(squares)) + 1):
        used, left = squares[:rank, None], squares[rank:]
        apart = np.maximum(used - left, np.finfo(np.float64).tiny)
        freedom = rank * max(W.shape) + float(((used + left) / apart).sum())
        each = np.full(problem.n_tasks, min(freedom, W.size) / problem.n_tasks)
        criteria.append(_excess(problem, each) - 0.5 * squares[:rank].sum())
    return int(np.argmin(criteria))


def degrees_of_freedom(evaluation: SubspaceEvaluation) -> FloatArray:
    r"""How many parameters of W = UV each task uses at an optimum, (T,).

    .. math:: k_t = \sum_s \rho_{ts} \sqrt{c_t c_s}\, \mathrm{tr}(J_t H^{-1} J_s^\top), \qquad
        \tfrac12 \sum_t c_t \|V^\top U_t - \tilde w_t\|^2
        + \tfrac\alpha2(\|U\|_F^2 + \|V\|_F^2)

    H is the Hessian by U and V of the objective on the right, and :math:`J_t` the derivative of
    :math:`V^\top U_t`. That objective is the layer's own near its optimum, with the same gradient
    and with the curvature :math:`c_t` of a task averaged over rows, so that in whitened features
    the block of V is diagonal. What is left is one inverse over the U of all tasks, (TR, TR).
    ρ are the correlations of the tasks' scores over rows (:func:`score_correlation`): noise that
    outcomes have in common is fitted by all of them together. With ρ = I, below which no k is
    taken (a fit makes its own residuals a little too different), this is the trace of
    :math:`H^{-1}G` with the Gauss–Newton matrix G, on generated data within 2 % of the exact one.

    The sum is R(D + T − R) where R is the rank of a strong signal, alpha is small and noise is
    independent. It is less where alpha shrinks, and more where components are fitted to noise.
    """
    alpha, squared_norms = evaluation.problem.alpha, evaluation.problem.features.squared_norms
    (U, Z, _, _), weight = evaluation.layer, evaluation.total_curvature
    stiffness, axes = np.linalg.eigh(U.T @ (U * weight[:, None]))
    U, Z = U @ axes, Z @ axes
    (n_tasks, rank), tasks = U.shape, np.arange(len(U))
    of_V = np.maximum(stiffness, 0.0) + alpha * squared_norms[:, None]  # the diagonal, (r, R)
    coupling = np.einsum("ta,jb->jatb", U * weight[:, None], Z)
    slopes = evaluation.by_coefficients()
    for component in range(rank):
        coupling[:, component, :, component] += slopes
    coupling = coupling.reshape(of_V.size, U.size)
    solved = coupling / of_V.reshape(-1, 1)
    schur = -coupling.T @ solved
    moments = Z.T @ Z
    by_task = schur.reshape(n_tasks, rank, n_tasks, rank)
    by_task[tasks, :, tasks, :] += weight[:, None, None] * moments + alpha * np.eye(rank)
    # Rotations of U and V change nothing: there G vanishes, and what is left of H is rounding.
    rotations = _rotations(U)
    largest = np.abs(schur).max(initial=0.0)
    schur += largest * rotations.T @ rotations
    schur[np.diag_indices_from(schur)] += _ROUNDING * largest
    inverse = np.linalg.inv(schur)
    reach = solved @ inverse  # the block of V and U in the inverse of H, with its sign changed
    inner = [each.reshape(*of_V.shape, U.size) for each in (reach, solved)]
    of_V_inverse = np.diag((1.0 / of_V).sum(axis=0))
    of_V_inverse += np.einsum("jam,jbm->ab", *inner, optimize=True)
    reach = reach.reshape(*of_V.shape, n_tasks, rank)
    shared = np.einsum("tasb,ab->ts", inverse.reshape(by_task.shape), moments, optimize=True)
    across = np.einsum("jatb,jb,sa->ts", reach, Z, U, optimize=True)
    shared += U @ of_V_inverse @ U.T - across - across.T
    used = shared * np.sqrt(np.outer(weight, weight))
    together = (used * score_correlation(evaluation)).sum(axis=1)
    return np.asarray(np.maximum(np.maximum(together, used.diagonal()), 0.0))


def _rotations(U: FloatArray) -> FloatArray:
    """Changes of U by a small rotation of every two of its components, unit vectors (·, TR)."""
    one, other = np.triu_indices(U.shape[1], 1)
    pairs = np.arange(len(one))
    turned = np.zeros((len(pairs), *U.shape))
    turned[pairs, :, one], turned[pairs, :, other] = U[:, other].T, -U[:, one].T
    turned = turned.reshape(len(pairs), U.size)
    length: FloatArray = np.linalg.norm(turned, axis=1, keepdims=True)
    return turned / np.maximum(length, 1e-300)


def score_correlation(evaluation: SubspaceEvaluation) -> FloatArray:
    """Correlations of the tasks' scores ∂nll/∂latent over rows, (T, T)."""
    row_weight = evaluation.problem.weight
    root = np.sqrt(np.where(row_weight > 0.0, row_weight, 1.0)).astype(np.float32)
    scores = evaluation.by_latent / root[:, None]
    moments = np.asarray(scores.T @ scores, dtype=np.float64)
    sizes = np.sqrt(moments.diagonal())
    sizes = np.where(sizes > 0.0, sizes, 1.0)
    correlation = moments / np.outer(sizes, sizes)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)
