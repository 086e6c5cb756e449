"""Figure 3 of the paper: predicted against true weights."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.experiments.reproduce._claims import claim_over_repeats
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._recipes import OURS, default_layer, paper_layer, paper_step
from deeptobit.experiments.reproduce._repeats import mean_and_sd, over_repeats
from deeptobit.experiments.reproduce._scales import Scale
from deeptobit.experiments.reproduce._section import Claim, FigureOf, Section, TableOf

_HIGH = 0.9
_SHOWN = 2
_PAPER = "the paper's recipe"
_TEXT = """\
The coefficients UV of a task, unlike U itself, are determined by the data. After one pass over \
data of one layer they are compared with the true ones, task by task."""


class Job(NamedTuple):
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
    jobs = [Job(recipe, seed) for recipe in (OURS, _PAPER) for seed in seeds]
    results = over_repeats(partial(_learn, scale), jobs, context, "passes")
    ours, papers = results[: len(seeds)], results[len(seeds) :]
    return Section(
        "fig-weights",
        "Figure 3: weights of the tasks",
        _TEXT,
        tables=(_table({OURS: ours, _PAPER: papers}),),
        figures=(
            _figure(f"Figure 3 again, by {OURS}.", ours),
            _figure(f"The same by {_PAPER}.", papers),
        ),
        claims=(_claim(OURS, ours), _claim(_PAPER, papers)),
    )


def _learn(scale: Scale, job: Job) -> Weights:
    X, Y, truth = make_subspace(**scale.sizes, random_state=job.seed)
    model = default_layer(scale)
    if job.recipe == _PAPER:
        model = paper_layer(scale, paper_step(scale), job.seed)
    model.fit(X, Y)
    pairs = zip(truth.coef, model.coef_, strict=True)
    correlations = np.array([np.corrcoef(true, learned)[0, 1] for true, learned in pairs])
    return Weights(truth.coef[:_SHOWN], model.coef_[:_SHOWN], correlations)


def _figure(caption: str, results: list[Weights]) -> FigureOf:
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


def _table(results: dict[str, list[Weights]]) -> TableOf:
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
