"""Predictions as ONNX: a fitted model becomes a graph of array operations."""

import json
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike
from scipy.special import erfcx
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.extras import require
from deeptobit.likelihood import Predictive
from deeptobit.network import Trees

Output = Literal["mean", "clip", "latent", "p_lower", "p_upper", "quantile"]
Precision = Literal["float32", "float64"]

_EXTRA = "onnx"
# Operators as they have been since 2022, so that runtimes of that year can read the file.
_OPERATOR_SET, _FILE_VERSION = 17, 8
_TREE_DOMAIN, _TREE_OPERATOR_SET = "ai.onnx.ml", 3
_FLOAT, _DOUBLE = 1, 11  # element types, numbered by the ONNX standard
_ACCURACY = 1e-5  # of a target's range, promised in single precision
_CENTRE = 4.0  # t = 0 there; of 2, 3, 4 and 5 the one that needs the lowest degree
_DEGREE = 16  # an error of the tail below 1e-12
_FARTHEST = 40.0  # the tail is 0 in double precision beyond, and open ends are infinitely far


# A graph of array operations.


class Graph:
    """Nodes in the order of their computation, and the double-precision constants they read.

    Examples
    --------
    >>> graph = Graph()
    >>> product = graph.add("MatMul", "X", np.eye(2))
    >>> graph.add("Add", product, [1.0, 2.0], output="Y")
    'Y'
    >>> [f"{node.output[0]} = {node.op_type}({', '.join(node.input)})" for node in graph.nodes]
    ['MatMul0 = MatMul(X, c0)', 'Y = Add(MatMul0, c1)']
    """

    def __init__(self) -> None:
        self._onnx = require("onnx", _EXTRA)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(
        self, operator: str, *inputs: str | ArrayLike, output: str | None = None, **attributes: Any
    ) -> str:
        """Append a node and return the name of its output; inputs are names, or constants."""
        names = [given if isinstance(given, str) else self._constant(given) for given in inputs]
        output = output or f"{operator}{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, names, [output], **attributes))
        return output

    def _constant(self, given: ArrayLike) -> str:
        name, values = f"c{len(self.constants)}", np.ascontiguousarray(given, dtype=np.float64)
        self.constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name


# The mean of a censored normal variable, by operators that every runtime has in double precision.


def clip(graph: Graph, score: str, lower: FloatArray, upper: FloatArray) -> str:
    """Scores (N, T) held within their bounds (T,); a side that is open everywhere costs nothing."""
    if not np.isinf(lower).all():
        score = graph.add("Max", score, lower)
    if not np.isinf(upper).all():
        score = graph.add("Min", score, upper)
    return score


def censored_mean(
    graph: Graph, score: str, sigma: FloatArray, lower: FloatArray, upper: FloatArray
) -> str:
    """E[clip(score + σε)] for standard normal ε, (N, T).

    Examples
    --------
    >>> graph, bounds = Graph(), (np.zeros(1), np.full(1, np.inf))
    >>> _ = censored_mean(graph, "score", np.ones(1), *bounds)
    >>> sorted({node.op_type for node in graph.nodes})
    ['Abs', 'Add', 'Div', 'Exp', 'Max', 'Min', 'Mul', 'Sub']
    """
    mean = clip(graph, score, lower, upper)
    for end, raise_or_lower in ((lower, "Add"), (upper, "Sub")):
        if not np.isinf(end).all():
            distance = graph.add("Abs", graph.add("Div", graph.add("Sub", score, end), sigma))
            excess = graph.add("Mul", _tail(graph, distance, excess=True), sigma)
            mean = graph.add(raise_or_lower, mean, excess)
    # Rounding must not carry a prediction beyond its bounds.
    return clip(graph, mean, lower, upper)


def bound_proba(
    graph: Graph, score: str, sigma: FloatArray, end: FloatArray, *, upper: bool
) -> str:
    """P(score + σε beyond a bound) for standard normal ε, (N, T); 0 where the bound is open."""
    terms = (score, end) if upper else (end, score)
    beyond = graph.add("Div", graph.add("Sub", *terms), sigma)
    tail = _tail(graph, graph.add("Abs", beyond))
    sign = graph.add("Max", graph.add("Min", graph.add("Mul", beyond, 1e200), 1.0), -1.0)
    half = graph.add("Mul", sign, graph.add("Sub", 0.5, tail))
    return graph.add("Mul", graph.add("Add", half, 0.5), np.isfinite(end).astype(np.float64))


def _tail(graph: Graph, distance: str, *, excess: bool = False) -> str:
    """Φ(−z) at distances z ≥ 0, or the mean excess over z, φ(z) − zΦ(−z); 0 for open ends."""
    z = graph.add("Min", distance, _FARTHEST)
    half_square = graph.add("Mul", graph.add("Mul", z, z), -0.5)
    t = graph.add("Div", graph.add("Sub", _CENTRE, z), graph.add("Add", z, _CENTRE))
    constant, *between, last = tail_factor().tolist()
    value = graph.add("Mul", t, last)
    for coefficient in reversed(between):  # Horner's scheme
        value = graph.add("Mul", graph.add("Add", value, coefficient), t)
    value = graph.add("Add", value, constant)
    if excess:
        value = graph.add("Sub", norm.pdf(0.0), graph.add("Mul", z, value))
    return graph.add("Mul", graph.add("Exp", half_square), value)


@cache
def tail_factor() -> FloatArray:
    r"""Coefficients of p, lowest power first: :math:`p(t) = e^{z^2/2} \Phi(-z)` for all z ≥ 0."""
    t = chebyshev.chebpts1(_DEGREE + 1)
    values = 0.5 * erfcx(_CENTRE * (1.0 - t) / (1.0 + t) / np.sqrt(2.0))
    return np.asarray(chebyshev.cheb2poly(chebyshev.chebfit(t, values, _DEGREE)), dtype=np.float64)


# Trees, by the operator that all runtimes have for them.


def tree_scores(graph: Graph, features: str, trees: Trees) -> str:
    """f(x) of the trees below the first layer, (N, K).

    The operator rounds its sums to single precision; the starts are added in double.
    """
    sizes = np.diff(trees.first)
    tree, first = np.repeat(np.arange(len(sizes)), sizes), np.repeat(trees.first[:-1], sizes)
    is_leaf = trees.feature < 0
    place = np.arange(len(first)) - first
    children = (np.where(is_leaf, 0, child - first) for child in (trees.left, trees.right))
    numpy_helper = require("onnx.numpy_helper", _EXTRA)
    lists = {
        "nodes_treeids": tree,
        "nodes_nodeids": place,
        "nodes_featureids": np.maximum(trees.feature, 0),
        "nodes_truenodeids": next(children),
        "nodes_falsenodeids": next(children),
        "nodes_missing_value_tracks_true": trees.missing_left.astype(np.int64),
        "target_treeids": tree[is_leaf],
        "target_nodeids": place[is_leaf],
        "target_ids": trees.output[tree[is_leaf]],
    }
    sums = graph.add(
        "TreeEnsembleRegressor",
        features,
        domain=_TREE_DOMAIN,
        n_targets=len(trees.start),
        nodes_modes=["LEAF" if leaf else "BRANCH_LEQ" for leaf in is_leaf],
        nodes_values_as_tensor=numpy_helper.from_array(trees.threshold, "thresholds"),
        target_weights_as_tensor=numpy_helper.from_array(trees.value[is_leaf], "values"),
        **{name: values.tolist() for name, values in lists.items()},
    )
    return graph.add("Add", graph.add("Cast", sums, to=_DOUBLE), trees.start)


# The mean under any other noise: a function of the score alone, from a table of cubic pieces.

_N_PIECES = 1024  # four times as many where σ is small beside the range of a scale
_NEARLY_ONE = 1.0 - 1e-7  # stands in for a score at infinity
_INT64 = 7
_INNER = np.array([0.0, 1.0, 2.0, 3.0]) / 3.0  # points of a piece that its cubic goes through


def tabulated_mean(graph: Graph, score: str, model: Any) -> str:
    r"""E[y] by the noise of the model, (N, T), as piecewise cubics of u = z/(1 + |z|).

    z is the distance of the score from the middle of the scale, or from its bound. The table holds
    the mean itself where a scale has two bounds, elsewhere its distance from the clipped score.
    """
    lower, upper, sigma = model.lower_, model.upper_, model.sigma_
    both = np.isfinite(lower) & np.isfinite(upper)
    low, high = (np.where(np.isfinite(bound), bound, 0.0) for bound in (lower, upper))
    centre = np.where(both, 0.5 * low + 0.5 * high, low + high)  # an open end counts for nothing
    half = np.where(both, 0.5 * high - 0.5 * low, 0.0)
    width = np.maximum(half, 4.0 * sigma)
    n_pieces = _N_PIECES if (half < 50.0 * sigma).all() else 4 * _N_PIECES
    table = _cubics(model, centre, width, both, n_pieces)  # (4, T, K)
    z = graph.add("Div", graph.add("Sub", score, centre), width)
    u = graph.add("Div", z, graph.add("Add", graph.add("Abs", z), 1.0))
    u = graph.add("Min", graph.add("Max", u, -_NEARLY_ONE), _NEARLY_ONE)
    place = graph.add("Mul", graph.add("Add", u, 1.0), 0.5 * n_pieces)
    piece = graph.add("Floor", place)
    t = graph.add("Sub", place, piece)
    offset = np.arange(len(sigma)) * float(n_pieces)
    # A score that is not a number has no piece; t keeps the mean from being one.
    piece = graph.add("Where", graph.add("IsNaN", piece), 0.0, piece)
    index = graph.add("Cast", graph.add("Add", piece, offset), to=_INT64)
    mean = ""
    for power in range(3, -1, -1):  # Horner's scheme
        found = graph.add("Gather", table[power].ravel(), index, axis=0)
        mean = graph.add("Add", graph.add("Mul", mean, t), found) if mean else found
    if not both.all():
        base = graph.add("Mul", clip(graph, score, lower, upper), (~both).astype(np.float64))
        mean = graph.add("Add", mean, base)
    return clip(graph, mean, lower, upper)


def _cubics(
    model: Any, centre: FloatArray, width: FloatArray, both: BoolArray, n_pieces: int
) -> FloatArray:
    """Coefficients of the pieces, lowest power first, (4, T, K)."""
    place = (np.arange(n_pieces)[:, None] + _INNER).ravel()
    u = np.clip(2.0 * place / n_pieces - 1.0, -_NEARLY_ONE, _NEARLY_ONE)[:, None]
    score = centre + width * u / (1.0 - np.abs(u))
    mean = Predictive(model.noise_, score, model.sigma_, model.lower_, model.upper_).mean()
    base = np.where(both, 0.0, np.clip(score, model.lower_, model.upper_))
    values = (mean - base).reshape(n_pieces, len(_INNER), -1)
    inverse = np.linalg.inv(np.vander(_INNER, increasing=True))
    return np.ascontiguousarray(np.einsum("pi,kit->ptk", inverse, values))


# From features to a prediction, node by node.


def write_prediction(graph: Graph, model: Any, kind: Output, q: float = 0.5) -> str:
    """Add the nodes that predict (N, T) from features (N, D).

    All is computed in double precision and rounded once, at the end: an intercept may be the
    small difference of large numbers. Each layer but the last passes on its scores, clipped to the
    bounds, alone or in front of the features.

    Parameters
    ----------
    graph : Graph
    model : fitted estimator
    kind : {"mean", "clip", "latent", "p_lower", "p_upper", "quantile"}
    q : float
        Which quantile.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> model = TobitRegressor(upper=9.0).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 3.0, 5.0, 9.0])
    >>> graph = Graph()
    >>> write_prediction(graph, model, "clip")
    'Min4'
    >>> [node.op_type for node in graph.nodes]
    ['Cast', 'MatMul', 'Add', 'Max', 'Min']
    """
    if kind in ("p_lower", "p_upper", "quantile") and model.noise_.name != "gaussian":
        raise ValueError(
            f"the output {kind!r} can be exported to ONNX for Gaussian noise; this model has "
            f"{model.noise_.name} noise. Fit it with noise='gaussian', or export kind='mean'"
        )
    if hasattr(model, "layers_"):
        layers = [([layer.V.T, layer.U.T], layer.intercept) for layer in model.layers_]
    else:
        layers = [([model.coef_.T], model.intercept_)]
    score, bounds = "", (model.lower_, model.upper_)
    features = inputs = graph.add("Cast", "X", to=_DOUBLE)
    trees = vars(model).get("trees_")
    if trees is not None:
        inputs = graph.add("Concat", tree_scores(graph, features, trees), features, axis=1)
    for depth, (factors, intercept) in enumerate(layers):
        if depth:
            inputs = clip(graph, score, *bounds)
            if len(factors[0]) > len(intercept):  # with a skip connection
                inputs = graph.add("Concat", inputs, features, axis=1)
        for factor in factors:
            inputs = graph.add("MatMul", inputs, factor)
        score = graph.add("Add", inputs, intercept)
    if kind == "clip":
        score = clip(graph, score, *bounds)
    if kind == "mean" and model.noise_.name == "gaussian":
        score = censored_mean(graph, score, model.sigma_, *bounds)
    elif kind == "mean":
        score = tabulated_mean(graph, score, model)
    if kind in ("p_lower", "p_upper"):
        upper = kind == "p_upper"
        score = bound_proba(graph, score, model.sigma_, bounds[upper], upper=upper)
    if kind == "quantile":
        score = clip(graph, graph.add("Add", score, model.sigma_ * norm.ppf(q)), *bounds)
    return score


# The file.


def onnx_bytes(model: Any, kind: Output, precision: Precision, q: float = 0.5) -> bytes:
    """The file: one input ``X`` of shape (batch, D), one output named by its kind, (batch, T).

    The metadata hold names, bounds, noise and its scales, kind and version, those that are lists
    as JSON; an open bound is null.

    Examples
    --------
    >>> import onnx
    >>> from deeptobit import TobitRegressor
    >>> model = TobitRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 3.0, 5.0, 9.0])
    >>> read = onnx.load_from_string(onnx_bytes(model, "mean", "float32"))
    >>> {entry.key: entry.value for entry in read.metadata_props}["upper"]
    '[null]'
    """
    check_is_fitted(model)
    element_type = {"float32": _FLOAT, "float64": _DOUBLE}.get(precision)
    if element_type is None:
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {precision!r}")
    if precision == "float32":
        _check_resolution(model)
    onnx = require("onnx", _EXTRA)
    helper, graph = onnx.helper, Graph()
    graph.add("Cast", write_prediction(graph, model, kind, q), to=element_type, output=kind)
    sizes = {"X": model.n_features_in_, kind: len(model.target_names_)}
    info = helper.make_tensor_value_info
    given, predicted = (info(at, element_type, ["batch", n]) for at, n in sizes.items())
    proto = helper.make_model(
        helper.make_graph(graph.nodes, "deeptobit", [given], [predicted], graph.constants),
        opset_imports=[
            helper.make_opsetid("", _OPERATOR_SET),
            helper.make_opsetid(_TREE_DOMAIN, _TREE_OPERATOR_SET),
        ],
        ir_version=_FILE_VERSION,
        producer_name="deeptobit",
        producer_version=version("deeptobit"),
    )
    helper.set_model_props(proto, _metadata(model, kind))
    onnx.checker.check_model(proto)
    return bytes(proto.SerializeToString())


def _metadata(model: Any, kind: str) -> dict[str, str]:
    default = [f"x{column}" for column in range(model.n_features_in_)]
    names = [str(name) for name in getattr(model, "feature_names_in_", default)]
    lists = {"feature_names": names, "target_names": list(model.target_names_)}
    for name in ("lower", "upper", "sigma"):
        values = getattr(model, f"{name}_").tolist()
        lists[name] = [value if np.isfinite(value) else None for value in values]
    as_json = {key: json.dumps(values, ensure_ascii=False) for key, values in lists.items()}
    facts = {"kind": kind, "noise": model.noise_.name, "deeptobit_version": version("deeptobit")}
    return facts | as_json


def _check_resolution(model: Any) -> None:
    """Single precision must tell predictions apart as finely as is promised."""
    for name, lower, upper in zip(model.target_names_, model.lower_, model.upper_, strict=True):
        rounding = np.finfo(np.float32).eps * max(abs(lower), abs(upper))
        if np.isfinite(rounding) and rounding > _ACCURACY * (upper - lower):
            raise ValueError(
                f"target {name!r} lies between {lower:.10g} and {upper:.10g}, which single "
                "precision does not resolve; pass dtype='float64'"
            )
