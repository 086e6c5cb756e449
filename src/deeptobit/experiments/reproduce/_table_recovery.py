"""Table 1 of the paper: the subspaces of three layers, and what can be known of them."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines import FactorisedMLPBaseline
from deeptobit.datasets import make_subspace
from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.exceptions import CensoringWarning
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._recipes import default_layer
from deeptobit.experiments.reproduce._recovery_claims import recovery_claims
from deeptobit.experiments.reproduce._recovery_measures import Recovery, chance, compare
from deeptobit.experiments.reproduce._repeats import mean_and_sd, over_repeats
from deeptobit.experiments.reproduce._scales import Scale
from deeptobit.experiments.reproduce._section import Section, TableOf
from deeptobit.objective import TargetScaling
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd

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
    return Section(
        "table-recovery",
        "Table 1: subspaces of three layers",
        text,
        tables=(_table(deep, level, same), _possible(one_layer, level)),
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
    retrain = job.method == "rf-MLP"
    model = FactorisedMLPBaseline(
        scale.rank, retrain=retrain, n_layers=job.n_layers, lower=0.0, random_state=job.seed
    )
    *hidden, last = (U for U, _ in model.fit(X, Y).layers_)
    targets = CensoredTargets.from_bounds(Y, 0.0)
    spread = TargetScaling.build(targets, np.ones(len(Y)), center=True).scale
    return [*hidden, spread[:, None] * last]


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
