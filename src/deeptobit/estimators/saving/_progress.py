"""Whether the progress of a fit, from a checkpoint, is sound.

Compiled code reads these arrays without looking at their sizes, so that all of them are compared
with the numbers of features D and targets T. Types were compared when the objects were made.
"""

from __future__ import annotations

from deeptobit.estimators.saving._sizes import check_sizes, require
from deeptobit.estimators.saving._streams import check_stream
from deeptobit.scale import DataSummary, OnlineState, Progress, RoundState, Seen

Sizes = dict[str, int]

_LAYER = {"U": "TR", "V": "RI", "intercept": "T", "sigma": "T"}
_MOMENTS = {
    **{"x": "I", "xx": "II", "x_known": "IT", "xy": "IT", "at_lower": "2T", "at_upper": "2T"},
    **dict.fromkeys(("known", "y", "yy", "left", "right", "y_inside", "yy_inside"), "T"),
}


def check_progress(progress: Progress, sizes: Sizes) -> None:
    """Refuse progress that is not of a fit to D features and T targets."""
    widths = {sizes["D"]}
    for finished in progress.finished:
        layer = finished.layer
        require(layer.U.ndim == layer.V.ndim == 2, "a layer is not made of matrices")
        own = sizes | {"R": layer.U.shape[1], "I": layer.V.shape[1]}
        require(own["I"] in widths, "a layer has the wrong inputs")
        check_sizes(layer, own, _LAYER)
        widths = {sizes["T"], sizes["T"] + sizes["D"]}  # of those above, without skip or with it
    match progress.now:
        case OnlineState(solver=solver, seen=seen):
            widest = sizes["D"] + (sizes["T"] if progress.finished else 0)
            require(1 <= solver.n_features <= widest, "its solver has the wrong inputs")
            check_stream(None, solver, sizes | {"D": solver.n_features})
            _check_seen(seen, sizes)
        case RoundState() as state:
            _check_rounds(state, sizes, widths)
    if progress.seen is not None:
        _check_seen(progress.seen, sizes)
    if progress.summary is not None:
        _check_summary(progress.summary, sizes)


def _check_rounds(state: RoundState, sizes: Sizes, widths: set[int]) -> None:
    own = sizes | {"I": state.shift.X.size}
    require(own["I"] in widths, "its moments have the wrong inputs")
    check_sizes(state.shift, own, {"X": "I", "Y": "T"})
    check_sizes(state.moments, own, _MOMENTS)
    if state.layer is not None:
        require(state.layer.U.ndim == state.layer.Z.ndim == 2, "its layer is not made of matrices")
        own |= {"R": state.layer.U.shape[1], "P": state.layer.Z.shape[0]}
        require(own["P"] <= own["I"], "its layer has more directions than inputs")
        shapes = {"U": "TR", "Z": "PR", "intercept": "T", "log_sigma": "T"}
        check_sizes(state.layer, own, shapes)


def _check_seen(seen: Seen, sizes: Sizes) -> None:
    check_sizes(seen, sizes, {"known": "T", "mean": "D", "deviations": "D"})
    own = sizes | {"N": seen.sample.weight.size}
    check_sizes(seen.sample, own, {"X": "ND", "low": "NT", "high": "NT", "weight": "N"})


def _check_summary(summary: DataSummary, sizes: Sizes) -> None:
    check_sizes(summary, sizes, {"known": "T", "mean_squares": "D"})
    if summary.scale is not None:
        check_sizes(summary, sizes, {"scale": "D"})
    sides = summary.one_sided, summary.two_sided
    require(all(side.shape == (sizes["T"],) for side in sides), "its targets are others")
