"""What holds for every problem: a refusal in a sentence, or numbers that can be used."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from deeptobit.arrays import FloatArray
from deeptobit.estimators import estimator_from_state, estimator_state
from deeptobit.exceptions import CensoringWarning, CollinearityWarning, SeparationWarning
from tests.properties.problems import Problem, Recipe

# Sentences with which a problem may be refused. Whatever else is raised is a fault.
REFUSALS = tuple(
    re.compile(sentence)
    for sentence in (
        r"is not enough to learn from$",
        r"has no entry \(all are missing( or have weight 0)?\); drop it$",
        r"cannot determine \d+ features without a penalty; set alpha > 0",
        r"has \d+ entries for \d+ features; set alpha > 0, or drop it$",
        r"^(target|feature) .* is too large in row \d+ \(.*\); rescale it$",
        r"^(target|feature) .* is too small \(at most .*\); rescale it$",
        r"^X contains infinity \(inf\): feature ",
        r"^cv=\d+ needs at least \d+ (rows|groups), and there are \d+; choose a smaller cv$",
        r"^no row has both an outcome and a positive weight; start with",
        r"sigma = .* cannot belong to values (that spread by|up to) .*; give sigma in the unit",
        r"bound of target .* is too large \(.*\); use None for an open side, or rescale the",
        r"supports only penalty='ridge' with feature_sparsity=0",
        r"^target .* has no entry in the training rows of fold \d+; drop it, or choose",
        r"^fold \d+ holds out no known entry; choose other folds$",
        r"^the largest sample_weight is .*; weights count rows, rescale them$",
        r"^sample_weight is zero in every row$",
        r"^Y contains infinity or a value too large: target ",
    )
)
_OUR_WARNINGS = (CensoringWarning, CollinearityWarning, ConvergenceWarning, SeparationWarning)
_QUANTILES = (0.0, 0.05, 0.5, 0.95, 1.0)


def examine(recipe: Recipe) -> str | None:
    """Fit a problem and check what comes out; returns the sentence with which it was refused."""
    with only_our_warnings():
        try:
            problem = recipe.build()
            given = deepcopy((problem.X, problem.y, problem.sample_weight))
            model = problem.fit()
        except ValueError as error:
            return check_refusal(error)
        check_parameters(model)
        check_predictions(model, problem)
    assert_same(given, (problem.X, problem.y, problem.sample_weight))
    return None


@contextmanager
def only_our_warnings() -> Iterator[None]:
    """Every warning is an error, but those that tell a user about the data."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in _OUR_WARNINGS:
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "no target has a bound, so that the network is linear")
        # OpenBLAS has raised this flag for lanes of a register that no result comes from (NumPy's
        # issues 13173 and 24067). What comes out of products is checked to be finite all the same.
        warnings.filterwarnings("ignore", "invalid value encountered in matmul", RuntimeWarning)
        yield


def check_refusal(error: ValueError) -> str:
    """The sentence of a refusal; an error that is none is raised again."""
    sentence = str(error)
    if type(error) is not ValueError or not any(known.search(sentence) for known in REFUSALS):
        raise error
    return sentence


def check_parameters(model: Any) -> None:
    """Everything fitted is finite, and every noise has a scale."""
    for name in ("coef_", "intercept_", "sigma_", "U_", "V_"):
        value = getattr(model, name, None)
        assert value is None or np.isfinite(value).all(), f"{name} is not finite"
    assert (model.sigma_ > 0.0).all(), "sigma_ is not positive"
    for layer in getattr(model, "layers_", ()):
        for name in ("U", "V", "intercept", "sigma"):
            assert np.isfinite(getattr(layer, name)).all(), f"{name} of a layer is not finite"


def check_predictions(model: Any, problem: Problem) -> None:
    """Every kind of prediction is finite and in its place; asking and saving change nothing."""
    before = deepcopy(vars(model))
    first = predictions(model, problem)
    assert_same(first, predictions(model, problem))
    assert_same(first, predictions(estimator_from_state(estimator_state(model)), problem))
    fitted = {name: value for name, value in vars(model).items() if name != "_trained"}
    assert_same({name: before[name] for name in fitted}, fitted)
    lower, upper = _bounds(problem, first["clip"].shape)
    for name in ("mean", "clip", "median", "interval low", "interval high"):
        assert np.isfinite(first[name]).all(), f"{name} is not finite"
        precision = first[name].dtype
        assert (first[name] >= _rounded(lower, precision)).all(), f"{name} lies below a bound"
        assert (first[name] <= _rounded(upper, precision)).all(), f"{name} lies above a bound"
    assert np.isfinite(first["latent"]).all(), "latent is not finite"
    for name in ("at lower", "at upper"):
        assert ((first[name] >= 0.0) & (first[name] <= 1.0)).all(), f"{name} is no probability"
    assert (first["at lower"][np.isneginf(lower)] == 0.0).all(), "mass at an open side"
    assert (first["at upper"][np.isposinf(upper)] == 0.0).all(), "mass at an open side"
    assert (first["interval low"] <= first["interval high"]).all(), "an interval is not in order"
    assert not np.isnan(first["quantiles"]).any(), "a quantile is NaN"
    assert (first["quantiles"][1:] >= first["quantiles"][:-1]).all(), "quantiles are not in order"


def predictions(model: Any, problem: Problem) -> dict[str, FloatArray]:
    """Everything that can be asked of a model, at the rows of the problem."""
    X, bounds = problem.X, problem.bounds
    found = {kind: model.predict(X, kind, **bounds) for kind in ("mean", "clip", "latent")}
    found["median"] = model.predict_quantile(X, 0.5, **bounds)
    found["quantiles"] = model.predict_quantile(X, _QUANTILES, **bounds)
    found["interval low"], found["interval high"] = model.predict_interval(X, **bounds)
    found["at lower"], found["at upper"] = model.predict_bound_proba(X, **bounds)
    return found


def assert_same(first: Any, second: Any) -> None:
    """Equal to the last bit, in nested dicts and tuples too; what has no arrays is not compared."""
    if isinstance(first, dict):
        assert first.keys() == second.keys()
        first, second = tuple(first.values()), tuple(second.values())
    if isinstance(first, (tuple, list)):
        for one, other in zip(first, second, strict=True):
            assert_same(one, other)
    elif hasattr(first, "low"):
        assert_same((first.low, first.high), (second.low, second.high))
    elif hasattr(first, "toarray"):
        np.testing.assert_array_equal(first.toarray(), second.toarray())
    elif hasattr(first, "__array__"):
        np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


def _bounds(problem: Problem, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Bounds in force, in the shape of a prediction."""
    whole = (shape[0], len(problem.lower))
    lower = problem.bounds.get("lower", problem.lower)
    upper = problem.bounds.get("upper", problem.upper)
    return np.broadcast_to(lower, whole).reshape(shape), np.broadcast_to(upper, whole).reshape(
        shape
    )


def _rounded(bounds: FloatArray, precision: Any) -> FloatArray:
    """Bounds as they are in a precision, in which large ones are open."""
    with np.errstate(over="ignore", under="ignore"):
        return bounds.astype(precision)
