"""The same numbers in another form of input give the same model."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from deeptobit.arrays import FloatArray
from deeptobit.targets import CensoredTargets
from tests.conformance.estimators import EVERY_ESTIMATOR
from tests.conformance.problems import Problem, ask, assert_same, fitted, make_problem, seeded

_SINGLE = 1e-4  # seven digits, of which sums lose some

_LAYOUTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "Fortran's order": np.asfortranarray,
    "every second row of a larger array": lambda array: np.repeat(array, 2, axis=0)[::2],
    "every second value of a larger array": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "rows that run backward in memory": lambda array: array[::-1].copy()[::-1],
    "read-only memory": lambda array: _read_only(array),
}


@EVERY_ESTIMATOR
def test_layouts_agree(estimator: Any) -> None:
    """X and Y may lie in memory in any order, with gaps, backward, or read-only."""
    problem = make_problem(estimator)
    expected = ask(fitted(estimator, problem), problem.X)
    for name, layout in _LAYOUTS.items():
        X, Y = layout(problem.X), layout(problem.Y)
        assert_same(ask(seeded(estimator).fit(X, Y), X), expected, f"for {name}")


@EVERY_ESTIMATOR
@pytest.mark.filterwarnings("ignore:features 'x4' are constant")
def test_a_feature_that_was_constant_tells_nothing_of_new_rows(estimator: Any) -> None:
    """As an indicator whose only row is in the test set; 677 rows sum it with rounding."""
    problem = make_problem(estimator, n_samples=677)
    X = np.column_stack([problem.X, np.full(677, -0.034401045807689525)])
    model = seeded(estimator).fit(X, problem.Y)
    other = X.copy()
    other[:, -1] = 29.0
    np.testing.assert_allclose(model.predict(other), model.predict(X), rtol=1e-9)


@EVERY_ESTIMATOR
def test_containers_agree(estimator: Any) -> None:
    """Data frames of pandas and, if it is installed, polars are their arrays, and bring names.

    A missing outcome is NaN in an array and in pandas, null in polars.
    """
    problem = make_problem(estimator, missing=0.1)
    expected = ask(fitted(estimator, problem), problem.X)
    features = [f"feature {column}" for column in range(problem.X.shape[1])]
    for name, X, Y in _frames(problem, features):
        model = seeded(estimator).fit(X, Y)
        found = list(getattr(model, "feature_names_in_", []))
        assert found == features, f"feature_names_in_ are wrong for {name}: {found}"
        found = list(getattr(model, "target_names_", problem.names))
        assert found == list(problem.names), f"target_names_ are wrong for {name}: {found}"
        assert_same(ask(model, X), expected, f"for {name}")


@EVERY_ESTIMATOR
def test_precision_is_kept(estimator: Any) -> None:
    """Features in single precision are answered in single precision, all others in double."""
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    single, double = problem.X.astype(np.float32), problem.X.astype(np.float32).astype(np.float64)
    answers = ask(model, single)
    assert_same(answers, ask(model, double), "in single precision", rtol=_SINGLE, atol=_SINGLE)
    alone = seeded(estimator).fit(single, problem.Y)
    for kind, found, dtype in (
        ("float64", ask(model, double), np.float64),
        ("int64", ask(model, np.rint(double).astype(np.int64)), np.float64),
        ("float32", answers, np.float32),
        ("float32, on which it was fitted too,", ask(alone, single), np.float32),
    ):
        for name, answer in found.items():
            assert answer.dtype == dtype, f"{name} answers features of {kind} in {answer.dtype}"


@EVERY_ESTIMATOR
def test_censored_targets_agree(estimator: Any) -> None:
    """A :class:`~deeptobit.CensoredTargets` that is built from Y and its bounds stands for both."""
    problem = make_problem(estimator, missing=0.1)
    targets = CensoredTargets.from_bounds(
        problem.Y, problem.lower, problem.upper, names=problem.names
    )
    expected = fitted(estimator, problem)
    model = seeded(estimator).fit(problem.X, targets)
    assert_same(ask(model, problem.X), ask(expected, problem.X), "for CensoredTargets")
    np.testing.assert_allclose(
        model.score(problem.X, targets),
        expected.score(problem.X, problem.Y),
        err_msg="score differs for CensoredTargets",
    )


@EVERY_ESTIMATOR
def test_bounds_agree(estimator: Any) -> None:
    """Bounds may be written by position, by name, in any order of names, or row by row."""
    problem = make_problem(estimator)
    expected = ask(fitted(estimator, problem), problem.X)
    for name, write in _spellings(problem).items():
        bounds = {"lower": write(problem.lower), "upper": write(problem.upper)}
        model = fitted(clone(estimator).set_params(**bounds), problem)
        assert_same(ask(model, problem.X), expected, f"for bounds as {name}")
    lower, upper = (
        np.broadcast_to(bound, problem.Y.shape) for bound in (problem.lower, problem.upper)
    )
    model = fitted(estimator, problem, lower=lower, upper=upper)
    assert_same(ask(model, problem.X), expected, "for bounds row by row")


def _frames(problem: Problem, features: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """X and Y as data frames, by the name of their package."""
    import pandas as pd

    one = problem.Y.ndim == 1
    Y = pd.DataFrame(problem.Y.reshape(len(problem.X), -1), columns=list(problem.names))
    yield "pandas", pd.DataFrame(problem.X, columns=features), Y[problem.names[0]] if one else Y
    if find_spec("polars") is not None:
        import polars as pl

        null = pl.DataFrame(Y.to_dict("list")).fill_nan(None)
        X = pl.DataFrame(problem.X, schema=features)
        yield "polars", X, null[problem.names[0]] if one else null


def _spellings(problem: Problem) -> dict[str, Callable[[FloatArray], Any]]:
    import pandas as pd

    backward = list(problem.names)[::-1]
    return {
        "a list": lambda bound: bound.tolist(),
        "an array": lambda bound: bound,
        "a dict": lambda bound: dict(zip(backward, bound[::-1].tolist(), strict=True)),
        "a Series by name": lambda bound: pd.Series(bound[::-1], index=backward),
        "a Series by position": lambda bound: pd.Series(bound),
    }


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    copy = array.copy()
    copy.setflags(write=False)
    return copy


# What an estimator must leave alone: its inputs, its state, what it hands out.


@EVERY_ESTIMATOR
def test_inputs_are_not_modified(estimator: Any) -> None:
    """Fitting, predicting and scoring leave X, Y, weights and limits as they were."""
    problem = make_problem(estimator, missing=0.1)
    metadata = _metadata(estimator, problem)
    given = {"X": problem.X, "Y": problem.Y, **metadata}
    before = {name: array.copy() for name, array in given.items()}
    for method in ("fit", "partial_fit"):
        if not hasattr(estimator, method):
            continue
        model = getattr(seeded(estimator), method)(problem.X, problem.Y, **metadata)
        ask(model, problem.X)
        model.score(problem.X, problem.Y)
        for name, array in given.items():
            np.testing.assert_array_equal(
                array, before[name], err_msg=f"{name} is modified by {method} or a prediction"
            )


@EVERY_ESTIMATOR
def test_nothing_is_shared(estimator: Any) -> None:
    """What happens to the arrays after ``fit`` does not happen to the model."""
    problem = make_problem(estimator)
    given = problem.copy()
    model = fitted(estimator, given)
    expected = ask(model, problem.X)
    given.X[:], given.Y[:] = 1e3, 1e3
    assert_same(ask(model, problem.X), expected, "after the training data were overwritten")
    for answer in ask(model, problem.X).values():
        if answer.flags.writeable:
            answer[...] = 1e3
    assert_same(ask(model, problem.X), expected, "after an earlier answer was overwritten")


@EVERY_ESTIMATOR
def test_predict_is_pure(estimator: Any) -> None:
    """Asking changes neither the answers, nor the fitted attributes, nor NumPy's global seed."""
    problem = make_problem(estimator)
    model = fitted(estimator, problem)
    attributes, seed = _attributes(model), _global_seed()
    first = ask(model, problem.X)
    model.score(problem.X, problem.Y)
    changed = [name for name, value in _attributes(model).items() if value != attributes.get(name)]
    assert not changed, f"predictions change {', '.join(changed)}"
    assert _global_seed() == seed, "predictions draw from NumPy's global random numbers"
    assert_same(ask(model, problem.X), first, "when asked again", rtol=0.0, atol=0.0)


def _metadata(estimator: Any, problem: Problem) -> dict[str, FloatArray]:
    """What ``fit`` takes beside X and Y, row by row."""
    rows = {
        "sample_weight": np.linspace(0.5, 2.0, len(problem.X)),
        "lower": np.broadcast_to(problem.lower, problem.Y.shape).copy(),
        "upper": np.broadcast_to(problem.upper, problem.Y.shape).copy(),
    }
    return {name: value for name, value in rows.items() if has_fit_parameter(estimator, name)}


def _attributes(model: Any) -> dict[str, str]:
    """A fingerprint of every fitted attribute."""
    return {name: joblib.hash(value) for name, value in vars(model).items() if name[-1] == "_"}


def _global_seed() -> str:
    return str(joblib.hash(np.random.get_state()))  # noqa: NPY002  (to see whether anyone uses it)
