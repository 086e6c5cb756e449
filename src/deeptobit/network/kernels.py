"""Walks through trees, compiled: scores, and contributions of features.

``nodes`` are the arrays of :class:`Trees` with one number per node, in its order.
"""

from typing import Any

import numpy as np

from deeptobit.likelihood.kernels import jit


@jit
def _goes_left(x: float, threshold: float, missing_left: bool) -> bool:
    return missing_left if np.isnan(x) else x <= threshold


@jit
def add_scores(X: Any, nodes: Any, roots: Any, output: Any, scores: Any) -> None:
    """Add the value of the leaf that each row reaches from each root."""
    feature, threshold, left, right, missing_left, value, _ = nodes
    for row in range(len(X)):
        for tree in range(len(output)):
            at = roots[tree]
            while feature[at] >= 0:
                goes = _goes_left(X[row, feature[at]], threshold[at], missing_left[at])
                at = left[at] if goes else right[at]
            scores[row, output[tree]] += value[at]


@jit
def add_contributions(X: Any, nodes: Any, first: Any, output: Any, found: Any) -> None:
    """Leaf by leaf, up its path: for every feature on it whether the row follows, and the share."""
    feature, threshold, left, right, missing_left, value, cover = nodes
    deepest = np.diff(first).max() // 2 + 1 if len(output) else 1
    path = np.empty(deepest, dtype=np.int64)  # features on the path of a leaf, each once
    known, share = np.empty(deepest), np.empty(deepest)
    poly = np.empty(deepest + 1)
    parent = np.empty(len(feature), dtype=np.int64)
    for at in range(len(feature)):
        if feature[at] >= 0:
            parent[left[at]] = parent[right[at]] = at
    for tree in range(len(output)):
        for leaf in range(first[tree], first[tree + 1]):
            if feature[leaf] >= 0:
                continue
            for row in range(len(X)):
                n, child = 0, leaf
                while child != first[tree]:
                    at = parent[child]
                    d = feature[at]
                    goes = _goes_left(X[row, d], threshold[at], missing_left[at])
                    part = cover[child] / cover[at] if cover[at] > 0.0 else 0.5
                    place = 0
                    while place < n and path[place] != d:
                        place += 1
                    if place == n:
                        path[n], known[n], share[n] = d, 1.0, 1.0
                        n += 1
                    known[place] *= 1.0 if goes == (left[at] == child) else 0.0
                    share[place] *= part
                    child = at
                for j in range(n):
                    poly[0] = 1.0  # Π (share + known t) over the other features
                    size = 0
                    for i in range(n):
                        if i != j:
                            poly[size + 1] = poly[size] * known[i]
                            for k in range(size, 0, -1):
                                poly[k] = poly[k] * share[i] + poly[k - 1] * known[i]
                            poly[0] *= share[i]
                            size += 1
                    total, weight = 0.0, 1.0 / n  # s!(n − 1 − s)!/n! of subsets of size s
                    for s in range(n):
                        total += weight * poly[s]
                        if s < n - 1:
                            weight *= (s + 1.0) / (n - 1.0 - s)
                    gain = value[leaf] * (known[j] - share[j]) * total
                    found[row, output[tree], path[j]] += gain
