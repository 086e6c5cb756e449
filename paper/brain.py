"""Figures 1 and 4 of the paper, on a cohort whose features are regions of the brain."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from deeptobit import SubspaceNetworkRegressor, SubspaceTobitRegressor
from deeptobit.datasets import Cohort, load_adni, make_clinical_cohort
from deeptobit.metrics import principal_angles
from paper.arrays import FloatArray, Rows
from paper.section import Context, FigureOf, Scale, Section, TableOf, with_settings
from paper.verdicts import claim_over_repeats, mean_and_sd, over_repeats


def brain_cohort(context: Context) -> tuple[str, Cohort]:
    """ADNI where its folder is named, a simulated cohort of the same shape elsewhere."""
    if context.path is None:
        return "a simulated clinical cohort", make_clinical_cohort(random_state=context.seed)
    return "ADNI", load_adni(context.path)


def _settings(
    name: str, cohort: Cohort, model: SubspaceNetworkRegressor, context: Context
) -> dict[str, Any]:
    """What the network was fitted to, and how; only a simulated cohort has a seed."""
    sizes = {"N": len(cohort.X), "D": cohort.X.shape[1], "T": cohort.Y.shape[1]}
    network = {"R": model.rank, "layers": model.n_layers}
    seed = {"seed": context.seed} if context.path is None else {}
    return {"cohort": name} | sizes | network | seed


# Figure 1 of the paper: the architecture, drawn from a fitted model.

_N_LAYERS = 3
_NETWORK_TEXT = """\
The network of three layers as it was fitted to {cohort}: every layer sketches its inputs into R \
coordinates (V), turns them into scores of all outcomes (U), and passes on what the bounds leave \
of them beside the features (skip connection).{depth}"""


def fig_network(scale: Scale, context: Context) -> Section:
    """Sizes and ranks of a fitted network."""
    import pandas as pd

    name, cohort = brain_cohort(context)
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
    settings = _settings(name, cohort, model, context)
    return Section(
        "fig-network",
        "Figure 1: the Subspace Network",
        _NETWORK_TEXT.format(cohort=name, depth=depth),
        tables=with_settings(settings, TableOf("Layers of the fitted network", table)),
        figures=with_settings(
            settings, FigureOf("Figure 1 again, from the fitted model.", "network", data)
        ),
    )


def _inputs(n_inputs: int, n_tasks: int, number: int) -> str:
    if number == 1:
        return f"{n_inputs} features"
    return f"{n_tasks} outputs below + {n_inputs - n_tasks} features"


# Figure 4 of the paper: the subspaces of the first layer on the brain.

_MAPS = 5
_LISTED = 4
_MAPS_TEXT = """\
The five strongest subspaces of the first layer of a network fitted to {cohort}, each scaled to \
[−1, 1] as in the paper. V is determined only up to rotation; the maps are its canonical form, the \
singular value decomposition of UV in standard deviations of the features. Maps of that form are \
orthogonal whatever the data, so that they differ is no finding.

What data can contradict is that the subspaces are found again in other people: the cohort is \
split into halves, the first layer is fitted to each with the penalty of the whole cohort, and the \
spans of the two sets of maps are compared, once as they are and once with the outcomes of one \
half in random order."""


class Halves(NamedTuple):
    """Mean principal cosine of the maps of two halves of a cohort."""

    found: float
    shuffled: float


def fig_brain(scale: Scale, context: Context) -> Section:
    """Maps, and whether other people have the same."""
    import pandas as pd

    name, cohort = brain_cohort(context)
    model = SubspaceNetworkRegressor(scale.real_rank, lower=cohort.lower, upper=cohort.upper)
    subspaces = model.fit(cohort.X, cohort.Y).subspaces(0, cohort.X)[:_MAPS]
    work = partial(_compare_halves, cohort, scale.real_rank, model.alpha_)
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
    caption = f"Figure 4 again, on {name}."
    settings = _settings(name, cohort, model, context)
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
        _MAPS_TEXT.format(cohort=name),
        tables=with_settings(settings, TableOf("The subspaces in words", table)),
        figures=with_settings(settings, FigureOf(caption, "brain", data)),
        claims=(claim,),
    )


def _compare_halves(cohort: Cohort, rank: int, alpha: float, seed: int) -> Halves:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(cohort.X))
    first, second = np.array_split(order, 2)
    layer = SubspaceTobitRegressor(rank, alpha=alpha, lower=cohort.lower, upper=cohort.upper)
    maps_of = partial(_maps, cohort, layer)
    maps = maps_of(first, first)
    again, none = maps_of(second, second), maps_of(second, rng.permutation(second))
    return Halves(_mean_cosine(maps, again), _mean_cosine(maps, none))


def _maps(cohort: Cohort, layer: SubspaceTobitRegressor, rows: Rows, outcomes: Rows) -> FloatArray:
    """Loadings of the features, (D, R), of the layer fitted to some rows."""
    X, Y = cohort.X.iloc[rows], cohort.Y.iloc[outcomes].set_axis(cohort.X.index[rows])
    return np.column_stack([one.feature_loadings for one in layer.fit(X, Y).subspaces(X=X)])


def _mean_cosine(first: FloatArray, second: FloatArray) -> float:
    return float(np.cos(principal_angles(first, second)).mean())


def _largest(names: tuple[str, ...], loadings: FloatArray, most: int = _LISTED) -> str:
    order = np.argsort(-np.abs(loadings), kind="stable")[:most]
    return ", ".join(f"{'+' if loadings[k] > 0 else '−'}\u00a0{names[k]}" for k in order)
