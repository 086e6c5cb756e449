"""A network trained by back-propagation, from outcomes with gaps and bounds to arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from deeptobit.arrays import FloatArray
from deeptobit.extras import require
from deeptobit.layer import SIGMA_FLOOR, TargetScaling
from deeptobit.targets import BoundsLike, CensoredTargets
from paper.baselines.base import Baseline, Folds

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


_WEIGHT_DECAYS = (0.1, 1.0)


class Design(NamedTuple):
    """What tells one network from another.

    Attributes
    ----------
    bounded : bool
        Whether outputs are clipped to the bounds while the network learns.
    rank : int or None
        To which weight matrices are truncated once they are trained.
    retrained : bool
        Whether their factors are then trained again, end to end.
    """

    bounded: bool
    rank: int | None = None
    retrained: bool = False


class NetworkBaseline(Baseline):
    r"""A fully connected network :math:`x \to h_1 \to \dots \to \hat y` with ReLU between layers.

    The first fold of ``cv`` is its validation split: networks with weight decays of 0.1 and 1
    learn from the other rows and keep the weights with the best loss on those held out; the best
    of them stays, and its errors there are the noise scale σ. Outputs that are clipped while the
    network learns start from a network that learned without. Needs the extra ``deep``.

    Parameters
    ----------
    n_layers : int
        Weight matrices, the one in front of the outcomes included.
    width : int, optional
        Units of every hidden layer; T by default, as in the paper.
    lower, upper, cv, random_state
        As for every baseline.

    Attributes
    ----------
    layers_ : list of pairs of arrays
        U (M, R) and V (R, D_k) of every layer, for standardised features and outcomes: UV is the
        layer's weight matrix. A layer that was not factorised has its full rank.
    weight_decay_ : float
        Of the last training.
    course_ : array
        Mean squared error on the validation split by epoch, in standard units, of the network
        before it was factorised, from where its outputs are clipped on.
    sigma_ : array of shape (T,)
    """

    def __init__(
        self,
        *,
        n_layers: int = 3,
        width: int | None = None,
        lower: BoundsLike = None,
        upper: BoundsLike = None,
        cv: int | Folds = 5,
        random_state: Any = 0,
    ) -> None:
        super().__init__(lower=lower, upper=upper, cv=cv, random_state=random_state)
        self.n_layers = n_layers
        self.width = width

    @property
    def chosen_(self) -> dict[str, Any]:
        """The weight decay of the last training."""
        return {"weight_decay": self.weight_decay_}

    @abstractmethod
    def _design(self) -> Design:
        """Which of the networks it is."""

    def _learn(self, X: FloatArray, targets: CensoredTargets, folds: Folds) -> None:
        design = self._design()
        self._features = StandardScaler().fit(X)
        self._outcomes = TargetScaling.build(targets, np.ones(len(X)), center=True)
        X, Y = self._features.transform(X), self._outcomes.apply(targets.values)
        inside, outside = folds[0]
        held_out = Sample(X[outside], Y[outside])
        bounds = self._outcomes.apply(self.lower_), self._outcomes.apply(self.upper_)
        seed = check_random_state(self.random_state).randint(2**31)
        clip_at = bounds if design.bounded and np.isfinite(bounds).any() else None
        trainer = Trainer(Sample(X[inside], Y[inside]), held_out, clip_at, seed)
        self._dense = self._train(trainer, design)
        self.layers_ = [_two_factors(layer) for layer in self._dense]
        errors = Y[outside] - np.clip(forward(self._dense, X[outside]), *bounds)
        self.sigma_ = self._outcomes.scale * _root_mean_square(errors)

    def _train(self, trainer: Trainer, design: Design) -> list[DenseLayer]:
        """Train; where there is a rank, factorise, and train again."""
        n_features, n_tasks = trainer.data.X.shape[1], trainer.data.Y.shape[1]
        width = n_tasks if self.width is None else self.width
        start = draw_layers(
            [n_features, *[width] * (self.n_layers - 1), n_tasks],
            np.random.default_rng(trainer.seed),
        )
        trained = self._best(partial(trainer.train_anew, start))
        self.course_ = trained.course
        if design.rank is None:
            return trained.layers
        layers = [factorise(layer, design.rank) for layer in trained.layers]
        return self._best(partial(trainer.train, layers)).layers if design.retrained else layers

    def _best(self, train: Callable[[float], Trained]) -> Trained:
        """The better of the weight decays, from the same start."""
        found = {decay: train(decay) for decay in _WEIGHT_DECAYS}
        self.weight_decay_ = min(found, key=lambda decay: found[decay].loss)
        return found[self.weight_decay_]

    def _latent(self, X: FloatArray) -> FloatArray:
        scores = forward(self._dense, self._features.transform(X))
        return np.asarray(scores * self._outcomes.scale + self._outcomes.location)


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


# The networks that the paper compares with, by the names it gives them.


class MLPBaseline(NetworkBaseline):
    r"""The paper's MLP: layers of the sizes of a Subspace Network's, with full weight matrices.

    .. math:: f(x) = \mathrm{clip}(W_K \max(0, W_{K-1} \cdots \max(0, W_1 x + b_1) \cdots) + b_K)

    The outputs are clipped to the bounds while it learns, as those of a Subspace Network are: for
    outcomes from 0 on, that is its third ReLU layer.

    Parameters
    ----------
    n_layers : int
        Weight matrices, the one in front of the outcomes included.
    width : int, optional
        Units of every hidden layer; T by default, as in the paper.
    lower, upper, cv, random_state
        As for every baseline.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> model = MLPBaseline(n_layers=2, width=3).fit(X, np.abs(X))
    >>> [(U.shape, V.shape) for U, V in model.layers_]
    [((3, 2), (2, 2)), ((2, 2), (2, 3))]
    """

    def _design(self) -> Design:
        return Design(bounded=True)


class FactorisedMLPBaseline(NetworkBaseline):
    """f-MLP: the MLP, each weight matrix truncated to a rank; rf-MLP: its factors trained again.

    Parameters
    ----------
    rank : int
        R; a matrix with fewer rows or columns keeps its own.
    retrain : bool
        Whether the factors U and V are trained again, all layers together (rf-MLP).
    n_layers, width, lower, upper, cv, random_state
        As for :class:`MLPBaseline`.

    Examples
    --------
    >>> FactorisedMLPBaseline(3, retrain=True, lower=0)
    FactorisedMLPBaseline(lower=0, rank=3, retrain=True)
    """

    def __init__(
        self,
        rank: int = 5,
        *,
        retrain: bool = False,
        n_layers: int = 3,
        width: int | None = None,
        lower: BoundsLike = None,
        upper: BoundsLike = None,
        cv: int | Folds = 5,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_layers=n_layers,
            width=width,
            lower=lower,
            upper=upper,
            cv=cv,
            random_state=random_state,
        )
        self.rank = rank
        self.retrain = retrain

    def _design(self) -> Design:
        return Design(bounded=True, rank=self.rank, retrained=self.retrain)


class DeepBaseline(NetworkBaseline):
    """DNN i, ii and iii of the paper's comparison.

    i learns by a plain squared error and is clipped afterwards; the outputs of ii are clipped to
    the bounds while it learns (the paper's ReLU), which makes it the MLP; iii is ii with factorised
    weights that were trained again, which makes it the rf-MLP.

    Parameters
    ----------
    kind : {"i", "ii", "iii"}
    rank : int
        R of kind iii.
    n_layers, width, lower, upper, cv, random_state
        As for :class:`MLPBaseline`.

    Examples
    --------
    >>> DeepBaseline("iii", rank=3, lower=0)
    DeepBaseline(kind='iii', lower=0, rank=3)
    """

    def __init__(
        self,
        kind: Literal["i", "ii", "iii"] = "i",
        *,
        rank: int = 5,
        n_layers: int = 3,
        width: int | None = None,
        lower: BoundsLike = None,
        upper: BoundsLike = None,
        cv: int | Folds = 5,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            n_layers=n_layers,
            width=width,
            lower=lower,
            upper=upper,
            cv=cv,
            random_state=random_state,
        )
        self.kind = kind
        self.rank = rank

    def _design(self) -> Design:
        designs = {
            "i": Design(bounded=False),
            "ii": Design(bounded=True),
            "iii": Design(bounded=True, rank=self.rank, retrained=True),
        }
        if self.kind not in designs:
            raise ValueError(f"kind must be 'i', 'ii' or 'iii'; got {self.kind!r}")
        return designs[self.kind]
