"""Checkpoints: where a fit to rows beyond memory stands, in a file of its own."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from deeptobit.estimators.saving import CLASSES, check_sizes, check_stream, of_record, require
from deeptobit.exceptions import ModelFileError
from deeptobit.files import Packer, Unpacker, read_state, write_state
from deeptobit.layer import Layer
from deeptobit.scale import (
    DataSummary,
    FinishedLayer,
    Moments,
    OnlineState,
    Progress,
    RoundState,
    RowSource,
    Secants,
    Seen,
    Shift,
)

# Whether the progress of a fit, from a checkpoint, is sound.

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


_KIND = "checkpoint"
_FREE = ("verbose", "n_jobs", "max_iter", "prediction")  # may differ when a fit is taken up again
_RECORDS: tuple[type, ...] = (
    *(DataSummary, FinishedLayer, Layer, Moments, OnlineState, Progress),
    *(RoundState, Secants, Seen, Shift),
)
_CLASSES = CLASSES | {cls.__name__: of_record(cls) for cls in _RECORDS}


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
    def of(
        cls, model: Any, source: RowSource, solver: str, path: str | os.PathLike[str]
    ) -> Checkpoint:
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
        """Replace the file by one with the progress, or keep it where there is no room."""
        packed = Packer(_CLASSES).pack(progress, "progress")
        try:
            write_state(self.path, _KIND, {"fit": self.fit, "progress": packed})
        except OSError as error:
            warnings.warn(
                f"the checkpoint {os.fspath(self.path)} could not be written ({error}); the fit "
                "goes on, and an earlier checkpoint is kept",
                UserWarning,
                stacklevel=2,
            )

    def read(self) -> Progress:
        """The progress in the file; a file that is none, or another fit's, is refused."""
        _, state = read_state(self.path, _KIND)
        try:
            match state:
                case {"fit": dict(fit), "progress": packed}:
                    self._compare(fit)
                    progress = Unpacker(_CLASSES).unpack(packed)
                    if isinstance(progress, Progress):
                        self._check(progress)
                        return progress
            raise ModelFileError("it holds no progress")
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(self.path)} cannot be taken up: {error}") from None

    def _compare(self, fit: dict[str, Any]) -> None:
        for name in [*self.fit, *fit]:
            found = fit.get(name)
            if not isinstance(found, str) or found != self.fit.get(name):  # a file may hold arrays
                raise ModelFileError(
                    f"it belongs to another fit: {_shown(name)} was {_shown(found)}, and "
                    f"is {_shown(self.fit.get(name))} now"
                )

    def _check(self, progress: Progress) -> None:
        columns = {"D": "features", "T": "targets"}
        sizes = {size: len(json.loads(self.fit[name])) for size, name in columns.items()}
        check_progress(progress, sizes)


def _text(value: Any) -> str:
    return json.dumps(value, default=_describe, sort_keys=True)


def _shown(value: Any) -> str:
    """Text from a file, in which half a character could not be printed."""
    return str(value)[:80].encode(errors="backslashreplace").decode()


def _describe(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else repr(value)
