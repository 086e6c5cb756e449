"""Effects of features and stability of subspaces, by a bootstrap over rows or groups."""

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pandas as pd
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray, check_count
from deeptobit.auto import Recalibration
from deeptobit.estimators import inputs
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.estimators.inference import estimate_table
from deeptobit.estimators.inputs import Limits, Rows
from deeptobit.inspection import Reference
from deeptobit.network import NetworkLayer
from deeptobit.runtime import one_blas_thread, run_jobs
from deeptobit.targets import CensoredTargets

Layers = tuple[NetworkLayer, ...]
_DRAWS_PER_JOB = 5
_STEP = 1e-3  # of the latent score, in units of σ, for the slope of the mean


class Redraw(Protocol):
    """Fits a model again with its choices fixed: prior, penalty, rank, depth, error model."""

    @property
    def rows(self) -> Rows:
        """The rows that the model was fitted to."""

    def draw(self, weight: FloatArray, random: np.random.RandomState) -> Layers:
        """Layers that may be the truth, given the training rows with these weights."""

    def refit(
        self,
        X: Any,
        targets: CensoredTargets,
        weight: FloatArray,
        random: np.random.RandomState,
    ) -> Layers:
        """Layers estimated from other rows."""


class Refits(NamedTuple):
    """A model whose layers are fitted again from where they are; a draw is such a fit."""

    rows: Rows
    fit: Callable[[Rows], Layers]

    def draw(self, weight: FloatArray, random: np.random.RandomState) -> Layers:
        """Layers fitted to the training rows with these weights."""
        X, targets, _ = self.rows
        return self.fit((X, targets, weight))

    def refit(
        self,
        X: Any,
        targets: CensoredTargets,
        weight: FloatArray,
        random: np.random.RandomState,
    ) -> Layers:
        """Layers fitted to other rows."""
        return self.fit((X, targets, weight))


def refit_recalibrated(
    fit: Callable[[Rows], Layers], recalibration: Recalibration, rows: Rows
) -> Layers:
    """Layers fitted to other rows, under the error model of held-out rows."""
    *below, last = fit(rows)
    U, intercept = recalibration.apply(last.U, last.intercept)
    return (*below, replace(last, U=U, intercept=intercept, sigma=recalibration.sigma))


class ResampledRegressor(CensoredRegressor):
    """Effects with intervals by a bootstrap, for models that leave ``_trained`` behind.

    It looks back at the training data, which are kept in memory but never pickled or saved.
    """

    def marginal_effects(
        self,
        X: Any = None,
        *,
        lower: Limits = None,
        upper: Limits = None,
        groups: ArrayLike | None = None,
        n_boot: int = 200,
        confidence: float = 0.95,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> pd.DataFrame:
        r"""Average marginal effects of the features on E[y|x], per unit of each.

        What is estimated: by how much the mean of the outcome differs, on its own scale and with
        its bounds, between people who differ by one unit of a feature and in no other feature of
        the model, averaged over the rows of X:
        :math:`\frac{1}{n}\sum_i \partial E[y_t|x_i]/\partial x_{id}`. It is no causal effect.

        Standard errors come from ``n_boot`` fits to the training rows with random weights
        (exponential, the same for all rows of a group), started from the fitted model. What the
        model has chosen stays: penalties or priors, rank, depth, the error model. Where priors were
        learned (:class:`~deeptobit.AutoTobitRegressor`), their centres are drawn anew in every fit,
        so that intervals have room for what shrinkage may have missed. A 95 % interval then
        holds the truth in 95 % of all effects of a study together, also of those picked for their
        large estimates; the few that are in truth much larger than the rest are shrunken most, and
        held less often. Effects of a network are not widened for the bias of its penalty.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, D), optional
            Rows to average over; those of ``fit`` by default.
        lower, upper : arrays of shape (n, T), optional
            Bounds per entry.
        groups : array of shape (N,), optional
            Labels of the training rows: the rows of one person stay together.
        n_boot : int
        confidence : float
        n_jobs : int or None
            Fits side by side; the result does not depend on it.
        random_state : int, RandomState or None

        Returns
        -------
        DataFrame
            One row per (target, feature): ``effect``, ``std_err``, ``z``, ``p_value``,
            ``ci_low`` and ``ci_high``.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import AutoTobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 3))
        >>> Y = np.maximum(X[:, [0]] + rng.normal(size=(300, 2)), 0)
        >>> model = AutoTobitRegressor(members=["stack"], random_state=0).fit(X, Y)
        >>> model.marginal_effects(n_boot=50).loc["y0", ["effect", "std_err"]].round(2)
                 effect  std_err
        feature
        x0         0.51     0.03
        x1         0.01     0.03
        x2         0.00     0.03
        """
        check_is_fitted(self)
        check_count("n_boot", n_boot, least=2)
        redraw = self._redraw()
        matrix = redraw.rows[0] if X is None else self._read_features(X)
        effect = self._mean_effects(matrix, lower, upper)
        weights = random_weights(redraw.rows[2], n_boot, groups, random_state)
        rows = matrix, lower, upper
        jobs = [
            delayed(_effect_moments)(self, redraw, weights[k : k + _DRAWS_PER_JOB], rows, effect)
            for k in range(0, n_boot, _DRAWS_PER_JOB)
        ]
        what = f"effects, {_DRAWS_PER_JOB} draws each" if self.verbose else ""
        first, second = np.sum(run_jobs(jobs, n_jobs, what), axis=0)
        variance = (second - first**2 / n_boot) / (n_boot - 1)
        parts = [
            estimate_table(inputs.feature_names(self), *of_task, confidence, Reference())
            for of_task in zip(effect, variance, strict=True)
        ]
        table = pd.concat(parts, keys=self.target_names_, names=["target", "feature"])
        return table.rename(columns={"coef": "effect"})

    def _redraw(self) -> Redraw:
        """How to fit the model again."""
        redraw: Redraw = self._training()
        return redraw

    def _with_layers(self, layers: Layers) -> Self:
        """A copy of the model, without its training data, that has other layers."""
        model = copy(self)
        model._set_layers(layers)
        return model

    def _set_layers(self, layers: Layers) -> None:
        first, last = layers[0], layers[-1]
        self.U_, self.V_, self.coef_ = first.U, first.V, first.U @ first.V
        self.intercept_, self.sigma_ = first.intercept, last.sigma

    def _mean_effects(self, matrix: Any, lower: Any, upper: Any) -> FloatArray:
        """Average of ∂E[y|x]/∂x over rows that were checked, (T, D)."""
        latent = self._latent(matrix)
        step = _STEP * self.sigma_
        means = [
            self._predictive_of(latent + by, self.sigma_, self.noise_, lower, upper).mean()
            for by in (-step, step)
        ]
        return self._slopes(matrix, (means[1] - means[0]) / (2.0 * step))

    def _slopes(self, matrix: Any, factor: FloatArray) -> FloatArray:
        """Average over rows of the slopes of the latent scores times a factor (n, T), (T, D)."""
        return np.asarray(factor.mean(axis=0)[:, None] * self.coef_)


def random_weights(
    given: FloatArray, n_draws: int, groups: ArrayLike | None, random_state: Any
) -> list[tuple[FloatArray, int]]:
    """Weights of the training rows, with the sum they were given, and a seed, for every draw.

    Exponential weights have the variance of a bootstrap's counts, and leave no row out: no draw
    lacks the only outcomes that say anything about a task.

    Examples
    --------
    >>> (weight, _), _ = random_weights(np.ones(4), 2, ["a", "a", "b", "b"], 0)
    >>> weight.round(2), round(weight.sum(), 2)
    (array([0.77, 0.77, 1.23, 1.23]), 4.0)
    """
    member, random = np.arange(len(given)), check_random_state(random_state)
    if groups is not None:
        labels = np.asarray(groups)
        if labels.shape != given.shape:
            raise ValueError(
                f"groups must hold one label per training row ({len(given)}); got {labels.shape}"
            )
        member = np.unique(labels, return_inverse=True)[1]
    draws = []
    for _ in range(n_draws):
        weight = given * random.exponential(size=member.max() + 1)[member]
        draws.append((weight * (given.sum() / weight.sum()), random.randint(2**31 - 1)))
    return draws


def difference_effects(
    predict: Callable[[Any], FloatArray], X: FloatArray, step: FloatArray
) -> FloatArray:
    r"""Average effects of anything that predicts, by differences over a step of each feature.

    .. math:: \frac{1}{n h_d} \sum_i f(x_i + \tfrac12 h_d e_d) - f(x_i - \tfrac12 h_d e_d)

    A tree is flat almost everywhere: its slope is 0, but not its difference over a standard
    deviation, which is the step to take.

    Parameters
    ----------
    predict : function
        Of features (n, D); returns (n, T).
    X : array of shape (n, D)
    step : array of shape (D,)

    Returns
    -------
    array of shape (T, D)

    Examples
    --------
    >>> X = np.array([[-1.0, 0.0], [1.0, 2.0]])
    >>> difference_effects(lambda X: (X[:, [0]] > 0.25).astype(float), X, np.array([2.0, 1.0]))
    array([[0.25, 0.  ]])
    """
    effects = []
    for column, width in enumerate(step):
        if width == 0.0:
            effects.append(np.zeros_like(predict(X[:1])[0]))
            continue
        above, below = X.copy(), X.copy()
        above[:, column] += 0.5 * width
        below[:, column] -= 0.5 * width
        effects.append((predict(above) - predict(below)).mean(axis=0) / width)
    return np.array(effects).T


def _effect_moments(
    model: ResampledRegressor,
    redraw: Redraw,
    weights: list[tuple[FloatArray, int]],
    rows: tuple[Any, Limits, Limits],
    effect: FloatArray,
) -> FloatArray:
    """Sums over draws of the differences from the estimated effects, and of squares, (2, T, D)."""
    total = np.zeros((2, *effect.shape))
    with one_blas_thread():
        for weight, seed in weights:
            drawn = model._with_layers(redraw.draw(weight, np.random.RandomState(seed)))
            difference = drawn._mean_effects(*rows) - effect
            total += np.stack([difference, np.square(difference)])
    return total
