r"""The algorithms of Sun et al. 2018 as printed, in plain NumPy, to be read beside the paper.

Nothing here is ours: one row at a time in the given order, V first and then U, constant steps, a
given σ, no intercept, no units, no averaging, no guard. What the paper leaves open is said where it
comes up.

=====================================  =========================================================
paper                                  here
=====================================  =========================================================
problem (P:V) of one row, Algorithm 2  :func:`sketch`, one gradient step
problem (P:U) of one row               :func:`refine`, one gradient step
the same, as boxed in Algorithm 1      :func:`sketch_argmin`, :func:`refine_argmin`
Algorithm 1                            :func:`sketch_and_refine`, :class:`PublishedSubspaceTobit`
section 4.2, calibration               :func:`calibrate`
Algorithm 3                            :func:`grow`, :class:`PublishedSubspaceNetwork`
=====================================  =========================================================
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from scipy.linalg import lstsq
from scipy.special import erfcx, log_ndtr

from deeptobit.arrays import FloatArray, check_count
from deeptobit.estimators import inputs
from deeptobit.estimators.inputs import Limits
from deeptobit.estimators.network import LayeredRegressor
from deeptobit.estimators.prediction import all_or_nothing
from deeptobit.exceptions import DivergenceError
from deeptobit.network import NetworkLayer
from deeptobit.targets import CensoredTargets

Form = Literal["gradient", "argmin"]
Factors = tuple[FloatArray, FloatArray]  # U (T, R) and V (R, D)


# What one row says of its scores UVx.


class Row(NamedTuple):
    """One row: x (D,); y, side and σ (T,).

    An entry is y where side is 0. It is at most y where side is 1 (the paper's y = 0), and at
    least y where side is -1. A missing entry is at most inf, which says nothing.
    """

    x: FloatArray
    y: FloatArray
    side: FloatArray
    sigma: FloatArray


def read_outcomes(targets: CensoredTargets) -> tuple[FloatArray, FloatArray]:
    """``y`` and ``side`` of all rows, each (N, T)."""
    low, high, missing = targets.low, targets.high, targets.missing
    between = (low < high) & np.isfinite(low) & np.isfinite(high)
    for task in np.flatnonzero(between.any(axis=0)).tolist():
        raise ValueError(
            f"target {targets.names[task]!r} has entries censored to intervals; the published "
            "algorithms know outcomes that are observed or censored on one side"
        )
    below = missing | np.isneginf(low)
    y = np.where(missing, np.inf, np.where(below, high, low))
    return y, np.where(low == high, 0.0, np.where(below, 1.0, -1.0))


def slopes(scores: FloatArray, row: Row) -> FloatArray:
    r"""The derivative of :math:`-\log\Pr(y_t)` by the score :math:`s_t = U_t^\top Vx`, (T,).

    With :math:`z = (y - s)/\sigma` it is :math:`-z/\sigma` where y is observed and
    :math:`\phi(z)/(\sigma[1 - Q(z)])` where y is the lower bound; at an upper bound both signs
    turn. :math:`1 - Q = \Phi`, and the quotient is computed so that it has no 0/0 in the tail.

    Examples
    --------
    >>> y, side = np.array([2.0, 0.0, 0.0]), np.array([0.0, 1.0, -1.0])
    >>> slopes(np.zeros(3), Row(np.ones(1), y, side, np.ones(3)))
    array([-2.        ,  0.79788456, -0.79788456])
    """
    z = (row.y - scores) / row.sigma
    return np.asarray(np.where(row.side == 0.0, -z, row.side * _mills(row.side * z)) / row.sigma)


def _mills(z: FloatArray) -> FloatArray:
    """φ(z)/Φ(z)."""
    return np.asarray(math.sqrt(2.0 / math.pi) / erfcx(-math.sqrt(0.5) * z))


def _curvatures(scores: FloatArray, row: Row) -> FloatArray:
    """The derivatives of the slopes, (T,)."""
    z = row.side * (row.y - scores) / row.sigma
    ratio = _mills(z)
    censored = np.where(ratio > 0.0, ratio * (ratio + z), 0.0)
    return np.asarray(np.where(row.side == 0.0, 1.0, censored) / row.sigma**2)


def _loss(scores: FloatArray, row: Row) -> float:
    """The sum over tasks of −log Pr, without constants."""
    z = (row.y - scores) / row.sigma
    return float(np.where(row.side == 0.0, 0.5 * z**2, -log_ndtr(row.side * z)).sum())


# Problems (P:V) and (P:U) of one row.


def sketch(U: FloatArray, V: FloatArray, row: Row, alpha: float, eta: float) -> FloatArray:
    r"""Algorithm 2: :math:`V^+ = V^- - \eta\left[\sum_t \nabla g_t + \lambda V^-\right]`, (R, D).

    :math:`\nabla g_t` is the slope of task t times :math:`U_t x^\top`. The paper writes
    :math:`\nabla g(U^-, V^+)`, which a gradient step cannot mean: the gradient is at V⁻. It draws
    V⁻ at random in the box; then V would forget every row, and V⁻ is that of the row before, as in
    Algorithm 1.
    """
    slope = slopes(U @ (V @ row.x), row)
    return np.asarray(V - eta * (np.outer(slope @ U, row.x) + alpha * V))


def refine(U: FloatArray, V: FloatArray, row: Row, alpha: float, mu: float) -> FloatArray:
    r"""The step on all rows of U: :math:`U_t^+ = U_t^- - \mu(\nabla g_t + \lambda U_t^-)`, (T, R).

    :math:`\nabla g_t` is the slope of task t times :math:`V^+x`.
    """
    h = V @ row.x
    slope = slopes(U @ h, row)
    return np.asarray(U - mu * (np.outer(slope, h) + alpha * U))


_MAX_ITER = 100
_SMALL = 1e-12  # a Newton step of this relative length leaves an error of about its square


def sketch_argmin(U: FloatArray, row: Row, alpha: float) -> FloatArray:
    r""":math:`\arg\min_V -\log\Pr(y, x \mid U, V) + \frac\lambda2\|V\|_F^2`, (R, D).

    The likelihood sees V only through h = Vx, and of all V with Vx = h the smallest is
    :math:`hx^\top/\|x\|^2`. What is left is a convex problem in R unknowns,
    :math:`\min_h \sum_t -\log\Pr(y_t \mid U_t^\top h) + \frac{\lambda}{2\|x\|^2}\|h\|^2`, solved
    by Newton's method. V has rank one, and does not depend on the V before it. Where
    :math:`\lambda/\|x\|^2` overflows, x is as good as 0, and so is V.

    Calibrated σ may differ by many powers of ten; then squares of them would leave no digits, and
    a step is the least-squares solution with one row for each outcome.
    """
    square = float(row.x @ row.x)
    if square <= 1e-308 * alpha:
        return np.zeros((U.shape[1], len(row.x)))
    ridge = alpha / square

    def value(h: FloatArray) -> float:
        return _loss(U @ h, row) + 0.5 * ridge * float(h @ h)

    h = np.zeros(U.shape[1])
    here = value(h)
    for _ in range(_MAX_ITER):
        scores = U @ h
        slope, bend = slopes(scores, row), _curvatures(scores, row)
        gradient = slope @ U + ridge * h
        hessian = (U.T * bend) @ U + ridge * np.eye(len(h))
        if not np.isfinite(hessian + gradient).all():
            return np.full((len(h), len(row.x)), np.nan)
        if np.linalg.cond(hessian) < 1e8:
            move = np.linalg.solve(hessian, gradient)
        else:
            roots = np.append(np.sqrt(bend), np.full(len(h), math.sqrt(ridge)))
            rows = roots[:, None] * np.vstack([U, np.eye(len(h))])
            errors = np.append(slope, ridge * h) / np.where(roots > 0.0, roots, 1.0)
            order = np.argsort(-np.abs(rows).max(axis=1))
            move = lstsq(rows[order], errors[order], cond=0.0, lapack_driver="gelsy")[0]
        there = value(h - move)
        while there > here + 1e-12 * abs(here) and np.linalg.norm(move) > 1e-6 * np.linalg.norm(h):
            move *= 0.5
            there = value(h - move)
        h, here = h - move, there
        if np.linalg.norm(move) <= _SMALL * np.linalg.norm(h):
            break
    return np.outer(h, row.x) / square


def refine_argmin(V: FloatArray, row: Row, alpha: float) -> FloatArray:
    r""":math:`\arg\min_{U_t} -\log\Pr(y_t, x \mid U_t, V) + \frac\lambda2\|U_t\|^2`, all t, (T, R).

    As for :func:`sketch_argmin`, :math:`U_t = s_t h/\|h\|^2` with h = Vx, where the score
    :math:`s_t` minimises :math:`-\log\Pr(y_t \mid s) + \frac{\lambda}{2\|h\|^2}s^2`. Its
    derivative is convex or concave in s, so that Newton's method converges from 0. Where
    :math:`\lambda/\|h\|^2` overflows, U is 0.
    """
    h = V @ row.x
    square, scores = float(h @ h), np.zeros(len(row.y))
    if square <= 1e-308 * alpha:
        return np.outer(scores, h)
    ridge = alpha / square
    for _ in range(_MAX_ITER):
        slope = slopes(scores, row) + ridge * scores
        move = slope / (_curvatures(scores, row) + ridge)
        scores = scores - move
        if (np.abs(move) <= _SMALL * np.abs(scores)).all():
            break
    return np.outer(scores, h) / square


# Algorithm 1.


class Recipe(NamedTuple):
    r"""How a layer learns: λ, the steps η on V and μ on U (form "gradient"), passes over the rows.

    λ is that of one row: the objective is the mean over rows of
    :math:`-\log\Pr(y_i) + \frac\lambda2(\|U\|_F^2 + \|V\|_F^2)`. The paper makes one pass.
    """

    alpha: float
    eta: float
    mu: float
    form: Form = "gradient"
    n_passes: int = 1


def sketch_and_refine(
    start: Factors,
    X: FloatArray,
    targets: CensoredTargets,
    sigma: FloatArray,
    recipe: Recipe,
    layer: int = 1,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Algorithm 1: for every row of X (N, D), sketch V in the current subspace, then refine U.

    Returns U (T, R), V (R, D) and the change ‖U_i − U_{i−1}‖_F of every row. Numbers that overflow
    are a :class:`DivergenceError` that names the number of the layer, the row and any steps.
    """
    (U, V), (alpha, eta, mu, form, n_passes) = start, recipe
    y, side = read_outcomes(targets)
    change = np.empty(n_passes * len(X))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for step in range(len(change)):
            i = step % len(X)
            row = Row(X[i], y[i], side[i], sigma)
            if form == "gradient":
                V = sketch(U, V, row, alpha, eta)
                refined = refine(U, V, row, alpha, mu)
            else:
                V = sketch_argmin(U, row, alpha)
                refined = refine_argmin(V, row, alpha)
            moved = refined - U
            U, change[step] = refined, math.sqrt(np.vdot(moved, moved))
            if not math.isfinite(change[step]):
                steps = f"with step_size_V={eta:g} and step_size_U={mu:g}: take smaller steps"
                raise DivergenceError(
                    f"layer {layer} diverged in row {i}, pass {step // len(X) + 1}, "
                    f"{steps if form == 'gradient' else 'in the argmin form: take a larger sigma'}"
                    ", or scale features and outcomes down"
                )
    return U, V, change


# Algorithm 3, and the calibration of section 4.2.


def calibrate(scores: FloatArray, targets: CensoredTargets) -> FloatArray:
    r""":math:`\hat\sigma_t^2 = \|y - \hat y\|_2^2/N` with the scores before ReLU as ŷ, (T,)."""
    known = targets.has_value
    squares = np.where(known, np.square(targets.values - scores), 0.0).sum(axis=0)
    return np.asarray(np.sqrt(squares / np.maximum(known.sum(axis=0), 1)))


def grow(
    X: FloatArray,
    targets: CensoredTargets,
    starts: Sequence[Factors | None],
    sigma: FloatArray,
    recipes: Sequence[Recipe],
    *,
    skip_connection: bool = True,
    calibrated: bool = False,
) -> tuple[tuple[NetworkLayer, ...], list[FloatArray]]:
    r"""Algorithm 3: each layer learns the outcomes from the censored outputs of the one below.

    As boxed, :math:`f_k(x) = \mathrm{ReLU}(U_kV_kf_{k-1}(x))`. The text below the box adds the
    skip connection, :math:`f_k(x) = \mathrm{ReLU}(U_kV_k[f_{k-1}(x);\, x])`. The first layer
    learns from x; "set :math:`f_0(x) = y`" in the box cannot be meant.

    Every layer has its recipe and its start, (U, V) or None: where the layer below ended, with
    zeros in V for outputs that it did not see. ``sigma`` (T,) is that of the first layer, and of
    all unless ``calibrated``: σ̂ = 0 is an error if another layer follows, whose likelihood it would
    leave undefined; after the last layer, a task without residuals keeps its σ. Returns the layers,
    and by layer the change ‖U_i − U_{i−1}‖_F of every row.
    """
    seen = X  # by the layer
    layers: list[NetworkLayer] = []
    changes: list[FloatArray] = []
    for number, (recipe, start) in enumerate(zip(recipes, starts, strict=True), start=1):
        if start is None:
            U, V = layers[-1].U, layers[-1].V
            start = U, np.pad(V, ((0, 0), (seen.shape[1] - V.shape[1], 0)))
        U, V, change = sketch_and_refine(start, seen, targets, sigma, recipe, number)
        scores = seen @ V.T @ U.T
        left = calibrate(scores, targets) if calibrated else sigma
        if number < len(recipes) and not left.all():
            raise ValueError(
                f"layer {number} leaves no residuals of target "
                f"{targets.names[int(np.argmin(left))]!r} after row {len(X) - 1}, so that sigma of "
                "the next layer would be 0; set calibrate=False"
            )
        sigma = np.where(left == 0.0, sigma, left)
        layers.append(NetworkLayer(U, V, np.zeros(len(U)), sigma))
        changes.append(change)
        f = np.clip(scores, targets.lower, targets.upper)
        seen = np.hstack([f, X]) if skip_connection else f
    return tuple(layers), changes


# The two estimators.


@dataclass(kw_only=True, eq=False, repr=False)
class _AsPrinted(LayeredRegressor):
    """Reads the parameters that both share; predicts, saves and draws as all estimators do."""

    rank: int = field(kw_only=False)
    alpha: float
    step_size_V: Any  # noqa: N815  (of the matrix V)
    step_size_U: Any  # noqa: N815
    sigma: Any
    form: Form = "gradient"
    init: Any = "random"
    n_passes: int = 1
    random_state: Any = None

    # What other estimators let one choose.
    outside: Literal["raise", "clip"] = field(default="raise", init=False)
    fit_intercept: bool = field(default=False, init=False)
    standardize: bool = field(default=False, init=False)
    prediction: inputs.PredictionKind = field(default="mean", init=False)
    max_iter: int = field(default=1, init=False)
    tol: float = field(default=0.0, init=False)
    verbose: int = field(default=0, init=False)
    noise = "gaussian"
    n_layers = 1
    skip_connection = True
    calibrate = False

    @all_or_nothing
    def fit(self, X: Any, y: Any, *, lower: Limits = None, upper: Limits = None) -> Self:
        """Learn from the rows in their order.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            A missing outcome (NaN) has likelihood 1.
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry. Hidden layers are censored at the bounds of the tasks.
        """
        for name in ("rank", "n_layers", "n_passes"):
            check_count(name, getattr(self, name))
        for name in ("skip_connection", "calibrate"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name} must be True or False; got {getattr(self, name)!r}")
        matrix, targets, _ = self._read_rows(X, y, None, lower, upper)
        n_tasks = len(targets.names)
        self.rank_ = min(int(self.rank), self.n_features_in_, n_tasks)
        self._learn(matrix, targets, self._starts(self.n_features_in_, n_tasks))
        return self

    def _learn(
        self,
        matrix: Any,
        targets: CensoredTargets,
        starts: Sequence[Factors | None],
        before: Sequence[FloatArray] = (),
    ) -> None:
        """Grow the layers and store them; ``before``: changes of U of earlier rows, by layer."""
        sigma = inputs.read_sigma(self.sigma, targets.names, words=())
        assert sigma is not None  # no word stands for it
        X = np.asarray(inputs.dense(matrix), dtype=np.float64)
        ways = {"skip_connection": self.skip_connection, "calibrated": self.calibrate}
        layers, changes = grow(X, targets, starts, sigma, self._recipes(int(self.n_layers)), **ways)
        self._store(layers, targets)
        if before:
            changes = [np.append(*pair) for pair in zip(before, changes, strict=True)]
        self.history_ = {"solver": "published", "change": changes}
        self.n_iter_ = sum(map(len, changes))

    def _recipes(self, n_layers: int) -> list[Recipe]:
        """One per layer."""
        inputs.check_choice("form", self.form, ("gradient", "argmin"))
        argmin = self.form == "argmin"
        alpha = _number("alpha", self.alpha)
        if alpha < 0.0 or (argmin and alpha == 0.0):
            least = "positive in the argmin form" if argmin else "at least 0"
            raise ValueError(f"alpha must be {least}; got {self.alpha!r}")
        steps = []
        for name in ("step_size_V", "step_size_U"):
            given = getattr(self, name)
            each = [given] * n_layers if np.ndim(given) == 0 else list(given)
            if len(each) != n_layers:
                raise ValueError(f"{name} must be a number or one per layer ({n_layers})")
            steps.append([0.0 if argmin else _number(name, step) for step in each])
            if not argmin and min(steps[-1]) <= 0.0:
                raise ValueError(f"{name} must be positive; got {given!r}")
        pairs = zip(*steps, strict=True)
        return [Recipe(alpha, eta, mu, self.form, int(self.n_passes)) for eta, mu in pairs]

    def _starts(self, n_features: int, n_tasks: int) -> list[Factors | None]:
        """Where each layer starts; None: at the layer below."""
        n_layers, init = int(self.n_layers), self.init
        each: list[Any]
        deep = isinstance(self, PublishedSubspaceNetwork)
        if isinstance(init, str) and init in (("random", "below") if deep else ("random",)):
            each = ["random"] + [init if init == "random" else None] * (n_layers - 1)
        elif _is_pair(init):
            each = [init] + [None] * (n_layers - 1)
        else:
            each = list(init) if isinstance(init, (list, tuple)) else []
            if len(each) != n_layers or not all(map(_is_pair, each)):
                several = f", 'below', arrays (U, V), or one (U, V) for each of {n_layers} layers"
                others = several if deep else " or arrays (U, V)"
                raise ValueError(f"init must be 'random'{others}; got {init!r:.60}")
        if any(one is None for one in each) and not self.skip_connection:
            raise ValueError(
                "without skip connection the second layer has other inputs than the first and "
                "cannot start there; give init='random', or one (U, V) per layer"
            )
        rng = np.random.default_rng(self.random_state)
        width = n_tasks + (n_features if self.skip_connection else 0)
        pairs = zip(each, [n_features] + [width] * (n_layers - 1), strict=True)
        return [
            None if one is None else self._start(one, rng, n_inputs, n_tasks)
            for one, n_inputs in pairs
        ]

    def _start(self, init: Any, rng: np.random.Generator, n_inputs: int, n_tasks: int) -> Factors:
        """U, then V: standard Gaussian from the seed, or as given."""
        shapes = (n_tasks, self.rank_), (self.rank_, n_inputs)
        if isinstance(init, str):
            return rng.standard_normal(shapes[0]), rng.standard_normal(shapes[1])
        U, V = (np.array(part, dtype=np.float64) for part in init)
        if (U.shape, V.shape) != shapes or not (np.isfinite(U).all() and np.isfinite(V).all()):
            raise ValueError(
                f"init must be finite U and V of shapes {shapes[0]} and {shapes[1]}; got "
                f"{U.shape} and {V.shape}"
            )
        return U, V


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedSubspaceTobit(_AsPrinted):
    r"""Algorithm 1 of Sun et al. 2018 as printed, for :math:`y = \mathrm{ReLU}(UVx + \epsilon)`.

    Starts at U and V, and learns from one row after the other: V first (problem P:V), then U
    (problem P:U). For comparison and study; for data use
    :class:`~deeptobit.SubspaceTobitRegressor`, which has intercepts, noise scales, and no steps to
    tune.

    Parameters
    ----------
    rank : int
        R; capped at min(D, T).
    alpha : float
        λ, of one row: every step contains λV and λU. The authors' scripts have 0.01 to 0.6.
    step_size_V, step_size_U : float
        η and μ. The authors' scripts have 0.001 to 0.005. Not used in the argmin form.
    sigma : float, array of shape (T,) or dict
        σ, given.
    form : {"gradient", "argmin"}
        One gradient step each (Algorithm 2 and the text below it), or the minimum of the cost of
        each row, as boxed in Algorithm 1: U and V then depend on little but the last row.
    init : "random" or (U, V)
        ``"random"``: U, then V, standard Gaussian, from ``numpy.random.default_rng(random_state)``.
    n_passes : int
        The paper makes one.
    random_state : int or None
    lower, upper : float, array of shape (T,), dict or None
        Bounds. The paper has 0 and none, and says that others are minor changes.

    Attributes
    ----------
    U_, V_ : arrays of shape (T, R) and (R, D)
    coef_ : array of shape (T, D)
        ``U_ @ V_``.
    intercept_, sigma_ : arrays of shape (T,)
        0, and as given.
    rank_, n_iter_ : int
    history_ : dict
        ``change``: a list with ‖U_i − U_{i−1}‖_F of every row.
    lower_, upper_, target_names_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from deeptobit import datasets
    >>> from deeptobit.published import PublishedSubspaceTobit
    >>> X, Y, truth = datasets.make_subspace(2000, 30, 20, 3, random_state=0)
    >>> model = PublishedSubspaceTobit(3, alpha=0.0, step_size_V=0.005, step_size_U=0.005,
    ...                                sigma=3.0, random_state=0).fit(X, Y)
    >>> round(model.score(X, Y), 3)
    0.774
    """

    def partial_fit(self, X: Any, y: Any, *, lower: Limits = None, upper: Limits = None) -> Self:
        """Learn from some more rows: calls on consecutive pieces give what one call gives."""
        if "sigma_" not in vars(self):
            return self.fit(X, y, lower=lower, upper=upper)
        matrix, targets = self._read_features(X), self._read_again(y, lower, upper)
        inputs.check_lengths(matrix, targets)
        self._learn(matrix, targets, [(self.U_, self.V_)], self.history_["change"])
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedSubspaceNetwork(_AsPrinted):
    r"""Algorithm 3 of Sun et al. 2018 as printed: layers of Algorithm 1 on top of one another.

    .. math:: f_k(x) = \mathrm{ReLU}\left(U_kV_k[f_{k-1}(x);\, x]\right)

    For comparison and study; for data use :class:`~deeptobit.SubspaceNetworkRegressor`.

    Parameters
    ----------
    rank, n_layers : int
        R, capped at min(D, T), and K.
    alpha, sigma, form, n_passes, random_state, lower, upper
        As in :class:`PublishedSubspaceTobit`, for every layer.
    step_size_V, step_size_U : float, or one per layer
        η and μ. The authors' scripts divide those of layer 2 by 1000, and those of layer 3 and
        above by 100 more.
    init : {"random", "below"}, (U, V), or a list of one (U, V) per layer
        ``"random"``: every layer, from the bottom up, draws U and then V. ``"below"``: the first
        layer does, and each one above starts where the one below ended, with zeros in V for the
        outputs that the first did not see. A pair: the first layer starts there, the others below.
    skip_connection : bool
        True: layers above the first see [f; x], as in the text. False: f alone, as in the box.
    calibrate : bool
        After each layer, estimate :math:`\sigma_t` from the residuals before ReLU; it is used in
        the next layer, and that of the last layer in predictions. ``sigma`` is that of the first.

    Attributes
    ----------
    layers_ : tuple of NetworkLayer
        U, V, intercept (0) and sigma of every layer.
    coef_, U_, V_, intercept_, sigma_ : arrays
        Those of the first layer; ``sigma_`` is that of the last.
    rank_, n_layers_, n_iter_, history_, lower_, upper_, target_names_
        As in :class:`PublishedSubspaceTobit`, ``history_["change"]`` by layer.

    Examples
    --------
    >>> from deeptobit import datasets
    >>> from deeptobit.published import PublishedSubspaceNetwork
    >>> X, Y, truth = datasets.make_subspace(2000, 30, 20, 3, random_state=0)
    >>> steps = [5e-3, 5e-6, 5e-8]
    >>> model = PublishedSubspaceNetwork(3, 3, alpha=0.01, step_size_V=steps, step_size_U=steps,
    ...                                  sigma=3.0, init="below", random_state=0).fit(X, Y)
    >>> [layer.V.shape for layer in model.layers_]
    [(3, 30), (3, 50), (3, 50)]
    """

    n_layers: int = field(kw_only=False)
    skip_connection: bool = True
    calibrate: bool = False


def _number(name: str, value: Any) -> float:
    if not (isinstance(value, Real) and math.isfinite(float(value))):
        raise ValueError(f"{name} must be a finite number; got {value!r}")
    return float(value)


def _is_pair(init: Any) -> bool:
    """Whether it is (U, V), two arrays."""
    parts = init if isinstance(init, (list, tuple)) else ()
    return len(parts) == 2 and all(hasattr(part, "shape") for part in parts)
