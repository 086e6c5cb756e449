"""Standard units: features in the basis of a problem, outcomes, and the parameters of a layer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.penalties import Penalty
from deeptobit.targets import CensoredTargets

_BLOCK_ROWS = 512  # a block of latents stays in the cache while the likelihood is evaluated on it
_SPARSE_BLOCK_ROWS = 8192  # slicing a sparse matrix costs more than the cache gains
_FAR = 10.0  # standard deviations from 0: less than one value in a hundred can be 0


@dataclass(frozen=True)
class Design:
    r"""The standardised features :math:`(x_{id} - mean_d)/scale_d`, of shape (N, D).

    A dense matrix is standardised once into a copy, so that a large mean cannot eat the digits of
    a small deviation. A sparse matrix stays sparse, and mean and scale are folded into products;
    columns far from zero, which have hardly a zero to lose, are centred.

    Parameters
    ----------
    matrix : array or CSR matrix of shape (N, D)
        Standardised if dense, as given if sparse.
    mean, scale : arrays of shape (D,)
    weight : array of shape (N,)
        Row weights that sum to one.
    vanishing : bool array of shape (D,)
        Columns that are zero once centred, because they are constant.
    rest : array of shape (D,)
        The mean of what is stored of a sparse matrix: rounding in columns that are centred.
    """

    matrix: Any
    mean: FloatArray
    scale: FloatArray
    weight: FloatArray
    vanishing: BoolArray
    rest: FloatArray

    @classmethod
    def build(
        cls, X: Any, weight: FloatArray, *, center: bool, standardize: bool, overwrite: bool = False
    ) -> Self:
        """Standardise X by its weighted moments, in its own memory if it may be overwritten.

        Examples
        --------
        >>> X = np.array([[1.0, 0.0], [3.0, 10.0]])
        >>> Design.build(X, np.array([0.5, 0.5]), center=True, standardize=True).matrix
        array([[-1., -1.],
               [ 1.,  1.]])
        """
        sparse = issparse(X)
        X = X.tocsr().astype(np.float64) if sparse else X
        mean, variance = column_moments(X, weight)
        design = cls.of_moments(mean, variance, center=center, standardize=standardize)
        if sparse:
            far = np.abs(design.mean) > _FAR * np.sqrt(np.maximum(variance, 0.0))
            X = _centred(X, np.where(far, design.mean, 0.0))
            rest = np.where(far, weight @ X, design.mean)
            return replace(design, matrix=X, weight=weight, rest=rest)
        matrix = X if overwrite and X.dtype == np.float64 else np.empty(X.shape)
        for rows in row_blocks(len(X), sparse=False):
            block = np.subtract(X[rows], design.mean, out=matrix[rows])
            block[:, design.vanishing] = 0.0
            block[weight[rows] == 0.0] = 0.0  # rows without weight may hold anything in these units
            block /= design.scale
        return replace(design, matrix=matrix, weight=weight)

    @classmethod
    def of_moments(
        cls, mean: FloatArray, variance: FloatArray, *, center: bool, standardize: bool
    ) -> Self:
        """The units from means and variances of the features, each (D,), without any rows."""
        # Rounding leaves a constant column with a variance of the order of (eps · mean)².
        constant = variance <= (64 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
        vanishing = constant & (center | (mean == 0.0))
        spread = np.where(vanishing, 1.0, variance if center else variance + mean**2)
        scale = np.sqrt(spread) if standardize else np.ones_like(mean)
        centre = mean if center else np.zeros_like(mean)
        return cls(None, centre, scale, np.empty(0), vanishing, centre)

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def is_sparse(self) -> bool:
        """Whether the matrix is stored sparse."""
        return bool(issparse(self.matrix))

    def without_matrix(self) -> "Design":
        """Mean, scale and weights alone."""
        return replace(self, matrix=None)

    def gram(self) -> FloatArray:
        """Weighted second moments Σ_i w_i x_i x_iᵀ of the standardised features, (D, D)."""
        if self.is_sparse:
            raw = (self.matrix.T @ self.matrix.multiply(self.weight[:, None])).toarray()
            centred = raw - np.outer(self.rest, self.rest)
            centred[self.vanishing] = centred[:, self.vanishing] = 0.0
            return np.asarray(centred / np.outer(self.scale, self.scale))
        total = np.zeros((self.shape[1], self.shape[1]))
        for rows in row_blocks(self.shape[0], sparse=False):
            total += self.matrix[rows].T @ (self.matrix[rows] * self.weight[rows, None])
        return total


def _centred(X: Any, origin: FloatArray) -> Any:
    """A CSR matrix after subtraction of an origin (D,) that is 0 in most columns."""
    moved = np.flatnonzero(origin)
    if not len(moved):
        return X
    others = np.flatnonzero(origin == 0.0)
    columns = csr_array(X[:, moved].toarray() - origin[moved])
    order = np.argsort(np.concatenate([others, moved]))
    return hstack([X[:, others], columns], format="csr")[:, order]


def column_moments(X: Any, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and variances of the columns of X, (D,) each, under weights that sum to one.

    Examples
    --------
    >>> column_moments(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([0.5, 0.5]))
    (array([2., 5.]), array([1., 0.]))
    """
    if issparse(X):
        from sklearn.utils.sparsefuncs import mean_variance_axis

        mean, variance = mean_variance_axis(X, axis=0, weights=weight)
        return mean, variance
    mean = weight @ X
    variance, rounding = np.zeros((2, len(mean)))
    for rows in row_blocks(len(X), sparse=False):
        known = weight[rows] > 0.0  # squares of others may overflow; 0 times that is NaN
        error = X[rows][known] - mean
        variance += weight[rows][known] @ np.square(error)
        rounding += weight[rows][known] @ error
    # Of a sum of many rows rounding remains, which must not look like a spread.
    return mean + rounding, np.maximum(variance - np.square(rounding), 0.0)


def row_blocks(n_samples: int, *, sparse: bool) -> Iterator[slice]:
    """Consecutive blocks of rows; every sum over rows is a sum over these."""
    size = _SPARSE_BLOCK_ROWS if sparse else _BLOCK_ROWS
    for start in range(0, n_samples, size):
        yield slice(start, min(start + size, n_samples))


_MAX_GRAM = 4000  # above this an eigendecomposition costs more than the iterations it saves
_RELATIVE_RANK = 1e-11  # of the largest eigenvalue: condition numbers of X up to 3e5 are resolved
_HARDLY_ANY = 1e-8  # of the largest eigenvalue: standard errors are 1e4 times as large there
BASIS_RIDGE = 1e-6  # keeps the whitened basis tame; any small number gives the same optimum


@dataclass(frozen=True)
class BasisFeatures:
    r"""Standardised features in a basis: rows :math:`\tilde x = B^\top x`.

    Coefficients are written :math:`\gamma = Bz`, so that :math:`x^\top\gamma = \tilde x^\top z`.
    In the whitened basis, :math:`B^\top(G + \alpha I)B = I` with the Gram matrix G: the columns of
    B are orthogonal, the ridge :math:`\alpha\|\gamma\|^2` is diagonal in z, and leaving out the
    null space of G makes the solution the one of minimum norm.

    Parameters
    ----------
    design : Design
        Where the features came from; its matrix is kept only if it is sparse.
    basis : array of shape (D, r), or (D,) for a diagonal one
    ridge : array of shape (r,)
        α‖B_j‖², the penalty on each z_j.
    matrix : array of shape (N, r), or None where the design is sparse
    rotated : BasisFeatures, optional
        The same features in their whitened basis, where this one is their own, B = I, for
        penalties that treat features one by one.
    """

    design: Design
    basis: FloatArray
    ridge: FloatArray
    matrix: FloatArray | None
    rotated: "BasisFeatures | None" = None

    @classmethod
    def whitened(cls, design: Design, alpha: float, *, overwrite: bool = False) -> Self:
        """Diagonalise the Gram matrix, or only scale it where that would take too long.

        The rows take the place of the design's matrix if that may be overwritten.

        Examples
        --------
        >>> X = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
        >>> design = Design.build(X, np.full(3, 1 / 3), center=True, standardize=True)
        >>> BasisFeatures.whitened(design, alpha=0.0).n_dropped
        1
        """
        basis, ridge = _find_basis(design, alpha)
        if design.is_sparse:
            return cls(design, basis, ridge, None)
        product = np.multiply if basis.ndim == 1 else np.matmul
        shape = design.shape[0], len(ridge)
        matrix = design.matrix if overwrite and shape == design.shape else np.empty(shape)
        for rows in row_blocks(len(matrix), sparse=False):  # Ctrl-C is seen between blocks
            matrix[rows] = product(design.matrix[rows], basis)
        return cls(design.without_matrix(), basis, ridge, matrix)

    @classmethod
    def whitened_by(cls, design: Design, gram: FloatArray) -> Self:
        """For features that are not in memory, from their Gram matrix (D, D)."""
        return cls(design, *_whitened_basis(*np.linalg.eigh(gram), BASIS_RIDGE), None)

    @classmethod
    def own(cls, design: Design) -> Self:
        """The standardised features themselves, B = I."""
        matrix = None if design.is_sparse else design.matrix
        return cls(design, np.ones_like(design.scale), np.zeros_like(design.scale), matrix)

    @classmethod
    def none(cls, design: Design) -> Self:
        """No features, r = 0: what is left of a model is its intercept."""
        basis, matrix = (np.zeros((len(of), 0)) for of in (design.scale, design.weight))
        return cls(design.without_matrix(), basis, np.zeros(0), matrix)

    @property
    def n_samples(self) -> int:
        """N."""
        return len(self.design.weight)

    @property
    def rank(self) -> int:
        """Number r of directions kept."""
        return len(self.ridge)

    @cached_property
    def norms(self) -> FloatArray:
        """‖B_j‖ of every direction, (r,): ‖B_j‖ Z_j are coefficients in an orthonormal basis."""
        return np.sqrt(self.squared_norms)

    @cached_property
    def squared_norms(self) -> FloatArray:
        """‖B_j‖² of every direction, (r,)."""
        return np.square(self.basis) if self.basis.ndim == 1 else np.square(self.basis).sum(axis=0)

    @property
    def n_dropped(self) -> int:
        """Number of null directions left out."""
        return len(self.design.scale) - self.rank

    @property
    def in_whitened_basis(self) -> "BasisFeatures":
        """The same features in their whitened basis."""
        return self.rotated or self

    @cached_property
    def gram(self) -> FloatArray:
        """Weighted second moments of features in their own basis, (D, D)."""
        matrix = self.design.matrix if self.matrix is None else self.matrix
        return replace(self.design, matrix=matrix).gram()

    def coefficients(self, z: FloatArray) -> FloatArray:
        """γ = Bz of the standardised features, (D, A)."""
        return _apply(self.basis, z)

    def adjoint(self, slopes: FloatArray) -> FloatArray:
        """Slopes by z from those by γ (D, A): the transpose of ``coefficients``."""
        return _apply(self.basis.T, slopes)

    def coordinates(self, gamma: FloatArray) -> FloatArray:
        """The z with Bz nearest to coefficients γ (D, A): the inverse of ``coefficients``."""
        return _apply(self.basis.T, gamma) / self.squared_norms[:, None]

    def factors(self, layer: "Layer", rank: int) -> "Factors":
        """A layer on the standardised features, with empty components up to ``rank``."""
        unused = rank - layer.U.shape[1]  # features may span fewer directions than asked for
        U = np.pad(layer.U, ((0, 0), (0, unused)))
        V = np.pad(self.coefficients(layer.Z).T, ((0, unused), (0, 0)))
        return U, V, layer.intercept, np.exp(layer.log_sigma)

    def dependent_columns(self) -> BoolArray:
        """Columns with a share in the directions that were left out, (D,)."""
        if self.basis.ndim == 1:
            return np.zeros(len(self.basis), dtype=np.bool_)
        unit = self.basis / self.norms
        return np.asarray(np.square(unit).sum(axis=1) < 1.0 - 1e-6)

    def nearly_dependent_columns(self) -> BoolArray:
        """Columns with a share in directions of hardly any variance, (D,)."""
        if self.basis.ndim == 1:
            return np.zeros(len(self.basis), dtype=np.bool_)
        variance = (1.0 - self.ridge) / self.squared_norms
        thin = (self.basis / self.norms)[:, variance < _HARDLY_ANY * variance.max(initial=0.0)]
        return np.asarray(np.square(thin).sum(axis=1) > 0.01)

    def blocks(self, *, single: bool = False) -> "Iterator[tuple[slice, FeatureRows]]":
        """The rows, block by block.

        Dense rows can be had in ``single`` precision: twice as fast, for search directions only.
        """
        if self.matrix is not None:
            matrix = self._single if single else self.matrix
            for rows in row_blocks(self.n_samples, sparse=False):
                yield rows, FeatureRows(matrix[rows])
            return
        to_raw = (self.basis.T / self.design.scale).T
        rest = self.design.rest
        shift = rest * to_raw if to_raw.ndim == 1 else rest @ to_raw
        for rows in row_blocks(self.n_samples, sparse=True):
            yield rows, FeatureRows(self.design.matrix[rows], to_raw, shift)

    @cached_property
    def _single(self) -> Any:
        assert self.matrix is not None
        return self.matrix.astype(np.float32)


def features_for(design: Design, penalty: Penalty, *, overwrite: bool = False) -> BasisFeatures:
    """The features in the basis that suits a penalty on V; ``overwrite`` as in ``whitened``.

    Examples
    --------
    >>> from deeptobit.penalties import Group, Ridge
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> design = Design.build(X, np.full(20, 1 / 20), center=True, standardize=True)
    >>> features_for(design, Ridge()).basis.ndim, features_for(design, Group()).basis
    (2, array([1., 1., 1.]))
    """
    if penalty.rotation_invariant:
        return BasisFeatures.whitened(design, BASIS_RIDGE, overwrite=overwrite)
    whitened = BasisFeatures.whitened(design, BASIS_RIDGE)
    return replace(BasisFeatures.own(design), design=whitened.design, rotated=whitened)


@dataclass(frozen=True)
class FeatureRows:
    """Some rows of the features; sparse ones are centred, scaled and rotated on the fly.

    Parameters
    ----------
    matrix : array of shape (n, r), or CSR matrix of shape (n, D)
    to_raw, shift : arrays, optional
        Of sparse rows: the basis over the scales of the features, and the mean in that basis.
    """

    matrix: Any
    to_raw: FloatArray | None = None
    shift: Any = None

    def __matmul__(self, z: Any) -> Any:
        """Rows times z (r, A)."""
        if self.to_raw is None:
            return self.matrix @ z.astype(self.matrix.dtype, copy=False)
        return self.matrix @ _apply(self.to_raw, z) - self.shift @ z

    def adjoint(self, values: Any) -> Any:
        """Transposed rows times values (n, A)."""
        product = self.matrix.T @ values
        if self.to_raw is None:
            return product
        return _apply(self.to_raw.T, product) - np.outer(self.shift, values.sum(axis=0))

    def dense(self) -> FloatArray:
        """The rows themselves, (n, r)."""
        return np.asarray(self.matrix if self.to_raw is None else self @ np.eye(len(self.shift)))


def _apply(basis: FloatArray, vectors: FloatArray) -> FloatArray:
    """A basis, full (D, r) or diagonal (D,), times vectors (r, A)."""
    return np.asarray(basis[:, None] * vectors if basis.ndim == 1 else basis @ vectors)


def _find_basis(design: Design, alpha: float) -> tuple[FloatArray, FloatArray]:
    n_samples, n_features = design.shape
    if n_features > n_samples and n_samples <= _MAX_GRAM and not design.is_sparse:
        root = np.sqrt(design.weight)[:, None] * design.matrix
        return _whitened_basis(*wide_spectrum(root), alpha)
    if n_features <= _MAX_GRAM:
        values, vectors = np.linalg.eigh(design.gram())
        basis, ridge = _whitened_basis(values, vectors, alpha)
        # A sparse column that is constant keeps its values, and a trace of it would be large.
        basis[design.vanishing] = 0.0
        kept = basis.any(axis=0)  # a direction of such columns alone is left with nothing
        return basis[:, kept], ridge[kept]
    diagonal = np.ones(n_features)
    return diagonal / np.sqrt(1.0 + alpha), diagonal * alpha / (1.0 + alpha)


def _whitened_basis(
    values: FloatArray, vectors: FloatArray, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """B and the ridge from the spectrum of G.

    A direction is kept if something determines its coefficient: the rows, or a ridge that is meant
    as a penalty. What is rounding and nothing else is left out in any case.
    """
    largest = values.max(initial=np.finfo(np.float64).tiny)
    penalty = alpha if alpha > BASIS_RIDGE else 0.0
    keep = values + penalty > _RELATIVE_RANK * largest
    keep &= values > len(values) * np.finfo(np.float64).eps * largest
    values, vectors = values[keep], vectors[:, keep]
    return vectors / np.sqrt(values + alpha), alpha / (values + alpha)


def wide_spectrum(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of RᵀR with non-zero values, (r,) and (D, r), from RRᵀ of rows R (N, D), N < D."""
    values, vectors = eigenpairs(rows @ rows.T)
    return values, rows.T @ vectors / np.sqrt(values)


def eigenpairs(products: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenpairs of a positive semidefinite matrix whose values are not rounding alone."""
    values, vectors = np.linalg.eigh(products)
    keep = values > _RELATIVE_RANK * values.max(initial=np.finfo(np.float64).tiny)
    return values[keep], vectors[:, keep]


# U (T, R), V (R, D), intercept and σ (T,) of a layer.
Factors = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


class Layer(NamedTuple):
    """Parameters in standard units: U (T, R), Z (r, R) with V = (BZ)ᵀ, intercept and log σ (T,)."""

    U: FloatArray
    Z: FloatArray
    intercept: FloatArray
    log_sigma: FloatArray


class Units(NamedTuple):
    """Centre and scale of a layer's inputs (D,), location and spread of its outcomes (T,).

    Examples
    --------
    >>> units = Units(np.array([10.0]), np.array([2.0]), np.array([5.0]), np.array([4.0]))
    >>> one = np.ones((1, 1))
    >>> U, V, intercept, sigma = units.to_user((one, one, np.zeros(1), np.ones(1)))
    >>> (U @ V).item(), intercept.item(), sigma.item()
    (2.0, -15.0, 4.0)
    """

    mean: FloatArray
    scale: FloatArray
    location: FloatArray
    spread: FloatArray

    def to_user(self, factors: Factors) -> Factors:
        """The same layer for raw inputs and raw outcomes."""
        U, V, intercept, sigma = factors
        U, V = U * self.spread[:, None], V / self.scale
        shift = U @ (V @ self.mean)
        return U, V, self.location + self.spread * intercept - shift, self.spread * sigma

    def to_standard(self, factors: Factors) -> Factors:
        """The inverse of :meth:`to_user`."""
        U, V, intercept, sigma = factors
        centred = intercept + U @ (V @ self.mean) - self.location
        scaled = centred / self.spread
        return U / self.spread[:, None], V * self.scale, scaled, sigma / self.spread


@dataclass(frozen=True)
class TargetScaling:
    """Location and scale per task, from the recorded values (a bound counts as its value).

    Parameters
    ----------
    location, scale : arrays of shape (T,)
    """

    location: FloatArray
    scale: FloatArray

    @classmethod
    def build(cls, targets: CensoredTargets, weight: FloatArray, *, center: bool) -> Self:
        """Weighted mean and standard deviation of the recorded values.

        Examples
        --------
        >>> targets = CensoredTargets.from_bounds([[0.0], [2.0], [np.nan]], lower=0)
        >>> TargetScaling.build(targets, np.full(3, 1 / 3), center=True).scale
        array([1.])
        """
        share = np.where(targets.missing, 0.0, weight[:, None])
        share /= share.sum(axis=0)
        values = np.where(targets.missing, 0.0, targets.values)
        mean = (share * values).sum(axis=0)
        error = values - mean
        rounding = (share * error).sum(axis=0)
        variance = (share * np.square(error)).sum(axis=0) - np.square(rounding)
        return cls.of_moments(mean + rounding, np.maximum(variance, 0.0), center=center)

    @classmethod
    def of_moments(cls, mean: FloatArray, variance: FloatArray, *, center: bool) -> Self:
        """From means and variances of the recorded values, each (T,)."""
        spread = np.sqrt(variance if center else variance + mean**2)
        # A constant score has no spread; its own size, or 1, is a unit as good as any.
        tiny = 64 * np.finfo(np.float64).eps * np.abs(mean)
        size = np.where(mean == 0.0, 1.0, np.abs(mean))
        scale = np.where(spread > tiny, spread, size)
        return cls(mean if center else np.zeros_like(mean), scale)

    def apply(self, ends: FloatArray, tasks: np.ndarray | slice = slice(None)) -> FloatArray:
        """Ends of intervals (n, A) of some tasks, in standard units."""
        scaled = ends - self.location[tasks]
        scaled /= self.scale[tasks]
        return scaled


def to_user(features: BasisFeatures, scaling: TargetScaling, layer: Layer, rank: int) -> Factors:
    """U (T, R), V (R, D), intercept and σ (T,), with empty components up to ``rank``."""
    return _units(features, scaling).to_user(features.factors(layer, rank))


def coefficients_to_user(
    design: Design, scaling: TargetScaling, W: FloatArray, intercept: FloatArray, sigma: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coefficients (T, D), intercepts and σ (T,) for raw inputs and raw outcomes."""
    coef = scaling.scale[:, None] * W / design.scale
    intercept = scaling.location + scaling.scale * intercept - coef @ design.mean
    return coef, intercept, scaling.scale * sigma


def to_standard(
    features: BasisFeatures, scaling: TargetScaling, factors: Factors, rank: int
) -> Layer:
    """The inverse of :func:`to_user`: of a model's first ``rank`` components."""
    U, V, intercept, sigma = _units(features, scaling).to_standard(factors)
    return Layer(U[:, :rank], features.coordinates(V[:rank].T), intercept, np.log(sigma))


def _units(features: BasisFeatures, scaling: TargetScaling) -> Units:
    design = features.design
    return Units(design.mean, design.scale, scaling.location, scaling.scale)
