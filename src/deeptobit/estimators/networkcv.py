"""Rank, penalty, feature sparsity and depth of a Subspace Network by cross-validation."""

import sys
from typing import Any, Literal, Self

from numpy.typing import ArrayLike

from deeptobit.auto import Scoring
from deeptobit.estimators.formula import FormulaDesign
from deeptobit.estimators.inputs import check_count, feature_scale
from deeptobit.estimators.network import LayeredRegressor
from deeptobit.estimators.prediction import PredictionKind
from deeptobit.estimators.search import Search, best_of, tabulate
from deeptobit.likelihood import Noise, one_family
from deeptobit.targets import BoundsLike


class SubspaceNetworkCV(LayeredRegressor):
    r"""A Subspace Network whose rank, penalty, sparsity and depth are chosen on held-out rows.

    Layers of every rank, penalty and feature sparsity of a grid are compared first. Networks of
    2 … ``max_layers`` layers with the best of these settings come next, each layer with the
    penalty divided by the depth; one that is behind the single layer on each of the first two folds
    is abandoned. The best candidate is fitted to all rows.

    :class:`AutoTobitRegressor` needs no grid, and mostly predicts better.

    Parameters
    ----------
    ranks : sequence of int, optional
        (2, 5, 10) by default.
    alphas : int or sequence of float, optional
        Penalties, or how many of them between the one that leaves no effect and a hundredth of it;
        10 by default.
    feature_sparsities : sequence of float, optional
        From 0 to 1; (0,) by default.
    max_layers : int
        The largest depth; 1 compares single layers only.
    cv : int, splitter or iterable
        A number means shuffled folds, or folds of whole ``groups``.
    scoring : {"r2", "log"}
        What candidates are compared by on held-out rows: 1 − squared error of E[y|x] over the
        variance of the task, or the log density.
    n_jobs : int or None
        Folds and ranks side by side; the result does not depend on it.
    random_state : int, RandomState or None
        Shuffles the folds.
    verbose : int
        1 prints the score of every candidate.
    lower, upper, outside, noise, fit_intercept, standardize, prediction, max_iter, tol
        As in :class:`SubspaceNetworkRegressor`.

    Attributes
    ----------
    best_estimator_ : SubspaceNetworkRegressor
        The best network, fitted to all rows.
    best_params_ : dict
    best_score_ : float
        Mean over folds.
    cv_results_ : dict of arrays
        As in scikit-learn's ``GridSearchCV``. A network that was abandoned has NaN for folds that
        it was not fitted on, and the last rank.
    layers_, coef_, intercept_, sigma_, U_, V_, rank_, alpha_, n_layers_, n_iter_, history_
        Those of ``best_estimator_``.
    lower_, upper_, feature_scale_, target_names_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from deeptobit import SubspaceNetworkCV, datasets
    >>> X, Y, truth = datasets.make_subspace(300, 20, 8, 2, random_state=0)
    >>> model = SubspaceNetworkCV(ranks=(1, 2, 4), alphas=5, cv=3, random_state=0)
    >>> model.fit(X[:200], Y[:200]).best_params_["rank"]
    2
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.56
    """

    def __init__(
        self,
        *,
        ranks: Any = None,
        alphas: Any = None,
        feature_sparsities: Any = None,
        max_layers: int = 2,
        cv: Any = 5,
        scoring: Scoring = "r2",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        lower: BoundsLike = 0.0,
        upper: BoundsLike = None,
        outside: Literal["raise", "clip"] = "raise",
        noise: str | Noise = "gaussian",
        fit_intercept: bool = True,
        standardize: bool = True,
        prediction: PredictionKind = "mean",
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.ranks = ranks
        self.alphas = alphas
        self.feature_sparsities = feature_sparsities
        self.max_layers = max_layers
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.lower = lower
        self.upper = upper
        self.outside = outside
        self.noise = noise
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
        groups: ArrayLike | None = None,
    ) -> Self:
        """Compare the candidates on held-out rows, and fit the best one to all rows.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (N, D)
        y : array, DataFrame or CensoredTargets of shape (N,) or (N, T)
            The outcomes Y, NaN where missing.
        sample_weight : array of shape (N,), optional
        lower, upper : arrays of shape (N, T), optional
            Bounds per entry.
        groups : array of shape (N,), optional
            Rows with the same label are never split between training and held-out rows.
        """
        check_count("max_layers", self.max_layers)
        search = Search.of(self, X, y, sample_weight, lower, upper, groups)
        candidates = search.one_layer(self.ranks, self.alphas, self.feature_sparsities)
        if self.max_layers > 1 and search.bounded:
            layer = best_of(candidates)
            params = {name: value for name, value in layer.params.items() if name != "n_layers"}
            candidates += search.deeper(range(2, self.max_layers + 1), params, layer.scores)
        for candidate in candidates if self.verbose else ():
            print(candidate, file=sys.stderr)
        best = best_of(candidates)
        network = search.refit(best.network)
        if hasattr(self, "feature_names_in_"):
            network.feature_names_in_ = self.feature_names_in_
        self.cv_results_ = tabulate(candidates)
        self.best_params_, self.best_score_ = best.params, float(best.scores.mean())
        self.best_estimator_, self.history_ = network, network.history_
        self.rank_, self.alpha_, self.n_iter_ = network.rank_, network.alpha_, network.n_iter_
        self.feature_scale_ = feature_scale(search.X, search.held_out.weight)
        self._store(network.layers_, search.held_out.targets)
        self.coef_ = network.coef_  # one array in a saved file
        return self

    def _layer_noise(self) -> Noise:
        if isinstance(self.noise, str) and self.noise == "auto":
            raise ValueError(
                "noise='auto' is a setting of AutoTobitRegressor; SubspaceNetworkCV needs one "
                "family, such as noise='gaussian'"
            )
        return one_family(self.noise)

    def _keep_formula(self, design: FormulaDesign) -> None:
        super()._keep_formula(design)
        self.best_estimator_._keep_formula(design)
