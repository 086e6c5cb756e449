"""Fitting to rows that are not in memory: Parquet files, and Dask collections on a cluster."""

from collections.abc import Callable
from contextlib import nullcontext
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from deeptobit import scale
from deeptobit.arrays import is_dask
from deeptobit.estimators import diagnosis, inputs
from deeptobit.layer import CensoringKinds, Step
from deeptobit.network import NetworkLayer, grow, prune
from deeptobit.runtime import time_left
from deeptobit.scale import DaskRows, DataSummary, Moments, Progress, RowSource


class SourceTraining:
    """The fit of an estimator to a source.

    Parameters
    ----------
    model : LowRankRegressor
    source : RowSource
    """

    def __init__(self, model: Any, source: RowSource) -> None:
        self._model, self._source = model, source
        _, self.targets, _ = model._read(*first_rows(source), None, None, None, reset=True)
        self._started, self._n_layers = perf_counter(), 1

    def run(
        self, n_layers: int, checkpoint: Any, *, resume: bool
    ) -> tuple[DataSummary, tuple[NetworkLayer, ...]]:
        """Fit and store that many layers; write a checkpoint and resume from one if asked to.

        Returns what is known of the rows, and all layers that were grown.
        """
        model, source, targets = self._model, self._source, self.targets
        self._n_layers = n_layers
        skips, prunes = (getattr(model, of, True) for of in ("skip_connection", "prune_layers"))
        shape = source.n_rows, len(source.features)
        inputs.require_ridge(model._read_penalty(), "a fit of rows beyond memory")
        solver, reason = inputs.choose_solver(model.solver, shape, len(source.targets))
        keep, progress = _checkpointing(model, source, solver, checkpoint, resume=resume)
        once = solver == "online" and n_layers * model.n_passes == 1
        with nullcontext(source) if once else source.cached() as cached:
            fit_layer = self._fit_layer(solver, cached, progress, keep)
            grown, bounds = progress.finished, (targets.lower, targets.upper)
            grow(fit_layer, n_layers, *bounds, skip_connection=skips, grown=grown)
        finished, summary = fit_layer.progress.finished, fit_layer.progress.summary
        assert summary is not None
        names, given = targets.names, not isinstance(model.sigma, str)
        diagnosis.check_counts(round(summary.n_rows), summary.known, names)
        kinds = CensoringKinds(summary.one_sided, summary.two_sided)
        diagnosis.warn_of_censoring(kinds, targets, given_sigma=given)
        layers = tuple(layer.layer for layer in finished)
        nlls = tuple(layer.nll for layer in finished)
        depth, pruned = prune(layers, nlls, summary.weight, skip_connection=skips)
        model.history_ = {
            "solver": solver,
            "reason": reason,
            "layers": [layer.history for layer in finished],
            "nll": nlls,
            "paying_depth": depth,
        }
        model.alpha_ = finished[0].alpha
        model.n_iter_ = max(sum(layer.n_iter for layer in finished), 1)
        model._store(pruned if prunes else layers, targets)
        model.feature_scale_ = summary.scale
        return summary, layers

    def _fit_layer(
        self, solver: str, source: RowSource, progress: Progress, keep: Callable[[Progress], None]
    ) -> scale.FitByRounds | scale.FitOnline:
        """How one layer is fitted."""
        model, targets = self._model, self.targets
        bounds = targets.lower, targets.upper
        rows = scale.Rows(
            source, scale.RowReader(source.features, targets.names, *bounds, model.outside)
        )
        settings = model._online_settings(targets.names)
        if solver == "online":
            return scale.FitOnline(rows, settings, model.n_passes, progress, keep, self._show_rows)
        return scale.FitByRounds(
            rows, settings, self._alpha, model.tol, model.max_iter, progress, keep, self._show_step
        )

    def _alpha(self, moments: Moments) -> float:
        """The penalty of a layer, if its data determine it."""
        n_inputs = len(moments.x)
        if isinstance(self._model.alpha, str):
            alpha = inputs.automatic_alpha(moments.known, moments.weight, n_inputs)
        else:
            alpha = float(self._model.alpha)
        needed, names = 0 if alpha > 0.0 else n_inputs, self.targets.names
        diagnosis.check_counts(round(moments.n_rows), moments.known, names, needed)
        return alpha

    def _show_step(self, depth: int, step: Step) -> None:
        self._show(depth, step.text(self._model.tol), step.n_iter * self._source.n_rows)

    def _show_rows(self, depth: int, done: int, total: int) -> None:
        learned = depth * total + done
        left = time_left(self._started, learned, self._n_layers * total)
        self._show(depth, f"{done:,} of {total:,} rows", learned, left)

    def _show(self, depth: int, done: str, n_rows: int, left: str = "") -> None:
        rate = f"{n_rows / max(perf_counter() - self._started, 1e-9):,.0f} rows/s"
        self._model._show_progress(f"layer {depth + 1} of {self._n_layers}, {done}, {rate}{left}")


def read_source(X: Any, y: Any, **given: Any) -> RowSource | None:
    """X as rows beyond memory, or None if X is in memory.

    ``given`` are the other arguments of ``fit`` that hold a value per row.
    """
    if is_dask(X):
        return DaskRows.of_collections(X, y, **given)
    if not isinstance(X, RowSource):
        return None
    for name, value in {"y": y, **given}.items():
        if value is not None:
            raise ValueError(
                f"{type(X).__name__} brings its own columns; name those of {name} there"
            )
    return X


def first_rows(source: RowSource) -> tuple[Any, Any]:
    """X and y of the first rows as if in memory, by which settings are checked and names stored.

    Outcomes are missing: values are checked later, with all others.
    """
    block = source.first()
    X = pd.DataFrame(block.X, columns=list(source.features)) if source.named else block.X
    unknown = pd.DataFrame(np.nan, index=range(len(block.Y)), columns=list(source.targets))
    return X, unknown.iloc[:, 0] if source.one_dimensional else unknown


def _checkpointing(
    model: Any, source: RowSource, solver: str, path: Any, *, resume: bool
) -> tuple[Callable[[Progress], None], Progress]:
    """What to call with progress, and where an earlier fit was interrupted."""
    if path is None:
        if resume:
            raise ValueError("resume=True needs the checkpoint of the earlier fit: checkpoint=PATH")
        return (lambda progress: None), Progress()
    from deeptobit.estimators.checkpoint import Checkpoint

    found = Checkpoint.of(model, source, solver, path)
    return found.write, found.read() if resume else Progress()
