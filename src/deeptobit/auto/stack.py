"""Stacking: layers under learned priors, averaged and recalibrated by held-out rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, compress, count
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.optimize import nnls

from deeptobit.arrays import FloatArray
from deeptobit.auto import path
from deeptobit.auto.evidence import EvidenceProblem, Spectrum
from deeptobit.auto.folds import MANY_ROWS, Fold, HeldOut, Scoring
from deeptobit.auto.noise import fit_error_model
from deeptobit.auto.path import PATH, EvidenceMember, EvidenceState, Expectation, Prior
from deeptobit.auto.recalibration import HeldOutScores, Recalibration
from deeptobit.layer import CensoringKinds
from deeptobit.likelihood import Gaussian, Noise
from deeptobit.network import NetworkLayer
from deeptobit.runtime import one_blas_thread
from deeptobit.targets import CensoredTargets

STRENGTHS = (0.08, 0.35, 1.4)  # c, the widths of priors relative to the one learned
_PER_FEATURE = 50  # rows beyond which the width of the prior does not matter, if they are many
_ROWS = 512  # whose errors are multiplied at a time: all members on all rows would fill the memory
_EVENNESS = 1e-4  # of the mean error, on Σw²: equal members share their weight
_EXPLAINED_VARIANCE = 0.999  # of the fitted scores of all tasks, that the rank must keep
_EXPLAINED_OF_TASK = 0.99  # and of those of every single task
Units = dict[str, bool]  # fit_intercept and standardize
Rows = tuple[Any, CensoredTargets, FloatArray]  # features, outcomes and weights


@dataclass(frozen=True)
class EvidenceStack:
    """One layer averaged from many, and the held-out score of each.

    Parameters
    ----------
    layer : NetworkLayer
        In the user's units, recalibrated.
    noise : Noise
        The family under which held-out rows are most likely.
    alpha : float
        Ridge of the learned prior, averaged.
    weights : array of shape (K,)
    settings : list of dict
        The prior of each of the K members.
    member_scores : array of shape (K, n_folds)
    row_scores : list of arrays
        What each held-out row adds to the score of the average, fold by fold.
    fit_times : array of shape (n_folds,)
        Seconds for all members of a fold.
    kinds : CensoringKinds
    latents : list of arrays
        Scores before censoring of the rows that each fold holds out.
    draws : StackDraws
        How the layer may differ from the truth, and from that of other rows.
    """

    layer: NetworkLayer
    noise: Noise
    alpha: float
    weights: FloatArray
    settings: list[dict[str, Any]]
    member_scores: FloatArray
    row_scores: list[FloatArray]
    fit_times: FloatArray
    kinds: CensoringKinds
    latents: list[FloatArray]
    draws: "StackDraws"

    @property
    def scores(self) -> FloatArray:
        """Held-out scores of the average, (n_folds,)."""
        return np.array([rows.sum() for rows in self.row_scores])


def fit_stack(
    X: Any,
    held_out: HeldOut,
    families: Sequence[Noise],
    *,
    fit_intercept: bool,
    standardize: bool,
    scoring: Scoring,
    n_jobs: int | None,
    watch: Callable[[int, int], None] = lambda done, total: None,
) -> EvidenceStack:
    """Fit the path to the training rows of every fold, weigh, fit to all rows, recalibrate.

    Layers are fitted and scored with Gaussian noise.

    Parameters
    ----------
    X : array or CSR matrix of shape (N, D)
    held_out : HeldOut
    families : sequence of Noise
        Candidates for the error model, as in :func:`fit_error_model`.
    watch : function, optional
        Called with the number of priors learned so far and in all, if folds do not run in parallel.
    """
    held_out = replace(held_out, noise=Gaussian())
    targets, weight, folds = held_out.targets, held_out.weight, held_out.folds
    strengths = (1.0,) if len(targets) > max(MANY_ROWS, _PER_FEATURE * X.shape[1]) else STRENGTHS
    units = {"fit_intercept": fit_intercept, "standardize": standardize}
    numbers, in_turn = count(1), effective_n_jobs(n_jobs) == 1

    def learned() -> None:
        watch(next(numbers), len(folds) * len(PATH))

    given = held_out, strengths, units, learned if in_turn else None
    paths = Parallel(n_jobs=n_jobs)(delayed(_fit_path)(X, fold, *given) for fold in folds)
    done = list(zip(folds, (each.members for each in paths), strict=True))
    moments = [error_moments(held_out, fold, X[fold.test], members) for fold, members in done]
    weights = stacking_weights(np.sum(moments, axis=0))
    layers = [average(members, weights) for _, members in done]
    latents = [layer.latent(X[fold.test]) for fold, layer in zip(folds, layers, strict=True)]
    problem = EvidenceProblem.build(X, targets, weight, **units)
    layer, priors = _fit_again(problem, paths, weights, strengths)
    scores = HeldOutScores.of_folds(
        held_out, latents, layer.sigma, problem.kinds, fit_intercept=fit_intercept
    )
    low_rank = truncate_rank(layer, X, weight, fit_intercept=fit_intercept)
    held = np.concatenate([low_rank.latent(X[fold.test]) for fold in folds])
    recalibration, noise = fit_error_model(scores, families, held)
    U, intercept = recalibration.apply(low_rank.U, low_rank.intercept)
    scored = zip(folds, latents, layers, strict=True)
    return EvidenceStack(
        layer=NetworkLayer(U, low_rank.V, intercept, recalibration.sigma),
        noise=noise,
        alpha=layer.alpha,
        weights=weights,
        settings=[path.settings(prior, strength) for prior in PATH for strength in strengths],
        member_scores=_member_scores(held_out, X, done, moments, scoring),
        row_scores=[held_out.row_scores(f, z, mean.sigma, scoring) for f, z, mean in scored],
        fit_times=np.array([each.seconds for each in paths]),
        kinds=problem.kinds,
        latents=latents,
        draws=StackDraws((X, targets, weight), priors, recalibration, units),
    )


Fitted = list[tuple[Fold, list[EvidenceMember]]]  # all members, by fold


class _Path(NamedTuple):
    """All members fitted to the training rows of one fold, and the states behind them."""

    states: list[EvidenceState]
    members: list[EvidenceMember]
    seconds: float


def _fit_path(
    X: Any, fold: Fold, held_out: HeldOut, strengths: Sequence[float], units: Units, watch: Any
) -> _Path:
    started = perf_counter()
    with one_blas_thread():  # here too: a job in another process has a limit of its own
        rows = fold.train
        problem = EvidenceProblem.build(
            X[rows], held_out.targets[rows], held_out.weight[rows], **units, overwrite=True
        )
        states = path.learn_path(problem, watch)
        members = [
            path.fit_members(problem, state, prior, strengths)
            for prior, state in zip(PATH, states, strict=True)
        ]
    return _Path(states, list(chain.from_iterable(members)), perf_counter() - started)


def _fit_again(
    problem: EvidenceProblem, paths: list[_Path], weights: FloatArray, strengths: tuple[float, ...]
) -> tuple[EvidenceMember, list["WeighedPrior"]]:
    """The average of the members that have weight, fitted to all rows, and their priors.

    Their priors are those of the folds, averaged.
    """
    members, priors = [], []
    for place, row in enumerate(weights.reshape(len(PATH), len(strengths))):
        wanted = list(compress(zip(strengths, row.tolist(), strict=True), row > 0.0))
        if wanted:
            prior, states = PATH[place], [done.states[place] for done in paths]
            state = path.mean_state(problem, states)
            members += path.fit_members(problem, state, prior, [c for c, _ in wanted])
            state = replace(state, spectrum=state.spectrum.without_directions())
            priors += [WeighedPrior(prior, *pair, state) for pair in wanted]
    return average(members, weights[weights > 0.0]), priors


def stacking_weights(moments: FloatArray) -> FloatArray:
    r"""Minimise :math:`w^\top M w` over :math:`w \ge 0,\ \sum_k w_k = 1`, evenly among equals.

    M holds the products of the members' held-out errors, so that the minimum is the squared error
    of the weighted mean. Its conditions are those of :math:`\min \tfrac12 v^\top M v - 1^\top v`
    over v ≥ 0, a non-negative least-squares problem, with w = v/Σv.

    Parameters
    ----------
    moments : array of shape (K, K)

    Examples
    --------
    >>> stacking_weights(np.array([[1.0, 0.0], [0.0, 3.0]])).round(3)
    array([0.75, 0.25])
    """
    n_members = len(moments)
    scale = max(float(np.trace(moments)) / n_members, np.finfo(np.float64).tiny)
    factor = np.linalg.cholesky(moments / scale + _EVENNESS * np.eye(n_members))
    weights, _ = nnls(factor.T, np.linalg.solve(factor, np.ones(n_members)))
    return np.asarray(weights / weights.sum())


def error_moments(
    held_out: HeldOut, fold: Fold, X: FloatArray, members: Sequence[EvidenceMember]
) -> FloatArray:
    """Products of the errors of all pairs of members on one fold, (K, K)."""
    sigma = np.stack([member.sigma for member in members])[:, None, :]
    moments = np.zeros((len(members), len(members)))
    for start in range(0, len(fold.test), _ROWS):
        rows = slice(start, start + _ROWS)
        latent = np.stack([member.latent(X[rows]) for member in members])
        errors = held_out.errors(fold.test[rows], latent, sigma).reshape(len(members), -1)
        moments += errors @ errors.T
    return moments


def average(members: Sequence[EvidenceMember], weights: FloatArray) -> EvidenceMember:
    """The layer with averaged parameters."""
    chosen, weights = list(compress(members, weights > 0.0)), weights[weights > 0.0]
    mean = {
        name: np.tensordot(weights, np.stack([getattr(one, name) for one in chosen]), axes=1)
        for name in ("coef", "intercept", "sigma")
    }
    alpha = float(np.exp(weights @ np.log([member.alpha for member in chosen])))
    return EvidenceMember(**mean, alpha=alpha)


def _member_scores(
    held_out: HeldOut, X: Any, done: Fitted, moments: list[FloatArray], scoring: Scoring
) -> FloatArray:
    """Scores of every member on every fold, (K, n_folds)."""
    if scoring == "r2":
        pairs = zip(held_out.folds, moments, strict=True)
        return np.array([held_out.r2(fold, np.diag(products)) for fold, products in pairs]).T

    def score(fold: Fold, member: EvidenceMember) -> float:
        return held_out.score(fold, member.latent(X[fold.test]), member.sigma, scoring)

    return np.array([[score(fold, member) for member in members] for fold, members in done]).T


def truncate_rank(
    member: EvidenceMember, X: Any, weight: FloatArray, *, fit_intercept: bool
) -> NetworkLayer:
    r"""W ≈ UV, with the fewest task directions that explain the fitted scores.

    They keep 99.9 % of the variance of all scores and 99 % of that of every task, each task in
    units of its own fitted variance: a task with weak effects keeps its direction. U is orthonormal
    in these units. The scores of the mean row do not change.
    """
    centre = np.asarray(weight @ X / weight.sum()) * float(fit_intercept)
    fitted = np.asarray(X @ member.coef.T) - member.coef @ centre
    scale = np.abs(fitted).max(axis=0)  # whose squares may overflow
    fitted /= np.where(scale > 0.0, scale, 1.0)
    spread = np.sqrt(weight @ np.square(fitted))
    fitted /= np.where(spread > 0.0, spread, 1.0)
    scale = np.where(scale * spread > 0.0, scale * spread, 1.0)
    variances, directions = np.linalg.eigh(fitted.T @ (weight[:, None] * fitted))
    variances, directions = np.maximum(variances[::-1], 0.0), directions[:, ::-1]
    explained = np.cumsum(np.square(directions) * variances, axis=1)  # of every task, (T, T)
    total = explained.sum(axis=0)
    enough = (total >= _EXPLAINED_VARIANCE * total[-1]) & (
        explained >= _EXPLAINED_OF_TASK * explained[:, -1:]
    ).all(axis=0)
    rank = min(int(np.argmax(enough)) + 1, *member.coef.shape)
    axes = directions[:, :rank]
    U, V = axes * scale[:, None], axes.T @ (member.coef / scale[:, None])
    intercept = member.intercept + (member.coef - U @ V) @ centre
    return NetworkLayer(U, V, intercept, member.sigma)


# Layers that the data and the learned priors leave possible, and those of the next sample.

_STEPS = 5  # of learning the prior again
_MOST_STEPS = 40
_SETTLED = 1e-3  # change of the coefficients in one step of EM, relative to the largest


class WeighedPrior(NamedTuple):
    """A prior of the stack with its weight, and the state of the layer that was fitted under it."""

    prior: Prior
    strength: float
    weight: float
    state: EvidenceState


@dataclass(frozen=True)
class StackDraws:
    r"""Draws of the averaged layer; the weights of the priors and the error model stay.

    A bootstrap of a layer that is shrunken towards 0 tells how it varies from sample to sample, not
    how far it is from the truth. Here the centre of the prior moves as well. With weights g of the
    rows and :math:`\Delta_0` drawn from the prior,

    .. math:: \Delta^* = \Delta_0 + \hat\Delta_g(Z - X\Delta_0),

    where :math:`\hat\Delta_g` is the fit to rows weighted by g. Without censoring, and with
    Gaussian noise in place of g, this is a draw from the posterior: its mean is the fit, and its
    variance has the squared bias of shrinkage in it (randomise, then optimise). Weights take errors
    of one row, or of one group of rows, as they are.

    Every draw takes one prior with the probability of its weight: priors that disagree widen the
    distribution. Where it is ``learned`` again, in a few steps from what it is, its width and the
    covariance between tasks move with the rows. Effects are held often enough without that;
    the directions that tasks share would look more certain than they are.

    Parameters
    ----------
    rows : tuple
        The features (N, D), outcomes (N, T) and weights (N,) that the layer was fitted to.
    priors : sequence of WeighedPrior
    recalibration : Recalibration
    units : dict
        ``fit_intercept`` and ``standardize``.
    """

    rows: Rows
    priors: Sequence[WeighedPrior]
    recalibration: Recalibration
    units: Units

    def draw(
        self, weight: FloatArray, random: np.random.RandomState, *, learned: bool = False
    ) -> tuple[NetworkLayer, ...]:
        """A layer that may be the truth, given rows with these weights, (N,)."""
        rows = *self.rows[:2], weight
        return self._fit(rows, random, around_zero=False, learned=learned)

    def refit(
        self, X: Any, targets: CensoredTargets, weight: FloatArray, random: np.random.RandomState
    ) -> tuple[NetworkLayer, ...]:
        """The estimate from other rows."""
        return self._fit((X, targets, weight), random, around_zero=True, learned=True)

    def _fit(
        self, rows: Rows, random: np.random.RandomState, *, around_zero: bool, learned: bool
    ) -> tuple[NetworkLayer, ...]:
        X, targets, weight = rows
        share = np.array([each.weight for each in self.priors])
        prior, strength, _, state = self.priors[random.choice(len(share), p=share / share.sum())]
        with one_blas_thread():
            problem = EvidenceProblem.build(X, targets, weight, **self.units)
            variance = state.spectrum.feature_variance
            if not around_zero:  # a feature that has left may have effects too small to be seen
                variance = np.maximum(variance, min(variance.mean(), 1.0 / weight.sum()))
            state = replace(state, spectrum=Spectrum.build(problem, variance))
            if learned:
                one_width = prior._replace(feature_variance="shared")
                state = path.learn(problem, state, one_width, _STEPS)
            state = replace(state, spectrum=state.spectrum.scaled(strength))
            centre = np.zeros_like(state.coef)
            if not around_zero:
                centre = _draw_centre(problem, state, prior, random)
            found = path.to_user(problem, _fit_around(problem, state, prior, centre))
        U, intercept = self.recalibration.apply(np.eye(len(found.sigma)), found.intercept)
        return (NetworkLayer(U, found.coef, intercept, self.recalibration.sigma),)


def _draw_centre(
    problem: EvidenceProblem, state: EvidenceState, prior: Prior, random: np.random.RandomState
) -> FloatArray:
    """Δ₀ from the prior, (D, T)."""
    _, expected = path.expect(problem, state, prior)
    values, axes = np.linalg.eigh(path.task_prior(state, expected, prior))
    draws = random.normal(size=state.coef.shape) * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(np.sqrt(state.spectrum.feature_variance)[:, None] * draws @ axes.T)


def _fit_around(
    problem: EvidenceProblem, state: EvidenceState, prior: Prior, centre: FloatArray
) -> EvidenceState:
    """EM to its end under a prior with this mean, (D, T)."""
    of_centre = problem.weighted_matrix.T @ (problem.matrix @ centre)
    for _ in range(_MOST_STEPS):
        state, expected = path.expect(problem, state, prior)
        left = Expectation(expected.noise, expected.moments - of_centre, expected.intercept)
        fitted, _ = path.maximise(state, left, prior)
        before, state = state.coef, replace(fitted, coef=fitted.coef + centre)
        if np.abs(state.coef - before).max() <= _SETTLED * np.abs(state.coef).max():
            break
    return state
