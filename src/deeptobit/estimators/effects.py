"""Which features matter, for which outcomes, and which outcomes are alike."""

from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.inspection import permutation_importance
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray, check_count
from deeptobit.estimators import inputs
from deeptobit.estimators.prediction import PredictiveRegressor
from deeptobit.inspection import Subspace, canonical_subspaces
from deeptobit.likelihood import Predictive
from deeptobit.metrics import censored_log_score, centred_anmse
from deeptobit.targets import CensoredTargets

Scoring = Literal["log", "r2"]


class ExplainMixin(PredictiveRegressor):
    """Importance of features, similarity of tasks, and the subspaces they share.

    Coefficients are compared in standard units: per standard deviation of a feature, which
    ``fit`` stores where it has seen all rows (``feature_scale_``) and X tells otherwise.
    """

    feature_scale_: FloatArray

    def feature_importance(
        self,
        X: Any = None,
        y: Any = None,
        *,
        kind: Literal["coef", "permutation"] = "coef",
        scoring: Scoring = "log",
        n_repeats: int = 5,
        random_state: Any = None,
    ) -> pd.DataFrame:
        r"""How much every feature matters, for each target and for all targets together.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D), optional
            For ``"coef"`` the rows that define the standard deviations, if not those of ``fit``.
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T), optional
            For ``"permutation"`` alone; rows that ``fit`` did not see give honest answers.
        kind : {"coef", "permutation"}
            ``"coef"``: :math:`|\beta_{td}|\,\mathrm{sd}_d`, what one standard deviation of the
            feature does to the latent score, in units of the target. ``"permutation"``: the loss
            of score when the feature is shuffled over the rows; a feature that others can replace
            loses little.
        scoring : {"log", "r2"}
            What a shuffled feature loses: log density per entry, as in ``score_log``, or R², as in
            ``score``.
        n_repeats : int
            Shuffles of every feature, averaged.
        random_state : int, RandomState or None

        Returns
        -------
        DataFrame of D rows
            One column per target, and ``"shared"``: the mean over targets of the losses, or the
            root mean square of :math:`\beta_{td}\,\mathrm{sd}_d / \sigma_t`, free of units.

        Examples
        --------
        >>> import numpy as np
        >>> from deeptobit import TobitRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 2)) * [1, 10]
        >>> Y = np.maximum(X @ [[2, 0], [0, 0.1]] + rng.normal(size=(500, 2)), 0)
        >>> model = TobitRegressor().fit(X, Y)
        >>> model.feature_importance().round(2)
                   y0    y1  shared
        feature
        x0       2.06  0.04    1.42
        x1       0.07  1.02    0.71
        >>> model.feature_importance(X, Y, kind="permutation", random_state=0).round(2)
                   y0    y1  shared
        feature
        x0       2.74  0.00    1.37
        x1       0.00  0.75    0.38
        """
        check_is_fitted(self)
        if kind == "coef":
            effects = np.abs(self._effects_per_deviation(X))
            shared = np.sqrt(np.mean(np.square(effects / self.sigma_[:, None]), axis=0))
            return self._by_feature(np.vstack([effects, shared]))
        inputs.check_choice("kind", kind, ("coef", "permutation"))
        inputs.check_choice("scoring", scoring, ("log", "r2"))
        if X is None or y is None:
            raise ValueError("kind='permutation' needs X and y: rows on which the loss is measured")
        check_count("n_repeats", n_repeats)
        matrix, targets = self._read_pair(X, y, None, None)
        bounds = targets.entry_lower, targets.entry_upper

        def score(model: Any, features: Any, y: None) -> dict[int, float]:
            found = _scores(targets, model._predictive_at(features, *bounds), scoring)
            return dict(enumerate(found.tolist()))

        rows = inputs.dense(matrix)
        settings: Any = {"n_repeats": n_repeats, "random_state": random_state}
        found = permutation_importance(self, rows, None, scoring=score, **settings)
        losses = np.array([each["importances_mean"] for each in found.values()])
        return self._by_feature(np.vstack([losses, losses.mean(axis=0)]))

    def task_similarity(self, X: Any = None) -> pd.DataFrame:
        r"""Cosines between the tasks' coefficients in standard units of the features, (T, T).

        1: the features move both outcomes in the same direction, −1: in opposite ones, 0: they
        have nothing in common, or one of them has no effect at all.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D), optional
            Rows that define the standard deviations, if not those of ``fit``.

        Examples
        --------
        >>> from deeptobit import TobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(500, 5, 3, 1, random_state=0)
        >>> TobitRegressor().fit(X, Y).task_similarity().round(2)
                  y0    y1    y2
        target
        y0      1.00 -0.99 -1.00
        y1     -0.99  1.00  0.97
        y2     -1.00  0.97  1.00
        """
        check_is_fitted(self)
        names = pd.Index(self.target_names_, name="target")
        cosines = cosine_similarity(self._effects_per_deviation(X))
        return pd.DataFrame(np.clip(cosines, -1.0, 1.0), index=names, columns=self.target_names_)

    def subspaces(self, layer: int = -1, X: Any = None) -> list[Subspace]:
        r"""The directions that the targets share, strongest first.

        U and V are determined only up to rotation, UV is not: the singular value decomposition of
        :math:`\beta_{td}\,\mathrm{sd}_d / \sigma_t` is the same whatever the units.

        Parameters
        ----------
        layer : int
            Of a network; other models have one.
        X : array, sparse matrix or DataFrame of shape (N, D), optional
            Rows that define the standard deviations, if not those of ``fit``.

        Examples
        --------
        >>> from deeptobit import SubspaceTobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(500, 4, 3, 1, random_state=0)
        >>> SubspaceTobitRegressor(rank=1).fit(X, Y).subspaces(X=X)
        [Subspace 1 (100%): x0 +1.00, x3 +0.89, x2 +0.84, x1 +0.06 -> y0 +0.51, y1 +0.43, y2 +0.01]
        """
        check_is_fitted(self)
        names, effects = self._layer_effects(layer, X)
        return canonical_subspaces(effects, tuple(names), tuple(self.target_names_))

    def _layer_effects(self, layer: int, X: Any) -> tuple[list[str], FloatArray]:
        """What :meth:`subspaces` decomposes; a network has more than one layer to offer.

        Names of the layer's inputs, and the effects on its scores of one standard deviation of
        each, in units of the noise, (T, number of inputs).
        """
        inputs.read_layer(layer, 1)
        return inputs.feature_names(self), self._effects_per_deviation(X) / self.sigma_[:, None]

    def _effects_per_deviation(self, X: Any) -> FloatArray:
        """Effect of one standard deviation of each feature on the latent score, (T, D)."""
        if X is not None:
            return self.coef_ * inputs.feature_scale(self._read_features(X))
        if not hasattr(self, "feature_scale_"):
            raise ValueError(
                "the standard deviations of the features are not known to this model; pass X, for "
                "example the rows it was fitted to"
            )
        return self.coef_ * self.feature_scale_

    def _by_feature(self, rows: FloatArray) -> pd.DataFrame:
        index = pd.Index(inputs.feature_names(self), name="feature")
        return pd.DataFrame(rows.T, index=index, columns=[*self.target_names_, "shared"])


def _scores(targets: CensoredTargets, predictive: Predictive, scoring: Scoring) -> FloatArray:
    """``score`` or ``score_log`` per target, (T,)."""
    if scoring == "r2":
        error = centred_anmse(targets, predictive.mean(), multioutput="raw_values")
        return 1.0 - np.asarray(error)
    latent, sigma, noise = predictive.latent, predictive.sigma, predictive.noise
    nll = censored_log_score(targets, latent, sigma, noise=noise, multioutput="raw_values")
    return -np.asarray(nll)
