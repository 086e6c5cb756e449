"""Whether what ``partial_fit`` goes on with is sound.

Compiled code reads and writes these arrays without looking at their sizes, so that all of them are
compared here. Types were compared when the objects were made.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

from deeptobit.estimators.saving._sizes import check_noise, check_sizes, require
from deeptobit.kernels._online_types import Iterate
from deeptobit.network import ContinuedNetwork, NetworkLayer, NetworkStream
from deeptobit.solvers import RecursiveTobit
from deeptobit.solvers.online import OnlineResult, OnlineSettings, OnlineSolver, Pending
from deeptobit.solvers.online._adaptive import AdaptiveLearner
from deeptobit.solvers.online._evidence import Evidence
from deeptobit.solvers.online._metric import FeatureMetric
from deeptobit.solvers.online._null import NullModel
from deeptobit.solvers.online._plain import PlainLearner
from deeptobit.solvers.online._units import Units

Sizes = dict[str, int]

_SHAPES: dict[type, dict[str, str]] = {
    Iterate: {"V": "RD", "Ut": "RT", "intercept": "T", "sigma": "T"},
    OnlineResult: {"U": "TR", "V": "RD", "intercept": "T", "sigma": "T"},
    NullModel: {"mean": "T", "log_sigma": "T", "curvature": "3T"},
    Evidence: {"pull": "T", "curvature": "T", "sigma": "T", "line": "3T", "race": "2T"},
    AdaptiveLearner: {"moments": "3T", "inverse": "RR"},
    PlainLearner: {"observed_share": "T"},
    Units: {
        **{"feature_mean": "D", "feature_scale": "D"},
        **{"target_mean": "T", "target_scale": "T"},
    },
}


def check_stream(model: Any, stream: Any, sizes: Sizes) -> None:
    """Refuse a stream that does not belong to its model."""
    match stream:
        case OnlineSolver():
            _check_solver(stream, sizes)
        case RecursiveTobit():
            _check_recursive(stream, sizes)
        case NetworkStream():
            _check_network(stream, sizes)
        case ContinuedNetwork():
            _check_continued(stream, sizes)
        case _:
            require(False, "what partial_fit goes on with is none of the solvers")


def _check_solver(solver: OnlineSolver, sizes: Sizes) -> None:
    same = solver.n_features == sizes["D"] and solver.n_tasks == sizes["T"]
    require(same and solver.settings.rank <= min(sizes["D"], sizes["T"]), "its solver is another's")
    require(solver._block_rows >= 1 and solver._n_processed >= 0, "its solver has no blocks")
    _check_pending(solver._pending, solver._capacity, sizes)
    own = sizes | {"R": solver.settings.rank}
    _check_parts((solver.settings, solver._units, solver._learner, solver._given), own)


def _check_parts(part: Any, sizes: Sizes) -> None:
    """Compare the arrays of a part and of all parts within."""
    if type(part) in _SHAPES:
        check_sizes(part, sizes, _SHAPES[type(part)])
    if isinstance(part, (OnlineSettings, AdaptiveLearner)) and part.sigma is not None:
        check_sizes(part, sizes, {"sigma": "T"})
    if isinstance(part, OnlineSettings):
        require(part.rank == sizes["R"], "its learner has another rank")
    if isinstance(part, FeatureMetric):
        shape = "DD" if part.is_full else "D"
        check_sizes(part, sizes, {"moments": shape, "inverse": shape})
    if isinstance(part, NullModel) and part.scored is not None:
        require(all(array.shape == (sizes["T"],) for array in part.scored), "scored is not (T,)")
    if is_dataclass(part):
        part = tuple(vars(part).values())
    if type(part) is tuple:
        for inner in part:
            _check_parts(inner, sizes)
    elif isinstance(part, Iterate):
        require(all(array.flags.c_contiguous for array in part), "an iterate is not in C order")


def _check_recursive(solver: RecursiveTobit, sizes: Sizes) -> None:
    require(solver._active.shape == (sizes["D"],), "its solver is another's")
    own = {"T": sizes["T"], "A": int(solver._active.sum()) + 1}
    check_sizes(solver, own, {"_W": "AT", "_mean_squares": "A", "_sigma": "T"})
    if solver._moments is not None:
        check_sizes(solver, own, {"_moments": "AA"})
    require(1 <= solver._rank <= sizes["T"], "its rank is not that of a solver")
    check_noise(solver._noise, sizes["T"])
    _check_pending(solver._pending, 512, sizes)


def _check_network(stream: NetworkStream, sizes: Sizes) -> None:
    n_layers, n_tasks = len(stream._solvers), sizes["T"]
    above = n_tasks + (sizes["D"] if stream._skip_connection else 0)
    for depth, solver in enumerate(stream._solvers):
        _check_solver(solver, {"T": n_tasks, "D": above if depth else sizes["D"]})
    _check_layers(stream.learned_layers, sizes, above)
    require(len(stream.learned_layers) in (0, n_layers), "its stream lacks layers")
    check_sizes(stream, {"K": n_layers}, {"_losses": "K"})
    _check_bounds(stream._bounds, n_tasks)
    _check_pending(stream._pending, stream._segment, sizes)


def _check_continued(stream: ContinuedNetwork, sizes: Sizes) -> None:
    n_tasks = sizes["T"]
    above = n_tasks + (sizes["D"] if stream._skip_connection else 0)
    _check_layers(stream._hidden, sizes, above)
    _check_bounds(stream._bounds, n_tasks)
    width = above if stream._hidden else sizes["D"]
    _check_recursive(stream._last, {"T": n_tasks, "D": width})


def _check_layers(layers: tuple[NetworkLayer, ...], sizes: Sizes, above: int) -> None:
    for depth, layer in enumerate(layers):
        own = {"T": sizes["T"], "I": above if depth else sizes["D"], "R": layer.U.shape[-1]}
        check_sizes(layer, own, {"U": "TR", "V": "RI", "intercept": "T", "sigma": "T"})


def _check_bounds(bounds: tuple[Any, Any], n_tasks: int) -> None:
    require(all(bound.shape == (n_tasks,) for bound in bounds), "its stream has other bounds")


def _check_pending(pending: Pending, capacity: int, sizes: Sizes) -> None:
    """Rows that wait; a full block of them would wait for ever."""
    for rows in pending.parts:
        own = sizes | {"N": rows.weight.size}
        check_sizes(rows, own, {"X": "ND", "low": "NT", "high": "NT", "weight": "N"})
    n_rows = sum(rows.weight.size for rows in pending.parts)
    require(pending.n_rows == n_rows < capacity, "the number of waiting rows is another")
