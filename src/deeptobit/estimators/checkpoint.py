"""Checkpoints: how far a fit to rows beyond memory has come, in a file of its own.

Sizes are letters: D features, T targets, R components, I inputs of a layer, N rows.
"""

import json
import os
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Self

import numpy as np

from deeptobit import files, online, scale
from deeptobit.estimators.saving import Sizes, check_widths
from deeptobit.exceptions import ModelFileError, warn
from deeptobit.files import models, values
from deeptobit.files.values import ensure
from deeptobit.layer import Layer
from deeptobit.online import adaptive, reference, solver, start
from deeptobit.scale import Progress, RowSource

# Shapes of the arrays, by class; a field that may be None is compared if it is given.
_SHAPES: dict[type, dict[str, str]] = {
    scale.Shift: {"X": "I", "Y": "T"},
    scale.Moments: {
        **{"x": "I", "xx": "II", "x_known": "IT", "xy": "IT", "at_lower": "2T", "at_upper": "2T"},
        **dict.fromkeys(("known", "y", "yy", "left", "right", "y_inside", "yy_inside"), "T"),
    },
    Layer: {"U": "TR", "Z": "PR", "intercept": "T", "log_sigma": "T"},
    scale.Seen: {"known": "T", "mean": "D", "deviations": "D"},
    scale.DataSummary: {"known": "T", "mean_squares": "D", "scale": "D"},
    online.RawRows: {"X": "ND", "low": "NT", "high": "NT", "weight": "N"},
    reference.Iterate: {"V": "RD", "Ut": "RT", "intercept": "T", "sigma": "T"},
    online.OnlineSettings: {"sigma": "T"},
    online.OnlineResult: {"U": "TR", "V": "RD", "intercept": "T", "sigma": "T"},
    start.RunningNull: {"mean": "T", "log_sigma": "T", "curvature": "3T"},
    adaptive.Validation: {
        **dict.fromkeys(("slope", "curvature", "sigma"), "T"),
        **{"nll_by_length": "3T", "recent_nll": "2T"},
    },
    adaptive.AdaptiveLearner: {"moments": "3T", "inverse": "RR"},
    solver.Standardization: {
        **dict.fromkeys(("feature_mean", "feature_scale"), "D"),
        **dict.fromkeys(("target_mean", "target_scale"), "T"),
    },
}
_RECORDS: tuple[type, ...] = (
    *(*_SHAPES, scale.FinishedLayer, scale.OnlineState, Progress, scale.RoundState, scale.Secants),
    *(start.FeatureMetric, solver.History, online.RowBuffer),
)
_SOLVER = values.by_fields(online.OnlineSolver)


def _make_solver(found: dict[str, Any]) -> Any:
    """A solver of all its attributes."""
    names = {each.name for each in fields(online.OnlineSolver)}
    ensure(found.keys() == names, "its solver is not complete")
    return _SOLVER.make(found)


_CLASSES = models.CLASSES | {
    **{cls.__name__: values.by_fields(cls) for cls in _RECORDS},
    "OnlineSolver": replace(_SOLVER, make=_make_solver),
}


def check_progress(progress: Progress, sizes: Sizes) -> None:
    """Refuse progress that is not of a fit to D features and T targets.

    Compiled code must never see an array of another size than it was made for.
    """
    n_tasks, widths = sizes["T"], check_widths((one.layer for one in progress.finished), sizes)
    match progress.now:
        case scale.OnlineState(solver=solver, seen=seen):
            ensure(1 <= solver.n_features <= max(widths), "its solver has the wrong inputs")
            _check_solver(solver, n_tasks)
            _check_arrays(seen, sizes)
        case scale.RoundState(layer=layer) as state:
            n_inputs = state.shift.X.size
            ensure(n_inputs in widths, "its moments have the wrong inputs")
            _check_arrays((state.shift, state.moments, layer), {"T": n_tasks, "I": n_inputs})
            most = layer is None or layer.Z.shape[0] <= n_inputs
            ensure(most, "its layer has more directions than inputs")
    _check_arrays((progress.seen, progress.summary), sizes)
    if progress.summary is not None:
        sides = progress.summary.one_sided, progress.summary.two_sided
        ensure(all(side.shape == (n_tasks,) for side in sides), "its targets are different")


def _check_solver(solver: online.OnlineSolver, n_tasks: int) -> None:
    sizes = {"D": solver.n_features, "T": n_tasks, "R": solver.settings.rank}
    same = solver.n_tasks == n_tasks and sizes["R"] <= min(sizes["D"], n_tasks)
    ensure(same, "the solver does not match the model")
    ensure(solver._n_processed >= 0, "its solver has no blocks")
    begun = (solver._units is not None) == (solver._learner is not None)
    ensure(begun, "its solver has units without a learner")
    _check_arrays(tuple(vars(solver).values()), sizes)
    buffer = solver._buffer
    n_rows = sum(part.weight.size for part in buffer.parts)
    # A buffer that is already full would never be processed.
    ensure(buffer.n_rows == n_rows < solver._next_block(), "the number of buffered rows is wrong")


def _check_arrays(part: Any, sizes: Sizes) -> None:
    """Compare the arrays of a part, and of all parts within, with the shapes they should have."""
    shapes = _SHAPES.get(type(part), {})
    given = {name: shapes[name] for name in shapes if getattr(part, name) is not None}
    values.check_sizes(part, sizes, **given)
    match part:
        case online.OnlineSettings():
            ensure(part.rank == sizes["R"], "its learner has another rank")
        case start.FeatureMetric():
            shape = "DD" if part.is_full else "D"
            values.check_sizes(part, sizes, moments=shape, inverse=shape)
        case start.RunningNull(scored=tuple(scored)):
            ensure(all(at.shape == (sizes["T"],) for at in scored), "scored is not (T,)")
        case reference.Iterate():
            ensure(all(array.flags.c_contiguous for array in part), "an iterate is not in C order")
    if is_dataclass(part):
        part = tuple(vars(part).values())
    if type(part) in (tuple, list):
        for inner in part:
            _check_arrays(inner, sizes)


_KIND = "checkpoint"
_FREE = ("verbose", "n_jobs", "max_iter", "prediction")  # may differ when a fit is resumed


@dataclass(frozen=True)
class Checkpoint:
    """The checkpoint of one fit.

    Parameters
    ----------
    path : path of the file
    fit : dict of str
        What the fit is of: class, parameters, columns and number of rows. A checkpoint of
        anything else is refused.
    """

    path: str | os.PathLike[str]
    fit: dict[str, str]

    @classmethod
    def of(cls, model: Any, source: RowSource, solver: str, path: Any) -> Self:
        """The checkpoint of an estimator's fit to a source."""
        params = model.get_params(deep=False)
        described = {name: params[name] for name in sorted(params) if name not in _FREE}
        described |= {
            "class": type(model).__name__,
            "solver": solver,
            "features": list(source.features),
            "targets": list(source.targets),
            "number of rows": source.n_rows,
        }
        return cls(path, {name: _text(value) for name, value in described.items()})

    def write(self, progress: Progress) -> None:
        """Replace the file; if that fails, warn and keep the older one."""
        packed = values.pack(progress, _CLASSES, "progress")
        try:
            files.write_state(self.path, _KIND, {"fit": self.fit, "progress": packed})
        except OSError as error:
            warn(
                f"the checkpoint {os.fspath(self.path)} could not be written ({error}); the fit "
                "goes on, and an earlier checkpoint is kept",
                UserWarning,
            )

    def read(self) -> Progress:
        """The progress in the file; one that holds none, or that of another fit, is refused."""
        _, state = files.read_state(self.path, _KIND)
        try:
            match state:
                case {"fit": dict(fit), "progress": packed}:
                    self._compare(fit)
                    progress = values.unpack(packed, _CLASSES)
                    if isinstance(progress, Progress):
                        columns = {"D": "features", "T": "targets"}
                        sizes = {at: len(json.loads(self.fit[columns[at]])) for at in columns}
                        check_progress(progress, sizes)
                        return progress
            raise ModelFileError("it holds no progress")
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(self.path)} cannot be resumed: {error}") from None

    def _compare(self, fit: dict[str, Any]) -> None:
        for name in [*self.fit, *fit]:
            found = fit.get(name)
            if not isinstance(found, str) or found != self.fit.get(name):  # a file may hold arrays
                raise ModelFileError(
                    f"it belongs to another fit: {_shown(name)} was {_shown(found)}, and "
                    f"is {_shown(self.fit.get(name))} now"
                )


def _text(value: Any) -> str:
    """A parameter as text that can be compared."""

    def describe(item: Any) -> Any:
        return item.tolist() if isinstance(item, (np.ndarray, np.generic)) else repr(item)

    return json.dumps(value, default=describe, sort_keys=True)


def _shown(value: Any) -> str:
    """Text from a file; an unpaired surrogate in it could not be printed."""
    return str(value)[:80].encode(errors="backslashreplace").decode()
