"""The step of one row, and the sums over a block, in NumPy.

``sketch`` and ``refine`` are the two halves of the paper's Algorithm 1, ``learn_rows`` is its loop
over rows. Gaussian noise has compiled twins, in ``step`` and ``kernels``; other noise families use
the functions below.
"""

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Derivatives, Noise, reference_evaluate
from deeptobit.online.rows import Block, GradientPlan, Iterate, RowPlan

REACH = 10.0  # largest score, in units of 1/σ, that a step may follow: one outlier is not a trend
LEAST_CURVATURE = 0.02
EXPLODED = 1e3  # times the unit variance that Vx has after whitening


def sketch(
    now: Iterate, plan: RowPlan, row: int, x: FloatArray, gamma: float, score: FloatArray
) -> FloatArray:
    r"""Step on V, given U, for one row: problem (P:V) of the paper; returns :math:`h = V^+x`.

    .. math::
        V^+ = V - \frac{\gamma}{1+\gamma\rho\ell}\,
            G^{-1}\textstyle\sum_t g_t U_t\,(Px)^\top, \qquad \ell = x^\top Px

    The paper's Algorithm 2 has a given step η in place of the preconditioners G⁻¹ and P. The
    step is implicit, for a curvature at least that of the row, so it cannot overshoot.

    Parameters
    ----------
    row : int
        Row of ``plan`` that belongs to x.
    x : array of shape (D,)
    gamma : float
        γ, times the weight of the row.
    score : array of shape (T,)
        g, derivatives of the nll by the latent scores.
    """
    z = plan.Z[row]
    leverage = max(float(x @ z), 0.0)
    direction = plan.inverse @ (now.Ut @ score)
    direction *= gamma / (1.0 + gamma * leverage * plan.spread)
    h = now.V @ x - leverage * direction
    now.V[...] -= np.outer(direction, z)
    return np.asarray(h)


def refine(
    now: Iterate,
    plan: RowPlan,
    h: FloatArray,
    gamma: float,
    fade: float,
    entry: FloatArray,
    kind: tuple[BoolArray, BoolArray],
    moments: FloatArray,
) -> float:
    r"""Step on each U_t, given V, for one row: problem (P:U) of the paper, "subspace refinement".

    .. math::
        (U_t^+, b_t^+) = (U_t, b_t) - \frac{\gamma\sigma_t^2 g_t}
            {\bar w_t + \gamma(1+\|h\|^2)}\,(h, 1), \qquad h = V^+x

    Tasks are decoupled, as in step 2 of Algorithm 1. The intercept b_t follows U_t, and σ_t the
    derivative by log σ_t. Returns :math:`\sum_t\|U_t^+ - U_t\|^2`.

    Parameters
    ----------
    h : array of shape (R,)
    gamma, fade : float
        γ, times the weight of the row, and the share by which the running means move.
    entry : array of shape (4, T)
        nll, score g by the latent, curvature and derivative by log σ.
    kind : pair of bool arrays of shape (T,)
        Known entries, and those that are bounded on both sides (observed, or an interval).
    moments : array of shape (3, T)
        Running means of the curvature w̄ and of the share of bounded entries among the known
        ones, and of the share of known entries.
    """
    _, score, curvature, by_log_sigma = entry
    known, bounded = kind
    moments[0] += fade * known * (curvature - moments[0])
    moments[1] += fade * known * (bounded - moments[1])
    moments[2] += fade * (known - moments[2])
    square = float(h @ h)
    move = gamma * np.square(now.sigma) * score
    move /= np.maximum(moments[0], LEAST_CURVATURE) + gamma * (1.0 + square)
    now.Ut[...] -= np.outer(h, move)
    now.intercept[...] -= plan.learns_intercept * move
    if plan.learns_sigma:
        now.sigma[...] *= sigma_factor(fade, by_log_sigma, moments[1])
        np.clip(now.sigma, plan.lowest, plan.highest, out=now.sigma)
    return float(move @ move) * square


def sigma_factor(fade: float, by_log_sigma: FloatArray, bounded: FloatArray) -> FloatArray:
    """Factor on σ: a step down the derivative by log σ, 2 per bounded entry being its curvature."""
    return 1.0 + np.clip(-0.5 * fade * by_log_sigma / np.maximum(bounded, 0.05), -0.2, 0.2)


def move_towards(mean: Iterate, now: Iterate, averaged: int) -> None:
    """The k-th move of the average, a share 4/(k + 3) of its distance to the iterate."""
    for middle, last in zip(mean, now, strict=True):
        middle += 4.0 / (averaged + 3.0) * (last - middle)


def learn_rows(
    noise: Noise,
    block: Block,
    plan: RowPlan,
    now: Iterate,
    mean: Iterate,
    moments: FloatArray,
    averaged: int,
    out: FloatArray,
) -> int:
    """Sketch and refine for each row in turn: Algorithm 1 with steps of our own.

    Parameters
    ----------
    averaged : int
        How often the average has moved.
    out : array of shape (2,)
        Gains the weighted nll before each step, and the squared lengths of the steps of U.

    Returns
    -------
    int
        The new count of moves of the average.
    """
    kind = _kinds(block)
    for row, x in enumerate(block.X):
        weight, fade = block.weight[row], min(block.weight[row] * plan.forget[row], 0.5)
        entry = _row_entry(noise, block, row, now)
        out[0] += weight * entry[0].sum()
        entry[1] = np.clip(entry[1], -REACH, REACH) / now.sigma
        gamma = weight * plan.step[row]
        h = sketch(now, plan, row, x, gamma, entry[1])
        out[1] += refine(now, plan, h, gamma, fade, entry, (kind[0][row], kind[1][row]), moments)
        if (row + 1) % plan.every == 0:
            averaged += 1
            move_towards(mean, now, averaged)
    return averaged


def gradient_rows(
    noise: Noise,
    block: Block,
    plan: GradientPlan,
    now: Iterate,
    observed_share: FloatArray,
    out: FloatArray,
) -> None:
    r"""Gradient steps of V and then of all rows of U for each row: the paper's Algorithms 1 and 2.

    .. math::
        V^+ = V - \eta\,[\textstyle\sum_t g_t U_t x^\top + \alpha V], \qquad
        U_t^+ = U_t - \eta\,[g_t^+ V^+x + \alpha U_t]

    with the scores :math:`g^+` of U after the step of V. An intercept follows U's gradient, and σ
    its own, if they are learned.

    Parameters
    ----------
    observed_share : array of shape (T,)
    out : array of shape (2,)
        Gains the weighted nll before each step, and the squared lengths of the steps of U.
    """
    V, Ut, intercept, sigma = now
    for row, x in enumerate(block.X):
        weight, step = block.weight[row], plan.step[row]
        nll, score, _, _ = _row_entry(noise, block, row, now)
        exact = block.low[row] == block.high[row]
        out[0] += weight * (nll.sum() + np.log(sigma) @ exact)
        V -= step * (np.outer(Ut @ (weight * score / sigma), x) + plan.alpha * V)
        _, score, _, by_log_sigma = _row_entry(noise, block, row, now)
        g = weight * score / sigma
        intercept -= plan.learns_intercept * step * g
        move = step * (np.outer(V @ x, g) + plan.alpha * Ut)
        Ut -= move
        out[1] += np.square(move).sum()
        if plan.learns_sigma:
            fade = min(weight * plan.forget[row], 0.5)
            sigma *= sigma_factor(fade, by_log_sigma, observed_share)


def _row_entry(noise: Noise, block: Block, row: int, now: Iterate) -> FloatArray:
    """What :func:`entries` gives for one row, (4, T)."""
    latent = now.intercept + (now.V @ block.X[row]) @ now.Ut
    low, high = block.low[row : row + 1], block.high[row : row + 1]
    return np.asarray(entries(noise, low, high, latent[None], now.sigma)[0])


def _kinds(block: Block) -> tuple[BoolArray, BoolArray]:
    """Known entries, and those that are bounded on both sides, both (n, T)."""
    known = ~np.isnan(block.low)
    return known, known & (block.sign == 0.0)


def entries(
    noise: Noise, low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray
) -> FloatArray:
    """Negative log likelihood, score, curvature and derivative by log σ at σ = 1, (n, 4, T).

    The log σ of observed entries is left out, and curvature is taken between 0 and 1.
    """
    at = _at_unit_scale(noise, low, high, latent, sigma)
    curvature = np.clip(at.latent_latent, 0.0, 1.0)
    return np.stack([at.nll, at.latent, curvature, at.log_sigma], axis=1)


def null_sums(noise: Noise, block: Block, mean: FloatArray, sigma: FloatArray) -> FloatArray:
    """Fields of ``Derivatives`` at σ = 1 around a constant score, weighted sums, (6, T)."""
    latent = np.broadcast_to(mean, block.low.shape)
    at = _at_unit_scale(noise, block.low, block.high, latent, sigma)
    return np.stack([block.weight @ field for field in at])


def validation_sums(
    noise: Noise, block: Block, linear: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> FloatArray:
    r"""Weighted sums over a block that a model has not learned from, (6, T).

    They are of nll, of the derivatives :math:`g\ell` and :math:`w\ell^2` by the length of the
    linear part ℓ, of the derivative by log σ, of known and of observed entries.
    """
    entry = entries(noise, block.low, block.high, linear + intercept, sigma)
    lift = linear / sigma
    known, exact = ~np.isnan(block.low), block.low == block.high
    fields = (
        entry[:, 0],
        entry[:, 1] * lift,
        entry[:, 2] * lift**2,
        entry[:, 3],
        known.astype(np.float64),
        exact.astype(np.float64),
    )
    return np.stack([block.weight @ field for field in fields])


def scores(
    noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted scores by the latent within reach, (n, T), and sums over rows, (5, T).

    The sums are of nll, curvature and derivative by log σ, and of known and of bounded entries.
    """
    entry = entries(noise, block.low, block.high, latent, sigma)
    fields = (entry[:, 0], entry[:, 2], entry[:, 3], *_kinds(block))
    sums = np.stack([block.weight @ field.astype(np.float64) for field in fields])
    return block.weight[:, None] * np.clip(entry[:, 1], -REACH, REACH) / sigma, sums


def whitening(second_moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Symmetric S^{−1/2} and S^{1/2}; directions without variance are left as they are.

    Collinear features have such directions each time, and rounding errors that are enlarged a
    little each time would grow to a factor of 1e19.
    """
    values, vectors = np.linalg.eigh(second_moments)
    some = values > 1e-8 * max(float(values[-1]), 1e-12)
    root = np.sqrt(np.where(some, values, 1.0))
    return (vectors / root) @ vectors.T, (vectors * root) @ vectors.T


def sketch_metric(
    Ut: FloatArray, sigma: FloatArray, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    r"""G⁻¹ and ρ for :math:`G = \sum_t \bar w_t U_t U_t^\top/\sigma_t^2` plus damping.

    ρ = max(1, tr(G⁻¹ Σ_t U_t U_tᵀ/σ_t²)/R) bounds how far the curvature of one row, at most 1 per
    entry, exceeds the mean.
    """
    rank = len(Ut)
    scaled = Ut / sigma
    mean = (scaled * curvature) @ scaled.T
    mean.flat[:: rank + 1] += 1e-4 * float(mean.trace()) / rank + damping
    inverse = np.linalg.inv(mean)
    spread = float(np.vdot(inverse, scaled @ scaled.T)) / rank
    return 0.5 * (inverse + inverse.T), max(1.0, spread)


def whiten(
    both: FloatArray, now: Iterate, mean: Iterate, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    """Change to coordinates in which Vx has unit variance; the metric of the sketch there.

    A component of the average that has lost its iterate, in scale or in direction, is reset to it.

    Parameters
    ----------
    both : array of shape (2R, 2R)
        Second moments of Vx, V of the iterate above V of its average.
    curvature : array of shape (T,)
        Mean curvature of an entry, known or not.
    """
    rank = len(now.V)
    there, back = whitening(both[:rank, :rank])
    for part in (now, mean):
        part.V[...] = there @ part.V
        part.Ut[...] = back @ part.Ut
    mine, cross, other = (
        np.diagonal(there @ block @ there.T)
        for block in (both[:rank, :rank], both[:rank, rank:], both[rank:, rank:])
    )
    # A nearly singular metric rounds below 0.
    mine, other = np.sqrt(np.maximum(mine, 0.0)), np.sqrt(np.maximum(other, 0.0))
    cosine = cross / np.maximum(mine * other, 1e-150)
    lost = (other < 0.1 * mine) | (other > 10.0 * mine) | (cosine < 0.3)
    mean.V[lost], mean.Ut[lost] = now.V[lost], now.Ut[lost]
    return sketch_metric(now.Ut, now.sigma, curvature, damping)


def restrict(
    both: FloatArray,
    now: Iterate,
    mean: Iterate,
    most: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> bool:
    """Limit the variance of linear parts and the range of intercepts; False if diverged.

    An iterate that has diverged is left unchanged. The average is a mean of iterates, so it need
    not be checked.

    Parameters
    ----------
    both : array of shape (2R, 2R)
        Second moments of Vx, V of the iterate above V of its average.
    most : array of shape (T,)
        Largest deviation of U_tᵀVx.
    lowest, highest : arrays of shape (T,)
        Limits of the intercepts.
    """
    rank = len(now.V)
    finite = all(np.isfinite(part).all() for part in now)
    if not (finite and float(np.trace(both[:rank, :rank])) <= EXPLODED * rank):
        return False
    for part, moments in ((now, both[:rank, :rank]), (mean, both[rank:, rank:])):
        variance = np.sum(part.Ut * (moments @ part.Ut), axis=0)
        part.Ut[...] *= np.minimum(1.0, most / np.sqrt(np.maximum(variance, 1e-300)))
        np.clip(part.intercept, lowest, highest, out=part.intercept)
    return True


def _at_unit_scale(
    noise: Noise, low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray
) -> Derivatives:
    return reference_evaluate(
        noise, (low - latent) / sigma, (high - latent) / sigma, np.zeros(low.shape), np.ones(1)
    )
