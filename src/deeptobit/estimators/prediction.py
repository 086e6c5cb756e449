"""What every censored regressor can predict, given its latent scores and noise scales."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import wraps
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn import base
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray, check_count, in_precision_of, is_dask
from deeptobit.estimators import inputs
from deeptobit.estimators.inputs import Limits, PredictionKind, Rows
from deeptobit.likelihood import Noise, Predictive, resolve_noise
from deeptobit.metrics import censored_log_score, centred_anmse, some_predictive, some_targets
from deeptobit.network import NetworkLayer, latents
from deeptobit.runtime import show_line
from deeptobit.scale import predict_lazily
from deeptobit.targets import CensoredTargets, by_name, check_order, entry_bounds

Fit = TypeVar("Fit", bound=Callable[..., Any])
_STEP = 1e-3  # of a score, in units of σ, for the slope of the mean

# What a new fit discards, by the attribute whose assignment marks it: parameters, or features
# (``partial_fit`` keeps the features it began with).
_STATE_OF_A_FIT = {
    "sigma_": ("_calibration", "_trained"),
    "n_features_in_": (
        *("feature_scale_", "feature_mean_", "formula_", "_chosen_noise", "_feature_limits"),
        *("trees_", "mean_slopes_", "U_", "V_", "coef_"),
    ),
}


def all_or_nothing(fit: Fit) -> Fit:
    """A fit that fails or is interrupted leaves the model as it was before.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(coef_=1)
    >>> @all_or_nothing
    ... def fit(model):
    ...     model.coef_, model.sigma_ = 2, 3
    ...     raise KeyboardInterrupt
    >>> try:
    ...     fit(model)
    ... except KeyboardInterrupt:
    ...     model
    namespace(coef_=1)
    """

    @wraps(fit)
    def whole(model: Any, *args: Any, **others: Any) -> Any:
        before = dict(vars(model))
        try:
            return fit(model, *args, **others)
        except BaseException:
            vars(model).clear()
            vars(model).update(before)
            raise

    return cast(Fit, whole)


class PredictiveRegressor(inputs.CommonParameters, base.RegressorMixin, base.BaseEstimator):
    """Predictions of a fitted censored model.

    A subclass sets ``lower_``, ``upper_``, ``sigma_``, ``target_names_`` and
    ``_one_dimensional`` in ``fit``, and computes latent scores.

    In every method ``lower`` and ``upper`` of shape (N, T) replace the bounds of the tasks row by
    row, as detection limits do; results drop the task axis if Y was 1-d.
    """

    noise: str | Noise
    lower_: FloatArray
    upper_: FloatArray
    coef_: FloatArray
    intercept_: FloatArray
    sigma_: FloatArray
    target_names_: list[str]
    n_features_in_: int
    formula_: Any
    feature_names_in_: Any
    history_: dict[str, Any]
    _one_dimensional: bool
    _chosen_noise: Noise
    _feature_limits: tuple[FloatArray, FloatArray]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; one that a new fit sets discards state of the previous fit."""
        for stale in _STATE_OF_A_FIT.get(name, ()):
            self.__dict__.pop(stale, None)
        super().__setattr__(name, value)

    def _show_progress(self, text: str, *, last: bool = False) -> None:
        """If ``verbose``, write over the line of progress on stderr; the last text stays."""
        if self.verbose:
            show_line(text, last=last)

    def _tree_scores(self, matrix: Any) -> FloatArray | None:
        """What the first layer sees beside x: the scores of trees, (N, K), if there are any."""
        trees = vars(self).get("trees_")
        return None if trees is None else trees(matrix)

    def _latent(self, X: Any) -> FloatArray:
        """Scores before censoring, (N, T), for features that were checked."""
        return np.asarray(X @ self.coef_.T + self.intercept_)

    @property
    def noise_(self) -> Noise:
        """The noise family: chosen by held-out rows, or the one that layers are fitted with."""
        chosen: Noise | None = vars(self).get("_chosen_noise")
        return self._layer_noise() if chosen is None else chosen

    def _layer_noise(self) -> Noise:
        """The noise family that layers are fitted with."""
        return resolve_noise(self.noise)

    def predict(
        self,
        X: Any,
        kind: PredictionKind | None = None,
        *,
        lower: Limits = None,
        upper: Limits = None,
    ) -> FloatArray:
        r"""Predict Y.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        kind : {"mean", "clip", "latent"}, optional
            ``"mean"``: E[y|x], the best prediction in squared error. ``"clip"``: the latent score
            clipped to the bounds, the f of the paper. ``"latent"``: the score before censoring.
            ``None`` takes the constructor's ``prediction``.
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry.

        Returns
        -------
        array of shape (N, T), or (N,) if Y was 1-d
            For a Dask collection X a lazy one, partitioned as X is.
        """
        kind = self.prediction if kind is None else kind
        inputs.check_choice("kind", kind, inputs.KINDS)
        if is_dask(X):
            check_is_fitted(self)
            if lower is not None or upper is not None:
                raise ValueError(
                    "bounds per entry need rows in memory; predict the partitions by hand"
                )
            names, one = self.target_names_, self._one_dimensional
            lazy = predict_lazily(self.predict, X, names, one_dimensional=one, kind=kind)
            return cast(FloatArray, lazy)
        return self._drop_task_axis(of_kind(self._predictive(X, lower, upper), kind), X)

    def predict_bound_proba(
        self, X: Any, *, lower: Limits = None, upper: Limits = None
    ) -> tuple[FloatArray, FloatArray]:
        """P(y at its lower bound) and P(y at its upper bound), each (N, T); 0 at an open side."""
        y = self._predictive(X, lower, upper)
        return self._drop_task_axis(y.at_lower(), X), self._drop_task_axis(y.at_upper(), X)

    def predict_quantile(
        self, X: Any, q: ArrayLike, *, lower: Limits = None, upper: Limits = None
    ) -> FloatArray:
        """Quantiles of y given x: (N, T) for a scalar q, (Q, N, T) for a vector."""
        return self._drop_task_axis(self._predictive(X, lower, upper).quantile(q), X)

    def sample_y(
        self,
        X: Any,
        n_samples: int = 1,
        random_state: Any = None,
        *,
        lower: Limits = None,
        upper: Limits = None,
    ) -> FloatArray:
        """Draws of y given x, (N, T, S), or (N, S) if Y was 1-d."""
        check_count("n_samples", n_samples)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        draws = self._draws(X, n_samples, np.random.default_rng(seed), lower, upper)
        draws = draws[:, 0] if self._one_dimensional else draws
        return in_precision_of(X, draws)

    def _draws(
        self, X: Any, n_samples: int, rng: np.random.Generator, lower: Limits, upper: Limits
    ) -> FloatArray:
        """Draws of y given x, (N, T, S)."""
        return self._predictive(X, lower, upper).sample(rng, n_samples)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        lower: Limits = None,
        upper: Limits = None,
    ) -> float:
        """R² of E[y|x] over observed and at-bound entries, averaged over tasks.

        Tasks whose known outcomes do not vary in these rows have no R² and are left out.
        """
        targets, predictive = self._compared(X, y, lower, upper)
        weight = inputs.read_weights(sample_weight, len(targets))
        # Tasks that have two different outcomes of some weight.
        known = targets.has_value & (weight > 0.0)[:, None]
        least = np.where(known, targets.values, np.inf).min(axis=0)
        tasks = np.flatnonzero(least < np.where(known, targets.values, -np.inf).max(axis=0))
        # An entry that is censored at a limit of its own is predicted as if bounded there.
        lower = np.where(targets.at_lower, targets.values, predictive.lower)
        upper = np.where(targets.at_upper, targets.values, predictive.upper)
        mean = replace(predictive, lower=lower, upper=upper).mean()
        if tasks.size:
            targets, mean = some_targets(targets, tasks.tolist()), mean[:, tasks]
        return 1.0 - float(centred_anmse(targets, mean, sample_weight=weight))

    def score_log(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        lower: Limits = None,
        upper: Limits = None,
    ) -> float:
        """Mean log density per entry, averaged over tasks; higher is better.

        A censored entry counts with the log probability of its interval. Tasks of which nothing
        is known in these rows are left out.
        """
        targets, predictive = self._compared(X, y, lower, upper)
        weight = inputs.read_weights(sample_weight, len(targets))
        tasks = np.flatnonzero(weight @ ~targets.missing)
        if tasks.size:
            targets = some_targets(targets, tasks.tolist())
            predictive = some_predictive(predictive, tasks.tolist())
        latent, sigma, noise = predictive.latent, predictive.sigma, predictive.noise
        return -float(censored_log_score(targets, latent, sigma, noise=noise, sample_weight=weight))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether ``fit`` has finished."""
        return hasattr(self, "sigma_")

    def __sklearn_tags__(self) -> Any:
        """Many outcomes, sparse features, and non-negative outcomes where the bounds say so."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = _all_non_negative(self.lower)
        tags.input_tags.sparse = True
        return tags

    def _predictive(self, X: Any, lower: Any = None, upper: Any = None) -> Predictive:
        """The predictive distribution of every entry."""
        check_is_fitted(self)
        return self._predictive_at(self._read_features(X), lower, upper)

    def _predictive_at(self, matrix: Any, lower: Any, upper: Any) -> Predictive:
        """The same, for features that were checked."""
        return self._predictive_of(self._latent(matrix), self.sigma_, self.noise_, lower, upper)

    def _predictive_of(
        self, latent: FloatArray, sigma: FloatArray, noise: Noise, lower: Any, upper: Any
    ) -> Predictive:
        """The predictive distribution around given scores (N, T)."""
        lower_at, upper_at, names = self.lower_, self.upper_, self.target_names_
        if lower is not None:
            lower_at = entry_bounds(lower, len(latent), names, "lower")
        if upper is not None:
            upper_at = entry_bounds(upper, len(latent), names, "upper")
        if lower is not None or upper is not None:
            check_order(lower_at, upper_at, names)
        return Predictive(noise, latent, sigma, lower_at, upper_at)

    def _slopes_of_mean(
        self, latent: FloatArray, lower: Any = None, upper: Any = None
    ) -> FloatArray:
        """Derivatives of E[y] by given scores, (N, T), where σ changes with them as well."""
        step = _STEP * self.sigma_
        low, high = (
            self._predictive_of(latent + by, self.sigma_, self.noise_, lower, upper).mean()
            for by in (-step, step)
        )
        return np.asarray((high - low) / (2.0 * step))

    def _predictive_by_layer(
        self, layers: Sequence[NetworkLayer], matrix: Any, lower: Any, upper: Any
    ) -> Iterator[Predictive]:
        """Those of every layer of a network; the noise that was chosen is the last one's."""
        noises = [self._layer_noise()] * (len(layers) - 1) + [self.noise_]
        scores = latents(layers, matrix, self.lower_, self.upper_, self._tree_scores(matrix))
        for layer, latent, noise in zip(layers, scores, noises, strict=True):
            yield self._predictive_of(latent, layer.sigma, noise, lower, upper)

    def _read_rows(self, X: Any, y: Any, sample_weight: Any, lower: Any, upper: Any) -> Rows:
        """Features (N, D), outcomes (N, T) and weights (N,) of a first fit, checked."""
        beside = {"Y": y, "sample_weight": sample_weight, "lower": lower, "upper": upper}
        for name, rows in beside.items():
            inputs.check_labels(X, rows, name)
        matrix = inputs.read_features(self, X, reset=True)
        bounds = self.lower, self.upper
        targets = inputs.read_targets(y, bounds, (lower, upper), outside=self.outside)
        inputs.check_lengths(matrix, targets)
        if not inputs.is_sparse(matrix):
            self._feature_limits = inputs.feature_limits(matrix)
        return matrix, targets, inputs.read_weights(sample_weight, len(targets))

    def _read_features(self, X: Any) -> Any:
        """Features of new rows, checked against those of the fit.

        A model that was fitted from a formula encodes a data frame of raw columns first.
        """
        if hasattr(self, "formula_") and hasattr(X, "columns"):
            encoded = list(map(str, X.columns)) == list(self.feature_names_in_)
            X = X if encoded else self.formula_.columns(X)
        return inputs.read_features(self, X, reset=False)

    def _read_again(self, Y: Any, lower: Any = None, upper: Any = None) -> CensoredTargets:
        """Outcomes of the targets that the model was fitted to, in their order."""
        check_is_fitted(self)
        names = self.target_names_
        given, found = inputs.names_and_count(Y)
        if given is not None and given != names:
            raise ValueError(
                f"the columns of y are {', '.join(given)}, but the model was fitted to "
                f"{', '.join(names)}, in this order"
            )
        if found is not None and found != len(names):
            raise ValueError(
                f"y has {found} target(s), but the model was fitted to {len(names)}: "
                f"{', '.join(names)}"
            )
        bounds, limits = (self.lower_, self.upper_), (lower, upper)
        targets = inputs.read_targets(Y, bounds, limits, names=names, outside=self.outside)
        return replace(targets, names=tuple(names))

    def _read_pair(self, X: Any, y: Any, lower: Any, upper: Any) -> tuple[Any, CensoredTargets]:
        """Features and outcomes of the same new rows."""
        inputs.check_labels(X, y)
        targets, matrix = self._read_again(y, lower, upper), self._read_features(X)
        inputs.check_lengths(matrix, targets)
        return matrix, targets

    def _store_targets(self, targets: CensoredTargets) -> None:
        """Keep names and bounds of the targets that the model is fitted to."""
        self.target_names_ = list(targets.names)
        self.lower_, self.upper_ = targets.lower, targets.upper
        self._one_dimensional = targets.one_dimensional

    def _compared(
        self, X: Any, y: Any, lower: Limits = None, upper: Limits = None
    ) -> tuple[CensoredTargets, Predictive]:
        """Outcomes under the model's names, and their predictive distributions.

        Each is within the bounds it was recorded with.
        """
        matrix, targets = self._read_pair(X, y, lower, upper)
        low, high = targets.lower_bounds, targets.upper_bounds
        low = np.where(np.isneginf(low), self.lower_, low)
        high = np.where(np.isposinf(high), self.upper_, high)
        bounds = np.broadcast_arrays(low, high, targets.low)[:2]
        return targets, self._predictive_at(matrix, *bounds)

    def _drop_task_axis(self, result: FloatArray, X: Any) -> FloatArray:
        """Drop the task axis if Y was 1-d, and answer single precision in single precision."""
        result = result[..., 0] if self._one_dimensional else result
        return in_precision_of(X, result)


class SubspaceMixin(base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin):
    """For an estimator whose tasks share a subspace, in which ``transform`` gives R coordinates."""

    def __sklearn_tags__(self) -> Any:
        """Coordinates in single precision for features in single precision."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def of_kind(predictive: Predictive, kind: PredictionKind) -> FloatArray:
    """One number for every entry: its mean, its clipped score or its score, (N, T)."""
    if kind == "latent":
        return predictive.latent
    if kind == "clip":
        return np.clip(predictive.latent, predictive.lower, predictive.upper)
    return predictive.mean()


def _all_non_negative(lower: Any) -> bool:
    """Whether a constructor's lower bounds are known to be non-negative for every task."""
    if isinstance(lower, Real):
        return float(lower) >= 0.0
    try:  # None is NaN
        return bool(np.all(np.asarray(by_name(lower), dtype=np.float64) >= 0.0))
    except (TypeError, ValueError):  # such as a dict by name
        return False
