"""The synthetic data of the Subspace Network paper: one censored low-rank layer, or several."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray, RandomStateLike, check_count
from deeptobit.datasets.common import as_random_state
from deeptobit.targets import BoundsLike, default_names, task_bounds


@dataclass(frozen=True, eq=False)
class LayerTruth:
    """The true parameters of one layer: U (T, R) and V (R, D_k), D_k the width of its input."""

    U: FloatArray
    V: FloatArray

    def latent(self, inputs: FloatArray) -> FloatArray:
        """Return the scores U V x of every row x of ``inputs``, (N, D_k) -> (N, T)."""
        return inputs @ self.V.T @ self.U.T


@dataclass(frozen=True, eq=False)
class SubspaceTruth:
    """The network that generated a data set of :func:`make_subspace`.

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
    latent: FloatArray
    sigma: float
    lower: FloatArray
    upper: FloatArray
    skip_connection: bool

    @property
    def U(self) -> FloatArray:  # noqa: N802 - the paper's matrix
        """Task subspace of the first layer, (T, R)."""
        return self.layers[0].U

    @property
    def V(self) -> FloatArray:  # noqa: N802 - the paper's matrix
        """Sketch of the features in the first layer, (R, D)."""
        return self.layers[0].V

    @property
    def coef(self) -> FloatArray:
        """Coefficients U V of the first layer, (T, D)."""
        return self.U @ self.V

    def predict(self, X: ArrayLike, kind: Literal["clip", "latent"] = "clip") -> FloatArray:
        """Run the network without noise, (N, D) -> (N, T).

        ``kind="clip"`` is the paper's f(x); ``kind="latent"`` leaves out the last censoring.
        """
        if kind not in ("clip", "latent"):
            raise ValueError(f"kind must be 'clip' or 'latent', got {kind!r}")
        inputs = features = np.asarray(X, dtype=np.float64)
        for layer in self.layers:
            latent = layer.latent(inputs)
            output = np.clip(latent, self.lower, self.upper)
            inputs = _next_inputs(output, features, self.skip_connection)
        return output if kind == "clip" else latent


def make_subspace(
    n_samples: int,
    n_features: int,
    n_tasks: int,
    rank: int,
    *,
    n_layers: int = 1,
    skip_connection: bool = False,
    sigma: float = 3.0,
    hidden_sigma: float | None = None,
    latent_sd: float | None = None,
    lower: BoundsLike = 0.0,
    upper: BoundsLike = None,
    random_state: RandomStateLike = None,
) -> tuple[FloatArray, FloatArray, SubspaceTruth]:
    r"""Draw multi-task censored data from a network of low-rank layers.

    Layer k maps its input :math:`a_k` (D_k values) to T censored outputs,

    .. math::

        f_k = \min(u, \max(l,\; U_k V_k a_k + \sigma_k \varepsilon)), \qquad
        a_1 = x, \quad a_{k+1} = f_k \;\text{ or }\; [f_k; x]

    and :math:`y = f_K`. All entries of x, U_k (T, R), V_k (R, D_k) and ε are independent
    standard Gaussian: the generator of section "Simulations on Synthetic Data" in [1]_, where
    N = 5000, D = 200, T = 100, R = 10, σ = 3 and K is 1 or 3.

    Parameters
    ----------
    n_samples, n_features, n_tasks, rank : int
        N, D, T and R; R is at most min(D, T).
    n_layers : int, default=1
        K, the number of censored layers.
    skip_connection : bool, default=False
        Whether layers above the first see [f; x], the output below in front, or f alone.
    sigma : float, default=3.0
        Standard deviation of the output noise.
    hidden_sigma : float, optional
        The same for the hidden layers; ``sigma`` by default, as in the paper.
    latent_sd : float, optional
        Scale each U_k so that the N·T scores U_k V_k a_k of this sample have this standard
        deviation. Without it scores grow about :math:`\sqrt{R D_k}`-fold with each layer.
    lower, upper : None, float, sequence of T or dict by name, default=0.0 and None
        Bounds of the tasks (y0, y1, …), in every layer; ``None``, also inside a sequence, and ±inf
        mean unbounded.
    random_state : None, int, numpy Generator or RandomState
        An int gives the same data on every call and every version of NumPy.

    Returns
    -------
    X : ndarray of shape (N, D)
    Y : ndarray of shape (N, T)
    truth : SubspaceTruth

    References
    ----------
    .. [1] M. Sun et al., "Subspace Network: Deep Multi-Task Censored Regression for Modeling
       Neurodegenerative Diseases", KDD 2018.

    Examples
    --------
    >>> X, Y, truth = make_subspace(500, 20, 4, rank=2, sigma=1.0, random_state=0)
    >>> X.shape, Y.shape, truth.coef.shape
    ((500, 20), (500, 4), (4, 20))
    >>> print((Y == 0).mean().round(2))
    0.51
    >>> print((Y - truth.latent)[Y > 0].std().round(1))
    1.0
    """
    hidden_sigma = sigma if hidden_sigma is None else hidden_sigma
    sizes = {"n_samples": n_samples, "n_features": n_features, "n_tasks": n_tasks}
    for name, size in (sizes | {"rank": rank, "n_layers": n_layers}).items():
        check_count(name, size)
    most = min(n_features, n_tasks)
    if rank > most:
        raise ValueError(f"rank must be at most min(n_features, n_tasks) = {most}, got {rank}")
    for name, scale in {"sigma": sigma, "hidden_sigma": hidden_sigma}.items():
        if not 0 <= scale < np.inf:
            raise ValueError(f"{name} must be finite and not negative, got {scale}")
    if latent_sd is not None and not 0 < latent_sd < np.inf:
        raise ValueError(f"latent_sd must be finite and positive, got {latent_sd}")
    low, high = task_bounds(lower, upper, default_names(n_tasks))
    state = as_random_state(random_state)

    X = inputs = state.standard_normal((n_samples, n_features))
    layers: list[LayerTruth] = []
    for noise_sd in [*[hidden_sigma] * (n_layers - 1), sigma]:
        shapes = (n_tasks, rank), (rank, inputs.shape[1])
        layer = LayerTruth(*map(state.standard_normal, shapes))
        latent = layer.latent(inputs)
        if latent_sd is not None:  # Scale U, and not the scores, so that the truth stays exact.
            if latent.std() == 0:
                raise ValueError("latent_sd cannot scale a layer whose latent scores are all equal")
            layer = LayerTruth(U=layer.U * (latent_sd / latent.std()), V=layer.V)
            latent = layer.latent(inputs)
        Y = np.clip(latent + noise_sd * state.standard_normal(latent.shape), low, high)
        layers.append(layer)
        inputs = _next_inputs(Y, X, skip_connection)
    return X, Y, SubspaceTruth(tuple(layers), latent, sigma, low, high, skip_connection)


def _next_inputs(output: FloatArray, X: FloatArray, skip_connection: bool) -> FloatArray:
    """The input of the next layer: the output, followed by x if there is a skip connection."""
    return np.hstack([output, X]) if skip_connection else output
