"""What all censored regressors have in common: pictures, files, and the methods below them."""

import os
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from deeptobit import inspection as plots
from deeptobit.arrays import BoolArray, FloatArray, check_count
from deeptobit.auto import HeldOutScores, Recalibration, fit_error_model
from deeptobit.estimators.conformal import ConformalMixin
from deeptobit.estimators.effects import ExplainMixin
from deeptobit.estimators.formula import FormulaMixin
from deeptobit.estimators.inputs import Limits, check_choice
from deeptobit.files import models, onnx, write_whole
from deeptobit.inspection import Stability
from deeptobit.likelihood import Noise, Predictive
from deeptobit.metrics import centred_anmse, some_predictive, some_targets
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    from deeptobit.inspection import Axes

_FEWEST = 20  # values between the bounds, from which a target is recalibrated


class CensoredRegressor(ConformalMixin, ExplainMixin, FormulaMixin):
    """Base of the estimators: predictions, calibrated intervals, explanations, pictures, formulas.

    A subclass sets ``lower_``, ``upper_``, ``sigma_``, ``target_names_`` and
    ``_one_dimensional`` in ``fit``, and computes latent scores. ``feature_scale_`` is set where
    the standard deviations of the features are known.

    Methods that draw do so on ``ax`` or on a new figure, and need matplotlib; the drawing itself
    is in ``deeptobit.inspection``. They return the Axes. If a picture has several panels, they are
    its ``child_axes``. Limits per entry are passed as a :class:`~deeptobit.CensoredTargets`.
    """

    _trained: Any  # the training data, for inference

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the training data: a model that is passed on must not carry them along."""
        state = dict(super().__getstate__())
        state.pop("_trained", None)
        return state

    def _training(self) -> Any:
        """What ``fit`` left behind for inference."""
        check_is_fitted(self)
        if hasattr(self, "_trained"):
            return self._trained
        if getattr(self, "history_", {}).get("solver") == "online":
            raise ValueError(
                "inference needs the optimum for rows in memory: use solver='batch' and fit, not "
                "partial_fit"
            )
        raise ValueError(
            "inference uses the training data, which are never stored with a saved model; fit "
            "again, or keep its result beside the model"
        )

    def recalibrate(self, X: Any, y: Any, *, lower: Limits = None, upper: Limits = None) -> Self:
        r"""A copy whose level, slope and σ fit other rows, such as those of another site.

        The latent score η of every target becomes a + cη, its noise scale σ', by penalised
        likelihood: c has a prior around 1. Effects of features keep their proportions. A target
        with fewer than 20 values between the bounds stays as it is.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 1))
        >>> y = np.clip(2 * X[:, 0] + 10 + rng.normal(size=500), 0, 30)
        >>> model = TobitRegressor(upper=30).fit(X, y)
        >>> moved = model.recalibrate(X, np.clip(y + 3, 0, 30))
        >>> (moved.predict(X[:3]) - model.predict(X[:3])).round(1)
        array([3., 3., 3.])
        """
        targets, predictive = self._compared(X, y, lower, upper)
        change, noise, _ = fit_recalibration(self, predictive, targets)
        model = copy(self)
        model._apply(change)
        model._chosen_noise = noise
        return model

    def _apply(self, change: Recalibration) -> None:
        self.coef_, self.intercept_ = change.apply(self.coef_, self.intercept_)
        self.sigma_ = change.sigma

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to one file, which :func:`deeptobit.load` reads: arrays and JSON, no pickle.

        Parameters and everything fitted are stored. Training data are not: inference such as
        ``summary`` needs them and is not available after loading. A loaded model that
        had learned by ``partial_fit`` goes on as from a fitted one. An older file is replaced
        once the new one is complete.

        A noise family of your own, or any other object that would have to be executed on loading,
        is a ``TypeError`` that names it.

        Parameters
        ----------
        path : str or Path
        """
        models.save_model(self, path)

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        kind: onnx.Output | None = None,
        *,
        dtype: onnx.Precision = "float32",
        q: float = 0.5,
    ) -> None:
        """Write ``predict`` as an ONNX file, which other systems run without Python.

        The graph has one input ``X`` of shape (batch, D) and one output, named by its kind, of
        shape (batch, T), also where Y was 1-d. Standardisation, intercepts, all layers and the
        censored mean are in it; everything is computed in double precision and rounded at the
        end. Names, bounds and noise scales are in its metadata. A missing feature gives NaN.
        The bounds are those of the targets: limits that differ from row to row are not in it.
        Needs the extra ``onnx`` and, for bound probabilities and quantiles, Gaussian noise.

        Parameters
        ----------
        path : str or Path
        kind : {"mean", "clip", "latent", "p_lower", "p_upper", "quantile"}, optional
            As in ``predict``, whose ``None`` takes the constructor's ``prediction``;
            ``"p_lower"`` and ``"p_upper"`` are those of ``predict_bound_proba``, ``"quantile"``
            is that of ``predict_quantile`` at ``q``.
        q : float
            Between 0 and 1.
        dtype : {"float32", "float64"}
            Of input and output. Single precision keeps seven digits of a feature: one that varies
            by 1 around 1,000,000 needs ``"float64"``.

        Examples
        --------
        >>> import numpy as np
        >>> from tempfile import TemporaryDirectory
        >>> from onnx.reference import ReferenceEvaluator
        >>> from deeptobit import TobitRegressor
        >>> X = np.arange(20.0, dtype=np.float32)[:, None]
        >>> y = np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10)
        >>> model = TobitRegressor(upper=10).fit(X, y)
        >>> with TemporaryDirectory() as folder:
        ...     model.to_onnx(f"{folder}/tobit.onnx")
        ...     graph = ReferenceEvaluator(f"{folder}/tobit.onnx")
        >>> graph.run(None, {"X": X[4:7]})[0].ravel().round(3), model.predict(X[4:7]).round(3)
        (array([0.008, 0.177, 0.882], dtype=float32), array([0.008, 0.177, 0.882], dtype=float32))
        """
        kind = self.prediction if kind is None else kind
        check_choice("kind", kind, get_args(onnx.Output))
        if not 0.0 < q < 1.0:
            raise ValueError(f"q must lie between 0 and 1; got {q!r}")
        write_whole(Path(path), [onnx.onnx_bytes(self, kind, dtype, q)])

    def plot_predictions(
        self,
        X: Any,
        y: Any,
        target: str | int | None = None,
        *,
        coverage: float = 0.9,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Observed against predicted outcomes, with bounds and censored values marked.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
        target : str or int, optional
            One target by name or number; all of them by default, a panel each.
        coverage : float
            Of the shaded intervals.
        ax : Axes, optional

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from deeptobit import TobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 1, random_state=0)
        >>> model = TobitRegressor().fit(X, Y)
        >>> ax = model.plot_predictions(X, Y, "y1", ax=Figure().subplots())
        >>> ax.get_title(), ax.get_xlabel(), ax.get_ylabel()
        ('y1', 'predicted, E[y|x]', 'observed')
        """
        targets, predictive = self._compared(X, y)
        tasks = self._read_target(target)
        parts = predictive.mean(), *self._interval(predictive, coverage)
        shown = (part[:, tasks] for part in parts)
        targets = some_targets(targets, tasks)
        return plots.draw_predictions(targets, *shown, coverage=coverage, ax=ax)

    def plot_calibration(
        self,
        X: Any,
        y: Any,
        target: str | int | None = None,
        *,
        n_bins: int = 10,
        step: ArrayLike | None = None,
        random_state: int = 0,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Reliability of the bound probabilities, and the probability integral transform.

        Use rows that ``fit`` has not seen: on training rows a model looks better than it is.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
        target : str or int, optional
            One target by name or number; the entries of all by default.
        n_bins : int
            Of probabilities, and of the histogram.
        step : number or array of shape (T,), optional
            Distance between neighbouring scores, 1 for whole points; see ``metrics.pit``.
        random_state : int
            Seed; outcomes at a bound are spread at random over the mass beyond it.
        ax : Axes, optional

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from deeptobit import TobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 1, random_state=0)
        >>> ax = TobitRegressor().fit(X, Y).plot_calibration(X, Y, ax=Figure().subplots())
        >>> [panel.get_ylabel() for panel in ax.child_axes]
        ['entries', 'share at the bound', 'share of 600 entries']
        """
        shown = self._compared_of(target, X, y)
        if step is not None:
            step = np.broadcast_to(step, len(self.target_names_))[self._read_target(target)]
        return plots.draw_calibration(
            *shown, n_bins=n_bins, step=step, random_state=random_state, ax=ax
        )

    def residuals(self, X: Any, y: Any, *, random_state: int = 0) -> FloatArray:
        r"""Randomised quantile residuals Φ⁻¹(u), (N, T): standard normal if the model is right.

        u is the value of the predictive distribution function at y. Where that jumps, at a bound
        or a whole score, u is drawn uniformly from the jump (Dunn and Smyth, 1996), so that
        censored outcomes have residuals like all others.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
        random_state : int
            Seed of the draws.

        Returns
        -------
        array of shape (N, T), or (N,) if Y was 1-d
            NaN where an outcome is missing, or known only as an interval.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(2000, 1))
        >>> y = np.maximum(X[:, 0] + rng.normal(size=2000), 0)
        >>> found = TobitRegressor().fit(X, y).residuals(X, y)
        >>> abs(found.mean()) < 0.05, round(float(found.std()), 1)
        (np.True_, 1.0)
        """
        targets, predictive = self._compared(X, y)
        return self._drop_task_axis(plots.quantile_residuals(targets, predictive, random_state), X)

    def plot_diagnostics(
        self,
        X: Any,
        y: Any,
        target: str | int | None = None,
        *,
        random_state: int = 0,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Residuals over predictions, and their quantiles over those of a normal distribution.

        Parameters
        ----------
        X, y
            Preferably rows that ``fit`` has not seen.
        target : str or int, optional
            One target by name or number; the entries of all by default.
        random_state : int
            As in :meth:`residuals`.
        ax : Axes, optional

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from deeptobit import TobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 1, random_state=0)
        >>> ax = TobitRegressor().fit(X, Y).plot_diagnostics(X, Y, ax=Figure().subplots())
        >>> [panel.get_xlabel() for panel in ax.child_axes]
        ['predicted score, in units of its spread', 'normal quantile']
        """
        shown = self._compared_of(target, X, y)
        return plots.draw_diagnostics(*shown, random_state=random_state, ax=ax)

    def plot_layers(self, X: Any, y: Any, *, ax: "Axes | None" = None) -> "Axes":
        """Error of E[y|x] after each layer, 1 − R², of every target and on average.

        Models without layers count as one layer. After joint tuning, hidden layers serve the last
        one, and predict less well than when they were grown.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
        ax : Axes, optional

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from deeptobit import TobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 1, random_state=0)
        >>> model = TobitRegressor().fit(X, Y)
        >>> ax = model.plot_layers(X, Y, ax=Figure().subplots())
        >>> [float(bar.get_height().round(3)) for bar in ax.patches]
        [0.916]
        >>> round(1 - model.score(X, Y), 3)
        0.916
        """
        targets, last = self._compared(X, y)
        predictives: Iterable[Predictive] = [last]
        if hasattr(self, "layers_"):
            matrix, limits = self._read_features(X), (targets.entry_lower, targets.entry_upper)
            predictives = self._predictive_by_layer(self.layers_, matrix, *limits)
        targets = replace(targets, one_dimensional=False)
        means = [predictive.mean() for predictive in predictives]
        errors = [centred_anmse(targets, mean, multioutput="raw_values") for mean in means]
        return plots.draw_layers(np.array(errors), ax=ax)

    def plot_subspaces(
        self,
        layer: int = -1,
        X: Any = None,
        *,
        n_features: int = 25,
        n_components: int = 5,
        stability: Stability | None = None,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Loadings of the shared directions on features and targets.

        Heat maps of :meth:`subspaces`, strongest direction first.

        Parameters
        ----------
        layer : int
            Of a network; other models have one.
        X : array, sparse matrix or DataFrame of shape (N, D), optional
            Rows whose standard deviations are used; by default those of ``fit``. Required for
            networks.
        n_features, n_components : int
            How many of the largest to draw.
        stability : Stability, optional
            Of ``subspace_stability``: loadings on features that are not stable are drawn pale, and
            only components that it has are drawn.
        ax : Axes, optional

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from deeptobit import SubspaceTobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 2, random_state=0)
        >>> model = SubspaceTobitRegressor(rank=2).fit(X, Y)
        >>> ax = model.plot_subspaces(X=X, n_features=3, ax=Figure().subplots())
        >>> [panel.images[0].get_array().shape for panel in ax.child_axes]
        [(3, 2), (3, 2)]
        """
        for name, count in (("n_features", n_features), ("n_components", n_components)):
            check_count(name, count)
        shown = self.subspaces(layer, X)[:n_components]
        if not shown:
            raise ValueError("no feature has an effect in this layer: there is nothing to draw")
        stable = None if stability is None else stability.stable()
        if stable is not None:
            shown = shown[: stable.shape[1]]
            stable = stable.iloc[:, : len(shown)].reindex(list(shown[0].features))
        parts = {f"{one.number}\n{one.share:.0%}": one.to_frame()["loading"] for one in shown}
        table: Any = pd.concat(parts, axis=1)
        sides = table.loc["feature"], table.loc["target"]
        return plots.draw_subspaces(*sides, n_features=n_features, stable=stable, ax=ax)

    def plot_task_similarity(self, X: Any = None, *, ax: "Axes | None" = None) -> "Axes":
        """Heat map of :meth:`task_similarity`, with similar targets next to each other.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D), optional
            Rows whose standard deviations are used; by default those of ``fit``. Required for
            networks.
        ax : Axes, optional

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from deeptobit import TobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(500, 5, 3, 1, random_state=0)
        >>> ax = TobitRegressor().fit(X, Y).plot_task_similarity(ax=Figure().subplots())
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['y0', 'y1', 'y2']
        """
        return plots.draw_similarity(self.task_similarity(X), ax=ax)

    def plot_convergence(self, *, ax: "Axes | None" = None) -> "Axes":
        """Convergence of the fit: the objective over Newton steps, or over rows if online.

        For a network: the growth of every layer, then the joint tuning. For a
        :class:`~deeptobit.TobitRegressor`, whose targets are fitted one by one to their unique
        optima: the number of steps of each target.

        Parameters
        ----------
        ax : Axes, optional

        Examples
        --------
        >>> from matplotlib.figure import Figure
        >>> from deeptobit import SubspaceTobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 2, random_state=0)
        >>> model = SubspaceTobitRegressor(rank=2).fit(X, Y)
        >>> ax = model.plot_convergence(ax=Figure().subplots())
        >>> len(ax.lines[0].get_xdata()) == model.n_iter_
        True
        """
        check_is_fitted(self)
        history = self.history_
        if "n_iter" in history:
            names, steps = self.target_names_, history["n_iter"]
            return plots.draw_steps(names, steps, history["converged"], ax=ax)
        return plots.draw_convergence(history, ax=ax)

    def _compared_of(
        self, target: str | int | None, X: Any, y: Any
    ) -> tuple[CensoredTargets, Predictive]:
        """Outcomes and predictive distributions of the targets to draw."""
        (targets, predictive), tasks = self._compared(X, y), self._read_target(target)
        return some_targets(targets, tasks), some_predictive(predictive, tasks)

    def _read_target(self, target: str | int | None) -> list[int]:
        """The numbers of the targets to draw."""
        names = self.target_names_
        if target is None:
            return list(range(len(names)))
        if isinstance(target, str) and target in names:
            return [names.index(target)]
        if isinstance(target, Integral) and -len(names) <= target < len(names):
            return [int(target) % len(names)]
        raise ValueError(
            f"target must be one of {', '.join(map(repr, names))}, or its number from 0 to "
            f"{len(names) - 1}; got {target!r}"
        )


def fit_recalibration(
    model: CensoredRegressor, predictive: Predictive, targets: CensoredTargets
) -> tuple[Recalibration, Noise, BoolArray]:
    """Level, slope and σ of a model's scores for other outcomes, under its families of noise.

    Returns
    -------
    Recalibration
    Noise
        With the growth of the spread that belongs to it.
    bool array of shape (T,)
        Targets that were recalibrated.
    """
    free = targets.observed.sum(axis=0) >= _FEWEST
    same = np.zeros(len(free)), np.ones(len(free)), model.sigma_, np.zeros(len(free))
    if not free.any():
        return Recalibration(*same), model.noise_, free
    weight = np.ones(len(targets))
    latent, sigma = predictive.latent, model.sigma_
    scores = HeldOutScores.build(latent, targets, weight, sigma, free, fit_intercept=True)
    found, noise = fit_error_model(scores, [model.noise_])
    pairs = zip(found, same, strict=True)
    return Recalibration(*(np.where(free, *pair) for pair in pairs)), noise, free
