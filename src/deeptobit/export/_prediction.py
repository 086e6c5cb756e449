"""From features to a prediction, node by node."""

from __future__ import annotations

from typing import Literal

from deeptobit.export._censored_mean import censored_mean, clip
from deeptobit.export._graph import DOUBLE, Graph
from deeptobit.export._scores import CensoredScores, ScoreLayer


def write_prediction(
    graph: Graph,
    X: str,
    model: CensoredScores,
    kind: Literal["mean", "clip", "latent"],
    *,
    output: str,
    element_type: int,
) -> None:
    """Add the nodes that predict (N, T) from features (N, D).

    All is computed in double precision and rounded once, at the end: an intercept may be the
    small difference of large numbers.

    Parameters
    ----------
    graph : Graph
    X, output : str
        Names of what is read and written.
    model : CensoredScores
    kind : {"mean", "clip", "latent"}
    element_type : int
        Of the output, as ONNX numbers it.

    Examples
    --------
    >>> import numpy as np
    >>> layer = ScoreLayer((np.ones((3, 1)),), np.zeros(1))
    >>> model = CensoredScores((layer,), np.ones(1), np.zeros(1), np.full(1, 9.0), ("x",), ("y",))
    >>> graph = Graph()
    >>> write_prediction(graph, "X", model, "clip", output="clip", element_type=1)
    >>> [node.operator for node in graph.nodes]
    ['Cast', 'MatMul', 'Add', 'Max', 'Min', 'Cast']
    """
    if kind == "mean" and model.noise != "gaussian":
        raise ValueError(
            f"the censored mean can be exported to ONNX for Gaussian noise; this model has "
            f"{model.noise} noise. Fit it with noise='gaussian', or export kind='clip' or "
            "kind='latent', which do not depend on the noise"
        )
    features = graph.add("Cast", X, to=DOUBLE)
    first, *above = model.layers
    score = _score(graph, features, first)
    for layer in above:
        below = clip(graph, score, model.lower, model.upper)
        sees_features = len(layer.factors[0]) > len(model.sigma)
        inputs = graph.add("Concat", below, features, axis=1) if sees_features else below
        score = _score(graph, inputs, layer)
    if kind == "clip":
        score = clip(graph, score, model.lower, model.upper)
    if kind == "mean":
        score = censored_mean(graph, score, model.sigma, model.lower, model.upper)
    graph.add("Cast", score, to=element_type, output=output)


def _score(graph: Graph, inputs: str, layer: ScoreLayer) -> str:
    for factor in layer.factors:
        inputs = graph.add("MatMul", inputs, factor)
    return graph.add("Add", inputs, layer.intercept)
