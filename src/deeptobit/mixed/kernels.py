r"""Evidence of people under random effects: expectation propagation, and quadrature as its check.

An entry e of a person, outcome t of visit v, has the score before censoring

.. math:: y^*_e = m_e + \eta_e + \sigma_t\varepsilon_e, \qquad
    \eta_e = z_v^\top(C_t g_t + L_t f) + \gamma_t^\top c_v,

where the outcome's own effects g (q), the person's factors f (R) and the visit's factors c (G) are
independent standard normal numbers u, so that :math:`\eta_e = a_e^\top u`. A covariance that is
singular is a loading of 0, and nothing is inverted but matrices that are at least the identity.
"""

import math

import numpy as np

from deeptobit.arrays import FloatArray, IntArray
from deeptobit.likelihood.kernels import jit, jit_inside, open_entry
from deeptobit.online.kernels import two_sided

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@jit_inside
def entry(low: float, high: float, mean: float, scale: float) -> tuple[float, float, float, float]:
    """Log likelihood of an entry around a normal score, and its derivatives.

    By the mean once and twice (the latter with its sign changed), and by the log of the scale.
    """
    a, b = (low - mean) / scale, (high - mean) / scale
    if low == high or math.isinf(low) or math.isinf(high):
        z, nll, slope, curvature, observed = open_entry(a, b)
        value, by_scale = -nll - observed * math.log(scale), -z * slope - observed
    else:
        nll, slope, by_scale, curvature, _, _ = two_sided(a, b)
        value, by_scale = -nll, -by_scale
    return value, -slope / scale, curvature / (scale * scale), by_scale


@jit
def _cholesky(matrix: FloatArray, size: int) -> float:
    """Decompose the leading block in place, lower triangle; returns half its log determinant."""
    half = 0.0
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[i, j]
            for k in range(j):
                rest -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(rest) if i == j else rest / matrix[j, j]
        half += math.log(matrix[i, i])
    return half


@jit
def _forward(root: FloatArray, vector: FloatArray, size: int) -> None:
    """Solve with the lower triangle, in place."""
    for i in range(size):
        rest = vector[i]
        for k in range(i):
            rest -= root[i, k] * vector[k]
        vector[i] = rest / root[i, i]


@jit
def _backward(root: FloatArray, vector: FloatArray, size: int) -> None:
    """Solve with the transposed lower triangle, in place."""
    for i in range(size - 1, -1, -1):
        rest = vector[i]
        for k in range(i + 1, size):
            rest -= root[k, i] * vector[k]
        vector[i] = rest / root[i, i]


@jit
def _times(z: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """zᵀ times a matrix, into ``out``."""
    for j in range(out.size):
        out[j] = 0.0
        for i in range(z.size):
            out[j] += matrix[i, j] * z[i]


@jit
def propagate(
    starts: IntArray,
    low: FloatArray,
    high: FloatArray,
    mean: FloatArray,
    z: FloatArray,
    own: FloatArray,
    shared: FloatArray,
    visit: FloatArray,
    sigma: FloatArray,
    tau: FloatArray,
    nu: FloatArray,
    log_z: FloatArray,
    pull: FloatArray,
    slopes: FloatArray,
    sweeps: IntArray,
    tol: float,
    most: int,
) -> None:
    r"""Expectation propagation person by person, sites kept; the evidence and its slopes.

    The likelihood of an entry is replaced by a site :math:`e^{\nu\eta - \tau\eta^2/2}`. Given the
    person's and the visits' factors (the core, R + VG numbers), outcomes are independent: their
    own effects are eliminated first, so that time is linear in the number of outcomes.

    Parameters
    ----------
    starts : array of shape (n + 1,)
        The first row of every person, and the number of rows.
    low, high, mean : arrays of shape (N, T)
        Ends of the entries, NaN where missing, and m.
    z : array of shape (N, q)
    own, shared, visit, sigma : arrays of shape (T, q, q), (T, q, R), (T, G) and (T,)
        C, L, γ and σ.
    tau, nu : arrays of shape (N, T)
        Sites; those of censored entries are the start and the result.
    log_z, pull, slopes, sweeps : arrays of shape (n,), (N, T), (n, T(q² + qR + G + 1)) and (n,)
        Results: log evidence, its slopes by m, by C, L, γ and log σ; negative if not converged.
    tol, most : float, int
        Largest change of a site, relative to its entry, and sweeps at most.
    """
    n_people, (n_tasks, n_own) = len(starts) - 1, own.shape[:2]
    n_shared, n_visit = shared.shape[2], visit.shape[1]
    longest = np.diff(starts).max()
    wide = n_shared + longest * n_visit
    load = np.zeros((longest, n_tasks, n_own))
    factor = np.zeros((longest, n_tasks, n_shared))
    root, cross = np.zeros((n_tasks, n_own, n_own)), np.zeros((n_tasks, n_own, wide))
    right, solved = np.zeros((n_tasks, n_own)), np.zeros((n_tasks, n_own))
    core, core_right, core_mean = np.zeros((wide, wide)), np.zeros(wide), np.zeros(wide)
    reach, scaled = np.zeros(wide), np.zeros(n_own)
    place_L = n_tasks * n_own * n_own
    place_G = place_L + n_tasks * n_own * n_shared
    place_S = place_G + n_tasks * n_visit
    for person in range(n_people):
        first, n_visits = starts[person], starts[person + 1] - starts[person]
        size = n_shared + n_visits * n_visit
        n_censored = 0
        for v in range(n_visits):
            row = first + v
            for t in range(n_tasks):
                if low[row, t] == high[row, t]:
                    tau[row, t] = 1.0 / (sigma[t] * sigma[t])
                    nu[row, t] = (low[row, t] - mean[row, t]) * tau[row, t]
                elif math.isnan(low[row, t]):
                    tau[row, t] = nu[row, t] = 0.0
                else:
                    n_censored += 1
                _times(z[row], own[t], load[v, t])
                _times(z[row], shared[t], factor[v, t])
        step, change, sweep = 1.0, math.inf, 0
        while True:
            # The posterior of all effects, given the sites.
            core[:size, :size] = 0.0
            core_right[:size] = 0.0
            half_log_det, quadratic = 0.0, 0.0
            for j in range(size):
                core[j, j] = 1.0
            for t in range(n_tasks):
                root[t] = 0.0
                cross[t, :, :size] = 0.0
                right[t] = 0.0
                for j in range(n_own):
                    root[t, j, j] = 1.0
                for v in range(n_visits):
                    weight, push = tau[first + v, t], nu[first + v, t]
                    at = n_shared + v * n_visit
                    if weight == 0.0 and push == 0.0:
                        continue
                    for i in range(n_own):
                        right[t, i] += push * load[v, t, i]
                        by = weight * load[v, t, i]
                        for j in range(i + 1):
                            root[t, i, j] += by * load[v, t, j]
                        for j in range(n_shared):
                            cross[t, i, j] += by * factor[v, t, j]
                        for j in range(n_visit):
                            cross[t, i, at + j] += by * visit[t, j]
                    for i in range(n_shared):
                        core_right[i] += push * factor[v, t, i]
                        for j in range(i + 1):
                            core[i, j] += weight * factor[v, t, i] * factor[v, t, j]
                    for i in range(n_visit):
                        core_right[at + i] += push * visit[t, i]
                        by = weight * visit[t, i]
                        for j in range(n_shared):
                            core[at + i, j] += by * factor[v, t, j]
                        for j in range(i + 1):
                            core[at + i, at + j] += by * visit[t, j]
                half_log_det += _cholesky(root[t], n_own)
                _forward(root[t], right[t], n_own)
                for i in range(n_own):
                    quadratic += right[t, i] * right[t, i]
                    for j in range(size):
                        rest = cross[t, i, j]
                        for k in range(i):
                            rest -= root[t, i, k] * cross[t, k, j]
                        cross[t, i, j] = rest / root[t, i, i]
                for i in range(n_own):
                    for j in range(size):
                        by = cross[t, i, j]
                        core_right[j] -= by * right[t, i]
                        if by != 0.0:
                            for k in range(j + 1):
                                core[j, k] -= by * cross[t, i, k]
            half_log_det += _cholesky(core, size)
            _forward(core, core_right, size)
            for j in range(size):
                quadratic += core_right[j] * core_right[j]
                core_mean[j] = core_right[j]
            _backward(core, core_mean, size)
            for t in range(n_tasks):
                for i in range(n_own):
                    solved[t, i] = right[t, i]
                    for j in range(size):
                        solved[t, i] -= cross[t, i, j] * core_mean[j]
            last = n_censored == 0 or change <= tol or sweep == most
            if last:
                log_z[person] = 0.5 * quadratic - half_log_det
                slopes[person] = 0.0
            largest = 0.0
            for v in range(n_visits):
                row, at = first + v, n_shared + v * n_visit
                for t in range(n_tasks):
                    start, end = low[row, t], high[row, t]
                    if math.isnan(start):
                        if last:
                            pull[row, t] = 0.0
                        continue
                    if start == end and not last:
                        continue
                    # Mean and variance of η under the posterior.
                    centre, spread = 0.0, 0.0
                    for i in range(n_own):
                        scaled[i] = load[v, t, i]
                    _forward(root[t], scaled, n_own)
                    for i in range(n_own):
                        centre += scaled[i] * solved[t, i]
                        spread += scaled[i] * scaled[i]
                    for j in range(size):
                        reach[j] = 0.0
                        for i in range(n_own):
                            reach[j] -= cross[t, i, j] * scaled[i]
                    for j in range(n_shared):
                        reach[j] += factor[v, t, j]
                        centre += factor[v, t, j] * core_mean[j]
                    for j in range(n_visit):
                        reach[at + j] += visit[t, j]
                        centre += visit[t, j] * core_mean[at + j]
                    _forward(core, reach, size)
                    for j in range(size):
                        spread += reach[j] * reach[j]
                    weight, push, variance = tau[row, t], nu[row, t], sigma[t] * sigma[t]
                    if start == end:
                        z_e = start - mean[row, t]
                        log_z[person] -= 0.5 * z_e * z_e / variance
                        log_z[person] -= _LOG_SQRT_2PI + math.log(sigma[t])
                        by_sigma = ((z_e - centre) ** 2 + spread) / variance - 1.0
                    else:
                        # Without its own site, then with its likelihood.
                        rest = 1.0 - weight * spread
                        cavity, around = spread / rest, (centre - spread * push) / rest
                        scale = math.sqrt(variance + cavity)
                        value, by, bend, by_scale = entry(start, end, mean[row, t] + around, scale)
                        if last:
                            with_site = cavity * push * push + 2.0 * push * around
                            with_site -= weight * around * around
                            with_site /= 1.0 + weight * cavity
                            value -= 0.5 * (with_site - math.log1p(weight * cavity))
                            log_z[person] += value
                            by_sigma = by_scale * variance / (scale * scale)
                        else:
                            share = 1.0 - cavity * bend
                            move_tau = bend / share - weight
                            move_nu = (by + around * bend) / share - push
                            tau[row, t] += step * move_tau
                            nu[row, t] += step * move_nu
                            moved = abs(move_nu - move_tau * centre) * scale
                            largest = max(largest, moved + abs(move_tau) * scale * scale)
                            continue
                    residual = push - weight * centre
                    pull[row, t] = residual
                    slopes[person, place_S + t] += by_sigma
                    _backward(core, reach, size)
                    for i in range(n_own):
                        for j in range(size):
                            scaled[i] -= cross[t, i, j] * reach[j]
                        scaled[i] = residual * solved[t, i] - weight * scaled[i]
                    _backward(root[t], scaled, n_own)
                    for i in range(n_own):
                        by = z[row, i]
                        at_i = (t * n_own + i) * n_own
                        for j in range(n_own):
                            slopes[person, at_i + j] += by * scaled[j]
                        at_i = place_L + (t * n_own + i) * n_shared
                        for j in range(n_shared):
                            slope = residual * core_mean[j] - weight * reach[j]
                            slopes[person, at_i + j] += by * slope
                    for j in range(n_visit):
                        slope = residual * core_mean[at + j] - weight * reach[at + j]
                        slopes[person, place_G + t * n_visit + j] += slope
            if last:
                break
            if largest > change:
                step = max(0.5 * step, 0.05)
            change = largest
            sweep += 1
        sweeps[person] = sweep if n_censored == 0 or change <= tol else -sweep


@jit
def integrate(
    starts: IntArray,
    low: FloatArray,
    high: FloatArray,
    mean: FloatArray,
    z: FloatArray,
    own: FloatArray,
    sigma: FloatArray,
    nodes: FloatArray,
    weights: FloatArray,
    log_z: FloatArray,
    pull: FloatArray,
    slopes: FloatArray,
) -> None:
    """The same by adaptive Gauss–Hermite quadrature around the mode, without shared factors.

    Outcomes are then independent, and each has an integral over its own effects.

    Parameters
    ----------
    nodes, weights : arrays of shape (K, q) and (K,)
        Of the product rule for the weight exp(−x²/2).
    others
        As in :func:`propagate`.
    """
    n_people, (n_tasks, n_own) = len(starts) - 1, own.shape[:2]
    longest = np.diff(starts).max()
    load, shares = np.zeros((longest, n_own)), np.zeros(len(weights))
    root, u, moved = np.zeros((n_own, n_own)), np.zeros(n_own), np.zeros(n_own)
    place_S = n_tasks * n_own * n_own
    for person in range(n_people):
        log_z[person] = 0.0
        slopes[person] = 0.0
        first, n_visits = starts[person], starts[person + 1] - starts[person]
        for t in range(n_tasks):
            for v in range(n_visits):
                _times(z[first + v], own[t], load[v])
                pull[first + v, t] = 0.0
            u[:] = 0.0
            before = -math.inf
            for turn in range(100):
                value = -0.5 * (u @ u)
                root[:] = 0.0
                moved[:] = -u
                for i in range(n_own):
                    root[i, i] = 1.0
                for v in range(n_visits):
                    if math.isnan(low[first + v, t]):
                        continue
                    at = mean[first + v, t] + load[v] @ u
                    gain, by, bend, _ = entry(low[first + v, t], high[first + v, t], at, sigma[t])
                    value += gain
                    for i in range(n_own):
                        moved[i] += by * load[v, i]
                        for j in range(i + 1):
                            root[i, j] += bend * load[v, i] * load[v, j]
                half_log_det = _cholesky(root, n_own)
                _forward(root, moved, n_own)
                _backward(root, moved, n_own)
                # Newton's step; the objective is concave, and so is its model.
                u += moved
                length = math.sqrt(moved @ moved)
                if length < 1e-10 or (turn > 20 and value <= before):
                    break
                before = max(before, float(value))
            top = -math.inf
            for k in range(len(weights)):
                moved[:] = nodes[k]
                _backward(root, moved, n_own)
                moved += u
                value = 0.5 * (nodes[k] @ nodes[k]) - 0.5 * (moved @ moved)
                for v in range(n_visits):
                    if not math.isnan(low[first + v, t]):
                        at = mean[first + v, t] + load[v] @ moved
                        value += entry(low[first + v, t], high[first + v, t], at, sigma[t])[0]
                shares[k] = value + math.log(weights[k])
                top = max(top, shares[k])
            shares[:] = np.exp(shares - top)
            total = shares.sum()
            log_z[person] += top + math.log(total) - half_log_det - n_own * _LOG_SQRT_2PI
            for k in range(len(weights)):
                share = shares[k] / total
                moved[:] = nodes[k]
                _backward(root, moved, n_own)
                moved += u
                for v in range(n_visits):
                    row = first + v
                    if math.isnan(low[row, t]):
                        continue
                    at = mean[row, t] + load[v] @ moved
                    _, by, _, by_scale = entry(low[row, t], high[row, t], at, sigma[t])
                    pull[row, t] += share * by
                    slopes[person, place_S + t] += share * by_scale
                    for i in range(n_own):
                        for j in range(n_own):
                            at_i = (t * n_own + i) * n_own + j
                            slopes[person, at_i] += share * by * z[row, i] * moved[j]
