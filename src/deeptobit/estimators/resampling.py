"""Effects of features and stability of subspaces, by a bootstrap over rows or groups."""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import FloatArray, IntArray, check_count, read_groups
from deeptobit.auto import Recalibration, StackDraws
from deeptobit.estimators import inputs
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.estimators.inference import estimate_table
from deeptobit.estimators.inputs import Limits, Rows
from deeptobit.inspection import Draw, Reference, Stability, agreement, align, summarise_draws
from deeptobit.layer import solve_subspace, to_user
from deeptobit.network import NetworkLayer, mean_slopes, standard_start, to_standard
from deeptobit.runtime import one_blas_thread, run_jobs
from deeptobit.targets import CensoredTargets

Layers = tuple[NetworkLayer, ...]
Weights = list[tuple[FloatArray, int]]  # of the training rows, with a seed, for every draw
_DRAWS_PER_JOB = 5


class Refits(NamedTuple):
    """A model that is refitted from its current parameters; each draw is one refit.

    What the model has chosen stays: penalty, rank, depth, error model. Those of a learned prior are
    :class:`deeptobit.auto.StackDraws`. ``fit`` of a network also takes what its penalties are
    multiplied by.
    """

    rows: Rows
    fit: Callable[..., Layers]

    def draw(
        self, weight: FloatArray, random: np.random.RandomState, *, learned: bool = False
    ) -> Layers:
        """Layers fitted to the training rows with these weights."""
        return self.refit(*self.rows[:2], weight)

    def refit(self, X: Any, targets: CensoredTargets, weight: FloatArray) -> Layers:
        """Layers fitted to other rows."""
        return self.fit((X, targets, weight))


Redraw = Refits | StackDraws


def refit_layer(model: Any, rows: Rows) -> Layers:
    """The layer refitted to other rows or weights, warm-started from its current parameters."""
    null, (start,) = model._null(*rows), model.layers_
    features, scaling = null.problem.features, null.problem.scaling
    (start,) = to_standard([start], features.design, scaling)
    start = standard_start(null, start, np.zeros(model.n_features_in_))
    fit = solve_subspace(null, start, alpha=model.alpha_, tol=model.tol, max_iter=model.max_iter)
    return (NetworkLayer(*to_user(features, scaling, fit.layer, model.rank_)),)


def refit_recalibrated(
    fit: Callable[..., Layers], recalibration: Recalibration, rows: Rows, penalty: float = 1.0
) -> Layers:
    """Layers fitted to other rows, under the error model of held-out rows."""
    return recalibrated_layers(fit(rows, penalty), recalibration)


def recalibrated_layers(layers: Layers, change: Recalibration) -> Layers:
    """Layers of which the last has another level, slope and σ."""
    *below, last = layers
    U, intercept = change.apply(last.U, last.intercept)
    return (*below, replace(last, U=U, intercept=intercept, sigma=change.sigma))


class ResampledRegressor(CensoredRegressor):
    """Draws and refits of models that leave ``_trained`` behind, and the stability of subspaces.

    A subclass stores layers (``_set_layers``).

    It uses the training data, which are kept in memory but never pickled or saved.
    """

    def subspace_stability(
        self,
        layer: int = -1,
        *,
        confidence: float = 0.9,
        probability: float = 0.95,
        n_components: int = 5,
        n_boot: int = 200,
        n_splits: int = 10,
        groups: ArrayLike | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> Stability:
        """Which loadings of :meth:`subspaces` would be there in the next sample.

        A sign holds if the effect of the feature on the same score of the outcomes, the one along
        the ``target_loadings`` found here, has it in the next sample. Bands are aimed at what the
        same model would find in infinitely many people. They come from ``n_boot`` draws, as those
        of :meth:`marginal_effects` do. Which signs hold, and how far the subspaces of two samples
        agree, comes from fits to two halves and to quarters of the people, ``n_splits`` times, and
        the agreement by chance from halves whose outcomes were shuffled. Learned priors are learned
        again in each of them.

        Parameters
        ----------
        layer : int
            Of a network; other models have one.
        confidence : float
            Of the bands.
        probability : float
            The share of the signs of a component's stable loadings, taken together, that is to hold
            in the next sample. One alone may be less sure: see ``sign_probability``.
        n_components, n_boot, n_splits : int
        groups : array of shape (N,), optional
            Labels of the training rows: the rows of one person stay together.
        n_jobs : int or None
        random_state : int, RandomState or None

        Examples
        --------
        >>> from deeptobit import AutoTobitRegressor, datasets
        >>> X, Y, _ = datasets.make_subspace(300, 6, 4, 1, random_state=0)
        >>> model = AutoTobitRegressor(members=["stack"], random_state=0).fit(X, Y)
        >>> model.subspace_stability(n_boot=50)
        Of 6 features, stable ones (95% of their signs are expected to hold in the next sample): 5
        in component 1.
        """
        for name, count in (("n_boot", n_boot), ("n_splits", n_splits)):
            check_count(name, count, least=2)
        redraw, random = self._redraw(), check_random_state(random_state)
        rows, named = redraw.rows, self._named_features(redraw.rows[0])
        found = self.subspaces(layer, named)[:n_components]
        if not found:
            raise ValueError("no feature has an effect in this layer: there are no directions")
        weights, about = random_weights(rows[2], n_boot, groups, random), (layer, len(found))
        jobs = [
            delayed(_aligned_draws)(self, redraw, weights[k : k + _DRAWS_PER_JOB], *about)
            for k in range(0, n_boot, _DRAWS_PER_JOB)
        ]
        parts = [split_people(len(rows[2]), groups, random) for _ in range(n_splits)]
        halves = [delayed(_agreements)(self, redraw, about, *part) for part in parts]
        shown = "draws and splits of the people" if self.verbose else ""
        done = run_jobs([*jobs, *halves], n_jobs, shown)
        splits = done[len(jobs) :]
        of_splits = np.array([found for found, _ in splits])  # each 3, R
        n_people = len(np.unique(groups)) if groups is not None else len(rows[2])
        return summarise_draws(
            self._layer_effects(layer, named)[1],
            found,
            [draw for some in done[: len(jobs)] for draw in some],
            [pair for _, pair in splits],
            dict(zip((n_people / 2, n_people / 4), of_splits.mean(axis=0), strict=False)),
            np.quantile(of_splits[:, 2], 0.95, axis=0),
            n_people=n_people,
            confidence=confidence,
            probability=probability,
        )

    def _redraw(self) -> Redraw:
        """How to fit the model again."""
        redraw: Redraw = self._training()
        return redraw

    def _apply(self, change: Recalibration) -> None:
        self._set_layers(recalibrated_layers(self.layers_, change))

    def _named_features(self, seen: Any) -> Any:
        """X of what the first layer sees, with the names that the model knows its columns by."""
        X, names = self._own_features(seen), getattr(self, "feature_names_in_", None)
        return X if names is None else pd.DataFrame(X, columns=names)

    def _with_layers(self, layers: Layers) -> Self:
        """A copy of the model, without its training data, that has other layers."""
        model = copy(self)
        model._set_layers(layers)
        return model

    def _own_features(self, seen: Any) -> Any:
        """X of what the first layer sees, [f; x] where trees are below it."""
        return seen[:, -self.n_features_in_ :]


class EffectsRegressor(ResampledRegressor):
    """Average marginal effects with intervals by a bootstrap."""

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
        so that intervals have room for what shrinkage may have missed. 95 % intervals then hold the
        truth in at least 95 % of all effects of a study taken together. They do not promise it of
        every single one: an effect that is in truth far larger than most others is shrunken most,
        and held less often. Those of a network are widened for the bias of its penalty: what
        changes if the penalty is doubled counts as a standard error, too. The bias of growth layer
        by layer is not known: they held the truth in 89 to 93 % (docs/accuracy.md).
        Trees stay as they were grown: their effects are differences over a standard deviation of a
        feature, and intervals are too short by what their shape is unsure of.

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
        >>> found = model.marginal_effects(n_boot=50)
        >>> found.loc[("y0", "x0"), ["effect", "std_err"]].round(2).tolist()
        [0.47, 0.04]
        """
        check_is_fitted(self)
        check_count("n_boot", n_boot, least=2)
        redraw = self._redraw()
        matrix = self._own_features(redraw.rows[0]) if X is None else self._read_features(X)
        rows = matrix, lower, upper, self._tree_changes(matrix)
        effect = self._mean_effects(*rows)
        weights = random_weights(redraw.rows[2], n_boot, groups, random_state)
        jobs = [
            delayed(_effect_moments)(self, redraw, weights[k : k + _DRAWS_PER_JOB], rows, effect)
            for k in range(0, n_boot, _DRAWS_PER_JOB)
        ]
        what = f"effects, {_DRAWS_PER_JOB} draws each" if self.verbose else ""
        first, second = np.sum(run_jobs(jobs, n_jobs, what), axis=0)
        variance = (second - first**2 / n_boot) / (n_boot - 1)
        if isinstance(redraw, Refits):  # of which no draw knows the bias of the penalty
            stronger = self._with_layers(redraw.fit(redraw.rows, 2.0))
            variance += np.square(effect - stronger._mean_effects(*rows))
        parts = [
            estimate_table(inputs.feature_names(self), *of_task, confidence, Reference())
            for of_task in zip(effect, variance, strict=True)
        ]
        table = pd.concat(parts, keys=self.target_names_, names=["target", "feature"])
        return table.rename(columns={"coef": "effect"})

    def _tree_changes(self, matrix: Any) -> FloatArray | None:
        """Slopes of the trees below the first layer at every row, (n, K, D); None without trees."""
        trees = vars(self).get("trees_")
        return None if trees is None else trees.changes(matrix, inputs.feature_scale(matrix))

    def _mean_effects(
        self, matrix: Any, lower: Any, upper: Any, changes: FloatArray | None
    ) -> FloatArray:
        """Average of ∂E[y|x]/∂x over rows that were checked, (T, D)."""
        slopes = self._slopes_of_mean(self._latent(matrix), lower, upper)
        return self._mean_slopes(matrix, slopes, changes)

    def _mean_slopes(
        self, matrix: Any, factor: FloatArray, changes: FloatArray | None
    ) -> FloatArray:
        """Average of the slopes of the scores, each times a factor (n, T), (T, D)."""
        if changes is None:
            return mean_slopes(self.layers_, matrix, self.lower_, self.upper_, factor)
        coef, n_below = self.layers_[0].coef, changes.shape[1]
        of_trees = np.einsum("nt,nkd->tkd", factor, changes, optimize=True) / len(factor)
        of_trees = np.einsum("tk,tkd->td", coef[:, :n_below], of_trees)
        return np.asarray(factor.mean(axis=0)[:, None] * coef[:, n_below:] + of_trees)


def random_weights(
    given: FloatArray, n_draws: int, groups: ArrayLike | None, random_state: Any
) -> Weights:
    """Weights of the training rows, with the sum they were given, and a seed, for every draw.

    Exponential weights have the variance of a bootstrap's counts, and leave no row out: no draw
    lacks the only outcomes that say anything about a task.

    Examples
    --------
    >>> (weight, _), _ = random_weights(np.ones(4), 2, ["a", "a", "b", "b"], 0)
    >>> weight.round(2)
    array([0.78, 0.78, 1.22, 1.22])
    """
    member, random, draws = _members(len(given), groups), check_random_state(random_state), []
    for _ in range(n_draws):
        weight = given * random.exponential(size=member.max() + 1)[member]
        draws.append((weight * (given.sum() / weight.sum()), random.randint(2**31 - 1)))
    return draws


def _members(n_rows: int, groups: ArrayLike | None) -> IntArray:
    """The number of the person of every training row."""
    return np.unique(read_groups(groups, n_rows), return_inverse=True)[1]


def split_people(
    n_rows: int, groups: ArrayLike | None, random: np.random.RandomState
) -> tuple[IntArray, int]:
    """Which quarter of the people each row belongs to, (N,), and a seed."""
    member = _members(n_rows, groups)
    n_people = int(member.max()) + 1
    return (random.permutation(n_people) % 4)[member], random.randint(2**31 - 1)


def _drawn(
    model: ResampledRegressor, redraw: Redraw, weights: Weights, *, learned: bool = False
) -> Iterator[ResampledRegressor]:
    """Models that may be the truth, one for every draw of weights."""
    with one_blas_thread():
        for weight, seed in weights:
            random = np.random.RandomState(seed)
            yield model._with_layers(redraw.draw(weight, random, learned=learned))


def _aligned_draws(
    model: ResampledRegressor, redraw: Redraw, weights: Weights, layer: int, n_components: int
) -> list[Draw]:
    X = model._named_features(redraw.rows[0])
    effects = model._layer_effects(layer, X)[1]
    models = _drawn(model, redraw, weights, learned=True)
    return [align(effects, one._layer_effects(layer, X)[1], n_components) for one in models]


def _agreements(
    model: ResampledRegressor, redraw: Redraw, about: tuple[int, int], quarter: IntArray, seed: int
) -> tuple[FloatArray, tuple[FloatArray, FloatArray]]:
    """Agreement between two halves, two quarters, and halves with shuffled outcomes, (3, R).

    ``about`` are the layer and R. The effects in the halves come with it.
    """
    (X, targets, weight), (layer, n_components) = redraw.rows, about
    random, own = np.random.RandomState(seed), model._own_features(X)
    named, scores = model._named_features(X), _read_scores(model, layer, own)

    def effects(rows: IntArray, *, shuffled: bool = False) -> FloatArray:
        order = random.permutation(rows) if shuffled else rows
        layers = redraw.refit(X[rows], targets[order], weight[order])
        return model._with_layers(layers)._layer_effects(layer, named)[1]

    half = quarter < 2
    parts = [half, ~half, quarter == 0, quarter == 2, half, ~half]
    with one_blas_thread():
        fits = [effects(np.flatnonzero(part), shuffled=k > 3) for k, part in enumerate(parts)]
        pairs = zip(fits[::2], fits[1::2], strict=True)
        found = np.stack([agreement(*pair, scores, n_components) for pair in pairs])
        return found, (fits[0], fits[1])


def _read_scores(model: ResampledRegressor, layer: int, X: Any) -> FloatArray:
    """Inputs of the layer in standard units, (n, D_k)."""
    depth = inputs.read_layer(layer, len(model.layers_))
    below, seen = model._below(X, depth), inputs.dense(X)
    seen = seen if below is None else np.column_stack([below, seen])
    seen = seen[:, : model.layers_[depth].V.shape[1]]
    spread = seen.std(axis=0)
    return np.asarray((seen - seen.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))


def _effect_moments(
    model: EffectsRegressor, redraw: Redraw, weights: Weights, rows: Any, effect: FloatArray
) -> FloatArray:
    """Sums over draws of the differences from the estimated effects, and of squares, (2, T, D)."""
    total = np.zeros((2, *effect.shape))
    for drawn in _drawn(model, redraw, weights):
        difference = drawn._mean_effects(*rows) - effect
        total += np.stack([difference, np.square(difference)])
    return total
