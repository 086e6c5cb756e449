"""The layers of a network learned online, in one pass over a source for each."""

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.network import LayerInputs, NetworkLayer
from deeptobit.network.online import OnlineInputs, nll_by_depth
from deeptobit.online import OnlineResult, OnlineSettings
from deeptobit.scale.cluster import DaskRows
from deeptobit.scale.source import Block, LocalSource, RowReader, Rows, read_ahead, sum_of
from deeptobit.scale.state import FinishedLayer, OnlineState, Progress, Seen

_ROWS_PER_LEARNER = 50_000  # with fewer, the result still depends on the start


def learn_more(
    reader: RowReader,
    inputs: Callable[[FloatArray], FloatArray],
    stride: int,
    blocks: Iterable[Block],
    state: OnlineState,
) -> OnlineState:
    """The state after the rows of a partition; Dask may use the one before again.

    Parameters
    ----------
    reader : RowReader
    inputs : function
        From features to what the layer sees.
    stride : int
        Every so many rows join the sample; 0 leaves ``seen`` as it is after the first pass.
    blocks : iterable of Block
    state : OnlineState
        It is not changed. ``seen`` has the inputs of the layer as features.
    """
    solver, seen = copy.deepcopy(state.solver), state.seen
    for raw in map(reader, blocks):
        rows = raw._replace(X=inputs(raw.X))
        solver.learn(*rows)
        seen = seen.more(rows, stride) if stride else seen
    return OnlineState(solver, seen)


def average(learners: Sequence[OnlineState]) -> OnlineResult:
    r"""The mean of the learners' W = UV, intercepts and log σ, truncated to their rank.

    U and V themselves cannot be averaged: they are determined up to U → UA, V → A⁻¹V. The
    truncation is the best one in what is predicted, in units of σ, for uncorrelated inputs.
    """
    models = [learner.solver.result() for learner in learners]
    seen = sum_of(learner.seen for learner in learners)
    shares = np.array([learner.seen.weight for learner in learners]) / seen.weight
    W = np.tensordot(shares, [model.U @ model.V for model in models], axes=1)
    log_sigma = shares @ np.log([model.sigma for model in models])
    intercept, sigma = shares @ [model.intercept for model in models], np.exp(log_sigma)
    spread = np.sqrt(np.where(seen.deviations > 0.0, seen.deviations / seen.weight, 1.0))
    left, singular, right = np.linalg.svd(W * spread / sigma[:, None], full_matrices=False)
    rank = models[0].U.shape[1]
    root = np.sqrt(singular[:rank])
    U, V = sigma[:, None] * left[:, :rank] * root, (root[:, None] * right[:rank]) / spread
    return OnlineResult(U, V, intercept, sigma, sum(model.n_seen for model in models))


_SAMPLE_ROWS = 4096  # for the residual outputs, and for whether a layer pays
_SECONDS_BETWEEN = 30.0  # checkpoints within a pass

_Learned = tuple[OnlineResult, Seen, dict[str, Any]]


@dataclass
class FitOnline:
    """The ``fit_layer`` of :func:`grow` that learns in ``n_passes`` over a source.

    Parameters
    ----------
    rows : Rows
    settings : OnlineSettings
    n_passes : int
    progress : Progress
        Where the fit stands.
    keep : function
        Called with the progress every half minute and after every layer.
    watch : function
        Called with the layer's number, the rows learned so far, and all there are.
    """

    rows: Rows
    settings: OnlineSettings
    n_passes: int
    progress: Progress
    keep: Callable[[Progress], None]
    watch: Callable[[int, int, int], None]

    def __call__(self, inputs: LayerInputs, start: NetworkLayer | None) -> FinishedLayer:
        """The layer after its passes."""
        before, source = self.progress, self.rows.source
        n_features = len(source.features)
        seen = before.seen or Seen.nothing(n_features, len(inputs.lower))
        sample, center = seen.sample, self.settings.fit_intercept
        learner_inputs = OnlineInputs.of(inputs, sample.X, sample.weight, center=center)
        state = before.now
        if not isinstance(state, OnlineState):
            state = OnlineState(learner_inputs.solver(self.settings, n_features, start), seen)
        learn = self._on_cluster if isinstance(source, DaskRows) else self._in_order
        result, seen, history = learn(source, learner_inputs, state)  # type: ignore[arg-type]
        layer = learner_inputs.layer(result)
        layers, sample = (*inputs.layers, layer), seen.sample
        nlls = nll_by_depth(layers, sample, self.settings.noise, inputs.lower, inputs.upper)
        nll = float(nlls[-1] / sample.weight.sum())
        finished = FinishedLayer(layer, self.settings.alpha, result.n_seen, history, nll)
        summary = before.summary or seen.summary()
        self.progress = Progress((*before.finished, finished), None, summary, seen)
        self.keep(self.progress)
        return finished

    def _in_order(self, source: LocalSource, inputs: OnlineInputs, state: OnlineState) -> _Learned:
        """Learn all rows in their order."""
        before, n_rows = self.progress, source.n_rows
        depth, saved = len(before.finished), time.monotonic()
        stride = max(1, n_rows // _SAMPLE_ROWS)
        while state.n_passes < self.n_passes:
            for block in read_ahead(source.blocks(skip=state.n_read)):
                rows, seen = self.rows.reader(block), state.seen
                state.solver.learn(inputs(rows.X), rows.low, rows.high, rows.weight)
                if depth == 0 and state.n_passes == 0:
                    seen = seen.more(rows, stride)
                state = replace(state, seen=seen, n_read=state.n_read + len(block.X))
                self.watch(depth, state.n_passes * n_rows + state.n_read, self.n_passes * n_rows)
                if time.monotonic() - saved > _SECONDS_BETWEEN:
                    self.keep(replace(before, now=state))
                    saved = time.monotonic()
            state = replace(state, n_read=0, n_passes=state.n_passes + 1)
        return state.solver.result(), state.seen, state.solver.history

    def _on_cluster(self, source: DaskRows, inputs: OnlineInputs, state: OnlineState) -> _Learned:
        """Learn groups of partitions independently, and average.

        Their number depends on the number of rows alone, so the result does not depend on the
        cluster.
        """
        solver, n_rows = state.solver, source.n_rows
        n_groups = int(np.clip(n_rows // _ROWS_PER_LEARNER, 1, len(source.partitions)))
        learners = [OnlineState(solver, Seen.nothing(solver.n_features, solver.n_tasks))] * n_groups
        stride = max(1, n_rows // _SAMPLE_ROWS)
        for _ in range(self.n_passes):
            learners = source.fold(partial(learn_more, self.rows.reader, inputs, stride), learners)
            stride = 0
        # The inputs of the first layer are the features themselves.
        first = state.seen.n_rows == 0.0
        seen = sum_of(learner.seen for learner in learners) if first else state.seen
        self.watch(len(self.progress.finished), self.n_passes * n_rows, self.n_passes * n_rows)
        histories = [learner.solver.history for learner in learners]
        counts = ("n_halvings", "n_blocks_left_out")
        totals = {name: sum(history[name] for history in histories) for name in counts}
        return average(learners), seen, histories[0] | totals
