"""The true parameters of data drawn by ``make_subspace``, and the network they make."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class LayerTruth:
    """The true parameters of one layer: U (T, R) and V (R, D_k), D_k the width of its input."""

    U: NDArray[np.float64]
    V: NDArray[np.float64]

    def latent(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores U V x of every row x of ``inputs``, (N, D_k) -> (N, T)."""
        return inputs @ self.V.T @ self.U.T


@dataclass(frozen=True, eq=False)
class SubspaceTruth:
    """What generated a data set of :func:`make_subspace`.

    Attributes
    ----------
    layers : tuple of LayerTruth
        The true U and V of each layer, from the input to the output.
    latent : ndarray of shape (N, T)
        Scores of the output layer, before its noise and its censoring. In a deep network they
        contain the noise of the hidden layers; :meth:`predict` does not.
    sigma : float
        Standard deviation of the output noise.
    lower, upper : ndarray of shape (T,)
        Bounds of each task; -inf and inf where there is none.
    skip_connection : bool
        Whether layers above the first also see x.

    Examples
    --------
    >>> from deeptobit.datasets import make_subspace
    >>> X, Y, truth = make_subspace(100, 6, 3, rank=2, sigma=0.0, n_layers=2, random_state=0)
    >>> np.array_equal(truth.predict(X), Y)
    True
    """

    layers: tuple[LayerTruth, ...]
    latent: NDArray[np.float64]
    sigma: float
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    skip_connection: bool

    @property
    def U(self) -> NDArray[np.float64]:  # noqa: N802 - the paper's matrix
        """Task subspace of the first layer, (T, R)."""
        return self.layers[0].U

    @property
    def V(self) -> NDArray[np.float64]:  # noqa: N802 - the paper's matrix
        """Sketch of the features in the first layer, (R, D)."""
        return self.layers[0].V

    @property
    def coef(self) -> NDArray[np.float64]:
        """Coefficients U V of the first layer, (T, D)."""
        return self.U @ self.V

    def predict(
        self, X: ArrayLike, kind: Literal["clip", "latent"] = "clip"
    ) -> NDArray[np.float64]:
        """Run the network without noise, (N, D) -> (N, T).

        ``kind="clip"`` is the paper's f(x); ``kind="latent"`` leaves out the last censoring.
        """
        if kind not in ("clip", "latent"):
            raise ValueError(f"kind must be 'clip' or 'latent', got {kind!r}")
        inputs = features = np.asarray(X, dtype=np.float64)
        for layer in self.layers:
            latent = layer.latent(inputs)
            output = np.clip(latent, self.lower, self.upper)
            inputs = next_inputs(output, features, self.skip_connection)
        return output if kind == "clip" else latent


def next_inputs(
    output: NDArray[np.float64], X: NDArray[np.float64], skip_connection: bool
) -> NDArray[np.float64]:
    """Return what the layer above sees: the output below, in front of x if x skips ahead."""
    return np.hstack([output, X]) if skip_connection else output
