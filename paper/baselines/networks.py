"""Networks trained by back-propagation: the paper's MLP, f-MLP and rf-MLP, and its DNN i to iii."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from deeptobit import CensoredTargets
from deeptobit.app.study import Baseline, Folds
from deeptobit.exceptions import MissingExtraError
from paper.arrays import FloatArray
from paper.baselines.norms import SIGMA_FLOOR

# Layers of a plain feed-forward network, as arrays.


@dataclass(frozen=True, eq=False)
class DenseLayer:
    r"""The map :math:`h \mapsto F_1 F_2 \cdots h + b`, in front of its non-linearity.

    Parameters
    ----------
    factors : tuple of arrays
        One weight matrix (M, D), or two factors U (M, R) and V (R, D) with a linear bottleneck of
        R units between them.
    bias : array of shape (M,)
    """

    factors: tuple[FloatArray, ...]
    bias: FloatArray

    @property
    def weight(self) -> FloatArray:
        """The product of the factors, (M, D)."""
        return reduce(np.matmul, self.factors)

    def forward(self, below: FloatArray) -> FloatArray:
        """Inputs (N, D) to scores (N, M)."""
        return reduce(lambda rows, factor: rows @ factor.T, self.factors[::-1], below) + self.bias


def draw_layers(sizes: Sequence[int], rng: np.random.Generator) -> list[DenseLayer]:
    """Random layers between consecutive sizes: Gaussian weights of variance 2/D (He), no bias.

    Examples
    --------
    >>> layers = draw_layers([5, 3, 3], np.random.default_rng(0))
    >>> [layer.weight.shape for layer in layers]
    [(3, 5), (3, 3)]
    """
    return [
        DenseLayer((rng.normal(0.0, np.sqrt(2.0 / below), (above, below)),), np.zeros(above))
        for below, above in pairwise(sizes)
    ]


def forward(layers: Sequence[DenseLayer], X: FloatArray) -> FloatArray:
    """Scores of the last layer (N, T); every layer below passes on the positive part of its own."""
    for layer in layers[:-1]:
        X = np.maximum(layer.forward(X), 0.0)
    return layers[-1].forward(X)


def factorise(layer: DenseLayer, rank: int) -> DenseLayer:
    r"""The layer with its weights replaced by the nearest ones of a rank, as factors U and V.

    .. math:: W \approx P S Q^\top = (P S^{1/2})(S^{1/2} Q^\top) = UV

    with the R largest singular values of W, or all of them where there are fewer.

    Examples
    --------
    >>> layer = factorise(DenseLayer((np.diag([4.0, 1.0]),), np.zeros(2)), rank=1)
    >>> np.abs(layer.factors[0].round(6)), layer.weight.round(6)
    (array([[2.], [0.]]), array([[4., 0.], [0., 0.]]))
    """
    left, sizes, right = np.linalg.svd(layer.weight, full_matrices=False)
    root = np.sqrt(sizes[:rank])
    return replace(layer, factors=(left[:, :rank] * root, root[:, None] * right[:rank]))


# Training a feed-forward network by Adam, with early stopping.

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
    """The layers with the best validation loss, that loss, and the losses by epoch."""

    layers: list[DenseLayer]
    loss: float
    losses: FloatArray


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

    def train_from_random(self, start: Sequence[DenseLayer], weight_decay: float) -> Trained:
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
        torch = _torch()
        rng = np.random.default_rng(self.seed)
        with _one_thread(torch):
            network = _Network(torch, start, self.bounds)
            rows = _Tensors.of(torch, self.data)
            held_out = _Tensors.of(torch, self.validation)
            best, losses = network.copy(), [network.loss(held_out)]
            for rate in rates:
                network.restore(best)
                optimiser = network.optimiser(rate, weight_decay)
                waited = 0
                for _ in range(_MAX_EPOCHS):
                    _epoch(torch, network, optimiser, rows, rng)
                    losses.append(network.loss(held_out))
                    waited += 1
                    if losses[-1] < min(losses[:-1]):
                        best, waited = network.copy(), 0
                    if waited == _PATIENCE:
                        break
            network.restore(best)
            return Trained(network.layers(), min(losses), np.array(losses))


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise MissingExtraError(
            "torch is not installed; the networks need it: pip install 'deeptobit[deep]'"
        ) from None
    return torch


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


_WEIGHT_DECAYS = (0.1, 1.0)


class MLPBaseline(Baseline):
    r"""A fully connected network :math:`x \to h_1 \to \dots \to \hat y` with ReLU between layers.

    .. math:: f(x) = \mathrm{clip}(W_K \max(0, W_{K-1} \cdots \max(0, W_1 x + b_1) \cdots) + b_K)

    The first fold of ``cv`` is its validation split: networks with weight decays of 0.1 and 1
    learn from the other rows and keep the weights with the best loss on those held out. The better
    of them is kept, and its errors on held-out rows give the noise scale σ. Outputs that are
    clipped in training start from a network that was trained without clipping. Needs the extra
    ``deep``.

    ======================  =========================================================
    the paper's name        settings
    ======================  =========================================================
    MLP, DNN ii             default: outputs are clipped in training (its ReLU)
    DNN i                   ``clipped=False``: plain squared error, clipped afterwards
    f-MLP                   ``rank=R, retrain=False``
    rf-MLP, DNN iii         ``rank=R``
    ======================  =========================================================

    Parameters
    ----------
    rank : int, optional
        R, to which the trained weight matrices are truncated, as factors U and V; a matrix with
        fewer rows or columns keeps its own rank. By default matrices stay as they are.
    retrain : bool
        Whether the factors are then trained again, all layers together.
    clipped : bool
        Whether outputs are clipped to the bounds in training.
    n_layers : int
        Number of weight matrices, that of the output layer included.
    width : int, optional
        Units of every hidden layer; T by default, as in the paper.
    cv, random_state
        As for every :class:`~deeptobit.app.study.Baseline`.

    Attributes
    ----------
    layers_ : list of pairs of arrays
        U (M, R) and V (R, D_k) of every layer, for standardised features and outcomes: UV is the
        layer's weight matrix. A layer that was not factorised has its full rank.
    weight_decay_ : float
        Of the last training.
    losses_ : array
        Mean squared error on the validation split by epoch, in standard units, of the network
        before it was factorised, from when its outputs are clipped.
    sigma_ : array of shape (T,)

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = MLPBaseline(n_layers=2, width=3).fit(X, CensoredTargets.from_bounds(np.abs(X), 0))
    >>> [(U.shape, V.shape) for U, V in model.layers_]
    [((3, 2), (2, 2)), ((2, 2), (2, 3))]
    """

    def __init__(
        self,
        rank: int | None = None,
        *,
        retrain: bool = True,
        clipped: bool = True,
        n_layers: int = 3,
        width: int | None = None,
        cv: int | Folds = 5,
        random_state: Any = 0,
    ) -> None:
        super().__init__(cv=cv, random_state=random_state)
        self.rank = rank
        self.retrain = retrain
        self.clipped = clipped
        self.n_layers = n_layers
        self.width = width

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        self._features, self._outcomes = (
            StandardScaler().fit(values) for values in (X, targets.values)
        )
        X, Y = self._features.transform(X), self._outcomes.transform(targets.values)
        lower, upper = (
            (bound - self._outcomes.mean_) / self._outcomes.scale_
            for bound in (targets.lower, targets.upper)
        )
        train, test = folds[0]
        bounded = self.clipped and np.isfinite([lower, upper]).any()
        trainer = Trainer(
            Sample(X[train], Y[train]),
            Sample(X[test], Y[test]),
            (lower, upper) if bounded else None,
            check_random_state(self.random_state).randint(2**31),
        )
        self._dense = self._train(trainer)
        self.layers_ = [_two_factors(layer) for layer in self._dense]
        errors = Y[test] - np.clip(forward(self._dense, X[test]), lower, upper)
        self.sigma_ = self._outcomes.scale_ * _root_mean_square(errors)

    def _train(self, trainer: Trainer) -> list[DenseLayer]:
        """Train; if there is a rank, factorise, and train again."""
        n_features, n_tasks = trainer.data.X.shape[1], trainer.data.Y.shape[1]
        width = n_tasks if self.width is None else self.width
        start = draw_layers(
            [n_features, *[width] * (self.n_layers - 1), n_tasks],
            np.random.default_rng(trainer.seed),
        )
        trained = self._best(partial(trainer.train_from_random, start))
        self.losses_ = trained.losses
        if self.rank is None:
            return trained.layers
        layers = [factorise(layer, self.rank) for layer in trained.layers]
        return self._best(partial(trainer.train, layers)).layers if self.retrain else layers

    def _best(self, train: Callable[[float], Trained]) -> Trained:
        """The better of the weight decays, from the same start."""
        found = {decay: train(decay) for decay in _WEIGHT_DECAYS}
        self.weight_decay_ = min(found, key=lambda decay: found[decay].loss)
        return found[self.weight_decay_]

    def _latent(self, X: FloatArray) -> FloatArray:
        scores = forward(self._dense, self._features.transform(X))
        return np.asarray(self._outcomes.inverse_transform(scores))


def _two_factors(layer: DenseLayer) -> tuple[FloatArray, FloatArray]:
    """U and V of a layer, whether or not it learned them as such."""
    if len(layer.factors) == 1:
        layer = factorise(layer, min(layer.weight.shape))
    U, V = layer.factors
    return U, V


def _root_mean_square(errors: FloatArray) -> FloatArray:
    """Of the known errors of every task; of all tasks' where one has none, (T,)."""
    known = ~np.isnan(errors)
    squares = np.square(np.where(known, errors, 0.0)).sum(axis=0)
    counts = known.sum(axis=0)
    pooled = squares.sum() / max(counts.sum(), 1)
    spread = np.where(counts > 0, squares / np.maximum(counts, 1), pooled)
    return np.asarray(np.maximum(np.sqrt(spread), SIGMA_FLOOR))
