"""Figure 1 of the paper: the architecture, drawn from a fitted model."""

from __future__ import annotations

from typing import Any

from deeptobit.estimators import SubspaceNetworkRegressor
from deeptobit.experiments.reproduce._brain_cohort import brain_cohort
from deeptobit.experiments.reproduce._context import Context
from deeptobit.experiments.reproduce._scales import Scale
from deeptobit.experiments.reproduce._section import FigureOf, Section, TableOf

_N_LAYERS = 3
_TEXT = """\
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
        _TEXT.format(cohort=cohort.name, depth=depth),
        tables=(TableOf("Layers of the fitted network", table),),
        figures=(FigureOf("Figure 1 again, from the fitted model.", "network", data),),
    )


def _inputs(n_inputs: int, n_tasks: int, number: int) -> str:
    if number == 1:
        return f"{n_inputs} features"
    return f"{n_tasks} outputs below + {n_inputs - n_tasks} features"
