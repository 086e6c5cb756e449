"""Section 2.2 and the appendix of the paper: what one pass is proved to do."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.experiments._theory import follow, stationarity
from deeptobit.experiments.reproduce._claims import claim_over_repeats
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._recipes import default_layer, paper_step
from deeptobit.experiments.reproduce._repeats import mean_and_sd, over_repeats
from deeptobit.experiments.reproduce._scales import Scale
from deeptobit.experiments.reproduce._section import Claim, FigureOf, Section, TableOf

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
    return Section(
        "theory",
        "Theory: what one pass is proved to do",
        _TEXT,
        tables=(_table(found, scale),),
        figures=(_figure(found, scale),),
        claims=(_settling(found), *_regret(found), _stationarity(found)),
    )


def _follow(scale: Scale, seed: int) -> Evidence:
    X, Y, _ = make_subspace(**scale.sizes, random_state=seed)
    course = follow(default_layer(scale), X, Y, every=len(X) // _SNAPSHOTS)
    settling, regret = course.settling(), course.regret(paper_step(scale))
    gradients = []
    for share in _SHARES:
        part = slice(round(share * len(X)))
        model = default_layer(scale).fit(X[part], Y[part])
        gradients.append(stationarity(model, X[part], Y[part]))
    rows = course.n_seen[1:].astype(np.float64)
    return Evidence(
        seed, rows, rows * settling.change, settling.slope, *regret, np.array(gradients)
    )


def _figure(found: list[Evidence], scale: Scale) -> FigureOf:
    rows = found[0].rows
    shares = np.array(_SHARES) * scale.n_samples
    panels = [
        _panel("i · ‖Uᵢ − Uᵢ₋₁‖", "stays bounded", rows, {"": [e.scaled_change for e in found]}),
        _panel(
            "regret and its bound",
            "per row",
            rows,
            {"|regret|": [np.abs(e.regret) for e in found], "bound": [e.bound for e in found]},
        ),
        _panel(
            "gradient of the batch objective",
            "relative to W = 0",
            shares,
            {"": [e.gradients for e in found]},
        ),
    ]
    caption = "The three claims over one pass; lines are medians over data sets, bands their range."
    return FigureOf(caption, "lines", {"panels": panels})


def _panel(
    title: str, label: str, x: FloatArray, lines: dict[str, list[FloatArray]]
) -> dict[str, object]:
    return {
        "title": title,
        "xlabel": "rows seen",
        "ylabel": label,
        "log_x": True,
        "log_y": True,
        "lines": [
            {
                "label": name,
                "x": x,
                "y": np.median(values, axis=0),
                "low": np.min(values, axis=0),
                "high": np.max(values, axis=0),
            }
            for name, values in lines.items()
        ],
    }


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
    room = np.array([(e.bound - e.regret).min() for e in found])
    shrinkage = np.array([np.log(abs(e.regret[0]) / abs(e.regret[-1])) for e in found])
    ratio = np.exp(-shrinkage.mean())
    highest = max(e.regret.max() for e in found)
    lowest = min(e.bound.min() for e in found)
    return [
        claim_over_repeats(
            "The regret stays under its bound throughout the pass.",
            room,
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
