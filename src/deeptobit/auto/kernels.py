"""The two loops of the default model, compiled: the E-step of a layer, and growing a tree."""

from typing import Any

from deeptobit.arrays import FloatArray
from deeptobit.likelihood.kernels import is_closed, jit, open_entry
from deeptobit.online.kernels import two_sided


@jit
def fill_moments(ends: Any, fitted: FloatArray, sigma: FloatArray, moments: FloatArray) -> None:
    """Write mean and variance of ε given low ≤ σ(η + ε) ≤ high.

    Parameters
    ----------
    ends : tuple of arrays of shape (N, T)
        Low and high.
    fitted : array of shape (N, T)
        η, in units of σ.
    sigma : array of shape (T,)
    moments : array of shape (2, N, T)
    """
    low, high = ends
    for row in range(fitted.shape[0]):
        for task in range(fitted.shape[1]):
            start, end, eta = low[row, task], high[row, task], fitted[row, task]
            precision = 1.0 / sigma[task]
            a, b = start * precision - eta, end * precision - eta
            if is_closed(start, end):
                _, slope, _, curvature, _, _ = two_sided(a, b)
            else:
                _, _, slope, curvature, _ = open_entry(a, b)
            moments[0, row, task] = 0.0 - slope
            moments[1, row, task] = max(1.0 - curvature, 0.0)


# One tree on gradients and curvatures: the leaf whose split gains most is split first.
#
# A node is a row of integers: feature, last bin on the left, whether missing values go left, left
# and right child (0 in a leaf), first and last place of its rows, slot of its histogram; and a row
# of numbers: gradient G, curvature H, gain of its best split, value −G/(H + ridge).


@jit
def _fill(codes: Any, rows: Any, gradient: Any, curvature: Any, sums: Any, number: Any) -> None:
    """Sums of gradients and curvatures of the rows of a leaf, in every bin and in all."""
    sums[:] = 0.0
    number[:2] = 0.0
    for row in rows:
        g, h = gradient[row], curvature[row]
        number[0] += g
        number[1] += h
        for feature in range(codes.shape[1]):
            cell = codes[row, feature]
            sums[feature, cell, 0] += g
            sums[feature, cell, 1] += h


@jit
def _find(sums: Any, n_bins: Any, growth: Any, node: Any, number: Any) -> None:
    """Write the best split of a leaf and what it gains; feature −1 if there is none."""
    least, ridge, gradient, curvature = growth.least, growth.ridge, number[0], number[1]
    node[0], number[2] = -1, 0.0
    if curvature < 2.0 * least:
        return
    whole = gradient * gradient / (curvature + ridge)
    for column in range(len(n_bins)):
        table, n = sums[column], n_bins[column]
        lost_g, lost_h = table[n, 0], table[n, 1]
        for side in range(2 if lost_h > 0.0 else 1):
            g, h = (lost_g, lost_h) if side == 1 else (0.0, 0.0)
            for b in range(n if lost_h > 0.0 and side == 0 else n - 1):
                g += table[b, 0]
                h += table[b, 1]
                if h < least:
                    continue
                rest_g, rest_h = gradient - g, curvature - h
                if rest_h < least:
                    break
                a, c = h + ridge, rest_h + ridge
                gain = (g * g * c + rest_g * rest_g * a) / (a * c) - whole
                if gain > number[2]:
                    number[2], node[0], node[1], node[2] = gain, column, b, side


@jit
def _subtract(sums: Any, part: Any) -> None:
    """In place: an expression would fill new memory first, and take ten times as long."""
    for place in range(len(sums)):
        sums[place] -= part[place]


@jit
def grow_tree(
    codes: Any, n_bins: Any, rows: Any, gradient: Any, curvature: Any, growth: Any, memory: Any
) -> int:
    """Grow a tree for some rows into ``node`` and ``number``; returns its number of nodes."""
    histograms, order, spare, node, number = memory
    n_nodes, n_leaves = 1, 1
    order[: len(rows)] = rows
    node[0, 3], node[0, 5], node[0, 6], node[0, 7] = 0, 0, len(rows), 0
    _fill(codes, rows, gradient, curvature, histograms[0], number[0])
    _find(histograms[0], n_bins, growth, node[0], number[0])
    while n_leaves < growth.leaves:
        parent, best = -1, 1e-12
        for at in range(n_nodes):
            if node[at, 3] == 0 and number[at, 2] > best:
                parent, best = at, number[at, 2]
        if parent < 0:
            break
        feature, cut, side = node[parent, 0], node[parent, 1], node[parent, 2]
        begin, end, lost = node[parent, 5], node[parent, 6], n_bins[feature]
        middle, n_right = begin, 0
        for place in range(begin, end):
            row = order[place]
            cell = codes[row, feature]
            if (side == 1) if cell == lost else (cell <= cut):
                order[middle] = row
                middle += 1
            else:
                spare[n_right] = row
                n_right += 1
        order[middle:end] = spare[:n_right]
        left, right, slot = n_nodes, n_nodes + 1, node[parent, 7]
        node[parent, 3], node[parent, 4] = left, right
        node[left, 5], node[left, 6], node[right, 5], node[right, 6] = begin, middle, middle, end
        # The histogram of the smaller child is summed, that of the larger one is the rest.
        small, large = (left, right) if middle - begin <= end - middle else (right, left)
        node[small, 7], node[large, 7] = n_leaves, slot
        part = order[node[small, 5] : node[small, 6]]
        _fill(codes, part, gradient, curvature, histograms[n_leaves], number[small])
        number[large, :2] = number[parent, :2] - number[small, :2]
        _subtract(histograms[slot].reshape(-1), histograms[n_leaves].reshape(-1))
        n_leaves, n_nodes = n_leaves + 1, n_nodes + 2
        for child in (left, right):
            node[child, 3], number[child, 2] = 0, 0.0
            if n_leaves < growth.leaves:
                _find(histograms[node[child, 7]], n_bins, growth, node[child], number[child])
    for at in range(n_nodes):
        number[at, 3] = -number[at, 0] / (number[at, 1] + growth.ridge)
        if node[at, 3] == 0:
            node[at, 0], node[at, 4] = -1, 0
    return n_nodes


@jit
def add_tree(codes: Any, n_bins: Any, node: Any, number: Any, rate: float, scores: Any) -> None:
    """Add a tree's values to the scores of all rows."""
    for row in range(len(codes)):
        at = 0
        while node[at, 0] >= 0:
            feature = node[at, 0]
            cell = codes[row, feature]
            left = (node[at, 2] == 1) if cell == n_bins[feature] else (cell <= node[at, 1])
            at = node[at, 3] if left else node[at, 4]
        scores[row] += rate * number[at, 3]
