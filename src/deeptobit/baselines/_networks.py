"""A network trained by back-propagation, from outcomes with gaps and bounds to arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from deeptobit.arrays import FloatArray
from deeptobit.baselines._base import Baseline
from deeptobit.baselines._folds import Folds
from deeptobit.baselines._network_layers import DenseLayer, draw_layers, factorise, forward
from deeptobit.baselines._network_training import Sample, Trained, Trainer
from deeptobit.objective import TargetScaling
from deeptobit.solvers import SIGMA_FLOOR
from deeptobit.targets import BoundsLike, CensoredTargets

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
