r"""Evidence of people under random effects by expectation propagation.

An entry e of a person, outcome t of visit v, has the score before censoring

.. math:: y^*_e = m_e + \eta_e + \sigma_t\varepsilon_e, \qquad
    \eta_e = z_v^\top(C_t g_t + L_t f) + \gamma_t^\top c_v,

where the outcome's own effects g (q), the person's factors f (R) and the visit's factors c (G) are
independent standard normal numbers u, so that :math:`\eta_e = a_e^\top u`. A covariance that is
singular is a loading of 0, and nothing is inverted but matrices that are at least the identity.
"""

import math
from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import kernels
from deeptobit.likelihood.kernels import cholesky, jit, solve_lower, solve_upper
from deeptobit.online.kernels import two_sided

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_SHORTEST, _LONGEST = 0.05, 1.5  # steps of sites towards where they are to be


@kernels.jit_inside
def entry(low: float, high: float, mean: float, scale: float) -> tuple[float, float, float, float]:
    """Log likelihood of an entry around a normal score, and its derivatives.

    By the mean once and twice (the latter with its sign changed), and by the log of the scale.
    """
    a, b = (low - mean) / scale, (high - mean) / scale
    if low == high or math.isinf(low) or math.isinf(high):
        z, nll, slope, curvature, observed = kernels.open_entry(a, b)
        value, by_scale = -nll - observed * math.log(scale), -z * slope - observed
    else:
        nll, slope, by_scale, curvature, _, _ = two_sided(a, b)
        value, by_scale = -nll, -by_scale
    return value, -slope / scale, curvature / (scale * scale), by_scale


@jit
def _times(z: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """zᵀ times a matrix, into ``out``."""
    for j in range(out.size):
        out[j] = 0.0
        for i in range(z.size):
            out[j] += matrix[i, j] * z[i]


@jit
def propagate(
    visits: Any, mean: FloatArray, effects: Any, found: Any, tol: float, most: int
) -> None:
    r"""Expectation propagation person by person, sites kept; the evidence and its slopes.

    The likelihood of an entry is replaced by a site :math:`e^{\nu\eta - \tau\eta^2/2}`. Given the
    person's factors and what visits share (the core, R + VG numbers), outcomes are independent, so
    that their own effects are eliminated first. Given the person's factors and the outcomes' own
    effects (R + Tq), visits are: where those are fewer, the visits' factors are eliminated first.
    Time is linear in what is eliminated.

    Parameters
    ----------
    visits : Visits
        Their weight is how often every person counts in the slopes.
    mean : array of shape (N, T)
        m.
    effects : Effects
        C, L, γ and σ.
    found : tuple of arrays of shape (n,), (N, T), (N, T), (N, T), (n or 1, K) and (n,)
        Results: log evidence; its slopes by m; the sites τ and ν, of which those of censored
        entries are the start too; slopes by C, L, γ and log σ, which are added to what is there,
        person by person or in one row; sweeps, negative if not converged.
    tol, most : float, int
        Largest change of a site, relative to its entry, and sweeps at most.
    """
    (starts, low, high, z, counted), (own, shared, visit, sigma) = visits, effects
    log_z, pull, tau, nu, slopes, sweeps = found
    n_people, (n_tasks, n_own) = len(starts) - 1, own.shape[:2]
    n_shared, n_visit = shared.shape[2], visit.shape[1]
    longest = np.diff(starts).max()
    wide, thick = n_shared + min(longest * n_visit, n_tasks * n_own), max(n_own, n_visit)
    # Of an entry: loads on the block that is eliminated first, and on the core.
    inner = np.zeros((longest, n_tasks, thick))
    outer = np.zeros((longest, n_tasks, n_shared + thick))
    n_blocks = max(longest, n_tasks)
    root, cross = np.zeros((n_blocks, thick, thick)), np.zeros((n_blocks, thick, wide))
    right, solved = np.zeros((n_blocks, thick)), np.zeros((n_blocks, thick))
    core, core_right, core_mean = np.zeros((wide, wide)), np.zeros(wide), np.zeros(wide)
    reach, scaled, by_outer = np.zeros(wide), np.zeros(thick), np.zeros(n_shared + thick)
    place = np.arange(n_shared + thick)  # of an entry's loads in the core
    # How sites are to be moved, and how they were a sweep ago in units of their entries.
    move, before = np.zeros((2, longest, n_tasks, 2))
    place_L = n_tasks * n_own * n_own
    place_G = place_L + n_tasks * n_own * n_shared
    place_S = place_G + n_tasks * n_visit
    for person in range(n_people):
        first, n_visits = starts[person], starts[person + 1] - starts[person]
        by_task = n_visits * n_visit <= n_tasks * n_own
        n_inner, n_outer, n_in, n_out = n_visits, n_tasks, n_visit, n_own
        by_own, by_visit = by_outer[n_shared:], scaled[:]
        of_own, of_visit = outer[:, :, n_shared:], inner[:, :, :]
        if by_task:
            n_inner, n_outer, n_in, n_out = n_tasks, n_visits, n_own, n_visit
            by_own, by_visit = scaled[:], by_outer[n_shared:]
            of_own, of_visit = inner[:, :, :], outer[:, :, n_shared:]
        size, n_reach = n_shared + n_outer * n_out, n_shared + n_out
        into, times, n_censored = slopes[person % len(slopes)], counted[person], 0
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
                _times(z[row], shared[t], outer[v, t, :n_shared])
                _times(z[row], own[t], of_own[v, t, :n_own])
                of_visit[v, t, :n_visit] = visit[t]
        step, change, sweep = 1.0, math.inf, 0
        while True:
            # The posterior of all effects, given the sites.
            core[:size, :size] = 0.0
            core_right[:size] = 0.0
            half_log_det, quadratic = 0.0, 0.0
            for j in range(size):
                core[j, j] = 1.0
            for a in range(n_inner):
                root[a] = 0.0
                cross[a, :, :size] = 0.0
                right[a] = 0.0
                for j in range(n_in):
                    root[a, j, j] = 1.0
                for b in range(n_outer):
                    v, t = (b, a) if by_task else (a, b)
                    weight, push = tau[first + v, t], nu[first + v, t]
                    if weight == 0.0 and push == 0.0:
                        continue
                    for j in range(n_shared, n_reach):
                        place[j] = b * n_out + j
                    for i in range(n_in):
                        right[a, i] += push * inner[v, t, i]
                        by = weight * inner[v, t, i]
                        for j in range(i + 1):
                            root[a, i, j] += by * inner[v, t, j]
                        for j in range(n_reach):
                            cross[a, i, place[j]] += by * outer[v, t, j]
                    for i in range(n_reach):
                        core_right[place[i]] += push * outer[v, t, i]
                        by = weight * outer[v, t, i]
                        for j in range(i + 1):
                            core[place[i], place[j]] += by * outer[v, t, j]
                half_log_det += cholesky(root[a], n_in)
                solve_lower(root[a], right[a], n_in)
                for i in range(n_in):
                    quadratic += right[a, i] * right[a, i]
                    for j in range(size):
                        rest = cross[a, i, j]
                        for k in range(i):
                            rest -= root[a, i, k] * cross[a, k, j]
                        by = rest / root[a, i, i]
                        cross[a, i, j] = by
                        core_right[j] -= by * right[a, i]
                        if by != 0.0:
                            for k in range(j + 1):
                                core[j, k] -= by * cross[a, i, k]
            half_log_det += cholesky(core, size)
            solve_lower(core, core_right, size)
            for j in range(size):
                quadratic += core_right[j] * core_right[j]
                core_mean[j] = core_right[j]
            solve_upper(core, core_mean, size)
            for a in range(n_inner):
                for i in range(n_in):
                    solved[a, i] = right[a, i]
                    for j in range(size):
                        solved[a, i] -= cross[a, i, j] * core_mean[j]
            last = n_censored == 0 or change <= tol or sweep == most
            if last:
                log_z[person] = 0.5 * quadratic - half_log_det
            largest, along, bent = 0.0, 0.0, 0.0
            for v in range(n_visits):
                row = first + v
                for t in range(n_tasks):
                    start, end = low[row, t], high[row, t]
                    if math.isnan(start):
                        if last:
                            pull[row, t] = 0.0
                        continue
                    if start == end and not last:
                        continue
                    a, b = (t, v) if by_task else (v, t)
                    for j in range(n_shared, n_reach):
                        place[j] = b * n_out + j
                    # Mean and variance of η under the posterior.
                    centre, spread = 0.0, 0.0
                    for i in range(n_in):
                        scaled[i] = inner[v, t, i]
                    solve_lower(root[a], scaled, n_in)
                    for i in range(n_in):
                        centre += scaled[i] * solved[a, i]
                        spread += scaled[i] * scaled[i]
                    for j in range(size):
                        reach[j] = 0.0
                        for i in range(n_in):
                            reach[j] -= cross[a, i, j] * scaled[i]
                    for j in range(n_reach):
                        reach[place[j]] += outer[v, t, j]
                        centre += outer[v, t, j] * core_mean[place[j]]
                    solve_lower(core, reach, size)
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
                            moved = (move_nu - move_tau * centre) * scale
                            turned = move_tau * scale * scale
                            largest = max(largest, abs(moved) + abs(turned))
                            was, had = before[v, t, 0], before[v, t, 1]
                            along += was * (was - moved) + had * (had - turned)
                            bent += (was - moved) ** 2 + (had - turned) ** 2
                            move[v, t, 0], move[v, t, 1] = move_tau, move_nu
                            before[v, t, 0], before[v, t, 1] = moved, turned
                            continue
                    residual = push - weight * centre
                    pull[row, t] = residual
                    into[place_S + t] += times * by_sigma
                    # Slopes by the loads of the entry, and so by what they are made of.
                    solve_upper(core, reach, size)
                    for i in range(n_in):
                        for j in range(size):
                            scaled[i] -= cross[a, i, j] * reach[j]
                        scaled[i] = residual * solved[a, i] - weight * scaled[i]
                    solve_upper(root[a], scaled, n_in)
                    for j in range(n_reach):
                        by_outer[j] = residual * core_mean[place[j]] - weight * reach[place[j]]
                    for i in range(n_own):
                        by = times * z[row, i]
                        at = (t * n_own + i) * n_own
                        for j in range(n_own):
                            into[at + j] += by * by_own[j]
                        at = place_L + (t * n_own + i) * n_shared
                        for j in range(n_shared):
                            into[at + j] += by * by_outer[j]
                    for j in range(n_visit):
                        into[place_G + t * n_visit + j] += times * by_visit[j]
            if last:
                break
            # The step that would have made these moves smallest (Barzilai and Borwein).
            if sweep > 0 and bent > 0.0:
                step = min(max(step * along / bent, _SHORTEST), _LONGEST)
            for v in range(n_visits):
                row = first + v
                for t in range(n_tasks):
                    if low[row, t] < high[row, t]:
                        tau[row, t] = max(tau[row, t] + step * move[v, t, 0], 0.0)
                        nu[row, t] += step * move[v, t, 1]
            change = largest
            sweep += 1
        sweeps[person] = sweep if n_censored == 0 or change <= tol else -sweep
