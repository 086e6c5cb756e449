"""Training a feed-forward network by Adam, with early stopping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines._network_layers import DenseLayer
from deeptobit.extras import require

Tensor: TypeAlias = Any  # torch comes with an extra, and is imported when a network is trained
_LEARNING_RATES = (3e-3, 6e-4, 1.2e-4)
_PATIENCE = 10
_MAX_EPOCHS = 200  # at one learning rate
_MOST_ROWS, _FEWEST_BATCHES = 128, 8  # of a step, in an epoch


class Sample(NamedTuple):
    """Inputs (N, D) and outcomes (N, T) in standard units, NaN where missing."""

    X: FloatArray
    Y: FloatArray


@dataclass(frozen=True, eq=False)
class Trained:
    """The layers with the best validation loss, that loss, and the course of it by epoch."""

    layers: list[DenseLayer]
    loss: float
    course: FloatArray


@dataclass(frozen=True, eq=False)
class Trainer:
    r"""Minimises the mean squared error over known entries by Adam.

    .. math:: \frac{1}{n}\sum_{(i,t)\,\text{known}} \left(y_{it} - f_t(x_i)\right)^2

    The learning rate is 0.003 at first. After 10 epochs without a better validation loss, or 200 in
    all, the search returns to the best weights and goes on with a fifth of it; the third time it
    ends. One thread and single precision: the same seed gives the same weights.

    Parameters
    ----------
    data, validation : Sample
    bounds : pair of arrays of shape (T,), or None
        Clip f to these before it meets y (a ReLU, for a lower bound of 0), or do not.
    seed : int
        Of the order of rows.
    """

    data: Sample
    validation: Sample
    bounds: tuple[FloatArray, FloatArray] | None
    seed: int

    def train_anew(self, start: Sequence[DenseLayer], weight_decay: float) -> Trained:
        """Train from random layers.

        A clipped output passes no gradient on where its score lies beyond a bound, so random
        outputs first learn without clipping, at the first learning rate.
        """
        if self.bounds is not None:
            free = replace(self, bounds=None)
            start = free._descend(start, weight_decay, _LEARNING_RATES[:1]).layers
        return self.train(start, weight_decay)

    def train(self, start: Sequence[DenseLayer], weight_decay: float) -> Trained:
        """Train from the given layers on, which are candidates themselves.

        Parameters
        ----------
        start : sequence of DenseLayer
        weight_decay : float
            Share of the weights that a step of length 1 takes away, beside the gradient.
        """
        return self._descend(start, weight_decay, _LEARNING_RATES)

    def _descend(
        self, start: Sequence[DenseLayer], weight_decay: float, rates: Sequence[float]
    ) -> Trained:
        torch: Any = require("torch", "deep")
        rng = np.random.default_rng(self.seed)
        with _one_thread(torch):
            network = _Network(torch, start, self.bounds)
            rows = _Tensors.of(torch, self.data)
            held_out = _Tensors.of(torch, self.validation)
            best, course = network.copy(), [network.loss(held_out)]
            for rate in rates:
                network.restore(best)
                optimiser = network.optimiser(rate, weight_decay)
                waited = 0
                for _ in range(_MAX_EPOCHS):
                    _epoch(torch, network, optimiser, rows, rng)
                    course.append(network.loss(held_out))
                    waited += 1
                    if course[-1] < min(course[:-1]):
                        best, waited = network.copy(), 0
                    if waited == _PATIENCE:
                        break
            network.restore(best)
            return Trained(network.layers(), min(course), np.array(course))


class _Tensors(NamedTuple):
    """A sample for torch: unknown outcomes are 0, with a weight of 0."""

    X: Tensor
    Y: Tensor
    known: Tensor

    @classmethod
    def of(cls, torch: Any, sample: Sample) -> _Tensors:
        known = ~np.isnan(sample.Y)
        arrays = (sample.X, np.where(known, sample.Y, 0.0), known)
        return cls(*(torch.tensor(array, dtype=torch.float32) for array in arrays))


class _Network:
    """Layers as tensors that learn."""

    def __init__(
        self,
        torch: Any,
        layers: Sequence[DenseLayer],
        bounds: tuple[FloatArray, FloatArray] | None,
    ) -> None:
        def tensor(array: FloatArray, learns: bool = True) -> Tensor:
            return torch.tensor(array, dtype=torch.float32, requires_grad=learns)

        self.torch = torch
        self.factors = [[tensor(factor) for factor in layer.factors] for layer in layers]
        self.biases = [tensor(layer.bias) for layer in layers]
        self.bounds = None if bounds is None else [tensor(bound, False) for bound in bounds]

    def parameters(self) -> list[Tensor]:
        return [factor for layer in self.factors for factor in layer] + self.biases

    def optimiser(self, rate: float, weight_decay: float) -> Any:
        return self.torch.optim.AdamW(
            self.parameters(), lr=rate, weight_decay=weight_decay, fused=True
        )

    def errors(self, sample: _Tensors) -> Tensor:
        """Mean squared error over the known entries."""
        rows = sample.X
        for depth, (factors, bias) in enumerate(zip(self.factors, self.biases, strict=True)):
            rows = rows if depth == 0 else rows.relu()
            for factor in reversed(factors[1:]):
                rows = rows @ factor.T
            rows = self.torch.addmm(bias, rows, factors[0].T)
        if self.bounds is not None:
            rows = self.torch.clamp(rows, *self.bounds)
        squares = (rows - sample.Y).square() * sample.known
        return squares.sum() / sample.known.sum().clamp(min=1.0)

    def loss(self, sample: _Tensors) -> float:
        with self.torch.no_grad():
            return float(self.errors(sample))

    def copy(self) -> list[Tensor]:
        return [parameter.detach().clone() for parameter in self.parameters()]

    def restore(self, copies: Sequence[Tensor]) -> None:
        with self.torch.no_grad():
            for parameter, copy in zip(self.parameters(), copies, strict=True):
                parameter.copy_(copy)

    def layers(self) -> list[DenseLayer]:
        def array(tensor: Tensor) -> FloatArray:
            return np.asarray(tensor.detach(), dtype=np.float64)

        return [
            DenseLayer(tuple(map(array, factors)), array(bias))
            for factors, bias in zip(self.factors, self.biases, strict=True)
        ]


def _epoch(
    torch: Any, network: _Network, optimiser: Any, rows: _Tensors, rng: np.random.Generator
) -> None:
    """One step for every batch of shuffled rows."""
    size = min(max(len(rows.X) // _FEWEST_BATCHES, 1), _MOST_ROWS)
    order = torch.from_numpy(rng.permutation(len(rows.X)))
    for batch in zip(*(torch.split(tensor[order], size) for tensor in rows), strict=True):
        optimiser.zero_grad()
        network.errors(_Tensors(*batch)).backward()
        optimiser.step()


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Small products gain nothing from more, and sums would depend on how many there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
