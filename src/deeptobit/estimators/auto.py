"""The model that needs nothing but the bounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from deeptobit import auto
from deeptobit.arrays import listed
from deeptobit.estimators.diagnosis import warn_of_censoring, warn_of_repeats
from deeptobit.estimators.networkcv import Candidate, Search, SearchRegressor, is_ahead
from deeptobit.estimators.resampling import Refits, recalibrated_layers, refit_recalibrated
from deeptobit.likelihood import Gaussian, Noise, NoiseByTask, resolve_noise
from deeptobit.network import Trees, concatenate, latents
from deeptobit.runtime import one_blas_thread, time_left

MEMBERS = ("stack", "trees", "deeper")
_VARIANCES = {
    "shared": "all features alike",
    "own": "each feature with its own variance",
    "sparse": "few features",
}
_DEPTH = 2  # of the deeper network
_CLEAR = 0.5  # standard errors by which trees must be ahead, which have seen held-out outcomes
_CLEAR_OF_NETWORK = 1.0  # and a network: less can be the luck of outliers, which it follows further
_NAMES_SHOWN = 3
_ROWS_PER_FEATURE = 20  # with which a deeper network is tried first, where rows are many


@dataclass(kw_only=True, eq=False, repr=False)
class AutoTobitRegressor(SearchRegressor):
    r"""Censored layers whose prior, rank, depth and noise are learned from the data.

    The prior of a layer is learned from the data (empirical Bayes),

    .. math::
        y = \mathrm{clip}\left(Wx + b + \sigma e\right),\quad e \sim N(0, R),\quad
        W/\sigma \sim \text{matrix normal}\left(0,\, (1-\rho)K + \rho R,\, c\,\mathrm{diag}\,\omega
        \right)

    where ω are variances of the features, K the covariance of the effects and R that of the noise
    between tasks. Layers under a path of ρ and c, with one ω for all features and with one for
    each, with R learned and with R = I, are averaged with the weights that predict held-out rows
    best (stacking). **Trees** boosted on the censored likelihood are tried as a layer below, f(x),
    for the outcomes whose held-out residuals they explain: the stack then sees [f; x] in place of
    x, with f from trees that have not seen the row, and is taken if held-out rows are better
    predicted. A network of two layers is tried too, and taken only if it predicts held-out
    rows better; one that is far behind on the first fold, or behind on each of the first two, is
    abandoned, and where there are more than 5,000 rows one that is behind when it has learned from
    some of them. Slope, intercept and noise of every task are then estimated on held-out rows.

    Learning a variance for every feature takes 35 eigendecompositions of size min(N, D) per fold:
    seconds for 200 features, minutes for 1000 of both. Use :class:`SubspaceNetworkCV` beyond that.

    Parameters
    ----------
    members : "auto" or sequence of {"stack", "trees", "deeper"}
        What is tried: the stack of layers, trees below it, the deeper network, or all of them
        (``"auto"``). Without ``"stack"``, trees are below all outcomes.
    cv : "auto", int, splitter or iterable
        A number means shuffled folds, or folds of whole ``groups``. ``"auto"`` is 5 folds; where
        there are more than 5,000 rows, a fifth of them, at most 4,000, is held out instead.
    scoring : {"r2", "log"}
        What stack and network are compared by on held-out rows: 1 − squared error of E[y|x] over
        the variance of the task, or the log density. Stacking weights always minimise squared
        error.
    noise : {"auto", "gaussian", "logistic", "student_t"} or Noise
        ``"auto"``: layers are fitted with Gaussian noise; for predictions every task takes the
        tails and the skew under which its held-out rows are most likely, and a σ that grows with
        the score where it does (:class:`~deeptobit.likelihood.Spread`). Where all outcomes of a
        task are whole scores, or multiples of a step, so are its predictive distributions
        (:class:`~deeptobit.likelihood.ScoreGrid`). A family has one σ per task and continuous
        outcomes. A ``NoiseByTask`` keeps its families and its grid; the growth of its spread, if
        it has one, is estimated again.
    n_jobs : int or None
        Folds side by side; the result does not depend on it.
    random_state : int, RandomState or None
        Shuffles the folds.
    verbose : int
        1 shows progress on stderr, on one line updated in place, with the time left if known.
    lower, upper, outside, fit_intercept, standardize, prediction, max_iter, tol
        As in :class:`SubspaceNetworkRegressor`.

    Attributes
    ----------
    members_ : DataFrame
        What was tried, in words (``member``); its mean held-out ``score``, and its ``gain`` over
        the best layer with separate tasks, on the folds that both have; the ``weight`` of a layer
        in the stack; what came of it (``result``, ``taken``); over how many ``folds``, as what
        surely adds nothing on the first is given up, and ``seconds`` per fold. The other columns
        are the settings of a layer's prior: ω, R, ρ and c.
    best_score_ : float
        The held-out score of what was taken.
    layers_ : tuple of NetworkLayer
        U, V, intercept and sigma of every layer, in the user's units.
    trees_ : Trees
        The trees below the first layer, as arrays, if there are any. The first layer then has
        their scores in front of the features, and there are no ``coef_``, ``U_`` and ``V_``.
    coef_, intercept_, U_, V_ : arrays
        Those of the first layer.
    sigma_ : array of shape (T,)
        Noise scales of the last layer, at the middle of each task's scores.
    noise_ : Noise
        The noise family; a ``NoiseByTask`` where tasks differ, whose ``spread`` says how σ changes
        with the score, and whose ``grid`` which scores there are.
    rank_, alpha_, n_layers_, n_iter_ : int, float, int, int
        ``alpha_`` of a learned prior is its ridge on W/σ, 1/(n ω).
    history_ : dict
        How the layers were found.
    lower_, upper_, feature_scale_, target_names_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from deeptobit import AutoTobitRegressor, datasets
    >>> X, Y, truth = datasets.make_subspace(300, 20, 8, 2, random_state=0)
    >>> model = AutoTobitRegressor(random_state=0).fit(X[:200], Y[:200])
    >>> model.members_.loc[model.members_["taken"], ["member", "layers"]]
                member  layers
    0  stack of layers       1
    >>> round(model.score(X[200:], Y[200:]), 2)
    0.55
    """

    members: Literal["auto"] | Sequence[str] = "auto"
    cv: Any = "auto"
    noise: str | Noise = "auto"

    def _choose(self, search: Search) -> None:
        """Compare the members, and take the best one, fitted to all rows.

        First the stack of layers under learned priors, with its error model; then trees below it;
        then a deeper network.
        """
        members = _read_members(self.members)
        n_tasks = search.held_out.targets.shape[1]
        if isinstance(self.noise, NoiseByTask) and len(self.noise.families) != n_tasks:
            raise ValueError(
                f"noise is that of {len(self.noise.families)} target(s), but y has {n_tasks}"
            )
        with one_blas_thread():
            stack = self._fit_stack(search, search.X) if "stack" in members else None
            trees = self._try_trees(search, stack) if "trees" in members else None
            forest, best, deeper = None, stack, None
            above = None if trees is None else trees.stack
            if trees is not None and above is not None and _is_better(above, stack, _CLEAR):
                forest, best = trees.forest, above
            elif trees is not None and stack is None:
                best = stack = self._fit_stack(search, search.X)  # no tree was worth growing
            if "deeper" in members and search.bounded:
                deeper = self._try_network(search, best)
        if best is None and deeper is None:
            raise ValueError(
                "no target has a bound, so that a deeper network is linear; set lower or upper, or "
                "add 'stack' to members"
            )
        took_network = deeper is not None and _is_better(deeper, best, _CLEAR_OF_NETWORK)
        taken = "network" if took_network else "stack" if forest is None else "trees"
        self._members = _tabulate(stack, trees, deeper, taken, search.held_out.targets.names)
        ((winner, score),) = self.members_.query("taken")[["member", "score"]].to_numpy().tolist()
        self.best_score_ = score
        if deeper is not None and took_network:
            self._take_network(search, deeper)
        elif best is not None:
            self._take_stack(search, best, None if forest is None else forest.trees)
        share = search.held_out.weight / search.held_out.weight.sum()
        self.feature_mean_ = np.asarray(share @ search.X)
        if hasattr(self, "trees_"):
            self.mean_slopes_ = self._score_slopes(search.X)
        self._show_progress(f"{winner}: held-out score {score:.4f}, see members_", last=True)

    @property
    def members_(self) -> pd.DataFrame:
        """What was tried, its score on held-out rows, its weight, and whether it was taken."""
        return pd.DataFrame(self._members)

    def _families(self) -> tuple[Noise, ...]:
        """Candidates for the noise of predictions."""
        automatic = isinstance(self.noise, str) and self.noise == "auto"
        return auto.TAILS if automatic else (resolve_noise(self.noise),)

    def _layer_noise(self) -> Noise:
        """Gaussian, unless one family is given."""
        first = self._families()[0]
        return Gaussian() if isinstance(first, NoiseByTask) else first

    def _fit_stack(
        self, search: Search, X: Any, name: str = "stack of layers"
    ) -> auto.EvidenceStack:
        started = perf_counter()

        def watch(done: int, total: int) -> None:
            left = time_left(started, done, total)
            self._show_progress(f"{name}, {done} of {total} priors learned{left}")

        stack = auto.fit_stack(
            X,
            search.held_out,
            self._families(),
            fit_intercept=self.fit_intercept,
            standardize=self.standardize,
            scoring=self.scoring,
            n_jobs=self.n_jobs,
            watch=watch,
        )
        if X is search.X:
            warn_of_censoring(stack.kinds, search.held_out.targets)
        return stack

    def _try_trees(self, search: Search, stack: auto.EvidenceStack | None) -> "TreeTrial":
        """A stack above trees, unless they explain nothing that the stack leaves."""
        started = perf_counter()
        self._show_progress("trees, on a first part of the rows")
        intercept = self.fit_intercept
        table = auto.TreeTable.build(
            search.X, search.held_out, search.groups, fit_intercept=intercept
        )
        forest = table.grow(stack, self.n_jobs, "trees, on other parts" if self.verbose else "")
        if forest is None:
            return TreeTrial(None, None, perf_counter() - started)
        inputs = concatenate(forest.scores, search.X)
        above = self._fit_stack(search, inputs, "stack above trees")
        return TreeTrial(forest, above, perf_counter() - started)

    def _try_network(self, search: Search, stack: auto.EvidenceStack | None) -> Candidate:
        """The deeper network on every fold, unless it is given up before.

        Where rows are many, it must beat the stack with some of them first.
        """
        if stack is None:
            return search.deeper([_DEPTH], {}, np.full(len(search.held_out.folds), -np.inf))[0]
        n_rows = len(search.held_out.folds[0].train)
        some = max(auto.MANY_ROWS, _ROWS_PER_FEATURE * search.X.shape[1])
        if n_rows > some and not search.is_promising(_DEPTH, some, stack.scores[0]):
            return search.given_up(_DEPTH)
        return search.deeper([_DEPTH], {}, stack.row_scores)[0]

    def _take_stack(self, search: Search, stack: auto.EvidenceStack, trees: Trees | None) -> None:
        if trees is not None:
            if isinstance(self.cv, (str, int)):  # else the folds are the user's
                warn_of_repeats(search.X, search.groups)
            self.trees_ = trees
        self.rank_, self.alpha_, self.n_iter_ = stack.layer.U.shape[1], stack.alpha, 1
        self.history_ = {
            "solver": "evidence",
            "reason": "the prior was learned and held-out rows chose its width",
            "weights": stack.weights,
        }
        self._store((stack.layer,), search.held_out.targets)
        self._chosen_noise, self._trained = stack.noise, stack.draws

    def _take_network(self, search: Search, deeper: Candidate) -> None:
        """The network of all rows, with the error model of held-out rows in its last layer.

        A tuned network fits its own rows better than others: with few of them, σ is far too small.
        """
        network = search.refit(deeper.network)
        sigma, kinds = network.sigma_, search.null(slice(None), 1, 0.0).kinds
        scores = auto.HeldOutScores.of_folds(
            search.held_out, deeper.latents, sigma, kinds, fit_intercept=self.fit_intercept
        )
        rows = np.concatenate([fold.test for fold in search.held_out.folds])
        *_, refitted = latents(network.layers_, search.X[rows], network.lower_, network.upper_)
        recalibration, noise = auto.fit_error_model(scores, self._families(), refitted)
        self.rank_, self.alpha_, self.n_iter_ = network.rank_, network.alpha_, network.n_iter_
        self.history_ = network.history_
        self._store(recalibrated_layers(network.layers_, recalibration), search.held_out.targets)
        again = partial(refit_recalibrated, network._trained.fit, recalibration)
        self._chosen_noise, self._trained = noise, Refits(network._trained.rows, again)


def _read_members(members: Any) -> tuple[str, ...]:
    names = MEMBERS if isinstance(members, str) and members == "auto" else members
    listed = isinstance(names, Sequence) and not isinstance(names, str)
    if listed and names and all(name in MEMBERS for name in names):
        return tuple(names)
    raise ValueError(f"members must be 'auto' or some of {MEMBERS}; got {members!r}")


class TreeTrial(NamedTuple):
    """Trees and the stack above them, if held-out residuals promised anything, and seconds."""

    forest: auto.Forest | None
    stack: auto.EvidenceStack | None
    seconds: float


def _is_better(
    one: auto.EvidenceStack | Candidate, rival: auto.EvidenceStack | None, standard_errors: float
) -> bool:
    """Whether held-out rows are better predicted, by so many standard errors.

    A network may have been given up after some of the folds.
    """
    if rival is None or len(one.row_scores) < len(rival.row_scores):
        return rival is None
    gain = np.concatenate(one.row_scores) - np.concatenate(rival.row_scores)
    return is_ahead(gain, standard_errors)


_GIVEN_UP = (  # after so many folds
    "behind the stack with some of the rows",
    "far behind the stack on the first fold",
    "behind the stack on the first two folds",
)
_COLUMNS = (
    *("member", "layers", "score", "gain", "weight", "result", "taken", "folds", "seconds"),
    *("feature_variance", "noise", "shrinkage", "strength"),
)


def _tabulate(
    stack: auto.EvidenceStack | None,
    trees: TreeTrial | None,
    deeper: Candidate | None,
    taken: str,
    targets: Sequence[str],
) -> dict[str, list[Any]]:
    """The columns of ``members_``: means over the folds on which a member was tried."""
    rows: list[dict[str, Any]] = []
    if stack is not None:
        each = {"layers": 1, "seconds": stack.fit_times}
        result = "taken" if taken == "stack" else f"behind the {taken}"
        rows.append(each | {"member": "stack of layers", "scores": stack.scores, "result": result})
        members = zip(stack.member_scores, stack.weights.tolist(), stack.settings, strict=True)
        for scores, weight, settings in members:
            result = f"{weight:.0%} of the stack" if weight > 0.0 else "adds nothing to the stack"
            row = {"member": _describe(settings), "scores": scores, "result": result}
            rows.append(each | row | settings | {"weight": weight})
    if trees is not None:
        rows.append(_tree_row(trees, taken, targets))
    if deeper is not None:
        tried = int((~np.isnan(deeper.scores)).sum())
        result = "taken" if taken == "network" else "behind the stack"
        if tried < len(deeper.scores):
            result = f"given up: {_GIVEN_UP[tried]}"
        row = {"member": f"network of {_DEPTH} layers", "layers": _DEPTH, "result": result}
        rows.append(row | {"scores": deeper.scores, "seconds": deeper.fit_times})
    words = {"feature_variance": "", "noise": ""}
    table: Any = pd.DataFrame([words | row for row in rows])
    scores = pd.DataFrame([pd.Series(each) for each in table["scores"]])
    seconds = pd.DataFrame([pd.Series(each) for each in table["seconds"]])
    table["score"], table["folds"] = scores.mean(axis=1), scores.notna().sum(axis=1)
    table["seconds"] = seconds.where(scores.notna()).mean(axis=1)
    table["taken"] = table["result"] == "taken"
    table = table.reindex(columns=_COLUMNS)
    separate = scores[(table["shrinkage"] == 1.0) & scores.notna().all(axis=1)]
    if len(separate):
        best = separate.mean(axis=1).idxmax()
        table["gain"] = (scores - scores.loc[best]).mean(axis=1)  # on the folds that both have
    return dict(table.to_dict("list"))


def _tree_row(trees: TreeTrial, taken: str, targets: Sequence[str]) -> dict[str, Any]:
    """What trees were tried for, and what came of them."""
    nothing = np.full(1, np.nan)
    row = {"member": "trees below the stack", "layers": 1, "scores": nothing, "seconds": nothing}
    if trees.forest is None or trees.stack is None:
        return row | {"result": "given up: they explain nothing that the stack leaves"}
    names = [targets[task] for task in trees.forest.trees.tasks]
    which = "all targets" if len(names) == len(targets) else listed(names, _NAMES_SHOWN)
    outcomes = {"trees": "taken", "network": "behind the network"}
    scores = trees.stack.scores
    return {
        "member": f"trees below the stack, for {which}",
        "layers": 2,
        "scores": scores,
        "seconds": np.full(len(scores), trees.seconds / len(scores)),
        "result": outcomes.get(taken, "behind the stack, or not clearly ahead"),
    }


def _describe(settings: dict[str, Any]) -> str:
    """A layer of the stack in words."""
    shared, tasks = 1.0 - settings["shrinkage"], "separate tasks"
    if shared > 0.0:
        tasks = f"effects {100.0 * shared:g} % shared, {settings['noise']} noise"
    width = "" if settings["strength"] == 1.0 else f", prior × {settings['strength']:g}"
    return f"{tasks}, {_VARIANCES[settings['feature_variance']]}{width}"
