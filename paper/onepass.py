"""Figures 2 and 3 of the paper: the subspace and the weights that one pass finds."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from deeptobit import SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.metrics import principal_angles, subspace_difference
from paper.arrays import FloatArray
from paper.recipes import OURS, default_layer, paper_layer, paper_step
from paper.section import Claim, Context, FigureOf, Scale, Section, TableOf, panel, with_settings
from paper.theory import follow, one_pass_settings
from paper.verdicts import claim_over_repeats, mean_and_sd, over_repeats

_SNAPSHOTS = 50
_STEP_FACTORS = (1.0, 1.0 / 3.0, 3.0)
_FOUND = 0.99  # smallest principal cosine of a subspace that was found
_SUBSPACE_TEXT = """\
One pass of Algorithm 1 over data of one layer, by deeptobit's defaults and by the paper's recipe \
(random start, constant step, last iterate, no intercept, known σ). The paper does not state its \
step, so three are shown.

Data determine U only up to U → UA, V → A⁻¹V. The paper's ‖U − Uᵢ‖/‖U‖ therefore depends on \
coordinates that no data can know, and does not go to 0 when the subspace is found. What can be \
known are the principal angles between the column spaces, shown beside it."""


class Job(NamedTuple):
    """One recipe on one data set; ``step`` is that of the paper's recipe, None for our defaults."""

    recipe: str
    step: float | None
    seed: int

    def model(self, scale: Scale) -> SubspaceTobitRegressor:
        """The unfitted layer."""
        if self.step is None:
            return default_layer(scale)
        return paper_layer(scale, self.step, self.seed)


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
    settings = one_pass_settings(scale, context)
    return Section(
        "fig-subspace",
        "Figure 2: one pass finds the subspace",
        _SUBSPACE_TEXT,
        tables=with_settings(settings, _subspace_table(by_recipe)),
        figures=with_settings(settings, _subspace_figure(by_recipe)),
        claims=_subspace_claims(by_recipe),
    )


def _follow(scale: Scale, job: Job) -> Pass:
    X, Y, truth = make_subspace(**scale.sizes, random_state=job.seed)
    with np.errstate(over="ignore", invalid="ignore"):
        snapshots = follow(job.model(scale), X, Y, every=len(X) // _SNAPSHOTS)
    settling = snapshots.settling()
    return Pass(
        recipe=job.recipe,
        seed=job.seed,
        rows=snapshots.n_seen.astype(np.float64),
        difference=np.array([subspace_difference(truth.U, U) for U in snapshots.U]),
        angle=np.array([_largest_angle(truth.U, U) for U in snapshots.U]),
        objective=snapshots.loss_before / Y.shape[1],
        change=settling.change / np.linalg.norm(truth.U),
        slope=settling.slope,
    )


def _largest_angle(truth: FloatArray, U: FloatArray) -> float:
    """In degrees; a right one while nothing is learned."""
    return float(np.degrees(principal_angles(truth, U).max())) if U.any() else 90.0


def _subspace_figure(by_recipe: dict[str, list[Pass]]) -> FigureOf:
    panels = [
        ("(a) subspace difference", "‖U − Uᵢ‖ / ‖U‖", "difference"),
        ("(a′) largest principal angle", "degrees", "angle"),
        ("(b) objective", "loss per entry of the next rows", "objective"),
        ("(c) iteration-wise difference", "‖Uᵢ − Uᵢ₋₁‖ / ‖U‖", "change"),
    ]
    rows = next(iter(by_recipe.values()))[0].rows
    drawn = [
        panel(
            title,
            label,
            rows,
            {name: [getattr(p, field) for p in passes] for name, passes in by_recipe.items()},
            log_x=False,
        )
        for title, label, field in panels
    ]
    caption = (
        "Figure 2 again. Lines are medians over data sets, bands their range. Panel (a′) is not "
        "in the paper: it is 0 if and only if the subspace is found."
    )
    return FigureOf(caption, "lines", {"panels": drawn})


def _subspace_table(by_recipe: dict[str, list[Pass]]) -> TableOf:
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


def _subspace_claims(by_recipe: dict[str, list[Pass]]) -> tuple[Claim, ...]:
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


# Figure 3 of the paper: predicted against true weights.

_HIGH = 0.9
_SHOWN = 2
_PAPER = "the paper's recipe"
_WEIGHTS_TEXT = """\
The coefficients UV of a task, unlike U itself, are determined by the data. After one pass over \
data of one layer they are compared with the true ones, task by task."""


class Weights(NamedTuple):
    """Coefficients of the first tasks, and correlations of all."""

    true: FloatArray
    predicted: FloatArray
    correlations: FloatArray


def fig_weights(scale: Scale, context: Context) -> Section:
    """Two tasks' weights, and the correlation of all tasks with the truth."""
    seeds = context.seeds(scale.repeats)
    steps = {OURS: None, _PAPER: paper_step(scale)}
    jobs = [Job(recipe, step, seed) for recipe, step in steps.items() for seed in seeds]
    results = over_repeats(partial(_learn, scale), jobs, context, "passes")
    ours, papers = results[: len(seeds)], results[len(seeds) :]
    settings = one_pass_settings(scale, context)
    return Section(
        "fig-weights",
        "Figure 3: weights of the tasks",
        _WEIGHTS_TEXT,
        tables=with_settings(settings, _weights_table({OURS: ours, _PAPER: papers})),
        figures=with_settings(
            settings,
            _weights_figure(f"Figure 3 again, by {OURS}.", ours),
            _weights_figure(f"The same by {_PAPER}.", papers),
        ),
        claims=(_weights_claim(OURS, ours), _weights_claim(_PAPER, papers)),
    )


def _learn(scale: Scale, job: Job) -> Weights:
    X, Y, truth = make_subspace(**scale.sizes, random_state=job.seed)
    model = job.model(scale).fit(X, Y)
    pairs = zip(truth.coef, model.coef_, strict=True)
    correlations = np.array([np.corrcoef(true, learned)[0, 1] for true, learned in pairs])
    return Weights(truth.coef[:_SHOWN], model.coef_[:_SHOWN], correlations)


def _weights_figure(caption: str, results: list[Weights]) -> FigureOf:
    first = results[0]
    data = {
        "true": first.true,
        "predicted": first.predicted,
        "correlations": np.concatenate([result.correlations for result in results]),
        "threshold": _HIGH,
    }
    rest = (
        " (a), (b): true and predicted weights of two tasks in the first data set; (c): "
        "correlations of all tasks in all data sets."
    )
    return FigureOf(caption + rest, "weights", data)


def _weights_table(results: dict[str, list[Weights]]) -> TableOf:
    import pandas as pd

    rows = []
    for recipe, found in results.items():
        correlations = np.array([result.correlations for result in found])
        rows.append(
            {
                "recipe": recipe,
                "median correlation": mean_and_sd(np.median(correlations, axis=1)),
                "smallest correlation": mean_and_sd(correlations.min(axis=1)),
                f"share of tasks above {_HIGH}": mean_and_sd((correlations > _HIGH).mean(axis=1)),
                "paper": "“most … above 0.9” (Fig. 3c)",
            }
        )
    caption = "Correlation of a task's predicted and true weights: mean (sd) over data sets"
    return TableOf(caption, pd.DataFrame(rows))


def _weights_claim(recipe: str, results: list[Weights]) -> Claim:
    shares = np.array([(result.correlations > _HIGH).mean() for result in results])
    return claim_over_repeats(
        f"Most tasks' weights correlate above {_HIGH} with the truth ({recipe}).",
        shares - 0.5,
        f"share of tasks above {_HIGH} − ½",
        paper="Fig. 3c: “most predicted weights having correlations … above 0.9”",
        ours=f"{shares.mean():.0%} of the tasks on average",
    )
