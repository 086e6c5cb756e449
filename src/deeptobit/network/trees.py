"""Trees as arrays: the layer below the first, f(x), and what each feature contributes to it."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray

Numbers = NDArray[np.int32]
_OF_NODES = 7  # fields with one number per node


@dataclass(frozen=True, eq=False)
class Trees:
    r"""Sums of regression trees, :math:`f_k(x) = start_k + \sum_{trees\ of\ k} value(leaf(x))`.

    The nodes of all trees stand one after the other, a tree's root first and children behind
    their parents. A row goes left at a node if ``x[feature] <= threshold``, or, where its feature
    is missing (NaN), if ``missing_left``. Layers see [f; x] (:func:`latents`).

    Parameters
    ----------
    feature : int array of shape (M,)
        −1 in a leaf.
    threshold : array of shape (M,)
    left, right : int arrays of shape (M,)
        Children, by their places in these arrays; 0 in a leaf.
    missing_left : bool array of shape (M,)
    value : array of shape (M,)
        In a leaf what it adds, in units of the outcome; in other nodes the mean over the training
        rows that reached them.
    cover : array of shape (M,)
        Weight of these rows.
    first : int array of shape (n_trees + 1,)
        Where each tree begins; the last number is M.
    output : int array of shape (n_trees,)
        The k of each tree.
    start : array of shape (K,)
    tasks : int array of shape (K,)
        The outcome that f_k was grown for.

    Examples
    --------
    >>> stump = Trees.join([(
    ...     np.array([0, -1, -1]), np.array([2.0, 0.0, 0.0]), np.array([1, 0, 0]),
    ...     np.array([2, 0, 0]), np.zeros(3, bool), np.array([0.0, -1.0, 1.0]), np.ones(3))],
    ...     output=[0], start=[5.0], tasks=[0])
    >>> stump(np.array([[1.0], [2.0], [3.0], [np.nan]])).ravel()
    array([4., 4., 6., 6.])
    """

    feature: Numbers
    threshold: FloatArray
    left: Numbers
    right: Numbers
    missing_left: BoolArray
    value: FloatArray
    cover: FloatArray
    first: Numbers
    output: Numbers
    start: FloatArray
    tasks: Numbers

    def __post_init__(self) -> None:
        """Refuse arrays that are not trees: a walk through them must end, and inside of them."""
        nodes = [getattr(self, field.name) for field in fields(self)[:_OF_NODES]]
        n_nodes, inner = len(self.feature), self.feature >= 0
        if any(part.shape != (n_nodes,) for part in nodes) or n_nodes > np.iinfo(np.int32).max:
            raise ValueError("the arrays of nodes differ in length")
        if any(part.ndim != 1 for part in (self.first, self.output, self.start, self.tasks)):
            raise ValueError("its arrays are not one-dimensional")
        sizes = np.diff(self.first)
        if len(self.first) != len(self.output) + 1 or self.first[0] != 0 or (sizes < 1).any():
            raise ValueError("trees do not follow each other")
        if self.first[-1] != n_nodes or len(self.tasks) != len(self.start):
            raise ValueError("trees and nodes, or outcomes and their starts, differ in number")
        if ((self.output < 0) | (self.output >= len(self.start))).any() or (self.tasks < 0).any():
            raise ValueError("a tree belongs to no outcome")
        end = np.repeat(self.first[1:], sizes)
        for child in (self.left, self.right):
            astray = inner & ((child <= np.arange(n_nodes)) | (child >= end))
            if astray.any():
                raise ValueError(f"node {int(np.argmax(astray))} has a child that is not behind it")
        children = np.concatenate([self.left[inner], self.right[inner]])
        parents = np.bincount(children, minlength=n_nodes)
        parents[self.first[:-1]] += 1
        if (parents != 1).any():
            raise ValueError(f"node {int(np.argmax(parents != 1))} has no parent, or two")
        numbers = (self.threshold, self.value, self.cover, self.start)
        if not all(np.isfinite(part).all() for part in numbers) or (self.cover < 0.0).any():
            raise ValueError("thresholds, values and covers are not finite, or below 0")

    @classmethod
    def join(cls, grown: list[tuple[Any, ...]], *, output: Any, start: Any, tasks: Any) -> "Trees":
        """From trees whose children are counted within each tree.

        Parameters
        ----------
        grown : list of tuples
            Feature, threshold, left, right, missing_left, value and cover of every tree.
        output, start, tasks
            As above.
        """
        sizes = np.array([len(tree[0]) for tree in grown], dtype=np.int64)
        first = np.append(0, np.cumsum(sizes))
        kinds = (np.int32, np.float64, np.int32, np.int32, np.bool_, np.float64, np.float64)
        columns: list[Any] = [
            np.concatenate([np.empty(0, kind), *(tree[place] for tree in grown)]).astype(kind)
            for place, kind in enumerate(kinds)
        ]
        shift = np.repeat(first[:-1], sizes)
        for place in (2, 3):
            columns[place] = np.where(columns[0] >= 0, columns[place] + shift, 0).astype(np.int32)
        columns += [np.asarray(part, dtype=np.int32) for part in (first, output)]
        columns += [np.array(start, dtype=np.float64), np.array(tasks, dtype=np.int32)]
        return cls(*columns)

    @property
    def _walk(self) -> tuple[Any, Any, Any]:
        """What walks through the trees need: their nodes, where they begin, and their outputs."""
        nodes = tuple(getattr(self, field.name) for field in fields(self)[:_OF_NODES])
        return nodes, self.first, self.output

    def __call__(self, X: Any) -> FloatArray:
        """Scores f(x) of the rows of X, (N, K)."""
        from deeptobit.network import kernels

        X = _dense(X)
        scores = np.tile(self.start, (len(X), 1))
        kernels.add_scores(X, *self._walk, scores)
        return scores

    def contributions(self, X: Any) -> FloatArray:
        r"""Shapley values of the features, (N, K, D), path-dependent: f = mean + their sum.

        A feature that is not known is averaged over the training rows of the node, by ``cover``
        (tree SHAP). A leaf is then a product over the features on its path, of 1 or 0 where the
        feature is known, and of a share of rows where it is not; the Shapley value of a product
        is a sum over subsets of each size, the coefficients of a polynomial.
        """
        from deeptobit.network import kernels

        X = _dense(X)
        found = np.zeros((len(X), len(self.start), X.shape[1]))
        kernels.add_contributions(X, *self._walk, found)
        return found

    def means(self) -> FloatArray:
        """Mean of f over the training rows of its trees, (K,)."""
        roots = self.value[self.first[:-1]]
        return self.start + np.bincount(self.output, roots, minlength=len(self.start))

    def changes(self, X: Any, width: FloatArray) -> FloatArray:
        """Change of every row per unit of a feature, from x − width/2 to x + width/2, (n, K, D)."""
        from deeptobit.network import kernels

        X = _dense(X)
        changes = np.zeros((len(X), len(self.start), X.shape[1]))
        nodes, first, output = self._walk
        tree_of = np.repeat(np.arange(len(output)), np.diff(first))
        for moved in np.unique(self.feature[self.feature >= 0]).tolist():
            trees, shifted = np.unique(tree_of[self.feature == moved]), X.copy()
            scores = np.zeros((2, *changes.shape[:2]))
            for step, side in zip((0.5, -0.5), scores, strict=True):
                shifted[:, moved] = X[:, moved] + step * width[moved]
                kernels.add_scores(shifted, nodes, first[trees], output[trees], side)
            changes[:, :, moved] = scores[0] - scores[1]
        return changes / np.where(width > 0.0, width, 1.0)


def _dense(X: Any) -> FloatArray:
    rows = X.toarray() if hasattr(X, "toarray") else X
    return np.ascontiguousarray(rows, dtype=np.float64)
