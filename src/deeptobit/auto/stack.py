"""Stacking: layers under learned priors, averaged and recalibrated by held-out rows."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import compress, count
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.optimize import nnls

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.auto import path
from deeptobit.auto.evidence import EvidenceProblem, Spectrum
from deeptobit.auto.folds import MANY_ROWS, Fold, HeldOutFolds, Scoring
from deeptobit.auto.noise import fit_error_model
from deeptobit.auto.path import PATH, EvidenceMember, EvidenceState, Expectation, Prior
from deeptobit.auto.recalibration import HeldOutScores, Recalibration
from deeptobit.layer import CensoringKinds
from deeptobit.layer.features import row_blocks
from deeptobit.likelihood import Gaussian, Noise
from deeptobit.network import NetworkLayer
from deeptobit.runtime import one_blas_thread
from deeptobit.targets import CensoredTargets

STRENGTHS = (0.08, 0.35, 1.4)  # c, the widths of priors relative to the one learned
_PER_FEATURE = 50  # rows beyond which the width of the prior does not matter, if they are many
_EVENNESS = 1e-4  # of the mean error, on Σw²: equal members share their weight
_LEAST_GAIN = 0.002  # of the squared error: priors that surely gain less are given up
_SURELY = 2.0  # standard errors
_TINY = np.finfo(np.float64).tiny
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
        NaN where a prior was given up after the first fold.
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
    held_out: HeldOutFolds,
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
    held_out : HeldOutFolds
    families : sequence of Noise
        Candidates for the error model, as in :func:`fit_error_model`.
    watch : function, optional
        Called with the number of priors learned so far and in all, if folds do not run in parallel;
        fewer in all, once some have been given up.
    """
    held_out = replace(held_out, noise=Gaussian())
    targets, weight, folds = held_out.targets, held_out.weight, held_out.folds
    strengths = (1.0,) if len(targets) > max(MANY_ROWS, _PER_FEATURE * X.shape[1]) else STRENGTHS
    units = {"fit_intercept": fit_intercept, "standardize": standardize}
    numbers, in_turn = count(1), effective_n_jobs(n_jobs) == 1
    total = len(folds) * len(PATH)

    def learned() -> None:
        watch(next(numbers), total)

    given = held_out, strengths, units, learned if in_turn else None
    first = _fit_path(X, folds[0], range(len(PATH)), *given)
    products = error_products(held_out, folds[0], X, list(first.members.values()))
    wanted = promising_priors(products, weight[folds[0].test], len(strengths))
    total = len(PATH) + (len(folds) - 1) * len(path.with_those_before(wanted))
    jobs = [delayed(_fit_path)(X, fold, wanted, *given) for fold in folds[1:]]
    paths = [first, *Parallel(n_jobs=n_jobs)(jobs)]
    kept = list(paths[-1].members)
    done = [[each.members[place] for place in kept] for each in paths]
    moments = [products.sum(axis=0)]
    for fold, members in zip(folds[1:], done[1:], strict=True):
        moments.append(error_products(held_out, fold, X, members).sum(axis=0))
    weights = np.zeros(len(first.members))
    weights[kept] = stacking_weights(sum(moments[1:], moments[0][np.ix_(kept, kept)]))
    layers = [average(members, weights[kept]) for members in done]
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
        member_scores=_member_scores(held_out, X, paths, moments, scoring),
        row_scores=[held_out.row_scores(f, z, mean.sigma, scoring) for f, z, mean in scored],
        fit_times=np.array([each.seconds for each in paths]),
        kinds=problem.kinds,
        latents=latents,
        draws=StackDraws((X, targets, weight), priors, recalibration, units),
    )


class _Path(NamedTuple):
    """Members fitted to the training rows of one fold, and the states behind them, by place."""

    states: dict[int, EvidenceState]
    members: dict[int, EvidenceMember]
    seconds: float


def _fit_path(
    X: Any,
    fold: Fold,
    wanted: Collection[int],
    held_out: HeldOutFolds,
    strengths: Sequence[float],
    units: Units,
    watch: Any,
) -> _Path:
    started = perf_counter()
    members: dict[int, EvidenceMember] = {}
    with one_blas_thread():  # here too: a job in another process has a limit of its own
        rows = fold.train
        problem = EvidenceProblem.build(
            X[rows], held_out.targets[rows], held_out.weight[rows], **units, overwrite=True
        )
        states = path.learn_path(problem, wanted, watch)
        for place in wanted:
            fitted = path.fit_members(problem, states[place], PATH[place], strengths)
            members |= dict(enumerate(fitted, place * len(strengths)))
    return _Path(states, members, perf_counter() - started)


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
    scale = max(float(np.trace(moments)) / n_members, _TINY)
    factor = np.linalg.cholesky(moments / scale + _EVENNESS * np.eye(n_members))
    weights, _ = nnls(factor.T, np.linalg.solve(factor, np.ones(n_members)))
    return np.asarray(weights / weights.sum())


def error_products(
    held_out: HeldOutFolds, fold: Fold, X: Any, members: Sequence[EvidenceMember]
) -> FloatArray:
    """Products of the errors of all pairs of members, for each row held out, (n, K, K)."""
    found = np.empty((len(fold.test), len(members), len(members)))
    for rows in row_blocks(len(found), sparse=False):  # all errors at once would fill the memory
        test, block = fold.test[rows], X[fold.test[rows]]
        errors = [held_out.errors(test, member.latent(block), member.sigma) for member in members]
        stacked = np.stack(errors, axis=1)
        found[rows] = stacked @ stacked.transpose(0, 2, 1)
    return found


def promising_priors(products: FloatArray, weight: FloatArray, n_members: int) -> list[int]:
    r"""Priors that may still improve the average, judged on the held-out rows of one fold.

    From the last one to the first, a prior is left out if it surely adds nothing to the average of
    the others. With the error e of that average and the error :math:`e_k` of a member,
    :math:`|e + a(e_k - e)|^2` falls by :math:`((e_k - e)^\top e)^2 / |e_k - e|^2` at most. The
    first prior stays: others start from it, and gains are told from it.

    Parameters
    ----------
    products : array of shape (n, K, K)
        Products of the errors of all pairs of members, for each row.
    weight : array of shape (n,)
        Of the rows; a row of weight 2 counts as two.
    n_members : int
        Members of each prior, which follow one another.
    """
    products = products / max(float(np.trace(products.sum(axis=0))), _TINY)  # squares are finite
    weight = np.maximum(weight, _TINY)
    prior_of = np.arange(products.shape[1]) // n_members
    wanted = list(range(len(prior_of) // n_members))
    for prior in reversed(wanted[1:]):
        rest = [other for other in wanted if other != prior]
        others, members = np.isin(prior_of, rest), prior_of == prior
        if _largest_gain(products, weight, others, members) <= _LEAST_GAIN:
            wanted = rest
    return wanted


def _largest_gain(
    products: FloatArray, weight: FloatArray, others: BoolArray, members: BoolArray
) -> float:
    """Share of the squared error that members may take off the average of others."""
    total = products.sum(axis=0)
    weights = stacking_weights(total[np.ix_(others, others)])
    with_mean = products[:, :, others] @ weights
    of_mean = with_mean[:, others] @ weights
    slopes = with_mean[:, members] - of_mean[:, None]
    slope = slopes.sum(axis=0)
    variance = (np.square(slopes) / weight[:, None]).sum(axis=0) - slope**2 / weight.sum()
    slope -= _SURELY * np.sqrt(np.maximum(variance, 0.0))
    whole = of_mean.sum()
    square = np.diag(total)[members] - 2.0 * with_mean[:, members].sum(axis=0) + whole
    return float((np.square(np.minimum(slope, 0.0)) / np.maximum(square * whole, _TINY)).max())


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
    held_out: HeldOutFolds,
    X: Any,
    paths: Sequence[_Path],
    moments: Sequence[FloatArray],
    scoring: Scoring,
) -> FloatArray:
    """Scores of every member on every fold, (K, n_folds), NaN where it was not fitted."""
    table = np.full((len(paths[0].members), len(paths)), np.nan)
    for number, (fold, each) in enumerate(zip(held_out.folds, paths, strict=True)):
        if scoring == "r2":
            table[list(each.members), number] = held_out.r2(fold, np.diag(moments[number]))
        else:
            rows = X[fold.test]
            for place, member in each.members.items():
                latent = member.latent(rows)
                table[place, number] = held_out.score(fold, latent, member.sigma, scoring)
    return table


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

    A bootstrap of a layer that is shrunken towards 0 shows how it varies from sample to sample, not
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
        (X, targets, _), share = self.rows, np.array([each.weight for each in self.priors])
        prior, strength, _, state = self.priors[random.choice(len(share), p=share / share.sum())]
        with one_blas_thread():
            problem = EvidenceProblem.build(X, targets, weight, **self.units)
            variance = state.spectrum.feature_variance
            # A feature that has left may have effects too small to be seen.
            variance = np.maximum(variance, min(variance.mean(), 1.0 / weight.sum()))
            state = replace(state, spectrum=Spectrum.build(problem, variance))
            if learned:
                one_width = prior._replace(feature_variance="shared")
                state = path.learn(problem, state, one_width, _STEPS)
            state = replace(state, spectrum=state.spectrum.scaled(strength))
            centre = _draw_centre(problem, state, prior, random)
            found = path.to_user(problem, _fit_around(problem, state, prior, centre))
        return self._recalibrated(found)

    def refit(
        self, X: Any, targets: CensoredTargets, weight: FloatArray
    ) -> tuple[NetworkLayer, ...]:
        """The estimate from other rows, whose priors are learned from these rows alone.

        The weights of the priors and the error model stay. Rows that shared a prior would agree
        better than two samples do.
        """
        with one_blas_thread():
            problem = EvidenceProblem.build(X, targets, weight, **self.units)
            places = [PATH.index(each.prior) for each in self.priors]
            states, members = path.learn_path(problem, places), []
            for place, each in zip(places, self.priors, strict=True):
                members += path.fit_members(problem, states[place], each.prior, [each.strength])
        return self._recalibrated(average(members, np.array([each.weight for each in self.priors])))

    def _recalibrated(self, found: EvidenceMember) -> tuple[NetworkLayer, ...]:
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
