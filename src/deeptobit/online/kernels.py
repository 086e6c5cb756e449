"""Entries of a block, their sums by task, and small matrices, compiled for the online solver.

Kernels with a ``first`` work on the tasks from there on, as many as they are given σ for.
"""

import math

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import kernels as normal
from deeptobit.likelihood.kernels import is_finite, jit, jit_inside, jit_sums
from deeptobit.online.reference import REACH, Block, Iterate

# Censored Gaussian entries at σ = 1: likelihood and derivatives, compiled.

Entry = tuple[float, float, float, float, float, float]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NARROW = 1e-5  # the density is constant over the interval
_SHORT, _LEVEL = 2.0, 8.0  # 16 nodes are exact below, and nothing cancels above


@jit_inside
def row_entries(
    edge: FloatArray,
    sign: FloatArray,
    latent: FloatArray,
    precision: FloatArray,
    z: FloatArray,
    out: FloatArray,
) -> None:
    """Distances z and, at σ = 1, nll, score, derivative by log σ and curvature of one row.

    They are the first four rows of ``out``; missing entries give zeros.
    """
    for task in range(len(edge)):
        z[task] = (edge[task] - latent[task]) * precision[task]
    far = False
    for task in range(len(edge)):
        turned = sign[task] * z[task]
        far |= turned < normal.TABLE_START
        # What is missing goes to the start too; from the end on, both are below 1e-18.
        turned = turned if turned >= normal.TABLE_START else normal.TABLE_START
        turned = normal.TABLE_END if turned > normal.TABLE_END else turned
        log_cdf, out[1, task] = normal.table_log_ndtr_mills(turned)
        out[0, task] = -log_cdf
    if far:
        for task in range(len(edge)):
            if sign[task] * z[task] < normal.TABLE_START:
                log_cdf, out[1, task], _ = normal.log_ndtr_mills_excess(sign[task] * z[task])
                out[0, task] = -log_cdf
    # Every load comes before the choices: a load inside a choice would make it a branch.
    for task in range(len(edge)):
        side, distance, tail, mills = sign[task], z[task], out[0, task], out[1, task]
        exact, known = side == 0.0, distance == distance
        here = distance if known else 0.0
        turned = side * here
        square = here * here
        nll = 0.5 * square + _LOG_SQRT_2PI if exact else tail
        score = -here if exact else side * mills
        curvature = 1.0 if exact else mills * (mills + turned)
        pull = 1.0 - square if exact else turned * mills
        out[0, task] = nll if known else 0.0
        out[1, task] = score if known else 0.0
        out[2, task] = pull if known else 0.0
        out[3, task] = curvature if known else 0.0


@jit
def fill_closed(
    low: FloatArray, high: FloatArray, latent: FloatArray, precision: FloatArray, out: FloatArray
) -> None:
    """Overwrite the entries of one row that have two different finite ends, (4, T) or (6, T)."""
    for task in range(len(low)):
        start, end = low[task], high[task]
        if start < end and not math.isinf(start) and not math.isinf(end):
            a = (start - latent[task]) * precision[task]
            b = (end - latent[task]) * precision[task]
            fields = two_sided(a, b)
            for field in range(len(out)):
                out[field, task] = fields[field]


@jit
def two_sided(a: float, b: float) -> Entry:
    """Fields of ``Derivatives`` for an interval [a, b] around a latent score of 0."""
    width = b - a
    middle = 0.5 * (a + b)
    if width * max(1.0, abs(middle)) <= _NARROW:
        z = middle
        nll = 0.5 * z * z + _LOG_SQRT_2PI - math.log(width)
        return nll, -z, 1.0 - z * z, 1.0, 2.0 * z, 2.0 * z * z
    near, far = (a, b) if middle >= 0.0 else (-b, -a)
    fall = math.exp(-width * abs(middle))  # of the density, from the near to the far end
    if width <= _SHORT and width * abs(middle) <= _LEVEL:
        mass = 0.0  # over the density at the near end
        for node in range(16):
            t = 0.5 * width * (1.0 + _NODES[node])
            mass += 0.5 * width * _WEIGHTS[node] * math.exp(-t * (near + 0.5 * t))
        at_near = 1.0 / mass
        nll = 0.5 * near * near + _LOG_SQRT_2PI - math.log(mass)
    else:
        log_near, mills_near, _ = normal.log_ndtr_mills_excess(-near)
        log_far, _, _ = normal.log_ndtr_mills_excess(-far)
        rest = -math.expm1(log_far - log_near)
        at_near = mills_near / rest
        nll = -log_near - math.log(rest)
    at_a, at_b = (at_near, at_near * fall) if middle >= 0.0 else (at_near * fall, at_near)
    pull, stretch = at_b - at_a, b * at_b - a * at_a
    square = b * b * at_b - a * a * at_a
    cube = b * b * b * at_b - a * a * a * at_a
    return (
        nll,
        pull,
        stretch,
        min(max(stretch + pull * pull, 0.0), 1.0),
        square + pull * stretch - pull,
        cube + stretch * stretch - stretch,
    )


@jit
def standard_targets(
    low: FloatArray,
    high: FloatArray,
    first: int,
    location: FloatArray,
    precision: FloatArray,
    out: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> int:
    """Write low, high, edge and sign of a ``Block`` in standard units; count closed intervals.

    An entry that is open on both sides becomes missing.
    """
    last = first + len(location)
    closed = 0
    for row in range(len(low)):
        lows, highs = low[row, first:last], high[row, first:last]
        starts, ends = out[0][row, first:last], out[1][row, first:last]
        edges, sides = out[2][row, first:last], out[3][row, first:last]
        for task in range(len(location)):
            a = (lows[task] - location[task]) * precision[task]
            b = (highs[task] - location[task]) * precision[task]
            left, right = a == -math.inf, b == math.inf
            # Not "and": that would be a branch, mispredicted half of the time.
            inside, missing = (a < b) & (not left) & (not right), left & right
            closed += 1 if inside else 0
            starts[task] = math.nan if missing else a
            ends[task] = math.nan if missing else b
            value = b if left else a
            edges[task] = math.nan if inside | missing else value
            sides[task] = (1.0 if left else 0.0) - (1.0 if right else 0.0)
    return closed


@jit_sums
def null_sums(block: Block, first: int, mean: FloatArray, sigma: FloatArray) -> FloatArray:
    """Gaussian twin of ``reference.null_sums``, (6, T)."""
    _, low, high, edge, sign, weight, closed = block
    n_tasks = len(sigma)
    last = first + n_tasks
    precision = 1.0 / sigma
    out, z, entry = np.zeros((6, n_tasks)), np.empty(n_tasks), np.empty((6, n_tasks))
    for row in range(low.shape[0]):
        share = weight[row]
        sides = sign[row, first:last]
        row_entries(edge[row, first:last], sides, mean, precision, z, entry)
        for task in range(n_tasks):
            side, distance, g = sides[task], z[task], entry[1, task]
            here = distance if distance == distance else 0.0
            bend = -2.0 * g if side == 0.0 else -g * (1.0 - here * (g + here))
            entry[4, task] = bend
            entry[5, task] = here * bend
        if closed:
            fill_closed(low[row, first:last], high[row, first:last], mean, precision, entry)
        for field in range(6):
            for task in range(n_tasks):
                out[field, task] += share * entry[field, task]
    return out


@jit_sums
def evaluate(
    block: Block, first: int, linear: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gaussian twin of ``reference.evaluate``: (n, T) and (8, T)."""
    _, low, high, edge, sign, weight, closed = block
    n_tasks = len(sigma)
    last = first + n_tasks
    precision = 1.0 / sigma
    score, sums = np.empty(linear.shape), np.zeros((8, n_tasks))
    z, latent, entry = np.empty(n_tasks), np.empty(n_tasks), np.empty((4, n_tasks))
    for row in range(len(linear)):
        share, lifts, scores = weight[row], linear[row], score[row]
        for task in range(n_tasks):
            latent[task] = lifts[task] + intercept[task]
        edges, sides = edge[row, first:last], sign[row, first:last]
        starts, ends = edges, edges  # NaN where missing, as low and high are, and less to read
        row_entries(edges, sides, latent, precision, z, entry)
        if closed:
            starts, ends = low[row, first:last], high[row, first:last]
            fill_closed(starts, ends, latent, precision, entry)
        for task in range(n_tasks):
            start, end, side, g = starts[task], ends[task], sides[task], entry[1, task]
            known = share if start == start else 0.0
            exact = share if start == end else 0.0
            lift = lifts[task] * precision[task]
            sums[0, task] += share * entry[0, task]
            sums[1, task] += share * entry[3, task]
            sums[2, task] += share * entry[2, task]
            sums[3, task] += known
            sums[4, task] += known if side == 0.0 else 0.0
            sums[5, task] += exact if side == 0.0 else 0.0
            sums[6, task] += share * g * lift
            sums[7, task] += share * entry[3, task] * lift * lift
            g = REACH if g > REACH else (-REACH if g < -REACH else g)
            scores[task] = share * g * precision[task]
    return score, sums


# Small matrices of the online solver, compiled: ten by ten numbers are all overhead in NumPy. Loops
# rather than array expressions, which take three times as long to compile.

_EXPLODED = 1e3  # times the unit variance that Vx has after whitening
_LONG, _FAR = 1.5, 2.0  # limits in units of the null model's noise


@jit_sums
def whitening(second_moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Symmetric S^{−1/2} and S^{1/2}; directions without variance are left as they are.

    Collinear features have such directions each time, and rounding errors that are enlarged a
    little each time would grow to a factor of 1e19.
    """
    values, vectors = np.linalg.eigh(second_moments)
    divided, multiplied = np.empty(vectors.shape), np.empty(vectors.shape)
    for axis in range(len(values)):
        some = values[axis] > 1e-8 * max(values[-1], 1e-12)
        root = math.sqrt(values[axis]) if some else 1.0
        for row in range(len(values)):
            divided[row, axis] = vectors[row, axis] / root
            multiplied[row, axis] = vectors[row, axis] * root
    return np.dot(divided, vectors.T), np.dot(multiplied, vectors.T)


@jit_sums
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
    there, back = whitening(np.ascontiguousarray(both[:rank, :rank]))
    for part in (now, mean):
        np.dot(there, part.V.copy(), part.V)
        np.dot(back, part.Ut.copy(), part.Ut)
    for r in range(rank):
        cross = _form(both, there[r], 0, rank)
        # A nearly singular metric rounds below 0.
        mine = math.sqrt(max(_form(both, there[r], 0, 0), 0.0))
        other = math.sqrt(max(_form(both, there[r], rank, rank), 0.0))
        cosine = cross / max(mine * other, 1e-150)
        if other < 0.1 * mine or other > 10.0 * mine or cosine < 0.3:
            for source, out in ((now.V, mean.V), (now.Ut, mean.Ut)):
                for column in range(source.shape[1]):
                    out[r, column] = source[r, column]
    return sketch_metric(now.Ut, now.sigma, curvature, damping)


@jit_sums
def _form(matrix: FloatArray, x: FloatArray, row: int, column: int) -> float:
    """The quadratic form xᵀMx of the block of ``matrix`` that begins there."""
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            total += x[i] * matrix[row + i, column + j] * x[j]
    return total


@jit_sums
def sketch_metric(
    Ut: FloatArray, sigma: FloatArray, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    r"""G⁻¹ and ρ for :math:`G = \sum_t \bar w_t U_t U_t^\top/\sigma_t^2` plus damping.

    ρ = max(1, tr(G⁻¹ Σ_t U_t U_tᵀ/σ_t²)/R) bounds how far the curvature of one row, at most 1 per
    entry, exceeds the mean.
    """
    rank, n_tasks = Ut.shape
    scaled, weighted = np.empty(Ut.shape), np.empty(Ut.shape)
    for r in range(rank):
        for task in range(n_tasks):
            scaled[r, task] = Ut[r, task] / sigma[task]
            weighted[r, task] = scaled[r, task] * curvature[task]
    mean, largest = np.dot(weighted, scaled.T), np.dot(scaled, scaled.T)
    ridge = 0.0
    for r in range(rank):
        ridge += 1e-4 * mean[r, r] / rank
    for r in range(rank):
        mean[r, r] += ridge + damping
    inverse, spread = np.linalg.inv(mean).T, 0.0  # in C order, for which steps are compiled
    for r in range(rank):
        for s in range(rank):
            spread += inverse[r, s] * largest[r, s] / rank
        for s in range(r):
            inverse[r, s] = inverse[s, r] = 0.5 * (inverse[r, s] + inverse[s, r])
    return inverse, max(1.0, spread)


@jit_sums
def restrict(
    both: FloatArray, now: Iterate, mean: Iterate, middle: FloatArray, scale: FloatArray
) -> bool:
    """Limit the variance of linear parts and the range of intercepts; False if diverged.

    An iterate that has diverged is left unchanged. The average is a mean of iterates, so it need
    not be checked.

    Parameters
    ----------
    both : array of shape (2R, 2R)
        Second moments of Vx, V of the iterate above V of its average.
    middle, scale : arrays of shape (T,)
        Of the null model: U_tᵀVx deviates by at most 1.5 of its scale, and an intercept is within
        2 of it around its mean.
    """
    rank, n_tasks = now.Ut.shape
    total = now.V.sum() + now.Ut.sum() + now.intercept.sum() + now.sigma.sum()
    trace = 0.0
    for r in range(rank):
        trace += both[r, r]
    if not (is_finite(total) and trace <= _EXPLODED * rank):
        return False
    for part, first in ((now, 0), (mean, rank)):
        moments = both[first : first + rank, first : first + rank].copy()
        linear = np.dot(moments, part.Ut)
        for task in range(n_tasks):
            variance = 0.0
            for r in range(rank):
                variance += part.Ut[r, task] * linear[r, task]
            shrink = min(1.0, _LONG * scale[task] / math.sqrt(max(variance, 1e-300)))
            for r in range(rank):
                part.Ut[r, task] *= shrink
            lowest, highest = middle[task] - _FAR * scale[task], middle[task] + _FAR * scale[task]
            part.intercept[task] = min(max(part.intercept[task], lowest), highest)
    return True
