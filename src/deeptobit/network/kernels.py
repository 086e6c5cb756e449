"""Walks through trees, compiled: scores, contributions of features, and what a step changes."""

from typing import Any

import numpy as np

from deeptobit.likelihood.kernels import jit


@jit
def _goes_left(x: float, threshold: float, missing_left: bool) -> bool:
    return missing_left if np.isnan(x) else x <= threshold


@jit
def add_scores(
    X: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    value: Any,
    first: Any,
    output: Any,
    scores: Any,
) -> None:
    """Add the value of the leaf that each row reaches in each tree."""
    for row in range(len(X)):
        for tree in range(len(output)):
            at = first[tree]
            while feature[at] >= 0:
                x = X[row, feature[at]]
                at = left[at] if _goes_left(x, threshold[at], missing_left[at]) else right[at]
            scores[row, output[tree]] += value[at]


@jit
def add_changes(
    X: Any,
    width: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    value: Any,
    first: Any,
    output: Any,
    changes: Any,
) -> None:
    """Add what the score of each row changes when one feature goes from half a step below."""
    for tree in range(len(output)):
        for node in range(first[tree], first[tree + 1]):
            moved = feature[node]
            for before in range(first[tree], node):  # every feature of the tree once
                moved = -1 if feature[before] == moved else moved
            if moved < 0:
                continue
            for row in range(len(X)):
                for sign in (-0.5, 0.5):
                    at = first[tree]
                    while feature[at] >= 0:
                        x = X[row, feature[at]]
                        if feature[at] == moved:
                            x += sign * width[moved]
                        stays = _goes_left(x, threshold[at], missing_left[at])
                        at = left[at] if stays else right[at]
                    changes[output[tree], moved] += 2.0 * sign * value[at]


@jit
def add_contributions(
    X: Any,
    feature: Any,
    threshold: Any,
    left: Any,
    right: Any,
    missing_left: Any,
    value: Any,
    cover: Any,
    first: Any,
    output: Any,
    deepest: int,
    found: Any,
) -> None:
    """Leaf by leaf, up its path: for every feature on it whether the row follows, and the share."""
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
                    follows = _goes_left(X[row, d], threshold[at], missing_left[at]) == (
                        left[at] == child
                    )
                    part = cover[child] / cover[at] if cover[at] > 0.0 else 0.5
                    place = 0
                    while place < n and path[place] != d:
                        place += 1
                    if place == n:
                        path[n], known[n], share[n] = d, 1.0, 1.0
                        n += 1
                    known[place] *= 1.0 if follows else 0.0
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
