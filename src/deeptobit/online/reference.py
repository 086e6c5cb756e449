"""NumPy references of the online kernels; they also serve noise families without a kernel."""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Derivatives, Noise, reference_evaluate
from deeptobit.online.rows import Block, Iterate, PlainPlan, RowPlan

REACH = 10.0  # largest score, in units of 1/σ, that a step may follow: one wild row is not a trend
EXPLODED = 1e3  # times the unit variance that Vx has after whitening


def reference_entries(
    noise: Noise, low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray
) -> FloatArray:
    """Negative log likelihood, score, curvature and pull on log σ at σ = 1, (n, 4, T).

    The log σ of observed entries is left out, and curvature is taken between 0 and 1.
    """
    at = _at_unit_scale(noise, low, high, latent, sigma)
    curvature = np.clip(at.latent_latent, 0.0, 1.0)
    return np.stack([at.nll, at.latent, curvature, at.log_sigma], axis=1)


def reference_middles(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """y, the bound it is censored at, or the middle of its interval; and where one is known.

    What is not known is 0 in both, (n, T).
    """
    start = np.where(np.isneginf(low), high, low)
    end = np.where(np.isposinf(high), low, high)
    with np.errstate(invalid="ignore"):  # open on both sides
        values = start + 0.5 * (end - start)
    known = np.isfinite(values)
    return np.where(known, values, 0.0), known.astype(np.float64)


def reference_null_sums(
    noise: Noise, block: Block, mean: FloatArray, sigma: FloatArray
) -> FloatArray:
    """Fields of ``Derivatives`` at σ = 1 around a constant score, weighted sums, (6, T)."""
    latent = np.broadcast_to(mean, block.low.shape)
    at = _at_unit_scale(noise, block.low, block.high, latent, sigma)
    return np.stack([block.weight @ field for field in at])


def reference_evidence(
    noise: Noise, block: Block, linear: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> FloatArray:
    r"""What a block says of a model it was not learned from, (6, T).

    Weighted sums of nll, of the derivatives :math:`g\ell` and :math:`w\ell^2` by the length of the
    linear part ℓ, of the pull on log σ, of known and of observed entries.
    """
    entry = reference_entries(noise, block.low, block.high, linear + intercept, sigma)
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


def reference_scores(
    noise: Noise, block: Block, latent: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted scores by the latent within reach, (n, T), and sums over rows, (5, T).

    The sums are of nll, curvature and pull on log σ, and of known and of bounded entries.
    """
    entry = reference_entries(noise, block.low, block.high, latent, sigma)
    known = ~np.isnan(block.low)
    fields = (entry[:, 0], entry[:, 2], entry[:, 3], known, known & (block.sign == 0.0))
    sums = np.stack([block.weight @ field.astype(np.float64) for field in fields])
    return block.weight[:, None] * np.clip(entry[:, 1], -REACH, REACH) / sigma, sums


def reference_whitening(second_moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Symmetric S^{−1/2} and S^{1/2}; directions without variance are left as they are.

    Where features are collinear there are such directions at every turn, and what is enlarged a
    little each time ends as rounding error times 1e19.
    """
    values, vectors = np.linalg.eigh(second_moments)
    some = values > 1e-8 * max(float(values[-1]), 1e-12)
    root = np.sqrt(np.where(some, values, 1.0))
    return (vectors / root) @ vectors.T, (vectors * root) @ vectors.T


def reference_sketch_metric(
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


def reference_turn(
    both: FloatArray, now: Iterate, mean: Iterate, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    """Choose coordinates in which Vx has unit variance; metric of the sketch there.

    An average that has lost its iterate, in scale or in direction, starts anew.

    Parameters
    ----------
    both : array of shape (2R, 2R)
        Second moments of Vx, V of the iterate above V of its average.
    curvature : array of shape (T,)
        Mean curvature of an entry, known or not.
    """
    rank = len(now.V)
    there, back = reference_whitening(both[:rank, :rank])
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
    return reference_sketch_metric(now.Ut, now.sigma, curvature, damping)


def reference_settle(
    both: FloatArray,
    now: Iterate,
    mean: Iterate,
    most: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> bool:
    """Let no linear part outgrow what it explains, and no intercept run away.

    Returns whether the iterate is sound; if not, nothing is changed. The average is a mean of
    iterates, and what is not finite never becomes so again.

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


def reference_learn_rows(
    noise: Noise,
    block: Block,
    plan: RowPlan,
    now: Iterate,
    mean: Iterate,
    moments: FloatArray,
    averaged: int,
    out: FloatArray,
) -> int:
    r"""One preconditioned, damped step of V, then of U, b and σ, for each row in turn.

    With h = Vx, scores g and leverage ℓ = xᵀPx, a row of weight ω moves

    .. math::
        V \leftarrow V - \tfrac{\omega\gamma}{1+\omega\gamma\rho\ell}\,
            G^{-1}\textstyle\sum_t g_t U_t\,(Px)^\top, \qquad
        (U_t, b_t) \leftarrow (U_t, b_t) - \tfrac{\omega\gamma\sigma_t^2 g_t}
            {\bar w_t + \omega\gamma(1+\|h\|^2)}\,(h, 1)

    with h after the step of V. Both are implicit steps for a curvature at least that of the entry:
    they cannot overshoot.

    Parameters
    ----------
    moments : array of shape (3, T)
        Running means of curvature and of the share bounded on both sides (observed, or an
        interval) among known entries, and of the known share.
    averaged : int
        How often the averages moved; the next move is a share 4/(k + 3).
    out : array of shape (2,)
        Gains the weighted nll before each step, and the squared lengths of the steps of U.

    Returns
    -------
    int
        The new count of moves of the averages.
    """
    V, Ut, intercept, sigma = now
    for row, x in enumerate(block.X):
        z, share, gamma = plan.Z[row], block.weight[row], plan.step[row]
        leverage = max(float(x @ z), 0.0)
        low, high = block.low[row : row + 1], block.high[row : row + 1]
        h = V @ x
        nll, score, curvature, pull = reference_entries(
            noise, low, high, (intercept + h @ Ut)[None], sigma
        )[0]
        out[0] += share * nll.sum()
        g = np.clip(score, -REACH, REACH) / sigma
        p = plan.inverse @ (Ut @ g) * share * gamma / (1.0 + share * gamma * leverage * plan.spread)
        h = h - leverage * p
        V -= np.outer(p, z)
        fade = min(share * plan.forget[row], 0.5)
        known = ~np.isnan(low[0])
        exact = known & (block.sign[row] == 0.0)
        moments[0] += fade * known * (curvature - moments[0])
        moments[1] += fade * known * (exact - moments[1])
        moments[2] += fade * (known - moments[2])
        size = 1.0 + h @ h
        move = share * gamma * sigma**2 * g
        move /= np.maximum(moments[0], 0.02) + share * gamma * size
        change = np.clip(-0.5 * fade * pull / np.maximum(moments[1], 0.05), -0.2, 0.2)
        sigma *= 1.0 + plan.learns_sigma * change
        np.clip(sigma, plan.lowest, plan.highest, out=sigma)
        intercept -= plan.learns_intercept * move
        Ut -= np.outer(h, move)
        out[1] += move @ move * (size - 1.0)
        if (row + 1) % plan.every == 0:
            averaged += 1
            for middle, part in zip(mean, now, strict=True):
                middle += 4.0 / (averaged + 3.0) * (part - middle)
    return averaged


def reference_plain_rows(
    noise: Noise,
    block: Block,
    plan: PlainPlan,
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
        share, step = block.weight[row], plan.step[row]
        low, high = block.low[row : row + 1], block.high[row : row + 1]
        latent = (intercept + (V @ x) @ Ut)[None]
        nll, score, _, _ = reference_entries(noise, low, high, latent, sigma)[0]
        out[0] += share * (nll.sum() + np.log(sigma) @ (low[0] == high[0]))
        V -= step * (np.outer(Ut @ (share * score / sigma), x) + plan.alpha * V)
        h = V @ x
        latent = (intercept + h @ Ut)[None]
        _, score, _, pull = reference_entries(noise, low, high, latent, sigma)[0]
        g = share * score / sigma
        intercept -= plan.learns_intercept * step * g
        move = step * (np.outer(h, g) + plan.alpha * Ut)
        Ut -= move
        out[1] += np.square(move).sum()
        fade = min(share * plan.forget[row], 0.5)
        change = np.clip(-0.5 * fade * pull / np.maximum(observed_share, 0.05), -0.2, 0.2)
        sigma *= 1.0 + plan.learns_sigma * change


def _at_unit_scale(
    noise: Noise, low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray
) -> Derivatives:
    return reference_evaluate(
        noise, (low - latent) / sigma, (high - latent) / sigma, np.zeros(low.shape), np.ones(1)
    )
