"""Figures 2 and 3 of the paper: the subspace and the weights that one pass finds."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from deeptobit.exceptions import DivergenceError
from deeptobit.metrics import principal_angles, subspace_difference
from deeptobit.published import PublishedSubspaceTobit
from paper.arrays import FloatArray
from paper.recipes import OURS, PRINTED, PUBLISHED, ROWS, one_pass
from paper.section import Claim, Context, FigureOf, Scale, Section, TableOf, panel, with_settings
from paper.theory import (
    SNAPSHOTS,
    claim_unless_diverged,
    constants_of,
    draw,
    follow,
    most_often,
    one_pass_settings,
    told,
)
from paper.verdicts import claim_over_repeats, mean_and_sd, over_repeats

_BLOCKS = SNAPSHOTS // 5  # a fifth of the rows
_FOUND = 0.99  # smallest principal cosine of a subspace that was found
_SUBSPACE_TEXT = """\
One pass of Algorithm 1 over data of one layer, as printed and by ours. As in the authors' \
script, every row of X is scaled to length 1 before outcomes are drawn; outcomes are used as they \
are, and σ is given. The published constants are λ = {alpha:g} and η = μ = {step:g}, with a \
Gaussian start. The best ones have the least loss on a fifth of the rows that is held out. Ours \
standardises features and outcomes itself, and has no constants to choose.

With the published constants U shrinks towards 0. Every step contains −ηλU, and these alone leave \
(1 − ηλ)ᴺ = {left:.2f} of the start after N rows. ‖U − Uᵢ‖/‖U‖ then goes towards 1, its value for \
Uᵢ = 0, and ‖Uᵢ − Uᵢ₋₁‖ falls with ‖Uᵢ‖. That is what panels (a) and (c) show; the subspace is not \
found.

Data determine U only up to U → UA, V → A⁻¹V. The paper's ‖U − Uᵢ‖/‖U‖ therefore depends on \
coordinates that no data can know, and does not go to 0 when the subspace is found. What can be \
known are the principal angles between the column spaces, shown beside it."""


class Pass(NamedTuple):
    """What one pass looked like at every snapshot; changes and losses are between two.

    ``left`` is the share of the start that the penalty alone would leave.
    """

    row: str
    seed: int
    rows: FloatArray
    difference: FloatArray
    size: FloatArray
    angle: FloatArray
    loss: FloatArray
    change: FloatArray
    slope: float
    left: float
    constants: str


def fig_subspace(scale: Scale, context: Context) -> Section:
    """Subspace difference, objective and iteration-wise difference over one pass."""
    jobs = [(row, seed) for seed in context.seeds(scale.repeats) for row in ROWS]
    passes = over_repeats(partial(_follow, scale), jobs, context, "passes")
    by_row = {row: [p for p in passes if p.row == row] for row in ROWS}
    settings = one_pass_settings(scale, context) | {"rows of X": "of length 1"}
    published = PUBLISHED["fig-subspace"]
    text = _SUBSPACE_TEXT.format(
        alpha=published.alpha, step=published.step, left=by_row[PRINTED][0].left
    )
    return Section(
        "fig-subspace",
        "Figure 2: the subspace over one pass",
        text,
        tables=with_settings(settings, _subspace_table(by_row)),
        figures=with_settings(settings, _subspace_figure(by_row)),
        claims=(
            *(claim for row in ROWS for claim in _claims_of(row, by_row[row])),
            _shrinks(by_row[PRINTED]),
        ),
    )


def _follow(scale: Scale, job: tuple[str, int]) -> Pass:
    row, seed = job
    X, Y, truth = draw(scale, seed, length_one=True)
    model = one_pass(row, "fig-subspace", scale, X, Y, seed)
    every, size = len(X) // SNAPSHOTS, np.linalg.norm(truth.U)
    rows = np.arange(every, len(X) + 1, every, dtype=np.float64)
    left = 1.0
    if isinstance(model, PublishedSubspaceTobit):
        left = (1.0 - model.alpha * model.step_size_U) ** len(X)
    try:
        snapshots = follow(model, X, Y, every=every)
    except DivergenceError:
        lost = np.full(len(rows), np.nan)
        parts = lost, lost, np.full(len(rows), 90.0), lost[1:], lost[1:], np.nan
        return Pass(row, seed, rows, *parts, left, constants_of(model))
    return Pass(
        row=row,
        seed=seed,
        rows=rows,
        difference=np.array([subspace_difference(truth.U, U) for U in snapshots.U]),
        size=np.linalg.norm(snapshots.U, axis=(1, 2)) / size,
        angle=np.array([_largest_angle(truth.U, U) for U in snapshots.U]),
        loss=snapshots.loss_before / Y.shape[1],
        change=snapshots.change / size,
        slope=snapshots.slope,
        left=left,
        constants=constants_of(model),
    )


def _largest_angle(truth: FloatArray, U: FloatArray) -> float:
    """In degrees; a right one while nothing is learned."""
    return float(np.degrees(principal_angles(truth, U).max())) if U.any() else 90.0


def _subspace_figure(by_row: dict[str, list[Pass]]) -> FigureOf:
    panels = [
        ("(a) subspace difference", "‖U − Uᵢ‖ / ‖U‖", "difference"),
        ("(b) loss", "loss per entry of the next rows", "loss"),
        ("(c) iteration-wise difference", "‖Uᵢ − Uᵢ₋₁‖ / ‖U‖", "change"),
        ("size of Uᵢ", "‖Uᵢ‖ / ‖U‖", "size"),
        ("largest principal angle", "degrees", "angle"),
    ]
    rows = by_row[OURS][0].rows
    drawn = [
        panel(
            title,
            label,
            rows,
            {name: [getattr(p, field) for p in passes] for name, passes in by_row.items()},
            log_x=False,
        )
        for title, label, field in panels
    ]
    caption = (
        "Figure 2 again. Lines are medians over data sets, bands their range. (b) is −log Pr "
        "without the penalty, which differs between the rows. (c) as printed is the mean over the "
        "rows of a block; for ours it is the distance over a block by its rows. The last two "
        "panels are not in the paper: the angle is 0 if and only if the subspace is found."
    )
    return FigureOf(caption, "lines", {"panels": drawn})


def _subspace_table(by_row: dict[str, list[Pass]]) -> TableOf:
    import pandas as pd

    rows = [
        {
            "one pass": name,
            "constants": most_often([p.constants for p in passes]),
            "‖U − Uᵢ‖/‖U‖ at the end": told([p.difference[-1] for p in passes], 3),
            "‖Uᵢ‖/‖U‖ at the end": told([p.size[-1] for p in passes], 3),
            "smallest principal cosine": mean_and_sd(_cosines(passes), 3),
            "loss per entry, first fifth": told([p.loss[:_BLOCKS].mean() for p in passes], 3),
            "loss per entry, last fifth": told([p.loss[-_BLOCKS:].mean() for p in passes], 3),
            "slope of (c), log against log": told([p.slope for p in passes], 2),
        }
        for name, passes in by_row.items()
    ]
    data = [
        {
            "one pass": p.row,
            "seed": p.seed,
            "constants": p.constants,
            "difference": p.difference[-1],
            "size": p.size[-1],
            "largest_angle": p.angle[-1],
            "loss_first": p.loss[:_BLOCKS].mean(),
            "loss_last": p.loss[-_BLOCKS:].mean(),
            "slope": p.slope,
        }
        for passes in by_row.values()
        for p in passes
    ]
    caption = "After one pass: mean (standard deviation) over data sets"
    return TableOf(caption, pd.DataFrame(rows), pd.DataFrame(data))


def _cosines(passes: list[Pass]) -> FloatArray:
    return np.cos(np.radians([p.angle[-1] for p in passes]))


def _claims_of(name: str, passes: list[Pass]) -> list[Claim]:
    cosines = _cosines(passes)
    differences = np.array([p.difference[-1] for p in passes])
    falls = np.array([p.loss[:_BLOCKS].mean() - p.loss[-_BLOCKS:].mean() for p in passes])
    slopes = np.array([p.slope for p in passes])
    return [
        _found_claim("One pass finds the subspace, rows of length 1.", cosines, "Fig. 2a", name),
        claim_unless_diverged(
            "‖U − Uᵢ‖/‖U‖ goes below 1, the value of Uᵢ = 0.",
            1.0 - differences,
            "1 − difference at the end",
            paper="Fig. 2a: it “smoothly converges”",
            ours=f"{differences.mean():.3f} on average; two independent matrices have 1.41",
            row=name,
        ),
        claim_unless_diverged(
            "The loss falls over the pass.",
            falls,
            "loss of the first − loss of the last fifth of the rows",
            paper="Fig. 2b",
            ours=f"falls by {falls.mean():.3f} per entry on average".replace("-", "−"),
            row=name,
        ),
        claim_unless_diverged(
            "Successive subspaces approach like 1/i or faster.",
            -1.0 - slopes,
            "−1 − slope of log difference on log i",
            paper="Fig. 2c: “complies with the o(1/t) result”",
            ours=f"like i^{slopes.mean():.2f} on average".replace("-", "−"),
            row=name,
        ),
    ]


def _found_claim(text: str, cosines: FloatArray, where: str, row: str) -> Claim:
    return claim_over_repeats(
        text,
        cosines - _FOUND,
        f"smallest principal cosine − {_FOUND}",
        paper=f"{where}: it “is able to correctly find” the subspace",
        ours=f"smallest principal cosine {cosines.mean():.4f} on average",
        row=row,
    )


def _shrinks(passes: list[Pass]) -> Claim:
    sizes, left = np.array([(p.size[-1], p.left) for p in passes]).T
    return claim_unless_diverged(
        "With the published constants, U ends no larger than the penalty alone would leave it.",
        1.05 * left - sizes,  # the start is Gaussian as U is, and as large within 5 %
        "1.05 (1 − ηλ)ᴺ − ‖Uᵢ‖/‖U‖ at the end",
        paper="not reported",
        ours=f"‖Uᵢ‖/‖U‖ {sizes.mean():.3f} at the end, (1 − ηλ)ᴺ is {left.mean():.3f}",
        by="us",
        row=PRINTED,
    )


# Figure 3 of the paper: predicted against true weights.

_HIGH = 0.9
_SHOWN = 2
_WEIGHTS_TEXT = """\
The coefficients UV of a task, unlike U itself, are determined by the data. After one pass over \
data of one layer they are compared with the true ones, task by task. Features and outcomes are \
as drawn: rows are not scaled to length 1 as they are for Figure 2. The published constants are \
λ = {alpha:g} and η = μ = {step:g}, with a Gaussian start; the best ones have the least loss on a \
fifth of the rows that is held out. Ours standardises by itself."""


class Weights(NamedTuple):
    """Coefficients of the first tasks, correlations of all, smallest principal cosine of U."""

    row: str
    true: FloatArray
    predicted: FloatArray
    correlations: FloatArray
    cosine: float
    constants: str


def fig_weights(scale: Scale, context: Context) -> Section:
    """Two tasks' weights, and the correlation of all tasks with the truth."""
    jobs = [(row, seed) for row in ROWS for seed in context.seeds(scale.repeats)]
    results = over_repeats(partial(_learn, scale), jobs, context, "passes")
    by_row = {row: [found for found in results if found.row == row] for row in ROWS}
    settings = one_pass_settings(scale, context) | {"rows of X": "as drawn"}
    published = PUBLISHED["fig-weights"]
    return Section(
        "fig-weights",
        "Figure 3: weights of the tasks",
        _WEIGHTS_TEXT.format(alpha=published.alpha, step=published.step),
        tables=with_settings(settings, _weights_table(by_row)),
        figures=with_settings(settings, *(_weights_figure(*item) for item in by_row.items())),
        claims=tuple(claim for item in by_row.items() for claim in _weights_claims(*item)),
    )


def _learn(scale: Scale, job: tuple[str, int]) -> Weights:
    row, seed = job
    X, Y, truth = draw(scale, seed, length_one=False)
    model = one_pass(row, "fig-weights", scale, X, Y, seed)
    constants = constants_of(model)
    try:
        model.fit(X, Y)
    except DivergenceError:
        zeros = np.zeros_like(truth.coef)
        return Weights(
            row, truth.coef[:_SHOWN], zeros[:_SHOWN], zeros[:, 0], 0.0, f"{constants}: diverged"
        )
    pairs = zip(truth.coef, model.coef_, strict=True)
    return Weights(
        row,
        truth.coef[:_SHOWN],
        model.coef_[:_SHOWN],
        np.array([np.corrcoef(true, learned)[0, 1] for true, learned in pairs]),
        float(np.cos(np.radians(_largest_angle(truth.U, model.U_)))),
        constants,
    )


def _weights_figure(row: str, results: list[Weights]) -> FigureOf:
    first = results[0]
    data = {
        "true": first.true,
        "predicted": first.predicted,
        "correlations": np.concatenate([result.correlations for result in results]),
        "threshold": _HIGH,
    }
    caption = (
        f"Figure 3 again, {row}. (a), (b): true and predicted weights of two tasks in the first "
        "data set; (c): correlations of all tasks in all data sets."
    )
    return FigureOf(caption, "weights", data)


def _weights_table(by_row: dict[str, list[Weights]]) -> TableOf:
    import pandas as pd

    rows = []
    for row, results in by_row.items():
        correlations = np.array([result.correlations for result in results])
        rows.append(
            {
                "one pass": row,
                "constants": most_often([result.constants for result in results]),
                "median correlation": mean_and_sd(np.median(correlations, axis=1)),
                "smallest correlation": mean_and_sd(correlations.min(axis=1)),
                f"share of tasks above {_HIGH}": mean_and_sd((correlations > _HIGH).mean(axis=1)),
                "smallest principal cosine": mean_and_sd([result.cosine for result in results]),
                "paper": "“most … above 0.9” (Fig. 3c)",
            }
        )
    caption = "Correlation of a task's predicted and true weights: mean (sd) over data sets"
    return TableOf(caption, pd.DataFrame(rows))


def _weights_claims(row: str, results: list[Weights]) -> list[Claim]:
    shares = np.array([(result.correlations > _HIGH).mean() for result in results])
    cosines = np.array([result.cosine for result in results])
    return [
        claim_over_repeats(
            f"Most tasks' weights correlate above {_HIGH} with the truth.",
            shares - 0.5,
            f"share of tasks above {_HIGH} − ½",
            paper="Fig. 3c: “most predicted weights having correlations … above 0.9”",
            ours=f"{shares.mean():.0%} of the tasks on average",
            row=row,
        ),
        _found_claim("One pass finds the subspace, rows as drawn.", cosines, "Section 4.1", row),
    ]
