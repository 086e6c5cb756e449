"""Layers learned online, in one pass over a source for each."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from deeptobit import likelihood
from deeptobit.arrays import FloatArray
from deeptobit.network import (
    Innovation,
    NetworkLayer,
    latents,
    layer_inputs,
    layer_of,
    on_top,
    result_of,
)
from deeptobit.online import OnlineResult, OnlineSettings, OnlineSolver, RawRows, Record
from deeptobit.scale.cluster import DaskRows
from deeptobit.scale.source import Block, LocalSource, RowReader, Rows, read_ahead, sum_of
from deeptobit.scale.state import DataSummary, FinishedLayer, OnlineState, Progress, Seen
from deeptobit.scale.sums import LayerInputs

# Online learning on a cluster: learners of their own for groups of partitions, then their mean.

_ROWS_PER_LEARNER = 50_000  # a learner with fewer has not yet forgotten where it began


@dataclass(frozen=True)
class Learner:
    """An online solver and what it has seen.

    Parameters
    ----------
    solver : OnlineSolver
    seen : Seen
    sums : array of shape (3, D_k)
        Weight, weighted sums and sums of squares of its inputs.
    """

    solver: OnlineSolver
    seen: Seen
    sums: FloatArray


@dataclass(frozen=True)
class LearnMore:
    """A step of a learner: the rows of a partition.

    Parameters
    ----------
    reader : RowReader
    inputs : function
        From features to what the layer sees.
    stride : int
        Every so many rows are kept as a sample; 0 keeps what was seen as it is.
    """

    reader: RowReader
    inputs: Callable[[FloatArray], FloatArray]
    stride: int

    def __call__(self, learner: Learner, blocks: Iterable[Block]) -> Learner:
        """The learner after these rows; the one before is left alone, for it may be asked again."""
        solver, seen = copy.deepcopy(learner.solver), learner.seen
        sums = learner.sums.copy()
        for block in blocks:
            rows = self.reader(block)
            x = self.inputs(rows.X)
            solver.learn(x, rows.low, rows.high, rows.weight)
            sums += [np.full(x.shape[1], rows.weight.sum()), rows.weight @ x, rows.weight @ x**2]
            seen = seen.more(rows, self.stride) if self.stride else seen
        return Learner(solver, seen, sums)


def learn_on_cluster(
    source: DaskRows, step: LearnMore, solver: OnlineSolver, seen: Seen, n_passes: int
) -> list[Learner]:
    """Learn a layer on groups of partitions, each on its own.

    The number of groups depends on the number of rows alone, so that the result does not depend on
    the cluster.
    """
    n_groups = int(np.clip(source.n_rows // _ROWS_PER_LEARNER, 1, source.n_partitions))
    learners = [Learner(solver, seen, np.zeros((3, solver.n_features)))] * n_groups
    for turn in range(n_passes):
        first = step if turn == 0 else LearnMore(step.reader, step.inputs, 0)
        learners = source.fold(first, learners)
    return learners


def average(learners: Sequence[Learner]) -> OnlineResult:
    r"""The mean of the learners' W = UV, intercepts and log σ, truncated to their rank.

    U and V themselves cannot be averaged: they are determined up to U → UA, V → A⁻¹V. The
    truncation is the best one in what is predicted, in units of σ, for uncorrelated inputs.
    """
    models = [learner.solver.result() for learner in learners]
    shares = np.array([learner.sums[0, 0] for learner in learners])
    shares = shares / shares.sum()
    W = np.tensordot(shares, [model.U @ model.V for model in models], axes=1)
    log_sigma = shares @ np.log([model.sigma for model in models])
    intercept, sigma = shares @ [model.intercept for model in models], np.exp(log_sigma)
    weight, total, squares = np.sum([learner.sums for learner in learners], axis=0)
    variance = squares / weight - (total / weight) ** 2
    spread = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    left, singular, right = np.linalg.svd(W * spread / sigma[:, None], full_matrices=False)
    rank = models[0].U.shape[1]
    root = np.sqrt(singular[:rank])
    n_seen = sum(model.n_seen for model in models)
    return OnlineResult(
        sigma[:, None] * left[:, :rank] * root,
        (root[:, None] * right[:rank]) / spread,
        intercept,
        sigma,
        n_seen,
    )


_SAMPLE_ROWS = 4096  # they tell how outputs of a layer depend on x, and whether its depth pays
_SECONDS_BETWEEN = 30.0  # checkpoints within a pass


@dataclass(frozen=True)
class OnlineFit:
    """How an online network is to be learned.

    Parameters
    ----------
    rows : Rows
    lower, upper : arrays of shape (T,)
        Bounds at which outputs are censored.
    settings : OnlineSettings
    n_layers, n_passes : int
    skip_connection : bool
    """

    rows: Rows
    lower: FloatArray
    upper: FloatArray
    settings: OnlineSettings
    n_layers: int
    n_passes: int
    skip_connection: bool = True

    def run(
        self,
        progress: Progress | None = None,
        keep: Callable[[Progress], None] = lambda progress: None,
        watch: Callable[[int, int, int], None] = lambda depth, done, total: None,
    ) -> Progress:
        """Learn layer after layer, each in ``n_passes`` over the source.

        Parameters
        ----------
        progress : Progress, optional
            Where an earlier fit was interrupted.
        keep : function
            Called with the progress every half minute and after every layer.
        watch : function
            Called with the layer's number, the rows learned so far, and all there are.
        """
        progress = progress or Progress()
        source = self.rows.source
        while len(progress.finished) < self.n_layers:
            inputs, innovation = self._inputs(progress)
            state = progress.now
            if not isinstance(state, OnlineState):
                state = self._begin(progress, inputs, innovation)
            if isinstance(source, DaskRows):
                learned = self._on_cluster(source, inputs, state)
                total = self.n_passes * source.n_rows
                watch(len(progress.finished), total, total)
            else:
                assert isinstance(source, LocalSource)
                learned = self._in_turn(source, inputs, state, progress, keep, watch)
            progress = self._finish(progress, learned, innovation)
            keep(progress)
        return progress

    def _in_turn(
        self,
        source: LocalSource,
        inputs: OnlineInputs,
        state: OnlineState,
        progress: Progress,
        keep: Callable[[Progress], None],
        watch: Callable[[int, int, int], None],
    ) -> _Learned:
        """Learn all rows in their order."""
        kept, depth, n_rows = time.monotonic(), len(progress.finished), source.n_rows
        for later in self._states(source, inputs, state, first=depth == 0):
            state = later
            watch(depth, state.n_passes * n_rows + state.n_read, self.n_passes * n_rows)
            if time.monotonic() - kept > _SECONDS_BETWEEN:
                keep(replace(progress, now=state))
                kept = time.monotonic()
        return _Learned(state.solver.result(), state.seen, state.solver.history)

    def _states(
        self, source: LocalSource, inputs: OnlineInputs, state: OnlineState, *, first: bool
    ) -> Iterator[OnlineState]:
        """The state after every block."""
        stride = max(1, source.n_rows // _SAMPLE_ROWS)
        while state.n_passes < self.n_passes:
            for block in read_ahead(source.blocks(skip=state.n_read)):
                rows, seen = self.rows.reader(block), state.seen
                state.solver.learn(inputs(rows.X), rows.low, rows.high, rows.weight)
                if first and state.n_passes == 0:
                    seen = seen.more(rows, stride)
                state = replace(state, seen=seen, n_read=state.n_read + len(block.X))
                yield state
            state = replace(state, n_read=0, n_passes=state.n_passes + 1)
        yield state

    def _on_cluster(self, source: DaskRows, inputs: OnlineInputs, state: OnlineState) -> _Learned:
        """Learn groups of partitions on their own, and average."""
        first = state.seen.n_rows == 0.0
        stride = max(1, source.n_rows // _SAMPLE_ROWS) if first else 0
        step = LearnMore(self.rows.reader, inputs, stride)
        learners = learn_on_cluster(source, step, state.solver, state.seen, self.n_passes)
        seen = sum_of(learner.seen for learner in learners) if first else state.seen
        return _Learned(average(learners), seen, learners[0].solver.history)

    def _begin(
        self, progress: Progress, inputs: OnlineInputs, innovation: Innovation | None
    ) -> OnlineState:
        n_features, n_tasks = len(self.rows.source.features), len(self.lower)
        seen = progress.seen or Seen.nothing(n_features, n_tasks)
        width = inputs(np.zeros((1, n_features))).shape[1]
        solver = OnlineSolver(self.settings, width, n_tasks)
        if innovation is not None:
            start = on_top(progress.layers[-1], n_features)
            solver.start_from(result_of(innovation.redo(start)))
        return OnlineState(solver, seen)

    def _inputs(self, progress: Progress) -> tuple[OnlineInputs, Innovation | None]:
        """What the next layer sees, and what the outputs below add to x."""
        layers = progress.layers
        below = LayerInputs(self.lower, self.upper, layers, self.skip_connection)
        if not (layers and self.skip_connection):
            return OnlineInputs(below, None), None
        assert progress.seen is not None
        sample = progress.seen.sample
        outputs = below(sample.X)[:, : below.n_outputs]
        innovation = Innovation.of(layers, outputs, sample.X, sample.weight)
        return OnlineInputs(below, innovation), innovation

    def _finish(
        self, progress: Progress, learned: _Learned, innovation: Innovation | None
    ) -> Progress:
        layer = layer_of(learned.result)
        layer = layer if innovation is None else innovation.undo(layer)
        nll = self._nll((*progress.layers, layer), learned.seen.sample)
        finished = FinishedLayer(
            layer, self.settings.alpha, nll, learned.result.n_seen, {"course": learned.course}
        )
        summary = progress.summary or _summary(learned.seen)
        return Progress((*progress.finished, finished), None, summary, learned.seen)

    def _nll(self, layers: tuple[NetworkLayer, ...], sample: RawRows) -> float:
        """Mean negative log likelihood of the sample."""
        *_, latent = latents(layers, sample.X, self.lower, self.upper)
        noise, sigma = self.settings.noise, layers[-1].sigma
        at = likelihood.evaluate(noise, sample.low, sample.high, latent, sigma)
        return float(sample.weight @ at.nll.sum(axis=1) / sample.weight.sum())


class _Learned(NamedTuple):
    """What a pass for a layer ends with."""

    result: OnlineResult
    seen: Seen
    course: list[Record]


@dataclass(frozen=True)
class OnlineInputs:
    """What an online layer sees: x, or [g; x] with what the outputs below add to x, or f.

    Parameters
    ----------
    below : LayerInputs
    innovation : Innovation, optional
        Makes g of [f; x].
    """

    below: LayerInputs
    innovation: Innovation | None

    def __call__(self, X: FloatArray) -> FloatArray:
        """Inputs of the rows of X."""
        inputs = self.below(X)
        if self.innovation is None:
            return inputs
        new = self.innovation.apply(inputs[:, : self.below.n_outputs], X)
        return np.asarray(layer_inputs(X, new, skip_connection=True))


def _summary(seen: Seen) -> DataSummary:
    unclear = np.zeros(len(seen.known), dtype=np.bool_)
    return DataSummary(
        seen.n_rows,
        seen.weight,
        seen.known,
        seen.variance + seen.mean**2,
        np.sqrt(seen.variance),
        unclear,
        unclear,
    )
