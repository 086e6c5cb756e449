"""What the paper says of its Table 1, tested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deeptobit.arrays import FloatArray
from deeptobit.experiments.reproduce._claims import claim_over_repeats
from deeptobit.experiments.reproduce._recovery_measures import Recovery
from deeptobit.experiments.reproduce._section import Claim

if TYPE_CHECKING:
    import pandas as pd

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
