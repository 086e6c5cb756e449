"""Fitting to rows that are not in memory: Parquet files, and Dask collections on a cluster."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from deeptobit.arrays import FloatArray
from deeptobit.estimators.diagnosis import check_counts, warn_of_censoring
from deeptobit.estimators.inputs import automatic_alpha, choose_solver, read_sigma, require_ridge
from deeptobit.estimators.prediction import end_line, show
from deeptobit.layer import CensoringKinds, Step
from deeptobit.likelihood import one_family
from deeptobit.network import deepened, paying_depth
from deeptobit.scale import (
    DataSummary,
    Moments,
    OnlineFit,
    Progress,
    RoundSettings,
    RowReader,
    Rows,
    RowSource,
    grow_by_rounds,
)
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    from deeptobit.estimators.lowrank import LowRankRegressor
    from deeptobit.network import NetworkLayer


@dataclass(frozen=True)
class SourceFit:
    """A network that was fitted to a source, of one layer or more.

    Parameters
    ----------
    layers : tuple of NetworkLayer
        In the user's units.
    alpha : float
        Of the first layer.
    targets : CensoredTargets
        Of the first rows; it knows names and bounds.
    summary : DataSummary
    n_iter : int
    history : dict
    """

    layers: tuple[NetworkLayer, ...]
    alpha: float
    targets: CensoredTargets
    summary: DataSummary
    n_iter: int
    history: dict[str, Any]


class SourceTraining:
    """The fit of an estimator to a source.

    Parameters
    ----------
    model : LowRankRegressor
    source : RowSource
    n_layers : int
    skip_connection : bool
    """

    def __init__(
        self,
        model: LowRankRegressor,
        source: RowSource,
        n_layers: int,
        *,
        skip_connection: bool = True,
    ) -> None:
        self._model, self._source = model, source
        self._n_layers, self._skip_connection = n_layers, skip_connection
        self.targets = read_first(model, source)
        self._started = time.monotonic()

    def run(
        self, checkpoint: str | os.PathLike[str] | None = None, *, resume: bool = False
    ) -> SourceFit:
        """Fit, writing to a checkpoint and taking one up if asked to."""
        model, source = self._model, self._source
        shape = source.n_rows, len(source.features)
        require_ridge(model._read_penalty(), "a fit of rows beyond memory")
        solver, reason = choose_solver(model.solver, shape, len(source.targets))
        history: dict[str, Any] = {"solver": solver, "reason": reason}
        keep, progress = _checkpointing(model, source, solver, checkpoint, resume=resume)
        train = self._by_rounds if solver == "batch" else self._online
        once = solver == "online" and self._n_layers * model.n_passes == 1
        with nullcontext(source) if once else source.kept() as kept:
            progress = train(self._rows(kept), progress, keep)
        if model.verbose:
            end_line()
        assert progress.summary is not None
        self._diagnose(progress, progress.summary)
        return self._fitted(progress, progress.summary, history)

    def _by_rounds(
        self, rows: Rows, progress: Progress | None, keep: Callable[[Progress], None]
    ) -> Progress:
        model = self._model
        settings = RoundSettings(
            rank=model.rank_,
            alpha=self._alpha,
            noise=one_family(model.noise),
            sigma=read_sigma(model.sigma, self.targets.names),
            fit_intercept=model.fit_intercept,
            standardize=model.standardize,
            tol=model.tol,
            max_iter=model.max_iter,
        )
        return grow_by_rounds(
            rows,
            (self.targets.lower, self.targets.upper),
            settings,
            n_layers=self._n_layers,
            skip_connection=self._skip_connection,
            progress=progress,
            keep=keep,
            watch=self._show_step,
        )

    def _online(
        self, rows: Rows, progress: Progress | None, keep: Callable[[Progress], None]
    ) -> Progress:
        model = self._model
        fit = OnlineFit(
            rows,
            self.targets.lower,
            self.targets.upper,
            model._online_settings(read_sigma(model.sigma, self.targets.names)),
            n_layers=self._n_layers,
            n_passes=model.n_passes,
            skip_connection=self._skip_connection,
        )
        return fit.run(progress, keep, self._show_rows)

    def _rows(self, source: RowSource) -> Rows:
        targets = self.targets
        reader = RowReader(
            source.features,
            targets.names,
            targets.lower,
            targets.upper,
            self._model.outside,
        )
        return Rows(source, reader)

    def _alpha(self, moments: Moments) -> float:
        """The penalty of a layer, if its data determine it."""
        n_inputs = len(moments.x)
        if isinstance(self._model.alpha, str):
            alpha = automatic_alpha(moments.known, moments.weight, n_inputs)
        else:
            alpha = float(self._model.alpha)
        self._check(moments.n_rows, moments.known, n_features=0 if alpha > 0.0 else n_inputs)
        return alpha

    def _check(self, n_rows: float, known: FloatArray, *, n_features: int) -> None:
        check_counts(round(n_rows), known, self.targets.names, n_features=n_features)

    def _diagnose(self, progress: Progress, summary: DataSummary) -> None:
        """Say what is not determined, and what did not converge."""
        model, targets = self._model, self.targets
        self._check(summary.n_rows, summary.known, n_features=0)
        kinds = CensoringKinds(summary.one_sided, summary.two_sided)
        warn_of_censoring(kinds, targets, given_sigma=not isinstance(model.sigma, str))
        for depth, layer in enumerate(progress.finished):
            if not layer.history.get("converged", True):
                warnings.warn(
                    f"layer {depth + 1} did not converge after {layer.n_iter} steps (relative "
                    f"gradient norm {layer.history['gradient_norm']:.1e}, tol {model.tol:.1e}); "
                    "increase max_iter, loosen tol, or set a larger alpha",
                    ConvergenceWarning,
                    stacklevel=5,
                )

    def _fitted(
        self, progress: Progress, summary: DataSummary, history: dict[str, Any]
    ) -> SourceFit:
        layers, depth = progress.layers, self._n_layers
        nlls = tuple(layer.nll for layer in progress.finished)
        if self._skip_connection:
            per_layer = self._model.rank_ * len(self.targets.names)
            depth = paying_depth(nlls, summary.weight, per_layer)
        history |= {
            "layers": [layer.history for layer in progress.finished],
            "nll": nlls,
            "paying_depth": depth,
        }
        return SourceFit(
            deepened(layers[:depth], self._n_layers),
            progress.finished[0].alpha,
            self.targets,
            summary,
            sum(layer.n_iter for layer in progress.finished),
            history,
        )

    def _show_step(self, depth: int, step: Step) -> None:
        if self._model.verbose:
            rate = step.n_iter * self._source.n_rows / (time.monotonic() - self._started)
            show(
                f"layer {depth + 1}: step {step.n_iter}, objective {step.objective:.6g}, "
                f"gradient {step.gradient_norm:.1e}, {rate:,.0f} rows/s"
            )

    def _show_rows(self, depth: int, done: int, total: int) -> None:
        if self._model.verbose:
            rate = (depth * total + done) / (time.monotonic() - self._started)
            show(f"layer {depth + 1}: {done:,} of {total:,} rows, {rate:,.0f} rows/s")


def refuse_in_source(model: Any) -> None:
    """What a network can do only where all rows are in memory."""
    wanted = {
        "joint_tuning=True": model.joint_tuning is True,
        "early_stopping=True": bool(model.early_stopping),
        "sigma='calibrate'": isinstance(model.sigma, str) and model.sigma == "calibrate",
    }
    for setting, asked_for in wanted.items():
        if asked_for:
            raise ValueError(f"{setting} needs all rows in memory; leave it at its default")


def read_first(model: LowRankRegressor, source: RowSource) -> CensoredTargets:
    """Read the first rows of a source as those in memory are: checks settings, stores names.

    Of the outcomes only names and number matter; their values are checked with all others.
    """
    import pandas as pd

    block = source.first()
    X = pd.DataFrame(block.X, columns=list(source.features)) if source.named else block.X
    unknown = pd.DataFrame(np.nan, index=range(len(block.Y)), columns=list(source.targets))
    y = unknown.iloc[:, 0] if source.one_dimensional else unknown
    _, targets, _ = model._read(X, y, None, None, None, reset=True)
    return targets


def _checkpointing(
    model: LowRankRegressor,
    source: RowSource,
    solver: str,
    path: str | os.PathLike[str] | None,
    *,
    resume: bool,
) -> tuple[Callable[[Progress], None], Progress | None]:
    """What to call with progress, and what an earlier fit left."""
    if path is None:
        if resume:
            raise ValueError("resume=True needs the checkpoint of the earlier fit: checkpoint=PATH")
        return (lambda progress: None), None
    from deeptobit.estimators.checkpoint import Checkpoint

    found = Checkpoint.of(model, source, solver, path)
    return found.write, found.read() if resume else None
