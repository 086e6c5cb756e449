"""Section 2.2 and the appendix of the paper: what one pass is proved to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from deeptobit import CensoredTargets, SubspaceTobitRegressor
from deeptobit.datasets import SubspaceTruth, make_subspace
from deeptobit.exceptions import DivergenceError
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.published import PublishedSubspaceTobit
from paper.arrays import FloatArray, Rows
from paper.recipes import OURS, PRINTED, PUBLISHED, ROWS, one_pass
from paper.section import (
    Claim,
    Claimant,
    Context,
    FigureOf,
    Scale,
    Section,
    TableOf,
    panel,
    with_settings,
)
from paper.verdicts import claim_over_repeats, mean_and_sd, over_repeats

Model: TypeAlias = PublishedSubspaceTobit | SubspaceTobitRegressor

# One layer while it learns.


@dataclass(frozen=True)
class Snapshots:
    """Snapshots of a model while it learns.

    Parameters
    ----------
    n_seen : int array of shape (K,)
    U, V : arrays of shapes (K, T, R) and (K, R, D)
        Ours, which have no size of their own, with ‖U‖/√T = ‖V‖/√D, as Gaussian ones have.
    intercept, sigma : arrays of shape (K, T)
    change : array of shape (K - 1,)
        ‖U_i − U_{i−1}‖_F between two snapshots: the mean over rows where the model tells it for
        every row, as the printed algorithm does; else the distance of the two by rows between them.
    loss_before : array of shape (K - 1,)
        Mean loss −log Pr of the rows between two snapshots under the earlier one.
    loss_after : array of shape (K - 1,)
        Mean loss of all rows up to the later snapshot under that snapshot.
    penalty : array of shape (K,)
        λ/2(‖U‖² + ‖V‖²), which the objective of a row contains.
    """

    n_seen: Rows
    U: FloatArray
    V: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    change: FloatArray
    loss_before: FloatArray
    loss_after: FloatArray
    penalty: FloatArray

    @property
    def slope(self) -> float:
        """Of log change against log i, by least squares: −1 is O(1/i), less is faster."""
        at, moving = self.n_seen[1:], self.change > 0.0
        return float(np.polyfit(np.log(at[moving]), np.log(self.change[moving]), 1)[0])

    @property
    def constant(self) -> float:
        """B = max i·‖U_i − U_{i−1}‖: the claim is that it stays bounded as i grows."""
        return float((self.n_seen[1:] * self.change).max())

    def regret(self, step: float) -> tuple[FloatArray, FloatArray]:
        r"""The regret after each snapshot but the first, and its bound with μ = ``step``.

        .. math::
            \hat C_n - \bar C_n \le \frac{B^2(\ln n + 1)^2}{2\mu n} + \frac{5B^2}{6\mu n}
        """
        rows = np.diff(self.n_seen)
        costs = self.loss_before + self.penalty[:-1]
        online = np.cumsum(rows * costs) / np.cumsum(rows)
        n = self.n_seen[1:].astype(np.float64)
        bound = self.constant**2 / (step * n) * (0.5 * (np.log(n) + 1.0) ** 2 + 5.0 / 6.0)
        return self.loss_after + self.penalty[1:] - online, bound


def follow(model: Model, X: FloatArray, Y: Any, *, every: int = 100) -> Snapshots:
    """Fit a model to consecutive rows, with a snapshot of its parameters every ``every`` rows.

    Parameters
    ----------
    model : PublishedSubspaceTobit or SubspaceTobitRegressor
        Unfitted; it is trained with ``partial_fit``.
    X : array of shape (N, D)
    Y : array of shape (N, T)
    every : int

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor, datasets
    >>> X, Y, _ = datasets.make_subspace(3000, 20, 15, 2, random_state=0)
    >>> snapshots = follow(SubspaceTobitRegressor(rank=2), X, Y, every=500)
    >>> snapshots.n_seen
    array([ 500, 1000, 1500, 2000, 2500, 3000])
    >>> bool(snapshots.slope < -0.5)
    True
    """
    alpha = penalty_of(model)
    parameters: list[tuple[Any, ...]] = []
    between: list[tuple[float, ...]] = []
    targets = CensoredTargets.from_bounds(Y, model.lower, model.upper)
    for start in range(0, len(X), every):
        rows = slice(start, min(start + every, len(X)))
        ahead = _mean_loss(model, X[rows], targets[rows]) if parameters else 0.0
        model.partial_fit(X[rows], targets[rows])
        U, V = _sized(model)
        if parameters:
            moved = np.linalg.norm(U - parameters[-1][1]) / (rows.stop - start)
            if isinstance(model, PublishedSubspaceTobit):
                moved = model.history_["change"][0][start:].mean()
            behind = _mean_loss(model, X[: rows.stop], targets[: rows.stop])
            between.append((float(moved), ahead, behind))
        cost = 0.5 * alpha * (np.vdot(U, U) + np.vdot(V, V))
        parameters.append((rows.stop, U, V, model.intercept_, model.sigma_, cost))
    n_seen, U, V, intercept, sigma, penalty = (
        np.array(part) for part in zip(*parameters, strict=True)
    )
    change, before, after = np.array(between).T
    return Snapshots(n_seen, U, V, intercept, sigma, change, before, after, penalty)


def penalty_of(model: Model) -> float:
    """λ of one row; 0 for ours, whose penalty is light and in units of its own."""
    return float(model.alpha) if isinstance(model, PublishedSubspaceTobit) else 0.0


def _sized(model: Model) -> tuple[FloatArray, FloatArray]:
    U, V = model.U_, model.V_
    if isinstance(model, PublishedSubspaceTobit) or not U.any():
        return U, V
    ratio = np.sqrt(np.linalg.norm(V) / np.linalg.norm(U) * np.sqrt(len(U) / V.shape[1]))
    return U * ratio, V / ratio


def _mean_loss(model: Model, X: FloatArray, targets: CensoredTargets) -> float:
    latent = X @ model.coef_.T + model.intercept_
    nll = evaluate(Gaussian(), targets.low, targets.high, latent, model.sigma_).nll
    return float(nll.sum(axis=1).mean())


# The gradient of the batch objective, which is 0 at a stationary point.


def slope_by_coefficients(
    W: FloatArray,
    X: FloatArray,
    targets: CensoredTargets,
    sigma: FloatArray,
    intercept: FloatArray | float = 0.0,
) -> FloatArray:
    """The derivative of the mean over rows of −log Pr by the coefficients W = UV, (T, D)."""
    found = evaluate(Gaussian(), targets.low, targets.high, X @ W.T + intercept, sigma)
    return found.latent.T @ X / len(X)


def gradient_norm(U: FloatArray, V: FloatArray, slope: FloatArray, alpha: float) -> float:
    r"""Norm of the gradient of the batch objective by U and V.

    The objective is the mean over rows of :math:`-\log\Pr(y_i) + \frac\lambda2(\|U\|_F^2 +
    \|V\|_F^2)`; with the slope G by W = UV, the gradient is :math:`GV^\top + \lambda U` and
    :math:`U^\top G + \lambda V`.
    """
    by_U, by_V = slope @ V.T + alpha * U, U.T @ slope + alpha * V
    return float(np.sqrt(np.vdot(by_U, by_U) + np.vdot(by_V, by_V)))


def relative_gradients(
    snapshots: Snapshots, X: FloatArray, Y: FloatArray, alpha: float, seed: int
) -> FloatArray:
    """Gradient norms on all rows, relative to that at the random start of the printed algorithm.

    The start is the one that :class:`PublishedSubspaceTobit` draws with this seed, and the
    objective the model's own: its λ, its σ, and intercepts if it has them.
    """
    targets, rng = CensoredTargets.from_bounds(Y, 0.0), np.random.default_rng(seed)
    U, V = rng.standard_normal(snapshots.U[0].shape), rng.standard_normal(snapshots.V[0].shape)
    sigma = snapshots.sigma[-1]
    start = gradient_norm(U, V, slope_by_coefficients(U @ V, X, targets, sigma), alpha)
    parameters = snapshots.U, snapshots.V, snapshots.intercept, snapshots.sigma
    norms = [
        gradient_norm(U, V, slope_by_coefficients(U @ V, X, targets, scales, intercept), alpha)
        for U, V, intercept, scales in zip(*parameters, strict=True)
    ]
    return np.array(norms) / start


# The section.

SNAPSHOTS = 50
_SHORT = f"{PRINTED}, rows of length 1"
_ROWS = (_SHORT, *ROWS)
_HALF = SNAPSHOTS // 2 - 1  # the snapshot after half the rows
_SMALL = 0.1  # a relative gradient that has become small
_TEXT = """\
Three claims on the iterates of one pass: successive subspaces differ by O(1/i), the regret stays \
under its bound and vanishes, and U approaches a stationary point of the batch objective. Each is \
tested on Algorithm 1 as printed and on ours.

Outcomes are as drawn. So are the features, but for the first row of the table: there every row \
of X has length 1, as in the authors' Figure 2. The constants are λ = {alpha:g} and η = μ = \
{step:g} as published, or chosen on a fifth of the rows that is held out. Ours standardises by \
itself.

The batch objective is the mean over all rows of −log Pr + λ/2(‖U‖² + ‖V‖²). Its gradient by U and \
V is shown relative to that at the random start. “Approaches a stationary point” means here that \
the gradient still falls in the second half of the pass and ends below {small:g}. Constant steps \
make it stop falling. U = V = 0 is stationary for every λ; ours starts near it, and therefore low. \
On rows of length 1 the printed gradient does fall, but to U = V = 0: there the likelihood pulls \
with at most {pull:.2g} (largest singular value of its slope by W = UV at 0), λ = {alpha:g} is \
more, and 0 is the minimum of the objective.

The regret of the paper is the cost of the last iterate minus that of the iterates before it. It \
is negative where learning helps, and then under any bound that is positive. “Shrinks” means that \
it still does in the second half. Costs are taken in {n_blocks} blocks of rows. The bound contains \
the constant step μ; ours has none and is shown with the published one."""


class Evidence(NamedTuple):
    """Of one row of the table on one data set; those of a divergence are NaN."""

    row: str
    seed: int
    rows: FloatArray
    scaled_change: FloatArray
    slope: float
    regret: FloatArray
    bound: FloatArray
    gradients: FloatArray
    pull: float
    constants: str


def theory(scale: Scale, context: Context) -> Section:
    """Settling, regret and stationarity over repeats."""
    jobs = [(row, seed) for row in _ROWS for seed in context.seeds(scale.repeats)]
    results = over_repeats(partial(_follow, scale), jobs, context, "passes")
    found = {row: [e for e in results if e.row == row] for row in _ROWS}
    settings = one_pass_settings(scale, context)
    published = PUBLISHED["fig-subspace"]
    pulls = np.array([e.pull for e in found[_SHORT]])
    text = _TEXT.format(
        alpha=published.alpha,
        step=published.step,
        small=_SMALL,
        pull=pulls.max(),
        n_blocks=SNAPSHOTS,
    )
    claims = [claim for row in _ROWS for claim in _claims(row, found[row])]
    zero = claim_over_repeats(
        "On rows of length 1, the published λ makes U = V = 0 the minimum of the objective.",
        published.alpha - pulls,
        "λ − largest singular value of the slope of −log Pr by W at 0",
        paper="not reported",
        ours=f"at most {pulls.max():.2g}, λ = {published.alpha:g}",
        by="us",
        row=PRINTED,
    )
    return Section(
        "theory",
        "Theory: what one pass is proved to do",
        text,
        tables=with_settings(settings, _table(found)),
        figures=with_settings(settings, _figure(found)),
        claims=(*claims, zero),
    )


def one_pass_settings(scale: Scale, context: Context) -> dict[str, Any]:
    """Sizes of data of one layer, and of how many."""
    return scale.symbols | {"data sets": scale.repeats, "seed": context.seed}


def draw(
    scale: Scale, seed: int, *, length_one: bool
) -> tuple[FloatArray, FloatArray, SubspaceTruth]:
    """Data of one layer; on request every row of X has length 1 before outcomes are drawn."""
    X, Y, truth = make_subspace(**scale.sizes, random_state=seed)
    if length_one:
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        noise = np.random.default_rng([seed, 1]).normal(0.0, scale.sigma, Y.shape)
        Y = np.maximum(X @ truth.coef.T + noise, 0.0)
    return X, Y, truth


def constants_of(model: Model) -> str:
    """λ and η of a layer in words; ours has none."""
    if not isinstance(model, PublishedSubspaceTobit):
        return "none"
    return f"λ = {model.alpha:g}, η = {model.step_size_V:g}"


def most_often(words: list[str]) -> str:
    """The constants of most data sets, and of how many.

    Examples
    --------
    >>> most_often(["λ = 0", "λ = 0.6", "λ = 0"]), most_often(["none", "none"])
    ('λ = 0 (2 of 3)', 'none')
    """
    best = max(words, key=words.count)
    count = words.count(best)
    return best if count == len(words) else f"{best} ({count} of {len(words)})"


def told(values: Any, digits: int) -> str:
    """Mean and standard deviation over data sets, or in how many of them it diverged.

    Examples
    --------
    >>> told([1.0, 2.0], 1), told([1.0, np.inf], 1)
    ('1.5 (0.7)', 'diverged in 1 of 2')
    """
    array = np.asarray(values, dtype=np.float64)
    lost = int((~np.isfinite(array)).sum())
    return f"diverged in {lost} of {array.size}" if lost else mean_and_sd(array, digits)


def claim_unless_diverged(
    text: str,
    differences: FloatArray,
    tested: str,
    *,
    paper: str,
    ours: str,
    by: Claimant = "the paper",
    row: str = "",
) -> Claim:
    """A claim over repeats, which does not hold where some of them diverged."""
    lost = int((~np.isfinite(differences)).sum())
    if not lost:
        return claim_over_repeats(text, differences, tested, paper=paper, ours=ours, by=by, row=row)
    found, test = f"diverged in {lost} of {len(differences)}", "cannot be if it diverges"
    return Claim(text, paper, found, "does not hold", f"{tested} > 0: {test}", by, row)


def _follow(scale: Scale, job: tuple[str, int]) -> Evidence:
    row, seed = job
    X, Y, _ = draw(scale, seed, length_one=row == _SHORT)
    name = PRINTED if row == _SHORT else row
    model = one_pass(name, "fig-weights", scale, X, Y, seed)
    targets, every = CensoredTargets.from_bounds(Y, 0.0), len(X) // SNAPSHOTS
    zero = np.zeros((Y.shape[1], X.shape[1]))
    slope = slope_by_coefficients(zero, X, targets, np.full(len(zero), scale.sigma))
    pull, constants = float(np.linalg.norm(slope, 2)), constants_of(model)
    rows = np.arange(every, len(X) + 1, every, dtype=np.float64)
    try:
        snapshots = follow(model, X, Y, every=every)
    except DivergenceError:
        lost = np.full(len(rows), np.nan)
        parts = lost[1:], np.nan, lost[1:], lost[1:], lost
        return Evidence(row, seed, rows, *parts, pull, constants)
    regret = snapshots.regret(PUBLISHED["fig-weights"].step if row == OURS else model.step_size_U)
    return Evidence(
        row,
        seed,
        rows,
        rows[1:] * snapshots.change,
        snapshots.slope,
        *regret,
        relative_gradients(snapshots, X, Y, penalty_of(model), seed),
        pull,
        constants,
    )


def _figure(found: dict[str, list[Evidence]]) -> FigureOf:
    rows = found[OURS][0].rows

    def lines(field: str) -> dict[str, list[FloatArray]]:
        return {row: [np.abs(getattr(e, field)) for e in here] for row, here in found.items()}

    panels = [
        panel("i · ‖Uᵢ − Uᵢ₋₁‖", "stays bounded", rows, lines("scaled_change")),
        panel("size of the regret", "|regret| per row", rows, lines("regret")),
        panel("bound of the regret", "per row", rows, lines("bound")),
        panel("gradient of the batch objective", "relative to the start", rows, lines("gradients")),
    ]
    caption = "The three claims over one pass; lines are medians over data sets, bands their range."
    return FigureOf(caption, "lines", {"panels": panels})


def _table(found: dict[str, list[Evidence]]) -> TableOf:
    import pandas as pd

    rows = [
        {
            "one pass": row,
            "constants": most_often([e.constants for e in here]),
            "slope of log ‖Uᵢ − Uᵢ₋₁‖ on log i": told([e.slope for e in here], 2),
            "B = max i·‖Uᵢ − Uᵢ₋₁‖": told([e.scaled_change.max() for e in here], 1),
            "regret after half the rows": told([e.regret[_HALF - 1] for e in here], 2),
            "regret at the end": told([e.regret[-1] for e in here], 2),
            "bound at the end": told([e.bound[-1] for e in here], 0),
            "gradient after half the rows": told([e.gradients[_HALF] for e in here], 3),
            "gradient at the end": told([e.gradients[-1] for e in here], 3),
        }
        for row, here in found.items()
    ]
    claimed = {
        "one pass": "paper's claim",
        "slope of log ‖Uᵢ − Uᵢ₋₁‖ on log i": "≤ −1",
        "B = max i·‖Uᵢ − Uᵢ₋₁‖": "bounded",
        "regret at the end": "→ 0",
        "bound at the end": "→ 0",
        "gradient at the end": "→ 0",
    }
    data = [
        {"one pass": row, "seed": e.seed, "constants": e.constants, "slope": e.slope}
        | {"regret": e.regret[-1], "gradient_half": e.gradients[_HALF]}
        | {"gradient": e.gradients[-1], "pull_at_zero": e.pull}
        for row, here in found.items()
        for e in here
    ]
    caption = (
        "One pass: mean (standard deviation) over data sets. Gradients are of the batch objective, "
        "relative to the random start."
    )
    return TableOf(caption, pd.DataFrame([*rows, claimed]).fillna(""), pd.DataFrame(data))


def _claims(row: str, here: list[Evidence]) -> list[Claim]:
    slopes = np.array([e.slope for e in here])
    middle, last = np.abs([(e.regret[_HALF - 1], e.regret[-1]) for e in here]).T
    half, end = np.array([(e.gradients[_HALF], e.gradients[-1]) for e in here]).T
    highest, lowest = max(e.regret.max() for e in here), min(e.bound.min() for e in here)
    row, where = (PRINTED, ", rows of length 1") if row == _SHORT else (row, "")
    point = "; towards U = V = 0" if where else ""
    return [
        claim_unless_diverged(
            f"Successive subspaces differ by O(1/i){where}.",
            -1.0 - slopes,
            "−1 − slope of log difference on log i",
            paper="Section 2.2: ‖Uᵢ − Uᵢ₋₁‖ ≤ B/i",
            ours=f"like i^{slopes.mean():.2f} on average".replace("-", "−"),
            row=row,
        ),
        claim_unless_diverged(
            f"The regret stays under its bound throughout the pass{where}.",
            np.array([(e.bound - e.regret).min() for e in here]),
            "smallest distance of regret and bound",
            paper="Appendix: R ≤ B²(ln n + 1)²/(2μn) + 5B²/(6μn)",
            ours=f"at most {highest:.3g}, where the bound is at least {lowest:.3g}".replace(
                "-", "−"
            ),
            row=row,
        ),
        claim_unless_diverged(
            f"The regret shrinks towards 0{where}.",
            np.log(middle / last),
            "log |regret| after half the rows − log |regret| at the end",
            paper="Section 2.2: it “will again vanish if N → ∞”",
            ours=f"at the end {np.mean(last / middle):.0%} of what it was after half the rows",
            row=row,
        ),
        claim_unless_diverged(
            f"U approaches a stationary point of the batch objective{where}.",
            np.log(np.minimum(half, _SMALL) / end),
            f"log of the smaller of {_SMALL:g} and the relative gradient after half the rows, over "
            "that at the end",
            paper="Section 2.2: U “asymptotically converges to a stationary-point”",
            ours=f"relative gradient {half.mean():.2g} after half the rows, {end.mean():.2g} after "
            f"all{point}",
            row=row,
        ),
    ]
