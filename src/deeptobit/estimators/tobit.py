"""Tobit regression for many outcomes at once, by exact maximum likelihood."""

from dataclasses import dataclass
from html import escape
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from deeptobit import layer
from deeptobit.arrays import FloatArray
from deeptobit.estimators import diagnosis, inputs
from deeptobit.estimators.inference import InferenceRegressor
from deeptobit.estimators.inputs import Limits, feature_names
from deeptobit.estimators.prediction import all_or_nothing
from deeptobit.inspection import FittedTobit, Reference
from deeptobit.likelihood import Noise, one_family
from deeptobit.targets import CensoredTargets

# A task is checked for separation if its curvature is small or it took many steps.
_LITTLE_CURVATURE, _MANY_STEPS = 1e-2, 12


@dataclass(kw_only=True, eq=False, repr=False)
class TobitRegressor(InferenceRegressor):
    r"""Tobit regression :math:`y_t = \mathrm{clip}(x^\top\beta_t + b_t + \sigma_t\varepsilon)`.

    Minimises for every task, over β, b and σ,

    .. math::
        \frac{1}{\sum_i w_i}\sum_i w_i\,\mathrm{nll}(y_{it};\, x_i^\top\beta_t + b_t, \sigma_t)
        + \frac{\alpha}{2}\left\|\frac{\beta_t}{\sigma_t}\right\|^2 ,

    with the penalty on standardised features. In Olsen's coordinates (β/σ, 1/σ) this is convex for
    Gaussian and logistic noise; all tasks are solved together by Newton's method, to the optimum.

    Parameters
    ----------
    lower, upper : number, one per task, dict or Series by target name, or None
        Bounds at which outcomes are censored; ``None`` is an open side. In ``fit`` and in the
        ``predict`` methods arrays of shape (N, T) may replace them row by row. A
        :class:`CensoredTargets` passed as Y brings its own.
    outside : {"raise", "clip"}
        A value of Y beyond its bound is an error, or is treated as censored there.
    noise : {"gaussian", "logistic", "student_t"} or Noise
        The distribution of ε: by name, with 4 degrees of freedom for t, or an object of a
        class derived from :class:`~deeptobit.likelihood.Noise`.
    alpha : float
        Strength of the ridge on β/σ; 0 is plain maximum likelihood.
    sigma : "mle", number, one per task, or dict or Series by target name
        Estimate the noise scale per task, or hold it at a given value.
    fit_intercept : bool
        Whether there is a b; otherwise it is 0.
    standardize : bool
        Whether the penalty acts on features divided by their standard deviation.
    prediction : {"mean", "clip", "latent"}
        What ``predict`` returns unless told otherwise.
    max_iter : int
        Newton steps at most.
    tol : float
        Norm of the gradient, per row and in standard units, at which a task has converged.
    verbose : int
        1 shows progress on stderr, on one line updated in place.

    Attributes
    ----------
    coef_ : array of shape (T, D)
        β: change of the score before censoring, per unit of a feature.
    intercept_ : array of shape (T,)
        b: the score before censoring where all features are 0.
    sigma_ : array of shape (T,)
        Noise scale: the standard deviation for Gaussian noise. Never below 1e-6 of the task's own
        standard deviation, which is where a task that is fitted exactly ends.
    log_likelihood_ : array of shape (T,)
        At the optimum, without the penalty; weights count as rows.
    lower_, upper_ : arrays of shape (T,)
        Bounds of the tasks; infinite where a side is open.
    n_iter_ : int
        Newton steps of the task that took most.
    history_ : dict
        Per task: Newton steps, final gradient norm, whether it converged.
    feature_scale_ : array of shape (D,)
        Standard deviations of the features.
    n_features_in_, feature_names_in_, target_names_

    Notes
    -----
    Inference (``summary``, ``wald_test``, …) uses the training data, which the estimator
    keeps in memory but never pickles or saves. It takes ``cov_type``: ``"observed"`` (inverse
    observed information), ``"robust"`` (the sandwich, when the noise may be misspecified) or
    ``"cluster"`` with ``groups``, one label per training row (repeated visits of one person).

    References
    ----------
    Tobin (1958), Econometrica 26, 24–36. Olsen (1978), Econometrica 46, 1211–1215.

    Examples
    --------
    >>> import numpy as np
    >>> from deeptobit import TobitRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.clip(X @ [2.0, -1.0] + 1.0 + rng.normal(size=500), 0, 4)
    >>> model = TobitRegressor(lower=0, upper=4).fit(X, y)
    >>> model.coef_.round(2), model.intercept_.round(2), model.sigma_.round(2)
    (array([[ 2.08, -1.07]]), array([1.03]), array([1.04]))
    >>> model.predict([[2.0, 0.0]]).round(2), model.predict([[2.0, 0.0]], kind="latent").round(2)
    (array([3.93]), array([5.19]))
    """

    noise: str | Noise = "gaussian"
    alpha: float = 0.0
    sigma: Any = "mle"
    tol: float = 1e-8

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        lower: Limits = None,
        upper: Limits = None,
    ) -> Self:
        """Fit all tasks.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing (lower case because scikit-learn passes it by name).
        sample_weight : array of shape (N,), optional
            Weight 2 counts a row twice.
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry, such as detection limits that differ from row to row.
        """
        started = perf_counter()
        inputs.check_settings(self.get_params(deep=False))
        matrix, targets, weight = self._read_rows(X, y, sample_weight, lower, upper)
        self.feature_scale_ = inputs.feature_scale(matrix, weight)
        needed = 0 if self.alpha > 0.0 else self.n_features_in_
        given = inputs.read_sigma(self.sigma, targets.names)
        diagnosis.check_determined(targets, weight, needed, given)
        undetermined = diagnosis.warn_of_constant_where_known(
            matrix, targets, weight, feature_names(self), self.alpha
        )
        problem = self._pose(matrix, targets, weight, given)
        fixed_theta = None if given is None else problem.scaling.scale / given
        diagnosis.warn_of_collinearity(problem.features, feature_names(self), self.alpha)
        total = float(weight.sum())
        settings: Any = {"total_weight": total, "tol": self.tol, "max_iter": self.max_iter}
        problem, result, kinds = layer.fit_tobit(
            problem, fixed_theta, **settings, watch=self._show_progress
        )
        point = diagnosis.take_minimum_norm(problem, result.point, undetermined)
        trained = FittedTobit(problem, total, kinds, point, result.value)
        self._store_targets(problem.targets)
        self.coef_, self.intercept_, self.sigma_ = trained.in_user_units()
        self._trained, self.log_likelihood_ = trained, trained.log_likelihood()
        self.n_iter_ = max(int(result.n_iter.max()), 1)
        taken = perf_counter() - started
        self._show_progress(f"{self.n_iter_} Newton steps in {taken:.1f} s", last=True)
        kept = "n_iter", "gradient_norm", "converged"
        self.history_ = {name: getattr(result, name) for name in kept}
        diagnosis.warn_of_censoring(kinds, targets, given_sigma=fixed_theta is not None)
        suspects = (result.least_curvature < _LITTLE_CURVATURE) | (result.n_iter > _MANY_STEPS)
        suspects &= ~kinds.one_sided & (self.alpha == 0.0)
        separated = diagnosis.warn_of_separation(problem, suspects, feature_names(self))
        diagnosis.warn_of_convergence(~result.converged & ~separated, targets, self.max_iter)
        return self

    def _pose(
        self, matrix: Any, targets: CensoredTargets, weight: FloatArray, given: FloatArray | None
    ) -> layer.OlsenProblem:
        """The problem in standard units, with the noise scales that are given, if any."""
        share, center = weight / weight.sum(), self.fit_intercept
        # Without a penalty the unit of a feature changes nothing but the rounding.
        standardize = self.standardize or self.alpha == 0.0
        design = layer.Design.build(matrix, share, center=center, standardize=standardize)
        scaling = layer.TargetScaling.build(targets, share, center=center)
        return layer.OlsenProblem(
            features=layer.BasisFeatures.whitened(design, self.alpha, overwrite=True),
            targets=targets,
            scaling=scaling,
            noise=one_family(self.noise),
            fit_intercept=self.fit_intercept,
            free_sigma=np.full(len(targets.names), given is None),
            max_theta=1.0 / layer.SIGMA_FLOOR if given is None else np.inf,
        )

    def print_summary(
        self,
        *,
        confidence: float = 0.95,
        digits: int = 4,
        style: Literal["text", "html", "latex"] = "text",
        **options: Any,
    ) -> None:
        """Print the summary, target by target, with counts, fit statistics and an overall test.

        ``style`` is plain text, an HTML table for a page, or a LaTeX tabular for a paper;
        ``options`` are ``cov_type``, ``groups`` and ``small_sample``, as in :meth:`summary`.
        """
        inputs.check_choice("style", style, ("text", "html", "latex"))
        table = self.summary(confidence=confidence, **options)
        shares = self._training().problem.targets.describe()
        aic, bic, explained = self.aic(), self.bic(), self.pseudo_r2()
        tests = self.wald_test(**options)
        for task, name in enumerate(self.target_names_):
            row = shares.loc[name]
            statistic, df, p = tests.iloc[task]
            lines = [
                f"{name}: {row['entries']:.0f} entries, {row['at_lower']:.1%} at the lower bound, "
                f"{row['at_upper']:.1%} at the upper, {row['missing']:.0f} missing",
                f"log likelihood {self.log_likelihood_[task]:.2f}, AIC {aic[task]:.2f}, "
                f"BIC {bic[task]:.2f}, pseudo-R² {explained[task]:.3f}, sigma "
                f"{self.sigma_[task]:.{digits}g}; standard errors: "
                f"{options.get('cov_type', 'observed')}",
                f"all coefficients 0: Wald statistic {statistic:.{digits}g}, df {df:.0f}, "
                f"p {p_text(p)}",
            ]
            if hasattr(self, "formula_"):
                lines.insert(0, self.formula_.formula)
            print(_formatted(pd.DataFrame(table.loc[name]), lines, digits, style), end="\n\n")

    def aic(self) -> FloatArray:
        """Akaike's criterion per task, 2k − 2 log L, (T,); meaningful for alpha = 0."""
        return np.asarray(2.0 * self._training().n_parameters() - 2.0 * self.log_likelihood_)

    def bic(self) -> FloatArray:
        """Schwarz's criterion per task, k log n − 2 log L with n the known entries, (T,)."""
        trained: FittedTobit = self._training()
        penalty = trained.n_parameters() * np.log(trained.n_entries())
        return np.asarray(penalty - 2.0 * self.log_likelihood_)

    def pseudo_r2(self) -> FloatArray:
        r"""Explained share of the variance before censoring, (T,) (McKelvey and Zavoina, 1975).

        .. math:: \frac{\mathrm{Var}(x^\top\beta)}
            {\mathrm{Var}(x^\top\beta) + \sigma^2\,\mathrm{Var}(\varepsilon)}

        over the training rows.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(5000, 1))
        >>> y = np.maximum(X[:, 0] + rng.normal(size=5000), 0)  # half the variance is noise
        >>> TobitRegressor().fit(X, y).pseudo_r2().round(2)
        array([0.5])
        """
        trained: FittedTobit = self._training()
        # In the whitened basis the second moments and the ridge add up to the identity.
        moments = 1.0 - trained.problem.features.ridge[:, None]
        explained = (moments * np.square(trained.point[:-2])).sum(axis=0)  # in units of σ²
        return np.asarray(explained / (explained + self.noise_.variance()))

    def likelihood_ratio_test(
        self, restricted: Any = None, *, small_sample: bool = True
    ) -> pd.DataFrame:
        r"""Compare with a nested model fitted to the same data (intercept only, by default).

        Parameters
        ----------
        restricted : fitted TobitRegressor, optional
            A model whose features are a subset of this one's.
        small_sample : bool
            Refer :math:`(e^{L/n} - 1)(n-p)/q` to F with q and n − p degrees of freedom, which is
            exact in linear regression; L is the statistic, q its degrees of freedom. ``False``:
            refer L to χ².

        Returns
        -------
        DataFrame
            Per target: ``statistic`` (twice the difference of log likelihoods), ``df``, ``p_value``
            and the log likelihood of the restricted model.
        """
        trained: FittedTobit = self._training()
        if not isinstance(restricted, TobitRegressor | None):
            raise ValueError(f"restricted must be a fitted TobitRegressor; got {restricted!r}")
        if self.alpha != 0.0 or (restricted is not None and restricted.alpha != 0.0):
            raise ValueError("a likelihood-ratio test needs unpenalised models (alpha = 0)")
        extra: set[str] = set()
        if restricted is None:
            other = trained.without_features(tol=self.tol, max_iter=self.max_iter)
        else:
            other = restricted._training()
            extra = {*feature_names(restricted)} - {*feature_names(self)}
        _check_nested(trained, other)
        if extra:
            raise ValueError(
                f"the models are not nested: {', '.join(map(repr, sorted(extra)))} is not among "
                "this model's features"
            )
        null, rows = other.log_likelihood(), []
        statistics = 2.0 * (self.log_likelihood_ - null)
        dfs = (trained.n_parameters() - other.n_parameters()).astype(int)
        for task, (statistic, df) in enumerate(zip(statistics, dfs, strict=True)):
            at = max(statistic, 0.0), max(df, 1)
            p = trained.likelihood_ratio_tail(task, *at) if small_sample else Reference().tail(*at)
            rows.append({"statistic": statistic, "df": df, "p_value": p})
        table = pd.DataFrame(rows, index=pd.Index(self.target_names_, name="target"))
        return table.assign(restricted_log_likelihood=null)


def _check_nested(full: FittedTobit, restricted: FittedTobit) -> None:
    ours, theirs = full.problem.targets, restricted.problem.targets
    ends = (ours.low, theirs.low), (ours.high, theirs.high)
    if not all(np.array_equal(*pair, equal_nan=True) for pair in ends):
        raise ValueError("both models must be fitted to the same outcomes")
    if not np.array_equal(full.problem.weight, restricted.problem.weight):
        raise ValueError("both models must be fitted with the same sample weights")
    if full.problem.noise != restricted.problem.noise:
        raise ValueError("both models must assume the same noise")
    if (full.n_parameters() < restricted.n_parameters()).any():
        raise ValueError("the restricted model has more parameters than this one; swap them")


def p_text(p: float) -> str:
    """A p value as papers print it.

    Examples
    --------
    >>> p_text(0.04321), p_text(1e-9), p_text(np.nan)
    ('0.043', '<0.001', 'nan')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _formatted(table: pd.DataFrame, lines: list[str], digits: int, style: str) -> str:
    """Lines and a table as text, HTML or LaTeX."""
    shown = table.map(f"{{:.{digits}g}}".format).assign(p_value=table["p_value"].map(p_text))
    if style == "text":
        return "\n".join([*lines, shown.to_string()])
    if style == "html":
        return "\n".join([*(f"<p>{escape(line)}</p>" for line in lines), shown.to_html()])
    cells = [["", *shown.columns], *shown.itertuples()]
    heading, *body = (" & ".join(_latex(str(cell)) for cell in row) + r" \\" for row in cells)
    columns = "l" + "r" * len(shown.columns)
    top = [*(f"% {line}" for line in lines), rf"\begin{{tabular}}{{{columns}}}", r"\hline"]
    return "\n".join([*top, heading, r"\hline", *body, r"\hline", r"\end{tabular}"])


def _latex(text: str) -> str:
    """Text without commands; < is mathematics, and so is a minus sign."""
    safe = "".join(f"\\{sign}" if sign in "_%&#$" else sign for sign in text)
    return f"${safe}$" if safe.startswith(("<", "-")) else safe
