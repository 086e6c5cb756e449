"""Figure 2 of the paper: how one pass finds the subspace."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray
from deeptobit.datasets import load_adni, make_clinical_cohort, make_subspace
from deeptobit.estimators import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.metrics import principal_angles, subspace_difference
from paper.section import Claim, Context, FigureOf, Scale, Section, TableOf
from paper.synthetic import OURS, default_layer, paper_layer, paper_step
from paper.theory import follow
from paper.verdicts import claim_over_repeats, mean_and_sd, over_repeats

if TYPE_CHECKING:
    import pandas as pd


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


# Figure 3 of the paper: predicted against true weights.

_HIGH = 0.9
_SHOWN = 2
_PAPER = "the paper's recipe"
_FIG_WEIGHTS_TEXT = """\
The coefficients UV of a task, unlike U itself, are determined by the data. After one pass over \
data of one layer they are compared with the true ones, task by task."""


class FigWeightsJob(NamedTuple):
    """One recipe on one data set."""

    recipe: str
    seed: int


class Weights(NamedTuple):
    """Coefficients of the first tasks, and correlations of all."""

    true: FloatArray
    predicted: FloatArray
    correlations: FloatArray


def fig_weights(scale: Scale, context: Context) -> Section:
    """Two tasks' weights, and the correlation of all tasks with the truth."""
    seeds = context.seeds(scale.repeats)
    jobs = [FigWeightsJob(recipe, seed) for recipe in (OURS, _PAPER) for seed in seeds]
    results = over_repeats(partial(_learn, scale), jobs, context, "passes")
    ours, papers = results[: len(seeds)], results[len(seeds) :]
    return Section(
        "fig-weights",
        "Figure 3: weights of the tasks",
        _FIG_WEIGHTS_TEXT,
        tables=(_fig_weights_table({OURS: ours, _PAPER: papers}),),
        figures=(
            _fig_weights_figure(f"Figure 3 again, by {OURS}.", ours),
            _fig_weights_figure(f"The same by {_PAPER}.", papers),
        ),
        claims=(_claim(OURS, ours), _claim(_PAPER, papers)),
    )


def _learn(scale: Scale, job: FigWeightsJob) -> Weights:
    X, Y, truth = make_subspace(**scale.sizes, random_state=job.seed)
    model = default_layer(scale)
    if job.recipe == _PAPER:
        model = paper_layer(scale, paper_step(scale), job.seed)
    model.fit(X, Y)
    pairs = zip(truth.coef, model.coef_, strict=True)
    correlations = np.array([np.corrcoef(true, learned)[0, 1] for true, learned in pairs])
    return Weights(truth.coef[:_SHOWN], model.coef_[:_SHOWN], correlations)


def _fig_weights_figure(caption: str, results: list[Weights]) -> FigureOf:
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


def _fig_weights_table(results: dict[str, list[Weights]]) -> TableOf:
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


def _claim(recipe: str, results: list[Weights]) -> Claim:
    shares = np.array([(result.correlations > _HIGH).mean() for result in results])
    return claim_over_repeats(
        f"Most tasks' weights correlate above {_HIGH} with the truth ({recipe}).",
        shares - 0.5,
        f"share of tasks above {_HIGH} − ½",
        paper="Fig. 3c: “most predicted weights having correlations … above 0.9”",
        ours=f"{shares.mean():.0%} of the tasks on average",
    )


# The cohort whose features are regions of the brain.


class BrainCohort(NamedTuple):
    """Features, scores and bounds, and what to call them."""

    name: str
    X: pd.DataFrame
    Y: pd.DataFrame
    lower: dict[str, float]
    upper: dict[str, float]


def brain_cohort(context: Context) -> BrainCohort:
    """ADNI where its folder is named, a simulated cohort of the same shape elsewhere."""
    if context.path is None:
        cohort = make_clinical_cohort(random_state=context.seed)
        name = "a simulated clinical cohort"
        return BrainCohort(name, cohort.X, cohort.Y, cohort.lower, cohort.upper)
    adni = load_adni(context.path)
    return BrainCohort("ADNI", adni.X, adni.Y, adni.lower, adni.upper)


# Figure 1 of the paper: the architecture, drawn from a fitted model.

_N_LAYERS = 3
_FIG_NETWORK_TEXT = """\
The network of three layers as it was fitted to {cohort}: every layer sketches its inputs into R \
coordinates (V), turns them into scores of all outcomes (U), and passes on what the bounds leave \
of them beside the features (skip connection).{depth}"""


def fig_network(scale: Scale, context: Context) -> Section:
    """Sizes and ranks of a fitted network."""
    import pandas as pd

    cohort = brain_cohort(context)
    model = SubspaceNetworkRegressor(
        scale.real_rank, _N_LAYERS, lower=cohort.lower, upper=cohort.upper
    ).fit(cohort.X, cohort.Y)
    context.progress(1, 1, "network")
    n_tasks = len(model.layers_[0].U)
    layers: list[dict[str, Any]] = [
        {
            "inputs": layer.V.shape[1],
            "rank": layer.U.shape[1],
            "outputs": len(layer.U),
            "parameters": layer.n_parameters,
        }
        for layer in model.layers_
    ]
    table = pd.DataFrame(
        {
            "layer": number,
            "inputs": _inputs(layer["inputs"], n_tasks, number),
            "V": f"{layer['rank']} × {layer['inputs']}",
            "U": f"{layer['outputs']} × {layer['rank']}",
            "free parameters of UV": layer["parameters"],
            "of a full matrix": layer["inputs"] * layer["outputs"],
        }
        for number, layer in enumerate(layers, start=1)
    )
    pays = int(model.history_["paying_depth"])
    depth = ""
    if pays < _N_LAYERS:
        depth = f" Here depth pays up to layer {pays} (Akaike's criterion); layers above repeat it."
    data = {"n_features": cohort.X.shape[1], "n_tasks": n_tasks, "layers": layers}
    return Section(
        "fig-network",
        "Figure 1: the Subspace Network",
        _FIG_NETWORK_TEXT.format(cohort=cohort.name, depth=depth),
        tables=(TableOf("Layers of the fitted network", table),),
        figures=(FigureOf("Figure 1 again, from the fitted model.", "network", data),),
    )


def _inputs(n_inputs: int, n_tasks: int, number: int) -> str:
    if number == 1:
        return f"{n_inputs} features"
    return f"{n_tasks} outputs below + {n_inputs - n_tasks} features"


# Figure 4 of the paper: the subspaces of the first layer on the brain.

IndexArray = NDArray[np.intp]

_MAPS = 5
_LISTED = 4
_FIG_BRAIN_TEXT = """\
The five strongest subspaces of the first layer of a network fitted to {cohort}, each scaled to \
[−1, 1] as in the paper. V is determined only up to rotation; the maps are its canonical form, the \
singular value decomposition of UV in standard deviations of the features. Maps of that form are \
orthogonal whatever the data, so that they differ is no finding.

What data can contradict is that the subspaces are found again in other people: the cohort is \
split into halves, the first layer is fitted to each, and the spans of the two sets of maps are \
compared, once as they are and once with the outcomes of one half in random order."""


class Halves(NamedTuple):
    """Mean principal cosine of the maps of two halves of a cohort."""

    found: float
    shuffled: float


def fig_brain(scale: Scale, context: Context) -> Section:
    """Maps, and whether other people have the same."""
    import pandas as pd

    cohort = brain_cohort(context)
    model = SubspaceNetworkRegressor(scale.real_rank, lower=cohort.lower, upper=cohort.upper)
    subspaces = model.fit(cohort.X, cohort.Y).subspaces(0, cohort.X)[:_MAPS]
    work = partial(_compare_halves, cohort, scale.real_rank)
    halves = over_repeats(work, context.seeds(scale.repeats), context, "pairs of halves")
    table = pd.DataFrame(
        {
            "subspace": subspace.number,
            "share of all effects": f"{subspace.share:.0%}",
            "largest regions": _largest(subspace.features, subspace.feature_loadings),
            "outcomes moved most": _largest(subspace.targets, subspace.target_loadings),
        }
        for subspace in subspaces
    )
    data = {
        "features": list(subspaces[0].features),
        "loadings": np.column_stack([subspace.feature_loadings for subspace in subspaces]),
        "names": [f"subspace {subspace.number} ({subspace.share:.0%})" for subspace in subspaces],
        "tasks": [_largest(s.targets, s.target_loadings, 3) for s in subspaces],
    }
    caption = f"Figure 4 again, on {cohort.name}."
    found = np.array([pair.found for pair in halves])
    shuffled = np.array([pair.shuffled for pair in halves])
    claim = claim_over_repeats(
        "The subspaces are found again in other people.",
        found - shuffled,
        "mean principal cosine of two halves − the same with shuffled outcomes",
        paper="Fig. 4: “important predictive information”; not tested there",
        ours=f"{mean_and_sd(found, 2)} against {mean_and_sd(shuffled, 2)}",
        test_to_train=1.0,
    )
    return Section(
        "fig-brain",
        "Figure 4: subspaces on the brain",
        _FIG_BRAIN_TEXT.format(cohort=cohort.name),
        tables=(TableOf("The subspaces in words", table),),
        figures=(FigureOf(caption, "brain", data),),
        claims=(claim,),
    )


def _compare_halves(cohort: BrainCohort, rank: int, seed: int) -> Halves:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(cohort.X))
    first, second = np.array_split(order, 2)
    maps = _maps(cohort, rank, first, first)
    again = _maps(cohort, rank, second, second)
    none = _maps(cohort, rank, second, rng.permutation(second))
    return Halves(_mean_cosine(maps, again), _mean_cosine(maps, none))


def _maps(cohort: BrainCohort, rank: int, rows: IndexArray, outcomes: IndexArray) -> FloatArray:
    """Loadings of the features, (D, R), of the first layer."""
    X, Y = cohort.X.iloc[rows], cohort.Y.iloc[outcomes].set_axis(cohort.X.index[rows])
    model = SubspaceTobitRegressor(rank, lower=cohort.lower, upper=cohort.upper)
    found = model.fit(X, Y).subspaces(X=X)
    return np.column_stack([subspace.feature_loadings for subspace in found])


def _mean_cosine(first: FloatArray, second: FloatArray) -> float:
    return float(np.cos(principal_angles(first, second)).mean())


def _largest(names: tuple[str, ...], loadings: FloatArray, most: int = _LISTED) -> str:
    order = np.argsort(-np.abs(loadings), kind="stable")[:most]
    return ", ".join(f"{'+' if loadings[k] > 0 else '−'}\u00a0{names[k]}" for k in order)
