"""One layer: many censored outcomes that share a low-rank subspace, W = UV."""

from __future__ import annotations

import sys
import warnings
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray
from deeptobit.estimators._base import CensoredRegressor, PredictionKind
from deeptobit.estimators._choice import SolverName, choose_solver
from deeptobit.estimators._diagnosis import check_determined, warn_of_censoring
from deeptobit.estimators._inputs import check_lengths, read_features, read_targets, read_weights
from deeptobit.estimators._settings import automatic_alpha, check_settings, read_sigma
from deeptobit.likelihood import Noise, resolve_noise
from deeptobit.objective import Design, Layer, RoundFeatures, SubspaceProblem, TargetScaling
from deeptobit.solvers import fit_null, relative_gradient, solve_subspace, spectral_start
from deeptobit.solvers.online import OnlineSettings, OnlineSolver
from deeptobit.targets import BoundsLike, CensoredTargets

_BASIS_RIDGE = 1e-6  # keeps the round basis tame; any small number gives the same optimum
_CHUNK_ROWS = 8192


class SubspaceTobitRegressor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CensoredRegressor):
    r"""Low-rank Tobit :math:`y = \mathrm{clip}(UVx + b + \sigma\varepsilon)`, a layer of the paper.

    Minimises, in standardised features and targets,

    .. math::
        \frac{1}{\sum_i w_i} \sum_{it} w_i\, \mathrm{nll}(y_{it};\, U_t^\top V x_i + b_t, \sigma_t)
        + \frac{\alpha}{2}\left(\|U\|_F^2 + \|V\|_F^2\right)

    with U of shape (T, R) and V of shape (R, D): the tasks share R directions of the feature space.
    Where R is not binding the penalty is the trace norm of UV (eq. 2 of the paper, as a mean).

    Parameters
    ----------
    rank : int
        R; capped at min(D, T).
    alpha : "auto" or float
        ``"auto"`` is :math:`\frac{\sqrt D + \sqrt T}{2\sqrt n}(1 + 2D/n)` for the batch solver: it
        keeps noise out and vanishes as the number of rows n grows. The online solver, which does
        not know n, takes 0 and shrinks by what new rows say of its predictions instead.
    solver : {"auto", "batch", "online"}
        ``"batch"`` goes to the optimum. ``"online"`` learns row by row in ``n_passes`` over the
        data (Algorithm 1 of the paper). ``"auto"`` takes the batch solver while it is affordable
        and says in ``history_`` what it took and why.
    n_passes, batch_size, step_size, averaging
        Of the online solver. A number as ``step_size`` is the paper's constant step; a function of
        the update's index is a schedule.
    start : {"auto", "data", "random"}
        Where the online solver begins: from the first rows, or from random U and V. ``"auto"`` is
        random only where ``step_size`` is given, as in the paper.
    exact_sketch : bool
        Solve problem P:V of the paper exactly for every row instead of by a gradient step (needs
        ``alpha > 0``, a given ``step_size`` and ``batch_size=1``). For comparison: the solution
        depends on the last row alone, and predicts poorly.
    random_state : int, RandomState or None
        Only a random start uses it.
    n_jobs : int or None
        Threads of the online solver over tasks; the result does not depend on it.
    verbose : int
        1 shows progress.
    lower, upper, outside, noise, sigma, fit_intercept, standardize, prediction, max_iter, tol
        As in :class:`TobitRegressor`; ``tol`` is the gradient's norm relative to that at W = 0.

    Attributes
    ----------
    coef_ : array of shape (T, D)
        ``U_ @ V_``, in the user's units like everything fitted.
    U_ : array of shape (T, R)
    V_ : array of shape (R, D)
    intercept_, sigma_ : arrays of shape (T,)
    rank_, alpha_, n_iter_ : int, float, int
    history_ : dict
        Solver and why; objective, relative gradient norm and certificate (batch), or the course of
        objective, subspace change and online loss (online).
    lower_, upper_, target_names_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor, datasets
    >>> X, Y, truth = datasets.make_subspace(1000, 30, 20, 3, random_state=0)
    >>> model = SubspaceTobitRegressor(rank=3).fit(X, Y)
    >>> model.history_["solver"], round(model.score(X, Y), 3)
    ('batch', 0.755)
    >>> model.transform(X).shape
    (1000, 3)
    """

    rank_: int
    alpha_: float

    def __init__(
        self,
        rank: int = 5,
        *,
        alpha: float | Literal["auto"] = "auto",
        solver: SolverName = "auto",
        n_passes: int = 1,
        batch_size: int = 1,
        step_size: Any = "auto",
        averaging: bool = True,
        start: Literal["auto", "data", "random"] = "auto",
        exact_sketch: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        lower: BoundsLike = 0.0,
        upper: BoundsLike = None,
        outside: Literal["raise", "clip"] = "raise",
        noise: str | Noise = "gaussian",
        sigma: Any = "mle",
        fit_intercept: bool = True,
        standardize: bool = True,
        prediction: PredictionKind = "mean",
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.solver = solver
        self.n_passes = n_passes
        self.batch_size = batch_size
        self.step_size = step_size
        self.averaging = averaging
        self.start = start
        self.exact_sketch = exact_sketch
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.lower = lower
        self.upper = upper
        self.outside = outside
        self.noise = noise
        self.sigma = sigma
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.prediction = prediction
        self.max_iter = max_iter
        self.tol = tol

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> SubspaceTobitRegressor:
        """Fit all tasks together.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing.
        sample_weight : array of shape (N,), optional
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry.
        """
        matrix, targets, weight = self._read(X, y, sample_weight, lower, upper, reset=True)
        solver, reason = choose_solver(self.solver, matrix.shape, targets.shape[1])
        if solver == "batch" and isinstance(self.alpha, str):
            known = float((weight @ ~targets.missing).mean())
            self.alpha_ = automatic_alpha(max(known, 1.0), matrix.shape[1], targets.shape[1])
        penalised = solver == "online" or self.alpha_ > 0.0
        check_determined(targets, weight, 0 if penalised else self.n_features_in_, self.alpha_)
        self.history_: dict[str, Any] = {"solver": solver, "reason": reason}
        if solver == "batch":
            self._fit_batch(matrix, targets, weight)
        else:
            self._fit_online(matrix, targets, weight)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> SubspaceTobitRegressor:
        """Learn from some more rows with the online solver, in constant memory.

        Calls on consecutive pieces give the result of one call on the whole. A model that was
        fitted with ``fit`` starts afresh.
        """
        first = not hasattr(self, "_online")
        matrix, targets, weight = self._read(X, y, sample_weight, lower, upper, reset=first)
        if first:
            self.history_ = {"solver": "online", "reason": "partial_fit learns row by row"}
            self._online = self._online_solver(len(targets.names))
        self._online.learn(matrix, targets.low, targets.high, weight)
        self._store_online(self._online, targets)
        return self

    def transform(self, X: Any, layer: int = -1) -> FloatArray:
        """Coordinates Vx of the rows in the shared subspace, (N, R)."""
        check_is_fitted(self)
        if layer not in (-1, 0):
            raise ValueError(f"there is one layer; layer must be 0 or -1, got {layer}")
        matrix = read_features(self, X, reset=False)
        return np.asarray(matrix @ self.V_.T)

    def relative_gradient(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
    ) -> float:
        """Norm of the objective's gradient at the fitted model, relative to that by W at W = 0.

        Near 0 where the model is a stationary point of the batch objective on these data.
        """
        check_is_fitted(self)
        matrix, targets, weight = self._read(X, y, sample_weight, lower, upper, reset=False)
        null = fit_null(self._pose(matrix, targets, weight))
        features, scaling = null.problem.features, null.problem.scaling
        design = features.design
        V = self.V_[: null.problem.rank] * design.scale
        layer = Layer(
            U=self.U_[:, : null.problem.rank] / scaling.scale[:, None],
            Z=features.coordinates(V.T),
            intercept=(self.intercept_ + self.coef_ @ design.mean - scaling.location)
            / scaling.scale,
            log_sigma=np.log(self.sigma_ / scaling.scale),
        )
        return relative_gradient(null, layer)

    def _read(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        lower: ArrayLike | None,
        upper: ArrayLike | None,
        *,
        reset: bool,
    ) -> tuple[Any, CensoredTargets, FloatArray]:
        """Checked inputs; sets ``rank_`` and ``alpha_``."""
        automatic = isinstance(self.alpha, str)
        if automatic and self.alpha != "auto":
            raise ValueError(f"alpha must be 'auto' or a number; got {self.alpha!r}")
        given = 0.0 if automatic else self.alpha
        check_settings(given, self.tol, self.max_iter, self.prediction)
        matrix = read_features(self, X, reset=reset)
        targets = read_targets(
            y,
            self.lower,
            self.upper,
            entry_lower=lower,
            entry_upper=upper,
            outside=self.outside,
        )
        check_lengths(matrix, targets)
        weight = read_weights(sample_weight, len(targets))
        if not reset:
            return matrix, targets, weight
        if not (isinstance(self.rank, Integral) and int(self.rank) >= 1):
            raise ValueError(f"rank must be at least 1; got {self.rank!r}")
        n_features, n_tasks = self.n_features_in_, len(targets.names)
        self.rank_ = min(int(self.rank), n_features, n_tasks)
        self.alpha_ = float(given)
        return matrix, targets, weight

    def _fit_batch(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> None:
        null = fit_null(self._pose(matrix, targets, weight))
        warn_of_censoring(null.kinds, targets, given_sigma=not isinstance(self.sigma, str))
        fit = solve_subspace(
            null, spectral_start(null), alpha=self.alpha_, tol=self.tol, max_iter=self.max_iter
        )
        if not fit.converged:
            warnings.warn(
                f"no convergence after {fit.n_iter} Newton steps (relative gradient norm "
                f"{fit.gradient_norm:.1e}, tol {self.tol:.1e}); increase max_iter, loosen tol, or "
                "set a larger alpha",
                ConvergenceWarning,
                stacklevel=3,
            )
        design, scaling = null.problem.features.design, null.problem.scaling
        V = (null.problem.features.coefficients(fit.layer.Z) / design.scale[:, None]).T
        U = fit.layer.U * scaling.scale[:, None]
        unused = self.rank_ - null.problem.rank  # features may span fewer directions than rank_
        U, V = np.pad(U, ((0, 0), (0, unused))), np.pad(V, ((0, unused), (0, 0)))
        intercept = scaling.location + scaling.scale * fit.layer.intercept - U @ (V @ design.mean)
        self._store(U, V, intercept, scaling.scale * np.exp(fit.layer.log_sigma), targets)
        self.n_iter_ = max(fit.n_iter, 1)
        self.history_ |= {
            "objective": fit.objective,
            "gradient_norm": fit.gradient_norm,
            "certificate": fit.certificate,
            "alpha_max": null.alpha_max,
            "converged": fit.converged,
        }

    def _pose(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> SubspaceProblem:
        share = weight / weight.sum()
        design = Design.build(
            matrix, share, center=self.fit_intercept, standardize=self.standardize
        )
        scaling = TargetScaling.build(targets, share, center=self.fit_intercept)
        given = read_sigma(self.sigma, targets.names)
        n_tasks = len(targets.names)
        fixed = np.zeros(n_tasks) if given is None else np.log(given / scaling.scale)
        features = RoundFeatures.build(design, _BASIS_RIDGE)
        return SubspaceProblem(
            features=features,
            targets=targets,
            scaling=scaling,
            noise=resolve_noise(self.noise),
            rank=min(self.rank_, features.rank),
            alpha=self.alpha_,
            fit_intercept=self.fit_intercept,
            free_sigma=np.full(n_tasks, given is None),
            min_log_sigma=np.full(n_tasks, -np.inf),
            fixed_log_sigma=fixed,
            total_weight=float(weight.sum()),
        )

    def _fit_online(self, matrix: Any, targets: CensoredTargets, weight: FloatArray) -> None:
        solver = self._online_solver(len(targets.names))
        n_rows = len(targets)
        for turn in range(self.n_passes):
            for start in range(0, n_rows, _CHUNK_ROWS):
                rows = slice(start, min(start + _CHUNK_ROWS, n_rows))
                solver.learn(matrix[rows], targets.low[rows], targets.high[rows], weight[rows])
                self._show_progress(turn * n_rows + rows.stop, self.n_passes * n_rows)
        self._store_online(solver, targets)

    def _online_solver(self, n_tasks: int) -> OnlineSolver:
        given = read_sigma(self.sigma, tuple(str(task) for task in range(n_tasks)))
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        automatic: Literal["data", "random"] = (
            "data" if isinstance(self.step_size, str) else "random"
        )
        settings = OnlineSettings(
            rank=self.rank_,
            batch_size=self.batch_size,
            step_size=self.step_size,
            averaging=self.averaging,
            alpha=self.alpha_,
            fit_intercept=self.fit_intercept,
            sigma=given,
            standardize=self.standardize,
            start=automatic if self.start == "auto" else self.start,
            exact_sketch=self.exact_sketch,
            noise=resolve_noise(self.noise),
            random_state=seed,
            n_threads=self.n_jobs or 1,
        )
        return OnlineSolver(settings, self.n_features_in_, n_tasks)

    def _store_online(self, solver: OnlineSolver, targets: CensoredTargets) -> None:
        model = solver.result()
        self._store(model.U, model.V, model.intercept, model.sigma, targets)
        self.n_iter_ = max(model.n_seen, 1)
        self.history_["course"] = solver.history

    def _store(
        self,
        U: FloatArray,
        V: FloatArray,
        intercept: FloatArray,
        sigma: FloatArray,
        targets: CensoredTargets,
    ) -> None:
        self.U_, self.V_, self.coef_ = U, V, U @ V
        self.intercept_, self.sigma_ = intercept, sigma
        self.target_names_ = list(targets.names)
        self.lower_, self.upper_ = targets.lower, targets.upper
        self._one_dimensional = targets.one_dimensional
        self._n_features_out = self.rank_

    def _latent(self, X: Any) -> FloatArray:
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def _show_progress(self, done: int, total: int) -> None:
        if self.verbose:
            end = "\n" if done == total else ""
            print(f"\r{done:,} of {total:,} rows ({done / total:.0%})", end=end, file=sys.stderr)
