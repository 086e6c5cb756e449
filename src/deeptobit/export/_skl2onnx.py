"""A step of a scikit-learn pipeline, as skl2onnx wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from deeptobit.export._graph import DOUBLE, FLOAT, Graph
from deeptobit.export._prediction import write_prediction
from deeptobit.export._scores import CensoredScores
from deeptobit.extras import require

EXTRA = "onnx"
_KINDS = ["mean", "clip", "latent"]


def register_converter(classes: Iterable[type], scores_of: Callable[[Any], CensoredScores]) -> None:
    """Teach skl2onnx to convert estimators of some classes, wherever their ``predict`` is called.

    Parameters
    ----------
    classes : iterable of type
    scores_of : callable
        From a fitted estimator to what its prediction is computed from.
    """
    skl2onnx = require("skl2onnx", EXTRA)

    def convert(scope: Any, operator: Any, container: Any) -> None:
        _check_predicts(scope, operator)
        estimator = operator.raw_operator
        options = container.get_options(estimator, {"kind": None})
        target = operator.outputs[0]
        graph = Graph(prefix=f"{scope.get_unique_variable_name('deeptobit')}_")
        write_prediction(
            graph,
            operator.inputs[0].full_name,
            scores_of(estimator),
            options["kind"] or estimator.prediction,
            output=target.full_name,
            element_type=DOUBLE if _is_double(target) else FLOAT,
        )
        for name, value in graph.constants.items():
            container.add_initializer(name, DOUBLE, list(value.shape), value.ravel())
        for node in graph.nodes:
            container.add_node(node.operator, list(node.inputs), node.output, **node.attributes)

    for cls in classes:
        skl2onnx.update_registered_converter(
            cls, f"Deeptobit{cls.__name__}", _set_shape, convert, options={"kind": _KINDS}
        )


def _set_shape(operator: Any) -> None:
    """(batch, T), in double precision if the features are, else in single."""
    types = require("skl2onnx.common.data_types", EXTRA)
    features = operator.inputs[0]
    kind = types.DoubleTensorType if _is_double(features) else types.FloatTensorType
    n_tasks = len(operator.raw_operator.target_names_)
    operator.outputs[0].type = kind([features.get_first_dimension(), n_tasks])


def _is_double(variable: Any) -> bool:
    types = require("skl2onnx.common.data_types", EXTRA)
    return isinstance(variable.type, types.DoubleTensorType)


def _check_predicts(scope: Any, operator: Any) -> None:
    """Refuse a model whose ``transform`` is meant: a step that others follow."""
    estimator, written = operator.raw_operator, operator.outputs[0]
    for other in scope.operators.values():
        followed = any(written is variable for variable in other.inputs)
        parts = getattr(other.raw_operator, "estimators_", [])
        if followed and not any(estimator is part for part in parts):
            raise NotImplementedError(
                f"{type(estimator).__name__} is followed by another step, which sees its "
                "transform; only its predict can be converted"
            )
