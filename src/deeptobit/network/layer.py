"""One layer of a network, what it sees of a row, and the scores of a stack of layers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from deeptobit.arrays import FloatArray
from deeptobit.layer import Design, TargetScaling, features

_VANISHED = 1e-4  # of the strongest component: below this, a penalty has removed it


@dataclass(frozen=True, eq=False)
class NetworkLayer:
    r"""A censored low-rank layer :math:`f_k = \mathrm{clip}(U_k V_k [f_{k-1}; x] + b_k)`.

    Parameters
    ----------
    U : array of shape (T, R)
    V : array of shape (R, D_k)
        The first layer sees x, D_1 = D, or K outputs of trees in front of x, K + D. A layer above
        sees the T outputs below in front of x, D_k = T + D, or these outputs alone, D_k = T, where
        the network has no skip connection.
    intercept, sigma : arrays of shape (T,)
    """

    U: FloatArray
    V: FloatArray
    intercept: FloatArray
    sigma: FloatArray

    @property
    def factors(self) -> features.Factors:
        """U, V, intercept and σ."""
        return self.U, self.V, self.intercept, self.sigma

    @property
    def coef(self) -> FloatArray:
        """UV, (T, D_k)."""
        return np.asarray(self.U @ self.V)

    @property
    def n_parameters(self) -> int:
        """Free numbers in UV: R(D_k + T − R), of components and inputs that are in use."""
        strength = np.linalg.norm(self.U, axis=0) * np.linalg.norm(self.V, axis=1)
        rank = int((strength > _VANISHED * strength.max(initial=0.0)).sum())
        n_inputs = int(self.V.any(axis=0).sum())
        return rank * (n_inputs + len(self.U) - rank)

    def transform(self, X: Any, below: FloatArray | None = None) -> FloatArray:
        """Coordinates V[f; x] in the layer's subspace, (N, R), for dense or sparse X."""
        if below is None:
            return np.asarray(X @ self.V.T)
        n_below = below.shape[1]
        hidden = below @ self.V[:, :n_below].T
        if self.V.shape[1] > n_below:
            hidden = hidden + X @ self.V[:, n_below:].T
        return np.asarray(hidden)

    def latent(self, X: Any, below: FloatArray | None = None) -> FloatArray:
        """Scores before censoring, (N, T)."""
        return np.asarray(self.transform(X, below) @ self.U.T + self.intercept)


Layers = Sequence[NetworkLayer]


def latents(
    layers: Layers, X: Any, lower: FloatArray, upper: FloatArray, below: FloatArray | None = None
) -> Iterator[FloatArray]:
    """Scores before censoring of every layer in turn, each (N, T).

    A layer passes its scores, clipped to the bounds of the tasks, to the next. ``below`` is what
    the first layer sees beside x, the scores of trees (:class:`Trees`), as they are.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> layers = [NetworkLayer(one, one, np.zeros(1), one[0]), NetworkLayer(
    ...     one, np.array([[2.0, 1.0]]), np.zeros(1), one[0])]
    >>> [latent.ravel() for latent in latents(layers, np.array([[-1.0], [1.0]]), 0.0, np.inf)]
    [array([-1.,  1.]), array([-1.,  3.])]
    """
    for layer in layers:
        latent = layer.latent(X, below)
        below = np.clip(latent, lower, upper)
        yield latent


@dataclass(frozen=True)
class LayerInputs:
    """The function x → [f(x); x] of the layers below: what the next layer sees of a row.

    Parameters
    ----------
    lower, upper : arrays of shape (T,)
        Bounds at which the outputs of layers are censored.
    layers : tuple of NetworkLayer
        The layers below; none for the first layer, whose input is x.
    skip_connection : bool
        False: f(x) alone, the paper's naive stacking.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> first = NetworkLayer(one, one, np.zeros(1), one[0])
    >>> LayerInputs(np.zeros(1), np.full(1, np.inf), (first,))(np.array([[-1.0], [1.0]]))
    array([[ 0., -1.],
           [ 1.,  1.]])
    """

    lower: FloatArray
    upper: FloatArray
    layers: tuple[NetworkLayer, ...] = ()
    skip_connection: bool = True

    @property
    def n_outputs(self) -> int:
        """How many inputs are outputs of the layer below: they come first."""
        return len(self.lower) if self.layers else 0

    def __call__(self, X: Any) -> Any:
        """Inputs of the rows of X, (n, D_k), dense or sparse as X is."""
        outputs = self.outputs(X)
        if outputs is None:
            return X
        return concatenate(outputs, X) if self.skip_connection else outputs

    def outputs(self, X: Any) -> FloatArray | None:
        """f(x) of the layer below, (n, T); None below the first layer."""
        outputs = None
        for latent in latents(self.layers, X, self.lower, self.upper):
            outputs = np.clip(latent, self.lower, self.upper)
        return outputs


def concatenate(outputs: FloatArray, X: Any) -> Any:
    """[f; x], dense or sparse as X is."""
    if scipy.sparse.issparse(X):
        blocks: list[Any] = [scipy.sparse.csr_array(outputs), X]
        return scipy.sparse.hstack(blocks, format="csr")
    return np.hstack([outputs, X])


def start_above(layers: Layers) -> NetworkLayer:
    """Where the next layer starts: as the last one, with zeros for outputs that it did not see.

    So the second layer's first prediction is that of the first. Above the second, the outputs of
    the last layer take the place of those that it saw itself.
    """
    last = layers[-1]
    return replace(last, V=np.pad(last.V, ((0, 0), (len(last.U), 0)))) if len(layers) == 1 else last


def to_user(layers: Layers, design: Design, scaling: TargetScaling) -> tuple[NetworkLayer, ...]:
    """A network of standardised features and outcomes as one of raw ones.

    Outputs of a layer are standardised as outcomes are, whatever the layer makes of them: the
    meaning of a penalty on V does not change while a network is trained.
    """
    units = _units(layers, design, scaling)
    return tuple(NetworkLayer(*of.to_user(layer.factors)) for layer, of in units)


def to_standard(layers: Layers, design: Design, scaling: TargetScaling) -> tuple[NetworkLayer, ...]:
    """The inverse of :func:`to_user`."""
    units = _units(layers, design, scaling)
    return tuple(NetworkLayer(*of.to_standard(layer.factors)) for layer, of in units)


def _units(
    layers: Layers, design: Design, scaling: TargetScaling
) -> Iterator[tuple[NetworkLayer, features.Units]]:
    """Every layer with the units of its inputs and outcomes."""
    mean, scale = design.mean, design.scale
    for layer in layers:
        seen = slice(layer.V.shape[1])  # the outputs below come first, and may be all
        yield layer, features.Units(mean[seen], scale[seen], scaling.location, scaling.scale)
        mean = np.append(scaling.location, design.mean)
        scale = np.append(scaling.scale, design.scale)


_BLOCK_ENTRIES = 2**18  # (n, T, T) slopes of a block of rows


def mean_slopes(
    layers: Layers, X: Any, lower: FloatArray, upper: FloatArray, factor: FloatArray | None = None
) -> FloatArray:
    r"""The mean over rows of :math:`\partial \eta^{(K)}/\partial x`, (T, D).

    ``factor`` of shape (N, T) multiplies the slopes of every row, as those of a function of η do.

    Between the kinks that its bounds make, a network is linear in x; this is the average of its
    coefficients over the rows. For one layer it is UV.

    Examples
    --------
    >>> one = np.ones((1, 1))
    >>> layers = [NetworkLayer(one, one, np.zeros(1), one[0]), NetworkLayer(
    ...     one, np.array([[2.0, 1.0]]), np.zeros(1), one[0])]
    >>> mean_slopes(layers, np.array([[-1.0], [1.0]]), np.zeros(1), np.full(1, np.inf))
    array([[2.]])
    """
    n_tasks, n_features = len(layers[0].U), layers[0].V.shape[1]
    size = max(1, _BLOCK_ENTRIES // n_tasks**2)
    total = np.zeros((n_tasks, n_features))
    for start in range(0, X.shape[0], size):
        rows = X[start : start + size]
        scores = list(latents(layers[:-1], rows, lower, upper))
        # Backwards through the layers, all scores of the block at once.
        slopes = np.broadcast_to(np.eye(n_tasks), (rows.shape[0], n_tasks, n_tasks))
        if factor is not None:
            slopes = slopes * factor[start : start + size, :, None]
        for depth in range(len(layers) - 1, -1, -1):
            V, by_sketch = layers[depth].V, slopes @ layers[depth].U
            n_below = n_tasks if depth else 0
            if V.shape[1] > n_below:
                total += by_sketch.sum(axis=0) @ V[:, n_below:]
            if depth:
                inside = (scores[depth - 1] > lower) & (scores[depth - 1] < upper)
                slopes = (by_sketch @ V[:, :n_below]) * inside[:, None, :]
    return np.asarray(total / X.shape[0])
