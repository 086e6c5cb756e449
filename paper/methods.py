"""A method of a comparison: a grid of estimators, and the rows of a table read from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import clone

from deeptobit import CensoredTargets
from deeptobit.app.study import Baseline, Regression
from deeptobit.datasets import SubspaceTruth
from deeptobit.metrics import anmse, centred_anmse, some_targets
from paper.arrays import FloatArray, Rows
from paper.baselines import (
    FixedRegression,
    GroupLassoBaseline,
    LeastSquaresBaseline,
    MLPBaseline,
    PenalisedBaseline,
    TobitBaseline,
    TraceNormBaseline,
)
from paper.section import Context

Reading = Callable[[Any, FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Method:
    """What is fitted, and what is measured of it.

    Parameters
    ----------
    grid : tuple of estimators
        Unfitted, with ``fit(X, targets)`` and a ``repr`` that names all settings; one of them is
        chosen for every row. A :class:`~deeptobit.app.study.Baseline` searches a grid of its own
        by the fold that it is given.
    rows : mapping of str to callables
        The prediction (N, T) of a fitted estimator for X (N, D), by the name of its row: one fit
        may serve several rows.
    trials : tuple of estimators
        One for each of ``grid``, to choose by where those take long to fit; empty: themselves.
    """

    grid: tuple[Any, ...]
    rows: Mapping[str, Reading]
    trials: tuple[Any, ...] = ()

    def settings(self) -> dict[str, Any]:
        """What a result depends on, as JSON has it."""
        grid, trials = ([in_words(model) for model in part] for part in (self.grid, self.trials))
        return {"grid": grid, "rows": list(self.rows), "trials": trials}


def in_words(model: Any) -> str:
    """An estimator on one line."""
    return " ".join(repr(model).split())


def with_choices(model: Any, fitted: Any) -> str:
    """An estimator on one line, followed by the settings that it chose when it was fitted.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> targets = CensoredTargets.from_bounds(X[:, :1])
    >>> with_choices(Regression("lasso"), Regression("ridge").fit(X, targets))
    "Regression(kind='lasso') alpha=1.0"
    """
    words = (f"{name}={value!r}" for name, value in _chosen(fitted).items())
    return " ".join([in_words(model), *words])


def _chosen(fitted: Any) -> dict[str, Any]:
    match fitted:
        case PenalisedBaseline():
            return {"alpha": fitted.alpha_}
        case MLPBaseline():
            return {"weight_decay": fitted.weight_decay_}
        case Regression():
            models = fitted.model_.models
            alphas = [float(model.alpha) for model in models if hasattr(model, "alpha")]
            return {"alpha": alphas if len(set(alphas)) > 1 else alphas[0]} if alphas else {}
    return dict(getattr(fitted, "best_params_", {}))  # of a search over networks


def reading(kind: Literal["clip", "mean", "latent"]) -> Reading:
    """The clipped score, E[y|x], or the score as it is."""
    return partial(_predict, kind=kind)


def _predict(model: Any, X: FloatArray, kind: str) -> FloatArray:
    return np.asarray(model.predict(X, kind=kind))


@dataclass(repr=False, eq=False)
class Oracle:
    """The parameters that generated the data: a lower bound of every error."""

    truth: SubspaceTruth

    def fit(self, X: FloatArray, y: Any) -> Oracle:
        """Nothing to learn."""
        return self

    def predict(self, X: FloatArray, kind: Literal["clip", "latent"] = "clip") -> FloatArray:
        """The true network without its noise, (N, T)."""
        return self.truth.predict(X, kind)

    def __repr__(self) -> str:
        """Without its numbers."""
        return "Oracle()"


# The rows of one split, and what each of them is for.


class Problem(NamedTuple):
    """Data, and which of its rows serve what.

    Parameters
    ----------
    X : array of shape (N, D)
    targets : CensoredTargets of shape (N, T)
    train, test : arrays of rows
    fold : pair of arrays of rows
        The two parts of ``train``: to fit candidates to, and to choose one by.
    """

    X: FloatArray
    targets: CensoredTargets
    train: Rows
    test: Rows
    fold: tuple[Rows, Rows]

    def fold_among(self, rows: Rows) -> tuple[Rows, Rows]:
        """The places of the fold's parts among ``rows``.

        Examples
        --------
        >>> from deeptobit import CensoredTargets
        >>> one, two, three, four = np.arange(4)[:, None]
        >>> train = np.array([3, 0, 1])
        >>> targets = CensoredTargets.from_bounds(np.ones(4))
        >>> problem = Problem(np.ones((4, 1)), targets, train, three, (np.array([0, 3]), two))
        >>> problem.fold_among(train)
        (array([0, 1]), array([2]))
        """
        first, second = (np.flatnonzero(np.isin(rows, part)) for part in self.fold)
        return first, second


# The paper's choice of settings: whatever predicts the test rows best.

Tuned = MLPBaseline | PenalisedBaseline | Regression


def peek(candidate: Tuned, problem: Problem) -> Any:
    """A baseline with the settings that predict the test rows best, fitted to the training rows."""
    rows = np.concatenate([problem.train, problem.test])
    train, test = np.split(np.arange(len(rows)), [len(problem.train)])
    chosen = clone(candidate).set_params(cv=[(train, test)])
    chosen.fit(problem.X[rows], problem.targets[rows])
    if isinstance(chosen, MLPBaseline):
        return chosen  # a network learns from the first part of the fold only
    again: PenalisedBaseline | Regression
    if isinstance(chosen, PenalisedBaseline):
        again = clone(chosen).set_params(alpha=chosen.alpha_)
    else:
        again = FixedRegression(chosen.model_)
    again.set_params(cv=[problem.fold_among(problem.train)])
    return again.fit(problem.X[problem.train], problem.targets[problem.train])


# One method on one split: which member of its grid is taken, and how it does on the test rows.

Choice = Literal["honest", "paper"]


class Outcome(NamedTuple):
    """How the chosen estimator predicts the test rows."""

    anmse: float
    centred_anmse: float
    choice: str


def assess(method: Method, problem: Problem, choice: Choice) -> dict[str, Outcome]:
    """Outcomes by row.

    Parameters
    ----------
    method : Method
    problem : Problem
    choice : {"honest", "paper"}
        ``"honest"``: the candidate that predicts the validation rows best, when fitted to the rest
        of the training rows, is fitted to all of them. ``"paper"``: every candidate is fitted to
        all training rows, and the best value on the *test* rows is reported: optimistic, and the
        more so the larger the grid.
    """
    if choice == "paper" and not method.trials:
        fits = [fit for candidate in method.grid for fit in _fit_peeking(candidate, problem)]
        best = _best(method, fits, problem, problem.test)
        chosen = {row: fits[place] for row, place in best.items()}
    else:
        fold = problem.fold if choice == "honest" else (problem.train, problem.test)
        chosen = _fit_chosen(method, problem, fold)
    return {row: _outcome(method.rows[row], fit, problem) for row, fit in chosen.items()}


class _Fit(NamedTuple):
    """A member of a grid, as it was and fitted."""

    candidate: Any
    model: Any


def _fit(candidate: Any, problem: Problem, rows: Rows) -> _Fit:
    model = deepcopy(candidate)
    if isinstance(model, Baseline):
        model.set_params(cv=[problem.fold_among(rows)])
    return _Fit(candidate, model.fit(problem.X[rows], problem.targets[rows]))


def _fit_chosen(method: Method, problem: Problem, fold: tuple[Rows, Rows]) -> dict[str, _Fit]:
    """For every row of the table, what the fold chooses, fitted to all training rows."""
    best = dict.fromkeys(method.rows, 0)
    if len(method.grid) > 1:
        to_fit, to_judge = fold
        trials = [_fit(trial, problem, to_fit) for trial in method.trials or method.grid]
        best = _best(method, trials, problem, to_judge)
    places = sorted(set(best.values()))
    fits = {place: _fit(method.grid[place], problem, problem.train) for place in places}
    return {row: fits[place] for row, place in best.items()}


def _fit_peeking(candidate: Any, problem: Problem) -> list[_Fit]:
    """All that the test rows may choose from.

    A search of its own judges by squared errors in standard units, and the table by relative ones.
    What the training rows choose therefore stays a candidate, and peeking is never behind it.
    """
    fits = []
    if not isinstance(candidate, MLPBaseline):
        fits.append(_fit(candidate, problem, problem.train))
    if isinstance(candidate, Tuned):
        fits.append(_Fit(candidate, peek(candidate, problem)))
    return fits


def _best(method: Method, fits: Sequence[_Fit], problem: Problem, rows: Rows) -> dict[str, int]:
    """The place of the fit of lowest error, for every row of the table."""
    X, targets = problem.X[rows], problem.targets[rows]
    # A task that is 0 in all of a few validation rows has no relative error.
    tasks = np.flatnonzero(np.nan_to_num(targets.values).any(axis=0)).tolist()
    errors = {
        row: [_error(targets, read(fit.model, X), tasks) for fit in fits]
        for row, read in method.rows.items()
    }
    return {row: found.index(min(found)) for row, found in errors.items()}


def _error(targets: CensoredTargets, predicted: FloatArray, tasks: Sequence[int]) -> float:
    """The paper's measure; infinite where a step was too long and the numbers ran away."""
    if not np.isfinite(predicted).all():
        return np.inf
    return float(anmse(some_targets(targets, tasks), predicted[:, tasks]))


def _outcome(read: Reading, fit: _Fit, problem: Problem) -> Outcome:
    targets = problem.targets[problem.test]
    predicted = read(fit.model, problem.X[problem.test])
    words = with_choices(fit.candidate, fit.model)
    if not np.isfinite(predicted).all():
        return Outcome(np.inf, np.inf, words)
    relative = float(centred_anmse(targets, predicted))
    return Outcome(float(anmse(targets, predicted)), relative, words)


# The methods of the paper's comparisons, beside the Subspace Network.

CENSORED_AND_TWIN = (
    ("least squares, clipped", "least squares"),
    ("ridge, clipped", "ridge"),
    ("lasso, clipped", "lasso"),
    ("Multi Trace, clipped", "Multi Trace"),
    ("Multi Trace, censored", "Multi Trace, clipped"),
    ("Multi ℓ2,1, clipped", "Multi ℓ2,1"),
    ("Multi ℓ2,1, censored", "Multi ℓ2,1, clipped"),
    ("DNN ii", "DNN i"),
)


def shallow_methods(*, uncensored: bool) -> dict[str, Method]:
    """Least squares, ridge, lasso, trace norm and ℓ2,1 norm, and the Tobit model.

    Squared losses are read as they are, if ``uncensored``, and clipped to the bounds, which the
    paper calls censored; both norms are there in the censored likelihood as well.
    """
    squared = {
        "least squares": LeastSquaresBaseline(),
        "ridge": Regression("ridge"),
        "lasso": Regression("lasso"),
        "Multi Trace": TraceNormBaseline(),
        "Multi ℓ2,1": GroupLassoBaseline(),
    }
    likelihoods = {
        "Multi Trace, censored": TraceNormBaseline(censored=True),
        "Multi ℓ2,1, censored": GroupLassoBaseline(censored=True),
        "Tobit": TobitBaseline(),
    }
    methods = {}
    for name, model in squared.items():
        rows = {name: reading("latent")} if uncensored else {}
        methods[name] = Method((model,), {**rows, f"{name}, clipped": reading("clip")})
    return methods | {
        name: Method((model,), {name: reading("clip")}) for name, model in likelihoods.items()
    }


def deep_methods(rank: int, context: Context) -> dict[str, Method]:
    """Networks trained by back-propagation: plain, with clipped outputs, and of low rank too."""
    plain, clipped = (
        MLPBaseline(clipped=clip, random_state=context.seed) for clip in (False, True)
    )
    return {
        "DNN i": Method((plain,), {"DNN i": reading("latent")}),
        "DNN ii": Method((clipped,), {"DNN ii": reading("clip")}),
        "DNN iii": dnn_iii(rank, "DNN iii", context),
    }


def dnn_iii(rank: int, row: str, context: Context) -> Method:
    """The network with clipped outputs, factorised and trained again."""
    model = MLPBaseline(rank, random_state=context.seed)
    return Method((model,), {row: reading("clip")})
