"""Figure 2 of the paper: how one pass finds the subspace."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.experiments._theory import follow
from deeptobit.experiments.reproduce._claims import claim_over_repeats
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._recipes import OURS, default_layer, paper_layer, paper_step
from deeptobit.experiments.reproduce._repeats import mean_and_sd, over_repeats
from deeptobit.experiments.reproduce._scales import Scale
from deeptobit.experiments.reproduce._section import Claim, FigureOf, Section, TableOf
from deeptobit.metrics import principal_angles, subspace_difference

_SNAPSHOTS = 50
_STEP_FACTORS = (1.0, 1.0 / 3.0, 3.0)
_FOUND = 0.99  # smallest principal cosine of a subspace that was found
_TEXT = """\
One pass of Algorithm 1 over data of one layer, by deeptobit's defaults and by the paper's recipe \
(random start, constant step, last iterate, no intercept, known σ). The paper does not state its \
step, so three are shown.

Data determine U only up to U → UA, V → A⁻¹V. The paper's ‖U − Uᵢ‖/‖U‖ therefore depends on \
coordinates that no data can know, and does not go to 0 when the subspace is found. What can be \
known are the principal angles between the column spaces, shown beside it."""


class Job(NamedTuple):
    """One recipe on one data set."""

    recipe: str
    step: float | None
    seed: int


class Pass(NamedTuple):
    """What one pass looked like at every snapshot; changes and losses are between two."""

    recipe: str
    seed: int
    rows: FloatArray
    difference: FloatArray
    angle: FloatArray
    objective: FloatArray
    change: FloatArray
    slope: float


def fig_subspace(scale: Scale, context: Context) -> Section:
    """Subspace difference, objective and iteration-wise difference over one pass."""
    recipes: dict[str, float | None] = {OURS: None}
    for factor in _STEP_FACTORS:
        step = factor * paper_step(scale)
        recipes[f"paper's recipe, step {step:.2g}"] = step
    seeds = context.seeds(scale.repeats)
    jobs = [Job(name, step, seed) for seed in seeds for name, step in recipes.items()]
    passes = over_repeats(partial(_follow, scale), jobs, context, "passes")
    by_recipe = {name: [p for p in passes if p.recipe == name] for name in recipes}
    return Section(
        "fig-subspace",
        "Figure 2: one pass finds the subspace",
        _TEXT,
        tables=(_table(by_recipe),),
        figures=(_figure(by_recipe),),
        claims=_claims(by_recipe),
    )


def _follow(scale: Scale, job: Job) -> Pass:
    X, Y, truth = make_subspace(**scale.sizes, random_state=job.seed)
    ours = job.step is None
    model = default_layer(scale) if ours else paper_layer(scale, job.step or 0.0, job.seed)
    with np.errstate(over="ignore", invalid="ignore"):
        course = follow(model, X, Y, every=len(X) // _SNAPSHOTS)
    settling = course.settling()
    return Pass(
        recipe=job.recipe,
        seed=job.seed,
        rows=course.n_seen.astype(np.float64),
        difference=np.array([subspace_difference(truth.U, U) for U in course.U]),
        angle=np.array([_largest_angle(truth.U, U) for U in course.U]),
        objective=course.loss_before / Y.shape[1],
        change=settling.change / np.linalg.norm(truth.U),
        slope=settling.slope,
    )


def _largest_angle(truth: FloatArray, U: FloatArray) -> float:
    """In degrees; a right one while nothing is learned."""
    return float(np.degrees(principal_angles(truth, U).max())) if U.any() else 90.0


def _figure(by_recipe: dict[str, list[Pass]]) -> FigureOf:
    panels = [
        ("(a) subspace difference", "‖U − Uᵢ‖ / ‖U‖", "difference"),
        ("(a′) largest principal angle", "degrees", "angle"),
        ("(b) objective", "loss per entry of the next rows", "objective"),
        ("(c) iteration-wise difference", "‖Uᵢ − Uᵢ₋₁‖ / ‖U‖", "change"),
    ]
    drawn = [
        {
            "title": title,
            "xlabel": "rows seen",
            "ylabel": label,
            "log_x": False,
            "log_y": True,
            "lines": [_line(name, passes, field) for name, passes in by_recipe.items()],
        }
        for title, label, field in panels
    ]
    caption = (
        "Figure 2 again. Lines are medians over data sets, bands their range. Panel (a′) is not "
        "in the paper: it is 0 if and only if the subspace is found."
    )
    return FigureOf(caption, "lines", {"panels": drawn})


def _line(name: str, passes: list[Pass], field: str) -> dict[str, Any]:
    values = np.array([getattr(p, field) for p in passes])
    return {
        "label": name,
        "x": passes[0].rows[-values.shape[1] :],
        "y": np.median(values, axis=0),
        "low": values.min(axis=0),
        "high": values.max(axis=0),
    }


def _table(by_recipe: dict[str, list[Pass]]) -> TableOf:
    import pandas as pd

    rows = [
        {
            "recipe": name,
            "‖U − Uᵢ‖/‖U‖ at the end": mean_and_sd([p.difference[-1] for p in passes], 3),
            "smallest principal cosine": mean_and_sd(_cosines(passes)),
            "largest angle (°)": mean_and_sd([p.angle[-1] for p in passes], 2),
            "loss per entry, first rows": mean_and_sd([p.objective[0] for p in passes], 3),
            "loss per entry, last rows": mean_and_sd([p.objective[-1] for p in passes], 3),
            "slope of (c), log against log": mean_and_sd([p.slope for p in passes], 2),
        }
        for name, passes in by_recipe.items()
    ]
    data = [
        {
            "recipe": p.recipe,
            "seed": p.seed,
            "difference": p.difference[-1],
            "largest_angle": p.angle[-1],
            "loss_first": p.objective[0],
            "loss_last": p.objective[-1],
            "slope": p.slope,
        }
        for passes in by_recipe.values()
        for p in passes
    ]
    caption = "After one pass: mean (standard deviation) over data sets"
    return TableOf(caption, pd.DataFrame(rows), pd.DataFrame(data))


def _cosines(passes: list[Pass]) -> FloatArray:
    return np.cos(np.radians([p.angle[-1] for p in passes]))


def _claims(by_recipe: dict[str, list[Pass]]) -> tuple[Claim, ...]:
    chosen = list(by_recipe)[:2]
    return tuple(claim for name in chosen for claim in _claims_of(name, by_recipe[name]))


def _claims_of(name: str, passes: list[Pass]) -> list[Claim]:
    cosines = _cosines(passes)
    differences = np.array([p.difference[-1] for p in passes])
    falls = np.array([p.objective[0] - p.objective[-1] for p in passes])
    slopes = np.array([p.slope for p in passes])
    return [
        claim_over_repeats(
            f"One pass finds the subspace ({name}).",
            cosines - _FOUND,
            f"smallest principal cosine − {_FOUND}",
            paper="Fig. 2a: it “is able to correctly find” the subspace",
            ours=f"smallest principal cosine {cosines.mean():.4f} on average",
        ),
        claim_over_repeats(
            f"‖U − Uᵢ‖/‖U‖ goes below 1, the value of Uᵢ = 0 ({name}).",
            1.0 - differences,
            "1 − difference at the end",
            paper="Fig. 2a: it “smoothly converges”",
            ours=f"{differences.mean():.2f} on average; two independent matrices have 1.41",
        ),
        claim_over_repeats(
            f"The objective falls over the pass ({name}).",
            falls,
            "loss of the first − loss of the last rows",
            paper="Fig. 2b",
            ours=f"falls by {falls.mean():.2f} per entry on average",
        ),
        claim_over_repeats(
            f"Successive subspaces approach like 1/i or faster ({name}).",
            -1.0 - slopes,
            "−1 − slope of log difference on log i",
            paper="Fig. 2c: “complies with the o(1/t) result”",
            ours=f"like i^{slopes.mean():.2f} on average".replace("-", "−"),
        ),
    ]
