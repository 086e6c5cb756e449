"""Table 1 of the paper: the subspaces of three layers, and what can be known of them."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deeptobit import CensoredTargets, SubspaceNetworkRegressor
from deeptobit.datasets import make_subspace
from deeptobit.exceptions import CensoringWarning
from deeptobit.metrics import mutual_coherence, principal_angles, subspace_difference
from paper.arrays import FloatArray
from paper.baselines import MLPBaseline
from paper.recipes import default_layer
from paper.section import Claim, Context, Scale, Section, TableOf, with_settings
from paper.verdicts import claim_over_repeats, mean_and_sd, over_repeats

if TYPE_CHECKING:
    import pandas as pd


# How close a learned subspace is to the true one, and how close a random one is.

_DRAWS = 200


class Recovery(NamedTuple):
    """The paper's three measures, and the ones that are invariant under U → UA.

    Parameters
    ----------
    difference : float
        ‖U − Û‖/‖U‖ with Û scaled to the norm of U.
    maximum, mean : float
        Mutual coherence of the columns.
    smallest_cosine, mean_cosine : float
        Of the principal angles.
    """

    difference: float
    maximum: float
    mean: float
    smallest_cosine: float
    mean_cosine: float


def compare(U: FloatArray, learned: FloatArray) -> Recovery:
    """Measure a learned subspace.

    Examples
    --------
    >>> U = np.eye(4)[:, :2]
    >>> [round(float(value), 2) for value in compare(U, 5.0 * U[:, ::-1])]
    [1.41, 1.0, 0.5, 1.0, 1.0]
    """
    scaled = learned * (np.linalg.norm(U) / np.linalg.norm(learned))
    coherence = mutual_coherence(U, learned)
    cosines = np.cos(principal_angles(U, learned))
    return Recovery(
        subspace_difference(U, scaled),
        coherence.maximum,
        coherence.mean,
        float(cosines.min()),
        float(cosines.mean()),
    )


def chance(n_rows: int, n_columns: int, seed: int) -> Recovery:
    """Means over pairs of independent Gaussian matrices.

    Examples
    --------
    >>> [round(float(value), 2) for value in chance(100, 10, seed=0)]
    [1.41, 0.27, 0.08, 0.02, 0.27]
    """
    rng = np.random.default_rng(seed)
    shape = n_rows, n_columns
    pairs = [(rng.standard_normal(shape), rng.standard_normal(shape)) for _ in range(_DRAWS)]
    return Recovery(*np.mean([compare(*pair) for pair in pairs], axis=0).tolist())


# What the paper says of its Table 1, tested.

_FOUND = 0.99
_MEASURES = {
    "mean": ("mean mutual coherence", 1.0, "0.28 against 0.27 and 0.27, mean of the layers"),
    "maximum": ("maximum mutual coherence", 1.0, "0.81 against 0.75 and 0.78, mean of the layers"),
    "difference": ("subspace difference", -1.0, "0.0315 against 0.0317 and 0.0317"),
    "mean_cosine": ("mean principal cosine", 1.0, "not reported"),
}


def recovery_claims(
    one_layer: FloatArray, deep: pd.DataFrame, level: Recovery
) -> tuple[Claim, ...]:
    """Recovery where it is possible, of each layer, and against the other networks."""
    first = claim_over_repeats(
        "The first layer finds its subspace, on data of one layer.",
        one_layer - _FOUND,
        f"smallest principal cosine − {_FOUND}",
        paper="abstract: the subspace “can be recovered using only one pass”",
        ours=f"smallest principal cosine {one_layer.mean():.4f} on average",
    )
    layers = [_of_layer(deep, layer, level) for layer in sorted(deep["layer"].unique())]
    against = [_against(deep, measure) for measure in _MEASURES]
    return first, *layers, *against


def _of_layer(deep: pd.DataFrame, layer: int, level: Recovery) -> Claim:
    here = deep[(deep["layer"] == layer) & (deep["method"] == "SN")]
    cosines = here["mean_cosine"].to_numpy()
    return claim_over_repeats(
        f"SN recovers layer {layer} of three better than chance.",
        cosines - level.mean_cosine,
        "mean principal cosine − its chance level",
        paper="Table 1: “significantly better aligned with the groundtruth”",
        ours=f"mean principal cosine {cosines.mean():.3f}, chance {level.mean_cosine:.3f}; "
        f"smallest {here['smallest_cosine'].mean():.3f}",
    )


def _against(deep: pd.DataFrame, measure: str) -> Claim:
    """SN against the better of the two others, averaged over layers, data set by data set."""
    name, sign, paper = _MEASURES[measure]
    table = deep.groupby(["seed", "method"])[measure].mean().unstack("method")
    better = (sign * table[["f-MLP", "rf-MLP"]]).max(axis=1)
    values = ", ".join(f"{method} {table[method].mean():.3f}" for method in table.columns)
    return claim_over_repeats(
        f"SN is ahead of f-MLP and rf-MLP in {name}.",
        (sign * table["SN"] - better).to_numpy(),
        "lead of SN over the better of the two, mean of the layers",
        paper=f"Table 1: {paper}",
        ours=values,
    )


N_LAYERS = 3
METHODS = ("SN", "f-MLP", "rf-MLP")
# Table 1 of the paper by layer and method: subspace difference, maximum and mean coherence.
PAPER = {
    (1, "SN"): (0.0313, 0.7608, 0.2900),
    (1, "f-MLP"): (0.0315, 0.7727, 0.2725),
    (1, "rf-MLP"): (0.0317, 0.7895, 0.2735),
    (2, "SN"): (0.0321, 0.8283, 0.2882),
    (2, "f-MLP"): (0.0321, 0.7603, 0.2820),
    (2, "rf-MLP"): (0.0321, 0.7654, 0.2829),
    (3, "SN"): (0.0312, 0.8493, 0.2586),
    (3, "f-MLP"): (0.0315, 0.7233, 0.2506),
    (3, "rf-MLP"): (0.0313, 0.7890, 0.2485),
}
_PAPER_TASKS, _PAPER_RANK = 100, 10
_TEXT = """Data of three censored layers, and networks of three layers that learn from them: SN \
layer by layer in one pass each, the MLP by back-propagation, factorised (f-MLP) and trained \
again (rf-MLP).

Where recovery is possible it succeeds: on data of one layer the smallest principal cosine of \
SN is {one_layer}. On data of three layers U₁ and U₂ cannot be recovered. SN learns every layer \
from the outcomes, whose scores lie in the span of U₃, so that its first layer estimates U₃ and \
not U₁ (mean principal cosine {last:.2f} with U₃, {first:.2f} with U₁; chance {chance:.2f}); \
and hidden units of an MLP are in no order, so that the rows of its U₁ belong to no task.

The paper's coherences cannot rank methods. Two bases of the same 10-dimensional space whose \
directions nothing ties to one another have a maximum of {same.maximum:.2f} and a mean of \
{same.mean:.2f}; its Table 1 has 0.72–0.85 and 0.25–0.29 for every method and layer. They tell \
equal spans from independent ones ({apart.maximum:.2f} and {apart.mean:.2f} at T = 100), and no \
more. Its subspace differences, 0.0312–0.0321, are about 1/√(T·R) = 0.0316, which is \
‖U − Û‖/‖U‖² for Û = 0; they have no meaning that we could find."""


class Job(NamedTuple):
    """One method on one data set of so many layers."""

    method: str
    n_layers: int
    seed: int


def table_recovery(scale: Scale, context: Context) -> Section:
    """Every measure by layer and method, with its chance level."""
    import pandas as pd

    seeds = context.seeds(scale.repeats)
    jobs = [Job("SN", 1, seed) for seed in seeds]
    jobs += [Job(method, N_LAYERS, seed) for seed in seeds for method in METHODS]
    rows = over_repeats(partial(_learn, scale), jobs, context, "networks")
    data = pd.DataFrame([row for part in rows for row in part])
    level = chance(scale.n_tasks, scale.rank, context.seed)
    same = chance(scale.rank, scale.rank, context.seed)  # what is left of U within its own span
    one_layer = data.loc[data["n_layers"] == 1, "smallest_cosine"]
    deep = data[data["n_layers"] > 1]
    first = deep[(deep["layer"] == 1) & (deep["method"] == "SN")]
    text = _TEXT.format(
        one_layer=mean_and_sd(one_layer),
        last=first["last_cosine"].mean(),
        first=first["mean_cosine"].mean(),
        chance=level.mean_cosine,
        same=chance(_PAPER_RANK, _PAPER_RANK, context.seed),
        apart=chance(_PAPER_TASKS, _PAPER_RANK, context.seed),
    )
    settings = scale.symbols | {"data sets": scale.repeats, "seed": context.seed}
    return Section(
        "table-recovery",
        "Table 1: subspaces of three layers",
        text,
        tables=(
            *with_settings(settings | {"layers": N_LAYERS}, _table(deep, level, same)),
            *with_settings(settings | {"layers": 1}, _possible(one_layer, level)),
        ),
        claims=recovery_claims(one_layer.to_numpy(), deep, level),
    )


def _learn(scale: Scale, job: Job) -> list[dict[str, Any]]:
    X, Y, truth = make_subspace(**scale.sizes, n_layers=job.n_layers, random_state=job.seed)
    with warnings.catch_warnings():
        # Three layers leave some tasks censored throughout, for every method alike.
        warnings.simplefilter("ignore", CensoringWarning)
        learned = _subspaces(scale, job, X, Y)
    rows = []
    for number, (layer, U) in enumerate(zip(truth.layers, learned, strict=True), start=1):
        last = compare(truth.layers[-1].U, U).mean_cosine
        found = compare(layer.U, U)._asdict() | {"last_cosine": last}
        rows.append({**job._asdict(), "layer": number, **found})
    return rows


def _subspaces(scale: Scale, job: Job, X: FloatArray, Y: FloatArray) -> list[FloatArray]:
    """Learned U of every layer, in the units of the outcomes where it is the last."""
    if job.method == "SN" and job.n_layers == 1:
        return [default_layer(scale).fit(X, Y).U_]
    if job.method == "SN":
        network = SubspaceNetworkRegressor(
            scale.rank, job.n_layers, solver="online", joint_tuning=False
        )
        return [layer.U for layer in network.fit(X, Y).layers_]
    model = MLPBaseline(
        scale.rank, retrain=job.method == "rf-MLP", n_layers=job.n_layers, random_state=job.seed
    )
    model.fit(X, CensoredTargets.from_bounds(Y, 0.0))
    *hidden, last = (U for U, _ in model.layers_)
    spread = Y.std(axis=0)
    return [*hidden, np.where(spread > 0.0, spread, 1.0)[:, None] * last]


def _table(deep: pd.DataFrame, level: Recovery, same: Recovery) -> TableOf:
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for (layer, method), paper in PAPER.items():
        here = deep[(deep["layer"] == layer) & (deep["method"] == method)]
        rows.append(
            {
                "layer": str(layer),
                "method": method,
                "difference": mean_and_sd(here["difference"], 3),
                "paper's difference": f"{paper[0]:.4f}",
                "max. coherence": mean_and_sd(here["maximum"], 3),
                "paper's max.": f"{paper[1]:.4f}",
                "mean coherence": mean_and_sd(here["mean"], 3),
                "paper's mean": f"{paper[2]:.4f}",
                "smallest principal cosine": mean_and_sd(here["smallest_cosine"], 3),
                "mean principal cosine": mean_and_sd(here["mean_cosine"], 3),
                "mean cosine with U₃": mean_and_sd(here["last_cosine"], 3),
            }
        )
    rows.append(_reference("independent spans", level))
    rows.append(_reference("same span, any basis", same))
    caption = (
        "Table 1 again: mean (sd) over data sets. Differences are with Û scaled to the norm of U; "
        "chance levels are means over Gaussian matrices, in T or in R dimensions."
    )
    return TableOf(caption, pd.DataFrame(rows).fillna(""), deep.reset_index(drop=True))


def _reference(name: str, level: Recovery) -> dict[str, str]:
    return {
        "layer": "chance",
        "method": name,
        "difference": f"{level.difference:.3f}",
        "max. coherence": f"{level.maximum:.3f}",
        "mean coherence": f"{level.mean:.3f}",
        "smallest principal cosine": f"{level.smallest_cosine:.3f}",
        "mean principal cosine": f"{level.mean_cosine:.3f}",
    }


def _possible(cosines: pd.Series[float], level: Recovery) -> TableOf:
    import pandas as pd

    row = {
        "generator": "one layer",
        "smallest principal cosine of SN": mean_and_sd(cosines),
        "chance": f"{level.smallest_cosine:.4f}",
        "paper": "not reported",
    }
    return TableOf("Where recovery is possible: mean (sd) over data sets", pd.DataFrame([row]))
