"""A graph of array operations, written down before any library reads it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from deeptobit.arrays import FloatArray

FLOAT, DOUBLE = 1, 11  # element types, numbered by the ONNX standard


class Node(NamedTuple):
    """An operator of the ONNX standard, and the names of what it reads and writes."""

    operator: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, int]


class Graph:
    """Nodes in the order of their computation, and the double-precision constants they read.

    Parameters
    ----------
    prefix : str
        Of every name that the graph gives.

    Examples
    --------
    >>> graph = Graph("demo_")
    >>> product = graph.add("MatMul", "X", np.eye(2))
    >>> graph.add("Add", product, [1.0, 2.0], output="Y")
    'Y'
    >>> [f"{node.output} = {node.operator}({', '.join(node.inputs)})" for node in graph.nodes]
    ['demo_MatMul1 = MatMul(X, demo_c0)', 'Y = Add(demo_MatMul1, demo_c2)']
    >>> graph.constants["demo_c2"]
    array([1., 2.])
    """

    def __init__(self, prefix: str = "") -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, FloatArray] = {}
        self._prefix = prefix

    def add(
        self, operator: str, *inputs: str | ArrayLike, output: str | None = None, **attributes: int
    ) -> str:
        """Append a node and return the name of its output; inputs are names, or constants."""
        names = tuple(given if isinstance(given, str) else self._hold(given) for given in inputs)
        output = output or self._name(operator)
        self.nodes.append(Node(operator, names, output, attributes))
        return output

    def _hold(self, constant: ArrayLike) -> str:
        name = self._name("c")
        self.constants[name] = np.ascontiguousarray(constant, dtype=np.float64)
        return name

    def _name(self, kind: str) -> str:
        return f"{self._prefix}{kind}{len(self.nodes) + len(self.constants)}"
