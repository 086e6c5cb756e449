"""Section 2.2 and the appendix of the paper: what one pass is proved to do."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from deeptobit import CensoredTargets, SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.likelihood import Gaussian, evaluate
from paper.arrays import FloatArray, Rows
from paper.recipes import default_layer, paper_step
from paper.section import Claim, Context, FigureOf, Scale, Section, TableOf, panel, with_settings
from paper.verdicts import claim_over_repeats, mean_and_sd, over_repeats

# The three claims, as numbers.


class Settling(NamedTuple):
    """How the subspace comes to rest.

    Parameters
    ----------
    change : array of shape (K - 1,)
        ‖U_i − U_{i−1}‖_F per row, between snapshots.
    constant : float
        B = max i·‖U_i − U_{i−1}‖: the claim is that it stays bounded as i grows.
    slope : float
        Of log change against log i, by least squares: −1 is O(1/i), less is faster.
    """

    change: FloatArray
    constant: float
    slope: float


class Regret(NamedTuple):
    """Online regret after each snapshot, and its bound, (K - 1,)."""

    regret: FloatArray
    bound: FloatArray


@dataclass(frozen=True)
class Snapshots:
    """Snapshots of a model while it learns.

    Parameters
    ----------
    n_seen : int array of shape (K,)
    U : array of shape (K, T, R)
    coef : array of shape (K, T, D)
    intercept, sigma : arrays of shape (K, T)
    loss_before : array of shape (K - 1,)
        Mean loss of the rows between two snapshots under the earlier one.
    loss_after : array of shape (K - 1,)
        Mean loss of all rows up to the later snapshot under that snapshot.
    """

    n_seen: Rows
    U: FloatArray
    coef: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    loss_before: FloatArray
    loss_after: FloatArray

    def settling(self) -> Settling:
        """Claim 1: successive subspaces differ by O(1/i)."""
        rows = np.diff(self.n_seen)
        change = np.linalg.norm(np.diff(self.U, axis=0), axis=(1, 2)) / rows
        at = self.n_seen[1:]
        moving = change > 0.0
        slope = np.polyfit(np.log(at[moving]), np.log(change[moving]), 1)[0]
        return Settling(change, float((at * change).max()), float(slope))

    def regret(self, step: float) -> Regret:
        r"""Claim 2: the cost of the last iterate exceeds the online loss by little.

        .. math::
            \hat C_n - \bar C_n \le \frac{B^2(\ln n + 1)^2}{2\mu n} + \frac{5B^2}{6\mu n}
        """
        rows = np.diff(self.n_seen)
        online = np.cumsum(rows * self.loss_before) / np.cumsum(rows)
        n, constant = self.n_seen[1:].astype(np.float64), self.settling().constant
        bound = constant**2 / (step * n) * (0.5 * (np.log(n) + 1.0) ** 2 + 5.0 / 6.0)
        return Regret(self.loss_after - online, bound)


def follow(model: SubspaceTobitRegressor, X: FloatArray, Y: Any, *, every: int = 100) -> Snapshots:
    """Fit a model to consecutive rows, with a snapshot of its parameters every ``every`` rows.

    Parameters
    ----------
    model : SubspaceTobitRegressor
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
    >>> bool(snapshots.settling().slope < -0.5)
    True
    """
    parameters: list[tuple[Any, ...]] = []
    before: list[float] = []
    after: list[float] = []
    targets = CensoredTargets.from_bounds(Y, model.lower, model.upper)
    for start in range(0, len(X), every):
        rows = slice(start, min(start + every, len(X)))
        if parameters:
            before.append(_mean_loss(model, X[rows], targets[rows]))
        model.partial_fit(X[rows], targets[rows])
        if parameters:
            after.append(_mean_loss(model, X[: rows.stop], targets[: rows.stop]))
        parameters.append((rows.stop, model.U_, model.coef_, model.intercept_, model.sigma_))
    n_seen, U, coef, intercept, sigma = (np.array(part) for part in zip(*parameters, strict=True))
    return Snapshots(n_seen, U, coef, intercept, sigma, np.array(before), np.array(after))


def _mean_loss(model: SubspaceTobitRegressor, X: FloatArray, targets: CensoredTargets) -> float:
    latent = X @ model.coef_.T + model.intercept_
    nll = evaluate(Gaussian(), targets.low, targets.high, latent, model.sigma_).nll
    return float(nll.sum(axis=1).mean())


_SNAPSHOTS = 50
_SHARES = (0.125, 0.25, 0.5, 1.0)
_TEXT = """\
Three claims on the iterates of one pass: successive subspaces differ by O(1/i), the regret stays \
under its bound and vanishes, and the limit is a stationary point of the batch objective. Proofs \
are for infinite streams; here each claim is a number that repeats can contradict.

The bound of the regret contains the constant step μ of the paper; deeptobit finds its own steps, \
so μ is the one that suits the data (0.001 at the paper's sizes). The regret as the paper defines \
it is the loss of the last iterate minus that of the iterates before it: it is negative where \
learning helps, and then under any bound that is positive."""


class Evidence(NamedTuple):
    """Of one data set."""

    seed: int
    rows: FloatArray
    scaled_change: FloatArray
    slope: float
    regret: FloatArray
    bound: FloatArray
    gradients: FloatArray


def theory(scale: Scale, context: Context) -> Section:
    """Settling, regret and stationarity over repeats."""
    seeds = context.seeds(scale.repeats)
    found = over_repeats(partial(_follow, scale), seeds, context, "data sets")
    settings = one_pass_settings(scale, context)
    return Section(
        "theory",
        "Theory: what one pass is proved to do",
        _TEXT,
        tables=with_settings(settings, _table(found, scale)),
        figures=with_settings(settings, _figure(found, scale)),
        claims=(_settling(found), *_regret(found), _stationarity(found)),
    )


def one_pass_settings(scale: Scale, context: Context) -> dict[str, Any]:
    """Sizes of data of one layer, and of how many."""
    return scale.symbols | {"data sets": scale.repeats, "seed": context.seed}


def _follow(scale: Scale, seed: int) -> Evidence:
    X, Y, _ = make_subspace(**scale.sizes, random_state=seed)
    snapshots = follow(default_layer(scale), X, Y, every=len(X) // _SNAPSHOTS)
    settling, regret = snapshots.settling(), snapshots.regret(paper_step(scale))
    gradients = []
    for share in _SHARES:
        part = slice(round(share * len(X)))
        model = default_layer(scale).fit(X[part], Y[part])
        gradients.append(model.relative_gradient(X[part], Y[part]))
    rows = snapshots.n_seen[1:].astype(np.float64)
    return Evidence(
        seed, rows, rows * settling.change, settling.slope, *regret, np.array(gradients)
    )


def _figure(found: list[Evidence], scale: Scale) -> FigureOf:
    rows = found[0].rows
    shares = np.array(_SHARES) * scale.n_samples
    panels = [
        panel("i · ‖Uᵢ − Uᵢ₋₁‖", "stays bounded", rows, {"": [e.scaled_change for e in found]}),
        panel(
            "regret and its bound",
            "per row",
            rows,
            {"|regret|": [np.abs(e.regret) for e in found], "bound": [e.bound for e in found]},
        ),
        panel(
            "gradient of the batch objective",
            "relative to W = 0",
            shares,
            {"": [e.gradients for e in found]},
        ),
    ]
    caption = "The three claims over one pass; lines are medians over data sets, bands their range."
    return FigureOf(caption, "lines", {"panels": panels})


def _table(found: list[Evidence], scale: Scale) -> TableOf:
    import pandas as pd

    values = {
        "slope of log ‖Uᵢ − Uᵢ₋₁‖ on log i": ("≤ −1", [e.slope for e in found], 2),
        "B = max i·‖Uᵢ − Uᵢ₋₁‖": ("bounded", [e.scaled_change.max() for e in found], 2),
        "regret after the first block": ("", [e.regret[0] for e in found], 3),
        "regret at the end": ("→ 0", [e.regret[-1] for e in found], 3),
        "bound at the end": ("→ 0", [e.bound[-1] for e in found], 1),
    }
    rows = [
        {"quantity": name, "paper": paper, "ours": mean_and_sd(column, digits)}
        for name, (paper, column, digits) in values.items()
    ]
    for number, share in enumerate(_SHARES):
        column = [e.gradients[number] for e in found]
        name = f"relative gradient after {share * scale.n_samples:,.0f} rows"
        rows.append({"quantity": name, "paper": "→ 0", "ours": mean_and_sd(column, 5)})
    return TableOf("One pass by deeptobit's defaults: mean (sd) over data sets", pd.DataFrame(rows))


def _settling(found: list[Evidence]) -> Claim:
    slopes = np.array([e.slope for e in found])
    return claim_over_repeats(
        "Successive subspaces differ by O(1/i).",
        -1.0 - slopes,
        "−1 − slope of log difference on log i",
        paper="Section 2.2: ‖Uᵢ − Uᵢ₋₁‖ ≤ B/i",
        ours=f"like i^{slopes.mean():.2f} on average".replace("-", "−"),
    )


def _regret(found: list[Evidence]) -> list[Claim]:
    margin = np.array([(e.bound - e.regret).min() for e in found])
    shrinkage = np.array([np.log(abs(e.regret[0]) / abs(e.regret[-1])) for e in found])
    ratio = np.exp(-shrinkage.mean())
    highest = max(e.regret.max() for e in found)
    lowest = min(e.bound.min() for e in found)
    return [
        claim_over_repeats(
            "The regret stays under its bound throughout the pass.",
            margin,
            "smallest distance of regret and bound",
            paper="Appendix: R ≤ B²(ln n + 1)²/(2μn) + 5B²/(6μn)",
            ours=f"at most {highest:.3g}, where the bound is at least {lowest:.3g}",
        ),
        claim_over_repeats(
            "The regret vanishes.",
            shrinkage,
            "log |regret| after the first block − log |regret| at the end",
            paper="Section 2.2: it “will again vanish if N → ∞”",
            ours=f"at the end {ratio:.1%} of what it was after the first block",
        ),
    ]


def _stationarity(found: list[Evidence]) -> Claim:
    gradients = np.array([e.gradients for e in found])
    slopes = np.polyfit(np.log(_SHARES), np.log(gradients).T, 1)[0]
    return claim_over_repeats(
        "The iterates approach a stationary point of the batch objective.",
        -slopes,
        "−slope of log relative gradient on log rows",
        paper="Section 2.2: U “asymptotically converges to a stationary-point”",
        ours=f"relative gradient {gradients[:, 0].mean():.2g} after an eighth of the rows, "
        f"{gradients[:, -1].mean():.2g} after all",
    )
